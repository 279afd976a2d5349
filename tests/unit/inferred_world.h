/* Programs and their device, each with one thing that holds the device up, simulated call by call: a truth (what CUPTI would have
 * told) and a view (what stands in front of the calls tells, by its own rules), from the same events. Random lengths and latencies;
 * several streams; a queue of 1024 launches. Nothing of src/diagnose/states/inferred is used to make either. */
#pragma once

#include "diagnose/finding.h"
#include "diagnose/states/state.h"
#include "fake_run.h"
#include "fake_timeline.h"

#define INFERRED_QUEUE 1024
#define INFERRED_US INT64_C(1000)
#define INFERRED_MS INT64_C(1000000)
#define INFERRED_S INT64_C(1000000000)

struct inferred_world {
    struct fake_timeline truth, view;
    struct fake_run run;
    uint64_t random;
    int step;                        /* that the program is in */
    int64_t now;                     /* of the host */
    int64_t free_ns[4];              /* streams: done with all */
    int64_t done_ns[INFERRED_QUEUE]; /* of the last launches, a ring */
    size_t launches;
    int64_t kernels[2][1000000]; /* start, end: in order of launch; slices of a neighbour among them */
    size_t kernel_count;
    bool neighbour;                  /* another process works on the device: they take turns */
    int64_t slice_from, slice_until; /* its next turn, or the one that it has */
    uint32_t thread[2], streams[2][4], process[2], kernel, data, checkpoint, names[8];
    int64_t glimpse_from, glimpse_to; /* CUPTI saw the device */
    int64_t sampled_ns;               /* stacks: up to here */
    uint32_t line;                    /* that the program is at */
    struct {
        int64_t from, last, to, in_calls, pauses;
        double count;
    } burst;
};

static inline double inferred_uniform(struct inferred_world *w) {
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(w->random >> 11) / 9007199254740992.0;
}

/* Nanoseconds, from microseconds. */
static inline int64_t inferred_between(struct inferred_world *w, double low_us, double high_us) {
    return (int64_t)(1e3 * (low_us + (high_us - low_us) * inferred_uniform(w)));
}

static inline void inferred_begin(struct inferred_world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->random = seed * 2654435761u + 12345;
    w->now = 200 * INFERRED_MS;
    w->glimpse_from = w->glimpse_to = INT64_MAX;
    struct fake_timeline *both[] = {&w->truth, &w->view};
    for (int i = 0; i < 2; i++) {
        fake_tl_init(both[i]);
        both[i]->input.device_count = 1;
        w->kernel = fake_tl_kernel(both[i], "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", 256);
        w->data = fake_tl_name(both[i], "data");
        w->checkpoint = fake_tl_name(both[i], "checkpoint");
        w->names[0] = fake_tl_name(both[i], "cudaMemcpyAsync");
        w->names[1] = fake_tl_name(both[i], "cudaMalloc");
        w->names[2] = fake_tl_name(both[i], "cudaFree");
        w->process[i] = fake_tl_track(both[i], HEC_TRACK_PROCESS, 7, -1, 0);
        w->thread[i] = fake_tl_track(both[i], HEC_TRACK_THREAD, 7, -1, 7);
    }
    for (int s = 0; s < 4; s++)
        w->streams[0][s] = fake_tl_track(&w->truth, HEC_TRACK_STREAM, 7, 0, 7 + s);
}

/* With streams in the view too. */
static inline void inferred_glimpse(struct inferred_world *w, int64_t from_ns, int64_t to_ns) {
    w->glimpse_from = from_ns;
    w->glimpse_to = to_ns;
    for (int s = 0; s < 4; s++)
        w->streams[1][s] = fake_tl_track(&w->view, HEC_TRACK_STREAM, 7, 0, 7 + s);
    fake_tl_add(&w->view, HEC_ACTIVITY_WINDOW, w->process[1], from_ns, to_ns);
}

static inline bool inferred_seen(const struct inferred_world *w, int64_t t) {
    return t >= w->glimpse_from && t < w->glimpse_to;
}

/* ---- the view of launches ---- */

