#include "sim/show.h"

#include "base/error.h"
#include "sim/case.h"
#include "sim/cuda/hook.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert((int)SIM_MEMORY_PAGEABLE == (int)HEC_TRACE_MEMORY_PAGEABLE &&
                   (int)SIM_MEMORY_PINNED == (int)HEC_TRACE_MEMORY_PINNED &&
                   (int)SIM_MEMORY_DEVICE == (int)HEC_TRACE_MEMORY_DEVICE,
               "kinds of memory have the same numbers in a reported call");

enum part { BEGIN, LOOP, END };

static const struct kernel {
    enum sim_activity activity;
    enum part part;
    int64_t duration_ns;
    uint32_t grid, block, registers, shared_bytes;
    const char *name;
} kernels[] = {
#define SIM_PACE(activity, gap_ns, host_ns)
#define SIM_KERNEL(activity, part, ns, grid, block, registers, shared, name)                                           \
    {SIM_##activity, part, ns, grid, block, registers, shared, name},
#include "sim/kernels.def"
#undef SIM_KERNEL
#undef SIM_PACE
};
#define KERNELS ((int)(sizeof kernels / sizeof kernels[0]))

static const struct pace {
    enum sim_activity activity;
    int64_t gap_ns, host_ns;
} paces[] = {
#define SIM_PACE(activity, gap_ns, host_ns) {SIM_##activity, gap_ns, host_ns},
#define SIM_KERNEL(...)
#include "sim/kernels.def"
#undef SIM_KERNEL
#undef SIM_PACE
};

#define CALL_NS 4000         /* a launching call lasts as long */
#define SOONEST_NS 3000      /* from the start of the call to that of the kernel */
#define AHEAD_NS 20000000    /* a program launches at most so long before the device gets there */
#define RESUME_NS 6000       /* it launches so long before a wait of the device ends */
#define SHORTEST_NS 500      /* no kernel is cut shorter */
#define ALLOCATION_NS 750000 /* of some 100 MB */
#define SYNC_TAIL_NS 2000    /* a synchronisation returns after the device is done */
#define READ_EVERY_NS 120000 /* a program that synchronises reads a number, and so much later the next */
#define READ_NS 1500
#define STREAM 7u
#define COPY_STREAM 13u
#define STREAM_HANDLE(stream) (UINT64_C(0x5ee000000000) + (stream)) /* what a program has for it */
#define ALLOCATION_BYTES (UINT64_C(100) << 20)

/* Bytes a nanosecond of the copies, as in cuda/engine.c. */
#define RATE_PINNED 52.0
#define RATE_PAGEABLE 8.0
#define RATE_TO_HOST 50.0

/* A tuned program copies its next input while it computes: 154 MB of bf16 images, 3 ms. */
#define PREFETCH_BYTES UINT64_C(154140672)

struct sim_show {
    void *library;
    void (*emit)(const struct sim_op *op);
    void (*report)(const struct hec_trace_reported *reported);
    uint32_t (*correlations)(uint32_t count);
    int (*device_truth)(uint32_t device, struct sim_cuda_device_truth *truth);
    uint32_t device, tid;
    int64_t host_free_ns; /* the program has made its last call by then */
    int64_t last_end_ns;
    bool waited; /* the last segment was one of waiting */
    struct sim_show_truth truth;
};

static const struct {
    const char *name;
} states[SIM_STATE_COUNT] = {{"compute"}, {"comm"}, {"copy"}, {"queue"},      {"launch"}, {"startup"},
                             {"data"},    {"sync"}, {"host"}, {"checkpoint"}, {"alloc"},  {"other"}};

const char *sim_state_name(enum sim_state state) {
    return states[state].name;
}

const char *sim_state_of_ledger(enum sim_state state) {
    return state == SIM_STATE_QUEUE ? "launch" : state == SIM_STATE_OTHER ? "tail" : states[state].name;
}

int sim_show_open(int ordinal, struct sim_show **result) {
    int (*initialize)(unsigned) = NULL;
    struct sim_show *show = calloc(1, sizeof *show);
    *result = NULL;
    if (!show)
        return HEC_ERR_NOMEM;
    show->library = dlopen("libcuda.so.1", RTLD_NOW);
    if (show->library) {
        *(void **)&show->emit = dlsym(show->library, "hecSimCudaEmit");
        *(void **)&show->report = dlsym(show->library, "hecSimCudaReport");
        *(void **)&show->correlations = dlsym(show->library, "hecSimCudaCorrelations");
        *(void **)&show->device_truth = dlsym(show->library, "hecSimCudaTruth");
        *(void **)&initialize = dlsym(show->library, "cuInit");
    }
    /* without the hook it is the real one: leave it alone */
    if (!show->emit || !show->report || !show->correlations || !show->device_truth || !initialize ||
        initialize(0) != 0) {
        sim_show_close(show);
        return HEC_OK;
    }
    show->device = (uint32_t)ordinal;
    show->tid = (uint32_t)syscall(SYS_gettid);
    *result = show;
    return HEC_OK;
}

void sim_show_close(struct sim_show *show) {
    free(show); /* the library stays: its tracer may be loaded by now */
}

/* ---- what is reported and emitted ---- */

struct made {
    int64_t start_ns, end_ns;
};

static void report(struct sim_show *show, const char *function, struct made made, struct hec_trace_reported call) {
    call.start_ns = made.start_ns;
    call.end_ns = made.end_ns;
    call.function = function;
    call.tid = show->tid;
    call.device = (uint16_t)show->device;
    show->report(&call);
    show->host_free_ns = made.end_ns;
}

static struct sim_op on_device(struct sim_show *show, enum sim_op_kind kind, int64_t launch_ns, int64_t start_ns,
                               int64_t end_ns) {
    return (struct sim_op){.kind = kind,
                           .correlation = show->correlations(1),
                           .launch_ns = launch_ns,
                           .start_ns = start_ns,
                           .end_ns = end_ns,
                           .device = show->device,
                           .context = 1,
                           .stream = STREAM};
}

/* The call that launches what starts at start_ns: as early as the program can, but where it is too far ahead the call waits
 * for room in the queue. */
static struct made launching(const struct sim_show *show, int64_t start_ns) {
    int64_t soonest = start_ns - SOONEST_NS, room = start_ns - AHEAD_NS, begin = show->host_free_ns;
    begin = begin < soonest ? begin : soonest;
    return (struct made){begin, (begin > room ? begin : room) + CALL_NS};
}

static void show_copied(struct sim_show *show, enum sim_copy_kind copy, enum sim_memory_kind memory, uint64_t bytes,
                        int64_t start_ns, int64_t end_ns, uint32_t stream) {
    static const char *const names[2][2] = {{"cuMemcpyHtoDAsync_v2", "cuMemcpyHtoD_v2"},
                                            {"cuMemcpyDtoHAsync_v2", "cuMemcpyDtoH_v2"}};
    bool blocks = memory == SIM_MEMORY_PAGEABLE, to_host = copy == SIM_COPY_DTOH;
    struct made call = launching(show, start_ns);
    struct sim_op op = on_device(show, SIM_OP_COPY, call.end_ns - CALL_NS, start_ns, end_ns);
    op.stream = stream;
    op.u.copy.bytes = bytes;
    op.u.copy.copy = copy;
    op.u.copy.from = to_host ? SIM_MEMORY_DEVICE : memory;
    op.u.copy.to = to_host ? memory : SIM_MEMORY_DEVICE;
    op.u.copy.async = !blocks;
    if (blocks)
        call.end_ns = end_ns + SYNC_TAIL_NS;
    report(show, names[to_host][blocks], call,
           (struct hec_trace_reported){.amount = bytes,
                                       .stream = STREAM_HANDLE(stream),
                                       .call_class = HEC_TRACE_CALL_COPY,
                                       .from = op.u.copy.from,
                                       .to = op.u.copy.to});
    show->emit(&op);
}

static void show_synchronised(struct sim_show *show, int64_t done_ns) {
    int64_t start = show->host_free_ns < done_ns ? show->host_free_ns : done_ns;
    report(show, "cuStreamSynchronize", (struct made){start, done_ns + SYNC_TAIL_NS},
           (struct hec_trace_reported){
               .stream = STREAM_HANDLE(STREAM), .call_class = HEC_TRACE_CALL_SYNC, .from = HEC_TRACE_WAIT_STREAM});
}

static void report_allocated(struct sim_show *show, uint64_t bytes, int64_t start_ns, int64_t end_ns) {
    report(show, "cuMemAlloc_v2", (struct made){start_ns, end_ns},
           (struct hec_trace_reported){.amount = bytes, .call_class = HEC_TRACE_CALL_ALLOC});
}

/* Memory goes and comes, a call after the other, until just before the program launches again. */
static void report_allocations(struct sim_show *show, int64_t start_ns, int64_t end_ns) {
    int64_t t = show->host_free_ns > start_ns ? show->host_free_ns : start_ns, last = end_ns - RESUME_NS;
    while (t < last) {
        int64_t stop = t + ALLOCATION_NS < last ? t + ALLOCATION_NS : last;
        report_allocated(show, ALLOCATION_BYTES, t, stop);
        t = stop;
    }
}

void sim_show_begin(struct sim_show *show, uint64_t bytes, int64_t now_ns) {
    if (!show)
        return;
    report_allocated(show, bytes, now_ns - CALL_NS, now_ns);
    show->host_free_ns = 0;
}

/* ---- truth ---- */

/* Energy of [start, end) within the pieces. */
static void account(struct sim_show *show, enum sim_state state, const struct sim_piece *pieces, int count,
                    int64_t start_ns, int64_t end_ns) {
    for (int i = 0; i < count; i++) {
        int64_t from = start_ns > pieces[i].start_ns ? start_ns : pieces[i].start_ns;
        int64_t to = end_ns < pieces[i].end_ns ? end_ns : pieces[i].end_ns;
        if (to <= from)
            continue;
        show->truth.state[state].seconds += (double)(to - from) * 1e-9;
        show->truth.state[state].joules += (double)sim_energy_of(pieces[i].power_mw, to - from) * 1e-9;
    }
}

/* ---- kernels of a segment ---- */

static const struct pace *pace_of(enum sim_activity activity) {
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++)
        if (paces[i].activity == activity)
            return &paces[i];
    return NULL;
}

