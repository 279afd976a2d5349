/* What a run amounted to: the results of the analysis, plain data. Filled by hec_summary_* (pure functions: arrays in,
 * results out), read by src/report. Numbers that were not measured are NAN, never 0. */
#pragma once

#include "base/error.h"
#include "diagnose/finding.h"
#include "diagnose/input.h"
#include "diagnose/meter/readings.h"
#include "diagnose/reason.h"
#include "diagnose/steady_blocks.h"
#include "diagnose/states/calls.h"
#include "diagnose/states/gaps.h"
#include "diagnose/states/hold.h"
#include "diagnose/states/ledger.h"
#include "diagnose/states/source_lines.h"
#include "diagnose/states/source_modules.h"
#include "diagnose/states/steady.h"
#include "diagnose/timeline/timeline.h"
#include "diagnose/watts/watts.h"
#include "model/part.h"
#include "model/printed.h"
#include "model/run.h"

#include <stddef.h>

#include <string.h>

/* The dossier of one device: all that is known of it in a run. What hangs on a pointer is the dossier's own. */
/* What telemetry says of the time after the last activity of a device that a trace shows. */
struct hec_after {
    double seconds; /* 0: there is no such time that matters, or nobody read it */
    double engine;  /* NAN unknown */
    double watts;   /* NAN unknown */
    double sm_mhz;  /* clock of the SMs; NAN unknown */
    bool goes_on;   /* steps end in it: the program lives */
    bool works;     /* it was at work all the time, and for this program: what it began last has not ended */
};

struct hec_summary;

struct hec_device_diagnosis {
    struct hec_device_summary readings; /* of the sensors and the driver */
    /* From here on of the trace. NULL: nothing is known of the kind */
    struct hec_device_timeline *timeline; /* NULL: no activity of it was traced */
    struct hec_ledger_device *ledger;     /* of the whole run; also of a device that is held and not used */
    struct hec_ledger_device *steady;     /* seconds of the steady part alone (steady.h): what rules judge */
    struct hec_gap_facts *gaps;           /* of the steady part */
    struct hec_call_facts *calls;
    struct hec_watts *watts;       /* what the ledger's joules rest on, and the classes of kernels */
    struct hec_step_summary steps; /* what its processes do; count 0: none. hec_steps_of says what it goes by */
    struct hec_source_lines source, steady_source, setup_source; /* of idle states; empty without stack samples */
    struct hec_after after;
    struct hec_device_parts {
        double steps; /* that were traced, those in part by their share; 0: all else is unknown */
        bool glimpse; /* they are of one; else of all that was traced */
        struct hec_device_part {
            double seconds;                                        /* of its kernels and graphs, each by itself */
            double step_joules, step_joules_low, step_joules_high; /* by the watts of their classes; NAN unknown */
        } part[HEC_STEP_PARTS + 1];                                /* the last: launched in none of them */
    } parts;
    double mfu; /* of the loop, by the FLOPs of the model that the hooks counted; NAN unknown */
    double
        loop_tensor; /* of the dense peak, at most: tensor pipes active in the loop, at the highest clock; NAN unknown */
    double launching_s; /* that it waited for a framework's own code, by stacks, 0.2 ms and more; of the whole run */
    double
        sharding_share; /* of what it waited for its host in the steady part (hec_state_sharded): of FSDP's own code, by stacks */
    double compiling_s;                /* that it waited while the program compiled, by its stacks; of the whole run */
    struct hec_hold hold;              /* without use, between two works */
    struct hec_source_line hold_line;  /* where the program was then; line 0: unknown */
    struct hec_source_modules modules; /* what launched compute; empty where no ranges or operators are known */
};

/* A process of the job. What it did stands in the dossiers of its devices: steps, and calls. What a server answers (a request)
 * is to be a unit of the same place. */