static inline void inferred_close_burst(struct inferred_world *w) {
    double span = (double)(w->burst.to - w->burst.from);
    if (w->burst.count > 0) {
        struct hec_activity *a = fake_tl_add(&w->view, HEC_ACTIVITY_BURST, w->thread[1], w->burst.from, w->burst.to);
        a->amount = w->burst.count;
        a->from = span > 0 ? (uint8_t)llround(255 * (double)w->burst.pauses / span) : 0;
        a->to = span > 0 ? (uint8_t)llround(255 * (double)w->burst.in_calls / span) : 0;
        a->device = 1;
    }
    memset(&w->burst, 0, sizeof w->burst);
}

static inline void inferred_view_launch(struct inferred_world *w, int64_t from, int64_t to) {
    if (to - from >= 50 * INFERRED_US || inferred_seen(w, from)) {
        inferred_close_burst(w);
        if (to - from >= 50 * INFERRED_US && !inferred_seen(w, from)) {
            struct hec_activity *a = fake_tl_add(&w->view, HEC_ACTIVITY_API, w->thread[1], from, to);
            a->detail = HEC_API_LAUNCH;
            a->device = 1;
        }
        return; /* seen ones are with what they launched */
    }
    int64_t pause = w->burst.count > 0 ? from - w->burst.to : 0;
    if (w->burst.count > 0 && (pause >= 500 * INFERRED_US || to - w->burst.from > 100 * INFERRED_MS))
        inferred_close_burst(w);
    if (w->burst.count == 0)
        w->burst.from = from;
    else
        w->burst.pauses += pause >= 20 * INFERRED_US ? pause : 0;
    w->burst.in_calls += to - from;
    w->burst.to = to;
    w->burst.count++;
}

/* A call of another kind: the same in both. */
static inline void inferred_call(struct inferred_world *w, enum hec_activity_kind kind, int detail, uint32_t name,
                                 int64_t from, int64_t to, double bytes, int memory_from, int memory_to) {
    struct fake_timeline *both[] = {&w->truth, &w->view};
    inferred_close_burst(w);
    for (int i = 0; i < 2; i++) {
        bool copy = kind == HEC_ACTIVITY_API && detail == HEC_API_COPY;
        if (copy && (i == 0 || inferred_seen(w, from)))
            continue; /* reported with the copy itself */
        struct hec_activity *a = fake_tl_add(both[i], kind, w->thread[i], from, to);
        a->detail = (uint8_t)detail;
        a->name = name;
        a->amount = bytes;
        a->from = (uint8_t)memory_from;
        a->to = (uint8_t)memory_to;
        a->device = i == 1;
    }
}

/* ---- what programs do ---- */

static inline void inferred_work(struct inferred_world *w, int64_t ns) {
    w->now += ns;
}

static inline void inferred_phase(struct inferred_world *w, uint32_t name, int64_t ns) {
    fake_tl_add(&w->truth, HEC_ACTIVITY_PHASE, w->thread[0], w->now, w->now + ns)->name = name;
    fake_tl_add(&w->view, HEC_ACTIVITY_PHASE, w->thread[1], w->now, w->now + ns)->name = name;
    w->now += ns;
}

/* The program comes to a line of its file: samples of its stack, every 20 ms, are of the one that it was at. */
static inline void inferred_line(struct inferred_world *w, int line) {
    const int64_t period = 20 * INFERRED_MS;
    struct fake_timeline *both[] = {&w->truth, &w->view};
    for (int64_t t = (w->sampled_ns / period + 1) * period; t <= w->now; t += period)
        for (int i = 0; i < 2 && w->line; i++)
            fake_tl_add(both[i], HEC_ACTIVITY_STACK, w->thread[i], t, t + period)->name = w->line;
    w->sampled_ns = w->now;
    w->line = 0;
    for (uint32_t i = 0; i < w->truth.frame_count; i++)
        w->line = w->truth.frames[i].line == line ? i + 1 : w->line;
    for (int i = 0; i < 2 && !w->line; i++)
        if (fake_tl_frame(both[i], "/home/u/train.py", "step", line) && i)
            w->line = both[i]->frame_count;
}