/* The next row of a part, from `after` on, round and round; NULL: the activity has none of it. */
static const struct kernel *next_row(enum sim_activity activity, enum part part, int *after) {
    for (int i = 1; i <= KERNELS; i++) {
        int row = (*after + i) % KERNELS;
        if (kernels[row].activity == activity && kernels[row].part == part) {
            *after = row;
            return &kernels[row];
        }
    }
    return NULL;
}

static void emit_kernel(struct sim_show *show, const struct kernel *kernel, const struct pace *pace, int64_t start_ns,
                        int64_t end_ns) {
    struct made call = launching(show, start_ns);
    int64_t launch = call.end_ns - CALL_NS;
    struct sim_op op = on_device(show, SIM_OP_KERNEL, launch, start_ns, end_ns);
    op.u.kernel.name = kernel->name;
    op.u.kernel.grid[0] = kernel->grid;
    op.u.kernel.block[0] = kernel->block;
    op.u.kernel.grid[1] = op.u.kernel.grid[2] = op.u.kernel.block[1] = op.u.kernel.block[2] = 1;
    op.u.kernel.registers = kernel->registers;
    op.u.kernel.dynamic_shared_bytes = kernel->shared_bytes;
    report(show, "cuLaunchKernel", call,
           (struct hec_trace_reported){.kernel = kernel->name,
                                       .amount = (uint64_t)(uintptr_t)kernel,
                                       .stream = STREAM_HANDLE(STREAM),
                                       .call_class = HEC_TRACE_CALL_LAUNCH});
    show->emit(&op);
    show->host_free_ns = launch + pace->host_ns;
}