struct hec_rank {
    int32_t pid;
    int32_t number;              /* of the job, as its environment or the imported trace says; -1: neither does */
    int32_t local;               /* of its host; -1 unknown */
    uint64_t devices;            /* bits (1 << hec_device.index) of those it has streams on, or whose steps are its */
    char launcher[16], host[64]; /* what started it ("torchrun"), and where; empty: unknown */
    /* In collectives that were matched across ranks, or as it was inferred, of the loop: NAN unknown */
    double waited_s, waited_j; /* for others, with nothing else to do */
    double held_s, held_j;     /* that others waited for it, each of them counted */
    int64_t collectives, last; /* that it took part in, and those to which it came last; 0 unknown */
    bool holds;                /* others wait for it more than for most */
    bool unusual;              /* its figures are not those of the usual rank (job_alike.c) */
    bool in_short_table;       /* which has a row for it: it holds others up, is unusual, or stands for those alike */
};
/* The device of a rank; NULL: none is known, or it has several. */
const struct hec_device_diagnosis *hec_rank_device(const struct hec_summary *summary, const struct hec_rank *rank);
double hec_rank_joules(const struct hec_device_diagnosis *device); /* NAN unknown, as of NULL */
/* The rank whose process alone uses a device; -1: it is not known. */
int hec_rank_of(const struct hec_rank *ranks, int count, int device);

/* Devices that communicate wait for each other inside communication kernels. Where these were matched across ranks, a device waits from
 * its own begin until the last rank has begun; where they were not, the least communication of all is what the transfers take, and what a
 * device has more of is waiting. Where kernels of some ranks alone were recorded, it is inferred from what a rank does that the others do
 * not (job_inferred.c). Of the steady part (steady.h): ranks set themselves up side by side. */
struct hec_collectives {
    int count;               /* devices that communicate; 0: all else is none */
    uint64_t devices;        /* bits (1 << hec_device.index) of those */
    int slowest, waits_most; /* the device that the others wait for the most, and the one that loses most by it */
    double waited_s[HEC_DEVICE_MAX]; /* by hec_device.index: with nothing else to do */
    double lost_s[HEC_DEVICE_MAX];   /* of that, for a rank that is late: its host would not have taken it anyway */
    double mean_work_s;              /* hec_ledger_work */
    double lost_j;                   /* of all of them, at each one's watts in communication; NAN unknown */
    double slowest_share;            /* of all waiting: for the slowest; NAN: it was not matched */
    bool estimated;                  /* some of those watts are the device's mean */
    bool inferred;                   /* who waits for whom */
    double own_s,
        own_code_s; /* of the slowest: that it idles for lines which its process alone runs, of them no data; 0: none are known */
    bool on_host;           /* all of them are collectives of the host, in which programs were seen by their stacks */
    double a_step;          /* that were recorded of a rank, matched or not: of a step. 0 unknown */
    int64_t matched, alone; /* collectives; kernels whose counterparts of other ranks were not recorded */
    double met_s;           /* time in which the matched ones lie; of it shares were made */
    double transfer_s;      /* of a matched one, from the last begin to its end: the mean. NAN unknown */
    double bus_bytes;       /* that one moves over the bus of a rank, as nccl-tests count: the mean. NAN unknown */
    double host_s;          /* that one takes of each host: the mean. NAN unknown */
};

/* How often the ranks of a job make their gradients the same, as the hooks or an imported trace show it of one of them. */
struct hec_gradient_syncs {
    int64_t syncs, passes, steps; /* backward passes that synchronise, all of them, steps of the optimizer; 0 unknown */
    double bytes, bucket_bytes;   /* of the gradients, and of those that are sent together; 0 unknown */
};

/* How the processes of a job share what they train, by what wraps it. */
enum hec_sharing {
#define HEC_SHARING(id, name) HEC_SHARING_##id,
#include "diagnose/parallelism.def"
    HEC_SHARINGS
};
const char *hec_sharing_name(enum hec_sharing sharing); /* "ddp": stable, in JSON */

/* How large what is trained is, as the Python hooks report it of each process, merged: bytes that a process holds and what it takes are of
 * the one that has most. NAN and 0: unknown. */