static inline void inferred_ran(struct inferred_world *w, int64_t from, int64_t to) {
    w->kernels[0][w->kernel_count] = from;
    w->kernels[1][w->kernel_count++] = to;
}

/* The neighbour has work for some milliseconds, and then for a short while none. */
static inline void inferred_next_slice(struct inferred_world *w) {
    if (w->slice_until > w->slice_from)
        inferred_ran(w, w->slice_from, w->slice_until);
    w->slice_from = w->slice_until + inferred_between(w, 100, 1000);
    w->slice_until = w->slice_from + inferred_between(w, 1000, 3000);
}

/* When what could start at t does, for so long: after the neighbour's turn, whose next one is put off. */
static inline int64_t inferred_turn(struct inferred_world *w, int64_t t, int64_t length) {
    while (w->neighbour && w->slice_until <= t)
        inferred_next_slice(w);
    if (w->neighbour && w->slice_from <= t)
        t = w->slice_until;
    else if (w->neighbour && w->slice_from < t + length) {
        w->slice_until += t + length - w->slice_from;
        w->slice_from = t + length;
    }
    return t;
}

/* Between pageable memory and the device; up: to it. */
struct inferred_copied {
    double bytes;
    bool up;
};

/* Something on a stream, launched by a call: a kernel, or what is copied. */
static inline int64_t inferred_device(struct inferred_world *w, const struct inferred_copied *copied, int stream,
                                      int64_t from, int64_t length, int64_t call, int64_t call_end) {
    enum hec_activity_kind kind = copied ? HEC_ACTIVITY_COPY : HEC_ACTIVITY_KERNEL;
    int64_t ready = w->free_ns[stream] + INFERRED_US > from ? w->free_ns[stream] + INFERRED_US : from;
    int64_t start = copied ? ready : inferred_turn(w, ready, length);
    struct fake_timeline *both[] = {&w->truth, &w->view};
    for (int i = 0; i < 2; i++) {
        if (i == 1 && !inferred_seen(w, call))
            continue;
        struct hec_activity *a = fake_tl_add(both[i], kind, w->streams[i][stream], start, start + length);
        a->name = copied ? 0 : w->kernel;
        a->amount = copied ? copied->bytes : 0;
        a->from = copied ? (uint8_t)(copied->up ? HEC_MEMORY_PAGEABLE : HEC_MEMORY_DEVICE) : 0;
        a->to = copied ? (uint8_t)(copied->up ? HEC_MEMORY_DEVICE : HEC_MEMORY_PAGEABLE) : 0;
        fake_tl_launched(a, call, call_end, w->thread[i]);
    }
    if (!copied)
        inferred_ran(w, start, start + length);
    return w->free_ns[stream] = start + length;
}

static inline void inferred_launch(struct inferred_world *w, int stream, int64_t length) {
    int64_t from = w->now, oldest = w->done_ns[w->launches % INFERRED_QUEUE];
    int64_t to = from + inferred_between(w, 2.5, 9);
    if (oldest > to)
        to = oldest + inferred_between(w, 1, 4);
    int64_t start = to + inferred_between(w, 0, 4);
    w->done_ns[w->launches++ % INFERRED_QUEUE] = inferred_device(w, NULL, stream, start, length, from, to);
    w->now = to;
    inferred_view_launch(w, from, to);
}

static inline void inferred_sync(struct inferred_world *w, int stream) {
    int64_t from = w->now, done = w->free_ns[stream];
    int64_t to = from + inferred_between(w, 2, 5);
    if (done > from)
        to = (done > to ? done : to) + inferred_between(w, 3, 10);
    w->now = to;
    inferred_call(w, HEC_ACTIVITY_SYNC, HEC_SYNC_STREAM, 0, from, to, 0, 0, 0);
}

static inline void inferred_copy_call(struct inferred_world *w, const struct inferred_copied *copied, int64_t from) {
    inferred_call(w, HEC_ACTIVITY_API, HEC_API_COPY, w->names[0], from, w->now, copied->bytes,
                  copied->up ? HEC_MEMORY_PAGEABLE : HEC_MEMORY_DEVICE,
                  copied->up ? HEC_MEMORY_DEVICE : HEC_MEMORY_PAGEABLE);
}