static void show_kernels(struct sim_show *show, enum sim_activity activity, const struct pace *pace,
                         const struct sim_piece *pieces, int count) {
    int64_t start = pieces[0].start_ns, end = pieces[count - 1].end_ns, t = start, late = end - (end - start) / 10;
    enum sim_state state = activity == SIM_COMM ? SIM_STATE_COMM : SIM_STATE_COMPUTE;
    int row = KERNELS - 1, last = KERNELS - 1, ending = KERNELS - 1;
    const struct kernel *kernel = next_row(activity, BEGIN, &row);
    int64_t fetched = (int64_t)((double)PREFETCH_BYTES / RATE_PINNED), fetch = start + (end - start) / 3;
    bool fetches = activity == SIM_TRAIN_TUNED && end - start > 2 * fetched;
    while (end - t >= SHORTEST_NS) {
        if (t > start || !kernel) {
            kernel = t >= late ? next_row(activity, END, &ending) : NULL;
            if (!kernel)
                kernel = next_row(activity, LOOP, &last);
        }
        if (fetches && t >= fetch) {
            show_copied(show, SIM_COPY_HTOD, SIM_MEMORY_PINNED, PREFETCH_BYTES, fetch, fetch + fetched, COPY_STREAM);
            fetches = false;
        }
        int64_t stop = t + kernel->duration_ns < end ? t + kernel->duration_ns : end;
        emit_kernel(show, kernel, pace, t, stop);
        account(show, state, pieces, count, t, stop);
        /* what follows: a gap, and whether the next kernel was launched before this one ended */
        int64_t next = stop + pace->gap_ns < end ? stop + pace->gap_ns : end;
        if (end - next < SHORTEST_NS)
            next = end;
        account(show, show->host_free_ns > stop ? SIM_STATE_LAUNCH : SIM_STATE_QUEUE, pieces, count, stop, next);
        t = next;
    }
    if (t < end)
        account(show, SIM_STATE_OTHER, pieces, count, t, end);
}

