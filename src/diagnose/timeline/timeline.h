/* The timeline of a run: what the devices did and when, from the activities of model/trace.h. Pure and streaming: memory
 * grows with the number of tracks, kernels, steps and windows, each of which has an end, not with that of activities; but for
 * a run without steps, whose activities are kept to find some (timeline/periodic.h).
 *
 * Definitions, on the union over a device's streams; they are those of Holistic Trace Analysis' temporal breakdown
 * (facebookresearch/HolisticTraceAnalysis, breakdown_analysis.py), per device instead of per rank:
 *   window      last end - first start of its kernels, copies, memsets and graphs
 *   busy        length of the union of all of them;  idle = window - busy
 *   compute     length of the union of kernels (and graphs) that do not communicate
 *   non_compute busy - compute
 *   comm        length of the union of kernels of class comm (kernel_class.def; theirs match ^nccl.*|.*ncclKernel.*)
 *   comm_overlap  share of comm during which compute ran too; NAN without comm
 *   copy        length of the union of copies and memsets; copy_overlap likewise
 * Where the trace was duty-cycled (WINDOW activities), all lengths count inside the windows only: busy + idle = `traced_s`,
 * how much of the window they cover. Sums of durations (kernel_sum_s, rows, copies) are of whole activities. Nothing is
 * extrapolated here. */
#pragma once

#include "diagnose/input.h"
#include "diagnose/meter/stat.h"
#include "diagnose/timeline/kernel_class.h"
#include "diagnose/timeline/traced.h"

enum hec_copy_direction {
    HEC_COPY_HOST_TO_DEVICE,
    HEC_COPY_DEVICE_TO_HOST,
    HEC_COPY_DEVICE_TO_DEVICE,
    HEC_COPY_PEER,
    HEC_COPY_OTHER,
    HEC_COPY_DIRECTION_COUNT
};
enum hec_copy_host { HEC_COPY_PAGEABLE, HEC_COPY_PINNED, HEC_COPY_HOST_OTHER, HEC_COPY_HOST_COUNT };

struct hec_copy_total {
    int64_t count;
    double bytes, seconds; /* seconds: sum of durations, not a union */
};

struct hec_device_timeline {
    int device;          /* hec_device.index */
    double from_s, to_s; /* first start, last end; NAN without activity */
    double window_s, busy_s, idle_s, compute_s, non_compute_s, comm_s, copy_s;
    double comm_overlap, copy_overlap; /* 0..1, NAN without */
    double traced_s;                   /* inside [from, to], covered by windows; window_s when not duty-cycled. Where
                                          several processes share the device: while all that lived were traced */
    struct hec_intervals traced;       /* those windows; everywhere when not duty-cycled */
    int64_t kernels, copies, memsets, graphs;
    double kernel_sum_s; /* sum of durations over all streams */
    int streams;
    struct hec_quantiles gap;          /* intervals in which the device was idle, inside the windows */
    struct hec_quantiles launch_delay; /* start on the device - start of the launching call */
    struct hec_quantiles kernel;       /* durations */
    double queue_mean, queue_max;      /* launched and not finished, mean over time and largest; NAN without launches */
    struct hec_copy_total copied[HEC_COPY_DIRECTION_COUNT][HEC_COPY_HOST_COUNT];
    double memset_bytes;
    const struct hec_kernel_row *rows; /* one a kernel, by seconds, largest first; in the run's list of all devices */
    int row_count;
};

/* One row a kernel name (all its launch configurations together; the numbers are those of the most frequent one). */
struct hec_kernel_row {
    int device;
    char name[512]; /* demangled where it can be; text as recorded otherwise */
    int64_t count;
    double seconds; /* sum of durations */
    double bytes;   /* of collectives, over the bus of a rank, where an imported trace says it; 0 unknown */
    double share;   /* of the sum over all kernels of the device */
    double mean_us, minimum_us, maximum_us;
    int configurations; /* different ones seen */
    int64_t grid[3];    /* -1 unknown */
    int32_t block[3], registers;
    int64_t static_shared_bytes, dynamic_shared_bytes;
    double occupancy_limit; /* 0..1: warps that fit on an SM by registers, shared memory and block size; NAN unknown */
    char occupancy_limiter[16]; /* "registers", "shared", "block", "warps"; "" unknown */
    enum hec_kernel_class kernel_class;
    enum hec_kernel_precision precision;
};