struct hec_sizes {
    bool known, alike; /* a model was reported; all processes reported the same one */
    enum hec_sharing sharing;
    char optimizer[64]; /* its class: "AdamW" */
    double parameters, trained;
    double bytes, gradient_bytes,
        state_bytes; /* of parameters, of gradients, of the optimizer's states: of all shards */
    double held_bytes, held_gradient_bytes, held_state_bytes;
    bool bucket_view; /* gradients lie in the buckets of DistributedDataParallel */
    int layers;       /* modules of one kind and size, which together are most of it; 0: none repeat */
    double layer_bytes, layer_input_bytes; /* of one, and what one is given in a forward pass */
    int layer_matrices;                    /* weights of one that are matrices, and their bytes */
    double layer_matrix_bytes;
    int experts, expert_top;    /* of a layer, and how many of them a token goes to */
    double expert_bytes;        /* of all of them */
    double allocated, reserved; /* by PyTorch's allocator, at most */
    double activations;         /* of these, what a forward pass leaves for the backward pass */
};

/* All processes that the command started, and the devices they use. */
struct hec_job_diagnosis {
    int size;               /* ranks, on all hosts, as what started them or the program says; 0 unknown or none */
    int joined;             /* runs of which this one was joined; 0: it was not */
    char joined_by[48];     /* by what their clocks were set: "wall clock", "240 collectives" */
    struct hec_rank *ranks; /* those that the run has something of, by their numbers; malloc'ed */
    int rank_count;
    int usual; /* index of the rank that most are like */
    /* By hec_device.index: bits of the devices that work on the same thing as this one, itself among them: they communicate,
     * one process uses them, or the job has several ranks and their steps go alike. */
    uint64_t with[HEC_DEVICE_MAX];
    struct hec_collectives collectives;
    struct hec_gradient_syncs gradients;
    struct hec_findings findings; /* last of all, from all that is known of the run */
};

/* Whether it was looked at how long the ranks of a device's job, and its other devices, wait for each other: each of them was traced as a
 * whole. True of a job that is one rank with one device. */
bool hec_job_waits_seen(const struct hec_summary *summary, int device);

/* 1 << index; 0 for what a damaged file may say. */
static inline uint64_t hec_device_bit(int index) {
    return index >= 0 && index < HEC_DEVICE_MAX ? UINT64_C(1) << index : 0;
}
static inline bool hec_job_together(const struct hec_job_diagnosis *job, int device, int other) {
    return device >= 0 && other >= 0 && device < HEC_DEVICE_MAX && other < HEC_DEVICE_MAX &&
           job->with[device] >> other & 1;
}

struct hec_unit_summary {
    char name[64];
    bool is_default; /* nobody counted work: the unit is the run itself */
    double count, per_second;
    uint64_t devices;                              /* bits (1 << hec_device.index): what it is charged with */
    bool part_of_devices;                          /* other programs of the run used others */
    double joules_per_unit, joules_per_unit_bound; /* of those devices; NAN when energy is not valid */
    double dollars_per_unit, grams_co2_per_unit;
    /* The same of the loop alone (steady_blocks.h); NAN: it is not known */
    double loop_count, loop_per_second, loop_joules_per_unit, loop_joules_per_unit_bound;
};

/* Work that the program says in its own lines (hec run --unit), and what it took. */
struct hec_printed_summary {
    struct hec_printed_unit unit;
    int64_t lines, used; /* that said a number; those that the figures are of */
    bool of_loop;        /* these lie in the loop; else from the first one to the last */
    double per_second;   /* median of rates; of counts, those after the first line over its time; NAN unknown */
    double joules_per_unit, joules_per_unit_bound; /* of the used devices meanwhile; NAN unknown */
};

enum hec_phase_energy {
    HEC_PHASE_ENERGY_KNOWN,
    HEC_PHASE_ENERGY_NO_TOTAL, /* that of the run is not known */
    HEC_PHASE_ENERGY_NO_POWER, /* none was read during it */
    HEC_PHASE_ENERGY_SHORT,    /* its intervals are too short for the power readings */
    HEC_PHASE_ENERGY_KINDS
};

struct hec_phase_summary {
    char name[64];
    double seconds; /* of all threads together */
    int64_t count;
    double joules, bound_joules;  /* of the used devices while a thread was in it (build.h); NAN: unknown */
    enum hec_phase_energy energy; /* why they are unknown */
};

struct hec_price {
    double dollars_per_kwh, grams_co2_per_kwh;
    double dollars_per_gpu_hour;          /* 0: not priced */
    bool dollars_default, carbon_default; /* nobody chose it: label it */
    char carbon_from
        [128]; /* the file that it is from: "average, Electricity Maps, DE, life cycle"; empty: it is no file's */
};