/* In a call that waits for what is before it and for the copy. */
static inline void inferred_copy(struct inferred_world *w, double bytes, bool up) {
    const struct inferred_copied copied = {bytes, up};
    int64_t from = w->now, begin = from + inferred_between(w, 3, 8);
    int64_t length = (int64_t)(bytes / (5.5 + inferred_uniform(w)));
    int64_t end = (w->free_ns[0] + INFERRED_US > begin ? w->free_ns[0] + INFERRED_US : begin) + length;
    w->now = end + inferred_between(w, 3, 8);
    inferred_device(w, &copied, 0, begin, length, from, w->now);
    inferred_copy_call(w, &copied, from);
}

/* A small copy from pageable memory: it is staged, the call returns, and the program waits for it. */
static inline void inferred_upload(struct inferred_world *w, double bytes) {
    const struct inferred_copied copied = {bytes, true};
    int64_t from = w->now, to = from + inferred_between(w, 4, 8);
    inferred_device(w, &copied, 0, to, inferred_between(w, 1, 2), from, to);
    w->now = to;
    inferred_copy_call(w, &copied, from);
    inferred_sync(w, 0);
}

static inline void inferred_alloc(struct inferred_world *w, int64_t ns) {
    inferred_call(w, HEC_ACTIVITY_API, HEC_API_ALLOC, w->names[1], w->now, w->now + ns, 1 << 20, 0, 0);
    w->now += ns;
}

static inline void inferred_release(struct inferred_world *w, int64_t ns) {
    int64_t done = w->now;
    for (int s = 0; s < 4; s++)
        done = w->free_ns[s] > done ? w->free_ns[s] : done;
    inferred_call(w, HEC_ACTIVITY_API, HEC_API_FREE, w->names[2], w->now, done + ns, 0, 0, 0);
    w->now = done + ns;
}

static inline void inferred_step(struct inferred_world *w, int64_t from) {
    fake_tl_add(&w->truth, HEC_ACTIVITY_STEP, w->process[0], from, w->now)->detail = HEC_STEP_OPTIMIZER;
    fake_tl_add(&w->view, HEC_ACTIVITY_STEP, w->process[1], from, w->now)->detail = HEC_STEP_OPTIMIZER;
}

static int inferred_by_start(const void *a, const void *b) {
    const int64_t *one = a, *other = b;
    return (one[0] > other[0]) - (one[0] < other[0]);
}

/* The engine's counter over every half second, off by up to 1 %: busy with kernels, and with its own pauses of 0.3 to 2.3 us a gap
 * between them, as measured on an H100 (src/diagnose/timeline/others.c); the same pause in all of a world. */
static inline void inferred_engine(struct inferred_world *w) {
    int64_t(*spans)[2] = malloc((w->kernel_count + 1) * sizeof *spans), until = 0;
    size_t count = (size_t)(w->truth.input.end_ns / (INFERRED_S / 2)) + 1;
    double *busy = calloc(count + 1, sizeof *busy);
    int64_t pause = llround(300 + 2000 * inferred_uniform(w));
    for (size_t i = 0; i < w->kernel_count; i++) {
        spans[i][0] = w->kernels[0][i];
        spans[i][1] = w->kernels[1][i] + pause;
    }
    qsort(spans, w->kernel_count, sizeof *spans, inferred_by_start);
    for (size_t i = 0; i < w->kernel_count; i++) {
        int64_t from = spans[i][0] > until ? spans[i][0] : until;
        while (from < spans[i][1]) {
            int64_t bucket = from / (INFERRED_S / 2), border = (bucket + 1) * (INFERRED_S / 2);
            int64_t to = border < spans[i][1] ? border : spans[i][1];
            if ((size_t)bucket < count)
                busy[bucket] += (double)(to - from);
            from = to;
        }
        until = spans[i][1] > until ? spans[i][1] : until;
    }
    for (size_t i = 0; i < count && (double)(i + 1) / 2 * 1e9 <= (double)w->truth.input.end_ns; i++) {
        double share = busy[i] / (double)(INFERRED_S / 2) + 0.02 * (inferred_uniform(w) - 0.5);
        fake_add(&w->run, HEC_GPM_GR_ACTIVE, 0, (double)(i + 1) / 2, llround(1000 * fmin(1, fmax(0, share))));
    }
    free(spans);
    free(busy);
}