struct hec_step_number {
    int32_t pid;  /* of the process that reported it */
    int64_t step; /* in which of that process's steps, from 0 */
    int part;     /* of gradients: which part of the parameters; -1: all */
    double value;
};

struct hec_step_summary {
    enum hec_step_source source;
    double confidence;       /* 1 where the program says so; less where found */
    char unit[64];           /* "sample"; "" unknown */
    int64_t count, examined; /* examined: the first ones, which durations, samples and shares are about */
    struct hec_quantiles duration;
    double samples_per_step; /* median, NAN unknown */
    double units;            /* sum of the units of all steps, NAN unknown */
    double data_s;     /* time in phases called "data" within the steps, of one process's main thread; NAN unknown */
    double busy_share; /* of the device within the steps that lie wholly inside windows; NAN unknown */
    int32_t pid;       /* whose steps these are: the process with most */
    int64_t values;    /* numbers called "loss" */
    double value_first, value_last;
    /* Of the losses of the process that had nan or infinite ones first: how many, and where the latest of them in a row begin.
     * Steps are numbered from 1; 0: not known. */
    int64_t nonfinite, nonfinite_ns, nonfinite_step;
    int64_t finite_step;   /* of the loss before these */
    double nonfinite_last; /* the last loss of all: nan, infinite, or finite again */
    /* Of that process first, then of others with steps of that source; in the run's steps alone (not in a device's); malloc'ed;
     * NULL: none. */
    struct hec_step_number *losses, *gradients; /* gradients: norms, of a process in the order in which they came */
    int64_t loss_count, gradient_count;
};

#define HEC_TRACE_PROCESSES_MAX 64

struct hec_trace_cost {
    int mode; /* enum hec_trace_mode */
    int processes;
    int64_t records, dropped, lost, bad, windows;
    double coverage; /* traced time over the time since tracing began, 0..1; NAN without */
    /* Slowdown of the whole run, with its interval (trace_cost.h): measured by the steps before CUPTI's first window, else
     * estimated where there was no CUPTI, else unknown. NAN unknown. */
    double overhead, overhead_low, overhead_high;
    double overhead_inside, overhead_after; /* of a step inside of windows, and after them; NAN where not measured */
    bool overhead_unknown;                  /* CUPTI was attached, and no steps show what it cost */
    bool overhead_measured;
    double rest_s; /* calls were not recorded: of all processes that made so many that recording them costs something */
    double self_cpu_s;
    char holder[128];
    double holder_s;
    struct hec_reason why; /* why there is no trace, or not all of it */
    int cupti_version;     /* -1 none */
    char library[256];
};

struct hec_timeline {
    struct hec_trace_cost trace;
    struct hec_device_timeline *devices; /* only those with activities; malloc'ed */
    int device_count;
    struct hec_kernel_row *kernels; /* by device, then by seconds, largest first; malloc'ed */
    int kernel_count;
    struct hec_step_summary steps;
    int64_t stacks; /* samples of call stacks */
};

/* Fed by a pass (pass.h), which is to stay until the end. A run without a trace gives an empty timeline (mode OFF, why says
 * so). 0 or HEC_ERR_NOMEM; on failure *out is empty. The end frees the builder in any case. */
struct hec_pass;
struct hec_pass_consumer;
struct hec_timeline_builder;
int hec_timeline_begin(struct hec_pass *pass, struct hec_timeline_builder **out, struct hec_pass_consumer *consumer);
struct hec_step_list;
/* found: gets the steps found in the sequence of kernels, of a run without others; its list is to be freed. NULL: not asked for. */
int hec_timeline_end(struct hec_timeline_builder *builder, struct hec_step_list *found, struct hec_timeline *out);
void hec_timeline_abandon(struct hec_timeline_builder *builder); /* NULL is fine */
void hec_timeline_free(struct hec_timeline *timeline);