struct hec_host_summary {
    int cores, cores_usable; /* online; of those, what the command may use */
    double cpu_busy;         /* 0..1 of all cores */
    double tree_cpu_seconds; /* CPU time of the command and its descendants */
    double tree_cores;       /* mean cores in use */
    double rss_max_bytes, read_bytes, written_bytes, disk_read_bytes;
    double switches_voluntary, switches_involuntary;
    int processes;                      /* seen in all; 0 when none was recorded */
    double package_joules, dram_joules; /* NAN: unavailable */
    struct hec_reason package_why, dram_why;
};

struct hec_self_summary {
    double cpu_seconds, cpu_share; /* share of one core */
    double rss_max_bytes, file_bytes;
    double start_seconds; /* from the start of hec to the start of the command */
    double joules;        /* NAN: unavailable */
};

struct hec_event_summary {
    enum hec_event_kind kind;
    int device;
    double t_s;
    bool left_out; /* text is what could not be read of the run file; else as it was recorded */
    char text[256];
};

/* A knob that the program read. */
struct hec_knob_summary {
    char name[64], value[64];     /* as it was read first; value "": it is an empty text */
    bool changed;                 /* another value was read later, or by another process */
    bool ranged, whole;           /* the program says what it may be; and it is an integer */
    double fallback, least, most; /* where ranged; else NAN */
};

#define HEC_SUMMARY_KNOBS_MAX 32
#define HEC_SUMMARY_UNITS_MAX 16
#define HEC_SUMMARY_PHASES_MAX 32
#define HEC_SUMMARY_EVENTS_MAX 64

struct hec_summary {
    char command[1024];
    char started[40]; /* wall clock, ISO 8601 with zone */
    char file[512];
    char hec_version[32];
    char hostname[128];
    char cpu[96], os[96], kernel[96], pytorch[48], python[24];
    char framework[24]; /* beside PyTorch, through which it uses its devices ("jax"); empty: unknown */
    bool framed;        /* its steps are taken by the loop of a framework (Lightning, Trainer), by its stacks */
    struct hec_step_part_summary {
        double seconds; /* of the host, of all calls but the first three; NAN: not seen */
        int64_t count;
    } step_part[HEC_STEP_PARTS];
    struct hec_model_flops {
        double step[HEC_PRECISION_COUNT]; /* FLOPs of a step of a process, by precision; a lower bound */
        double all;                       /* their sum; 0: none were counted */
        double odd[HEC_PRECISION_COUNT];  /* of step: in matrix products of rows that fast loads cannot fetch */
        double
            weights;  /* elements in fp32 that products read, or make gradients of, and autocast converts; 0 unknown */
        double error; /* standard error of the calls that were counted, of their mean */
        int64_t counted;
        char why[128]; /* why there are none; empty: nobody says */
    } flops;
    struct hec_sizes sizes;
    char step_module[64]; /* class of the module whose calls are the steps; empty: unknown */
    char samples_by[16];  /* how the hooks know the samples of a step: "loader", "calls"; empty: unknown */
    double seconds;
    int exit_code; /* -1: unknown, the run was cut off */
    char stopped
        [16]; /* hec ended the command after its "steps" or "time", or was there for a "window", "attached" to it, or so
                           until it "ended"; empty: it ended by itself */
    bool complete;                        /* false: hec was killed; the last second may be missing */
    bool in_progress;                     /* not complete, because it goes on */
    char simulated[64];                   /* profile of the simulated GPU; empty on real hardware */
    int loader_workers;                   /* that the program's data loaders have; -1 unknown, or they differ */
    char imported[32];                    /* what the run was imported from ("kineto"); empty: it was measured */
    struct hec_reason energy_unavailable; /* why there is no device at all; none when there is one */
    struct hec_device_diagnosis *devices; /* malloc'ed */
    int device_count;
    struct hec_host_summary host;
    struct hec_unit_summary units[HEC_SUMMARY_UNITS_MAX];
    int unit_count;
    struct hec_printed_summary printed[HEC_PRINTED_MAX];
    int printed_count;
    char printed_from[160]; /* which streams were read, and why the others were not */
    struct hec_phase_summary phases[HEC_SUMMARY_PHASES_MAX];
    int phase_count;
    struct hec_event_summary events[HEC_SUMMARY_EVENTS_MAX];
    int event_count, events_omitted;
    int hooks_out,
        hooks_late; /* Python processes that did not read HEC's hooks at their start; those they came into later */
    struct hec_lever_summary levers[HEC_SUMMARY_LEVERS_MAX];
    int lever_count;
    struct hec_knob_summary knobs[HEC_SUMMARY_KNOBS_MAX];
    int knob_count;
    double joules, bound_joules; /* of the used devices; NAN unless all of them are valid */
    double dollars, grams_co2;   /* of that energy (and GPU hours, where priced) */
    struct hec_price price;
    struct hec_self_summary self;
    struct hec_trace_cost trace;
    struct hec_kernel_row *kernels; /* of all devices (hec_device_timeline.rows); malloc'ed */
    int kernel_count;
    struct hec_step_summary steps;   /* that the run goes by */
    int64_t stacks;                  /* samples of call stacks */
    struct hec_source_lines lines;   /* where its main threads were (program_lines.h) */
    struct hec_steady_blocks blocks; /* of the steady part */
    struct hec_loop loop;
    struct hec_job_diagnosis job; /* last of all, from what is above */
    struct hec_view *view;        /* view.h; NULL: none was asked for */
};