static inline void inferred_end(struct inferred_world *w, bool engine) {
    inferred_close_burst(w);
    w->truth.input.end_ns = w->view.input.end_ns = w->now + 300 * INFERRED_MS;
    w->run.input.context = &w->run;
    w->run.input.series = fake_series_of;
    while (w->neighbour && w->slice_from < w->truth.input.end_ns)
        inferred_next_slice(w);
    if (engine)
        inferred_engine(w);
}

static inline void inferred_free(struct inferred_world *w) {
    fake_tl_free(&w->truth);
    fake_tl_free(&w->view);
    fake_free(&w->run);
}

#define STEP_S 8.0 /* of each program, seconds */

/* ---- programs: one step each ---- */

static inline void kernels(struct inferred_world *w, int count, double low_us, double high_us, double pause_low,
                           double pause_high) {
    for (int i = 0; i < count; i++) {
        inferred_launch(w, 0, inferred_between(w, low_us, high_us));
        inferred_work(w, inferred_between(w, pause_low, pause_high));
    }
}

/* Far ahead of the device: launches wait for room in the queue. */
static inline void step_healthy(struct inferred_world *w) {
    kernels(w, 120, 40, 400, 1, 12);
    if (w->step % 20 == 19)
        inferred_sync(w, 0);
}

static inline void step_data_waited(struct inferred_world *w) {
    inferred_phase(w, w->data, inferred_between(w, 15000, 25000));
    inferred_copy(w, 4e6, true);
    kernels(w, 100, 50, 150, 2, 15);
    inferred_copy(w, 4, false); /* reads the loss */
}

static inline void step_data_ahead(struct inferred_world *w) {
    inferred_phase(w, w->data, inferred_between(w, 15000, 25000));
    kernels(w, 100, 50, 150, 2, 15);
}

static inline void step_host(struct inferred_world *w) {
    inferred_work(w, inferred_between(w, 15000, 35000));
    kernels(w, 60, 50, 110, 2, 15);
    inferred_sync(w, 0);
}

static inline void step_host_ahead(struct inferred_world *w) {
    kernels(w, 20, 60, 140, 2, 15);
    inferred_work(w, inferred_between(w, 5000, 8000));
}

static inline void step_launch(struct inferred_world *w) {
    kernels(w, 600, 1.5, 4, 2, 14);
    inferred_sync(w, 0);
}

static inline void step_launch_ahead(struct inferred_world *w) {
    kernels(w, 600, 1.5, 4, 2, 14);
}

/* A value read after every few kernels. */
static inline void step_sync(struct inferred_world *w) {
    for (int i = 0; i < 20; i++) {
        kernels(w, 6, 30, 90, 1, 5);
        inferred_sync(w, 0);
        inferred_work(w, inferred_between(w, 10, 150));
    }
}

static inline void step_copy(struct inferred_world *w) {
    inferred_copy(w, 64e6, true);
    kernels(w, 25, 50, 150, 2, 15);
    inferred_sync(w, 0);
}

static inline void step_alloc(struct inferred_world *w) {
    for (int i = 0; i < 10; i++) {
        inferred_alloc(w, inferred_between(w, 300, 900));
        kernels(w, 4, 40, 90, 1, 8);
        inferred_release(w, inferred_between(w, 200, 600));
    }
}

static inline void step_checkpoint(struct inferred_world *w) {
    kernels(w, 100, 60, 140, 2, 12);
    inferred_sync(w, 0);
    if (w->step % 40 == 39) {
        inferred_copy(w, 100e6, false);
        inferred_phase(w, w->checkpoint, inferred_between(w, 500000, 700000));
    }
}