static enum sim_state waiting_state(enum sim_activity activity) {
    switch (activity) {
    case SIM_WAIT_STARTUP:
        return SIM_STATE_STARTUP;
    case SIM_WAIT_DATA:
        return SIM_STATE_DATA;
    case SIM_WAIT_HOST:
        return SIM_STATE_HOST;
    case SIM_WAIT_CHECKPOINT:
        return SIM_STATE_CHECKPOINT;
    case SIM_WAIT_ALLOC:
        return SIM_STATE_ALLOC;
    default:
        return SIM_STATE_OTHER;
    }
}

static void show_copy(struct sim_show *show, enum sim_copy_kind copy, enum sim_memory_kind memory, double rate,
                      const struct sim_piece *pieces, int count) {
    int64_t start = pieces[0].start_ns, end = pieces[count - 1].end_ns;
    show_copied(show, copy, memory, (uint64_t)((double)(end - start) * rate), start, end, STREAM);
    account(show, SIM_STATE_COPY, pieces, count, start, end);
    if (copy == SIM_COPY_DTOH)
        show_synchronised(show, end);
}

/* Numbers are read one after the other: each time the program waits, and then takes its time to ask for the next. */
static void show_reads(struct sim_show *show, const struct sim_piece *pieces, int count) {
    int64_t start = pieces[0].start_ns, end = pieces[count - 1].end_ns, from = start;
    if (!show->waited)
        show_synchronised(show, start);
    for (int64_t t = start + READ_EVERY_NS; t + READ_EVERY_NS / 2 <= end; t += READ_EVERY_NS) {
        show->host_free_ns = t - RESUME_NS;
        show_copied(show, SIM_COPY_DTOH, SIM_MEMORY_PINNED, sizeof(float), t, t + READ_NS, STREAM);
        show_synchronised(show, t + READ_NS);
        account(show, SIM_STATE_SYNC, pieces, count, from, t - RESUME_NS);
        account(show, SIM_STATE_LAUNCH, pieces, count, t - RESUME_NS, t);
        account(show, SIM_STATE_COPY, pieces, count, t, t + READ_NS);
        from = t + READ_NS;
    }
    account(show, SIM_STATE_SYNC, pieces, count, from, end);
}