/* Through what the program uses its devices. */
enum hec_framework hec_framework_of(const struct hec_summary *summary);

/* A Python kept HEC's hooks out, and no other Python loaded them. */
static inline bool hec_summary_unhooked(const struct hec_summary *s) {
    return s->hooks_out && !s->python[0];
}

/* hec came to a program that ran already, and saw what can be seen from outside. */
static inline bool hec_summary_attached(const struct hec_summary *s) {
    return strcmp(s->stopped, "attached") == 0 || strcmp(s->stopped, "ended") == 0;
}

#define HEC_EXIT_SIGNAL 128 /* a status from here on is that and the number of a signal, as shells say it */

/* The command ended with a status other than 0, by itself. */
static inline bool hec_summary_failed(const struct hec_summary *s) {
    return s->exit_code > 0 && !s->stopped[0];
}

/* The dossier of a device by its index; NULL: the run has none such. */
struct hec_device_diagnosis *hec_summary_device(const struct hec_summary *summary, int index);
/* What a device draws with a context and no work, by its energy's split, else its idle states, else its lowest reading; NAN unknown. */
double hec_device_idle_watts(const struct hec_device_diagnosis *device);
/* Devices of which an activity was traced. */
int hec_summary_traced(const struct hec_summary *summary);
/* The steps that a device goes by (steps.h); those of the run, unless they are of a process that uses other devices. Count
 * 0: none, as of a device that is not used. Never NULL. */
const struct hec_step_summary *hec_steps_of(const struct hec_summary *summary,
                                            const struct hec_device_diagnosis *device);
/* What its kernels took, and what limits them; NULL: it has no ledger. */
static inline const struct hec_class_profile *hec_profile_of(const struct hec_device_diagnosis *device) {
    return device->watts ? &device->watts->profile : NULL;
}

/* How many times as fast it would be fixed: 1 / (1 - the part of the seconds that is saved). NAN, all three: unknown. */
struct hec_speed {
    bool of_step; /* else of the run: no step is known */
    double low, best, high;
};
struct hec_speed hec_finding_speed(const struct hec_summary *summary, const struct hec_finding *finding);

/* Analyse a run. Pure: the same input gives the same result, and memory does not grow with the length of the run (but
 * with the number of devices and of processes on them). HEC_ERR_NOMEM, or what a function of the input returned.
 * On success *out is to be freed with hec_summary_free; on failure it is empty. */
int hec_summary_build(const struct hec_summary_input *input, const struct hec_price *price, struct hec_summary *out,
                      struct hec_why *why);
/* The labelled defaults: 0.13 $/kWh, 473 g CO2/kWh (sources in docs/energy.md), GPU hours not priced. */
struct hec_price hec_price_default(void);
void hec_summary_free(struct hec_summary *summary);
