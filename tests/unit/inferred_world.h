/* A program and its device, simulated call by call: a truth (what CUPTI would have told) and a view (what stands in front
 * of the calls tells, by its own rules), from the same events. Random lengths and latencies; several streams; a queue of
 * 1024 launches. Nothing of src/diagnose/inferred is used to make either. */
#ifndef TESTS_UNIT_INFERRED_WORLD_H
#define TESTS_UNIT_INFERRED_WORLD_H

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

/* Something on a stream, launched by a call. */
static inline int64_t inferred_device(struct inferred_world *w, enum hec_activity_kind kind, int stream, int64_t from,
                                      int64_t length, int64_t call, int64_t call_end) {
    int64_t ready = w->free_ns[stream] + INFERRED_US > from ? w->free_ns[stream] + INFERRED_US : from;
    int64_t start = kind == HEC_ACTIVITY_KERNEL ? inferred_turn(w, ready, length) : ready;
    struct fake_timeline *both[] = {&w->truth, &w->view};
    for (int i = 0; i < 2; i++) {
        if (i == 1 && !inferred_seen(w, call))
            continue;
        struct hec_activity *a = fake_tl_add(both[i], kind, w->streams[i][stream], start, start + length);
        a->name = kind == HEC_ACTIVITY_KERNEL ? w->kernel : 0;
        a->launch_ns = call;
        a->launch_end_ns = call_end;
        a->launch_track = w->thread[i];
    }
    if (kind == HEC_ACTIVITY_KERNEL)
        inferred_ran(w, start, start + length);
    return w->free_ns[stream] = start + length;
}

static inline void inferred_launch(struct inferred_world *w, int stream, int64_t length) {
    int64_t from = w->now, oldest = w->done_ns[w->launches % INFERRED_QUEUE];
    int64_t to = from + inferred_between(w, 2.5, 9);
    if (oldest > to)
        to = oldest + inferred_between(w, 1, 4);
    int64_t start = to + inferred_between(w, 0, 4);
    w->done_ns[w->launches++ % INFERRED_QUEUE] =
        inferred_device(w, HEC_ACTIVITY_KERNEL, stream, start, length, from, to);
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

/* Between pageable memory and the device, in a call that waits for what is before it and for the copy. */
static inline void inferred_copy(struct inferred_world *w, double bytes, bool up) {
    int64_t from = w->now, begin = from + inferred_between(w, 3, 8);
    int64_t length = (int64_t)(bytes / (5.5 + inferred_uniform(w)));
    int64_t end = (w->free_ns[0] + INFERRED_US > begin ? w->free_ns[0] + INFERRED_US : begin) + length;
    w->now = end + inferred_between(w, 3, 8);
    inferred_device(w, HEC_ACTIVITY_COPY, 0, begin, length, from, w->now);
    struct fake_timeline *both[] = {&w->truth, &w->view};
    int host = HEC_MEMORY_PAGEABLE, card = HEC_MEMORY_DEVICE;
    for (int i = 0; i < 2; i++)
        for (size_t k = both[i]->count; k-- > 0;)
            if (both[i]->activities[k].kind == HEC_ACTIVITY_COPY) {
                if (both[i]->activities[k].launch_ns != from)
                    break;
                both[i]->activities[k].amount = bytes;
                both[i]->activities[k].from = (uint8_t)(up ? host : card);
                both[i]->activities[k].to = (uint8_t)(up ? card : host);
                break;
            }
    inferred_call(w, HEC_ACTIVITY_API, HEC_API_COPY, w->names[0], from, w->now, bytes, up ? host : card,
                  up ? card : host);
}

/* A small copy from pageable memory: it is staged, the call returns, and the program waits for it. */
static inline void inferred_upload(struct inferred_world *w, double bytes) {
    int64_t from = w->now, to = from + inferred_between(w, 4, 8);
    inferred_device(w, HEC_ACTIVITY_COPY, 0, to, inferred_between(w, 1, 2), from, to);
    struct fake_timeline *both[] = {&w->truth, &w->view};
    for (int i = 0; i < 2; i++)
        for (size_t k = both[i]->count; k-- > 0;)
            if (both[i]->activities[k].kind == HEC_ACTIVITY_COPY && both[i]->activities[k].launch_ns == from) {
                both[i]->activities[k].amount = bytes;
                both[i]->activities[k].from = HEC_MEMORY_PAGEABLE;
                both[i]->activities[k].to = HEC_MEMORY_DEVICE;
                break;
            }
    w->now = to;
    inferred_call(w, HEC_ACTIVITY_API, HEC_API_COPY, w->names[0], from, to, bytes, HEC_MEMORY_PAGEABLE,
                  HEC_MEMORY_DEVICE);
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
    for (int i = 0; i < w->run.series_count; i++) {
        free(w->run.series[i].t);
        free(w->run.series[i].v);
        free(w->run.series[i].valid);
    }
}

#endif