void sim_show_segment(struct sim_show *show, enum sim_activity activity, const struct sim_piece *pieces, int count) {
    if (!show || count < 1)
        return;
    int64_t start = pieces[0].start_ns, end = pieces[count - 1].end_ns;
    const struct pace *pace = pace_of(activity);
    bool waits = !sim_activity_info(activity)->work;
    if (!waits && (show->waited || !show->host_free_ns) && show->host_free_ns < start - RESUME_NS)
        show->host_free_ns = start - RESUME_NS;
    if (pace)
        show_kernels(show, activity, pace, pieces, count);
    else if (activity == SIM_COPY_PINNED)
        show_copy(show, SIM_COPY_HTOD, SIM_MEMORY_PINNED, RATE_PINNED, pieces, count);
    else if (activity == SIM_COPY_PAGEABLE)
        show_copy(show, SIM_COPY_HTOD, SIM_MEMORY_PAGEABLE, RATE_PAGEABLE, pieces, count);
    else if (activity == SIM_COPY_D2H)
        show_copy(show, SIM_COPY_DTOH, SIM_MEMORY_PINNED, RATE_TO_HOST, pieces, count);
    else if (activity == SIM_WAIT_SYNC)
        show_reads(show, pieces, count);
    else
        account(show, waiting_state(activity), pieces, count, start, end);
    if (activity == SIM_WAIT_ALLOC)
        report_allocations(show, start, end);
    show->waited = waits;
}

void sim_show_truth(const struct sim_show *show, struct sim_show_truth *truth) {
    struct sim_cuda_device_truth t;
    *truth = (struct sim_show_truth){0};
    if (!show || show->device_truth(show->device, &t) != 0)
        return;
    *truth = show->truth;
    truth->shown = true;
    truth->kernels = t.kernels;
    truth->copies = t.copies;
    truth->memsets = t.memsets;
    truth->bytes_pinned = t.bytes[SIM_COPY_HTOD][SIM_MEMORY_PINNED];
    truth->bytes_pageable = t.bytes[SIM_COPY_HTOD][SIM_MEMORY_PAGEABLE];
    truth->bytes_to_host = t.bytes[SIM_COPY_DTOH][SIM_MEMORY_PINNED] + t.bytes[SIM_COPY_DTOH][SIM_MEMORY_PAGEABLE];
    truth->window_seconds = (double)(t.last_ns - t.first_ns) * 1e-9;
    truth->busy_seconds = (double)t.busy_ns * 1e-9;
    truth->compute_seconds = (double)t.compute_ns * 1e-9;
    truth->copy_seconds = (double)t.copy_ns * 1e-9;
    truth->kernel_sum_seconds = (double)t.kernel_sum_ns * 1e-9;
}

static void emit_nothing(const struct sim_op *op) {
    (void)op;
}

static void report_nothing(const struct hec_trace_reported *reported) {
    (void)reported;
}

static uint32_t no_correlations(uint32_t count) {
    (void)count;
    return 1;
}

static void show_span(void *context, const struct sim_span *span, const struct sim_piece *pieces, int count,
                      bool whole) {
    (void)whole;
    sim_show_segment(context, span->activity, pieces, count);
}

int sim_show_predict(const struct sim_case *workload, double seconds, const struct sim_profile *profile, int32_t cap_mw,
                     uint64_t seed, struct sim_show_truth *truth) {
    struct sim_show *show = calloc(1, sizeof *show);
    const struct sim_walk walk = {show, show_span};
    *truth = (struct sim_show_truth){0};
    if (!show)
        return HEC_ERR_NOMEM;
    show->emit = emit_nothing;
    show->report = report_nothing;
    show->correlations = no_correlations;
    int err = sim_case_walk(workload, seconds, profile, cap_mw, seed, &walk);
    *truth = show->truth;
    sim_show_close(show);
    return err;
}