/* Two streams, joined at the end. */
static inline void step_streams(struct inferred_world *w) {
    for (int i = 0; i < 40; i++) {
        inferred_launch(w, i % 2, inferred_between(w, 50, 200));
        inferred_work(w, inferred_between(w, 2, 12));
    }
    inferred_sync(w, w->free_ns[0] > w->free_ns[1] ? 0 : 1);
    inferred_phase(w, w->data, inferred_between(w, 3000, 6000));
}

struct program {
    const char *name;
    void (*step)(struct inferred_world *w);
    enum hec_state most;  /* of the idle time; COMPUTE: no idle state has more than 10 % */
    bool certain;         /* calls alone tell it */
    enum hec_cause cause; /* the first finding */
};
static const struct program programs[] = {
    {"healthy", step_healthy, HEC_STATE_COMPUTE, true, HEC_CAUSE_NONE},
    {"data, waited for", step_data_waited, HEC_STATE_DATA, true, HEC_CAUSE_DATA},
    {"data, never waiting", step_data_ahead, HEC_STATE_DATA, false, HEC_CAUSE_DATA},
    {"host, waited for", step_host, HEC_STATE_HOST, true, HEC_CAUSE_HOST},
    {"host, never waiting", step_host_ahead, HEC_STATE_HOST, false, HEC_CAUSE_HOST},
    {"launch, waited for", step_launch, HEC_STATE_LAUNCH, false, HEC_CAUSE_LAUNCH},
    {"launch, never waiting", step_launch_ahead, HEC_STATE_LAUNCH, false, HEC_CAUSE_LAUNCH},
    {"sync", step_sync, HEC_STATE_SYNC, true, HEC_CAUSE_SYNC},
    {"copy", step_copy, HEC_STATE_COPY, true, HEC_CAUSE_COPY},
    {"alloc", step_alloc, HEC_STATE_ALLOC, true, HEC_CAUSE_ALLOC},
    {"checkpoint", step_checkpoint, HEC_STATE_CHECKPOINT, true, HEC_CAUSE_CHECKPOINT},
    {"two streams", step_streams, HEC_STATE_DATA, true, HEC_CAUSE_DATA},
};

/* ---- running them ---- */

/* What is known beside the calls. */
enum how { ENGINE, GLIMPSE, NEITHER, BOTH, HOW_COUNT };
static const char *const how_names[] = {"engine", "glimpse", "neither", "both"};

/* Steps of so many seconds; how many there were. neighbour: another process works on the device. A queue takes four times as long
 * then, and CUPTI looks for as long as by default. */
static inline int simulate_for(struct inferred_world *w, const struct program *p, enum how how, bool neighbour,
                               double seconds, uint64_t seed) {
    inferred_begin(w, seed);
    w->neighbour = neighbour;
    if (how == GLIMPSE || how == BOTH)
        inferred_glimpse(w, 4 * INFERRED_S, (neighbour ? 6 : 5) * INFERRED_S);
    for (; (double)w->now < seconds * 1e9; w->step++) {
        int64_t from = w->now;
        p->step(w);
        inferred_step(w, from);
    }
    inferred_sync(w, 0);
    inferred_end(w, how == ENGINE || how == BOTH);
    return w->step;
}

static inline void simulate(struct inferred_world *w, const struct program *p, enum how how, uint64_t seed) {
    simulate_for(w, p, how, false, STEP_S, seed);
}

/* States whose true time does not lie within the bounds of what is reported. */
static inline int out_of_bounds(const char *name, enum how how, const struct hec_ledger_device *is,
                                const struct hec_ledger_device *by) {
    double slack = 0.004 * (double)is->window_ns / 1e9;
    int out = 0;
    for (int s = 0; s < HEC_STATE_COUNT; s++) {
        const struct hec_ledger_row *row = &by->rows[s];
        double truth = is->rows[s].seconds;
        bool within = truth >= row->seconds_low - slack && truth <= row->seconds_high + slack;
        if (!within || getenv("HEC_TEST_VERBOSE"))
            print_message("%s, %s: %-10s is %.3f s, told %.3f (%.3f to %.3f)%s\n", name, how_names[how],
                          hec_state_name(s), truth, row->seconds, row->seconds_low, row->seconds_high,
                          within ? "" : "  OUT");
        out += !within;
    }
    return out;
}
