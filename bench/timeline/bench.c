/* What the analysis of a timeline costs: a training run is made up on the fly (1000 kernels a step on four streams, one
 * of them for communication, a copy a step), so that only the timeline is measured, with the cost of making the
 * activities taken off. Arguments: millions of kernels (10), "windows" for a duty-cycled trace, "periodic" for a run
 * without steps. Prints the time, nanoseconds an activity and the memory that it took. */
#include "diagnose/timeline/pass.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define CHUNK 4096
#define STEP_KERNELS 1000
#define NAMES 200
#define STREAMS 4
#define STEP_NS INT64_C(8000000)

struct run {
    int64_t kernels;
    bool windows, periodic;
    struct hec_timeline_input input;
};

static int names(void *context, int (*visit)(void *to, uint32_t id, const char *text), void *to, struct hec_why *why) {
    (void)context, (void)why;
    for (uint32_t i = 1; i <= NAMES; i++) {
        char text[64];
        snprintf(text, sizeof text, i == NAMES ? "ncclDevKernel_%u" : "_ZN2at6native6kernelILi%uEEEvv", i);
        int err = visit(to, i, text);
        if (err)
            return err;
    }
    return 0;
}

static int tracks(void *context, int (*visit)(void *to, const struct hec_track *track), void *to, struct hec_why *why) {
    (void)context, (void)why;
    for (uint32_t i = 1; i <= STREAMS + 1; i++) {
        struct hec_track track = {.id = i, .kind = i <= STREAMS ? HEC_TRACK_STREAM : HEC_TRACK_PROCESS, .pid = 1};
        int err = visit(to, &track);
        if (err)
            return err;
    }
    return 0;
}

static int kernels(void *context, int (*visit)(void *to, const struct hec_kernel *kernel), void *to,
                   struct hec_why *why) {
    (void)context, (void)why;
    for (uint32_t i = 1; i <= NAMES; i++) {
        struct hec_kernel kernel = {.id = i, .name = i, .grid = {1, 1, 1}, .block = {256, 1, 1}, .registers = 40};
        int err = visit(to, &kernel);
        if (err)
            return err;
    }
    return 0;
}

struct writer {
    struct hec_activity chunk[CHUNK];
    size_t count;
    uint32_t kinds;
    int (*visit)(void *to, const struct hec_activity *a, size_t count);
    void *to;
};

static int flush(struct writer *w) {
    int err = w->count ? w->visit(w->to, w->chunk, w->count) : 0;
    w->count = 0;
    return err;
}

static int put(struct writer *w, enum hec_activity_kind kind, uint32_t track, uint32_t name, int64_t start,
               int64_t length) {
    if (!(w->kinds & HEC_ACTIVITY_BIT(kind)))
        return 0;
    if (w->count == CHUNK) {
        int err = flush(w);
        if (err)
            return err;
    }
    w->chunk[w->count++] = (struct hec_activity){
        .kind = (uint8_t)kind,
        .track = track,
        .name = name,
        .start_ns = start,
        .end_ns = start + length,
        .launch_ns = kind <= HEC_ACTIVITY_GRAPH ? start - 900000 : HEC_TIME_UNKNOWN,
        .amount = 128,
        .launch_end_ns = HEC_TIME_UNKNOWN,
        .detail = HEC_STEP_OPTIMIZER,
        .from = HEC_MEMORY_PINNED,
        .to = HEC_MEMORY_DEVICE,
    };
    return 0;
}

static int activities(void *context, uint32_t kinds, int (*visit)(void *to, const struct hec_activity *a, size_t count),
                      void *to, struct hec_why *why) {
    struct run *run = context;
    static struct writer w;
    int err = 0;
    (void)why;
    w.count = 0;
    w.kinds = kinds;
    w.visit = visit;
    w.to = to;
    bool device = (kinds & HEC_ACTIVITY_DEVICE) != 0;
    for (int64_t step = 0; step * STEP_KERNELS < run->kernels && !err; step++) {
        int64_t at = step * STEP_NS;
        if (!run->periodic)
            err = put(&w, HEC_ACTIVITY_STEP, STREAMS + 1, 0, at, STEP_NS);
        if (run->windows && step % 10 == 0)
            err = put(&w, HEC_ACTIVITY_WINDOW, STREAMS + 1, 0, at, 5 * STEP_NS);
        if (device)
            err = put(&w, HEC_ACTIVITY_COPY, 1, 0, at, 40000);
        for (int64_t k = 0; device && k < STEP_KERNELS && !err; k++, at += 7500) {
            bool comm = k % 100 == 99;
            uint32_t hash = (uint32_t)k * 2654435761u;
            err = put(&w, HEC_ACTIVITY_KERNEL, comm ? STREAMS : 1 + (k % 20 == 7),
                      comm ? NAMES : 1 + hash % (NAMES - 1), at, comm ? 200000 : 3000 + (hash >> 16) % 6000);
        }
    }
    return err ? err : flush(&w);
}

static int ignore(void *to, const struct hec_activity *a, size_t count) {
    *(int64_t *)to += (int64_t)count + (a[0].kind > 100);
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    struct run run = {.kernels = (argc > 1 ? atoll(argv[1]) : 10) * 1000000};
    for (int i = 2; i < argc; i++) {
        run.windows |= strcmp(argv[i], "windows") == 0;
        run.periodic |= strcmp(argv[i], "periodic") == 0;
    }
    run.input = (struct hec_timeline_input){
        .context = &run, .names = names, .tracks = tracks, .kernels = kernels, .activities = activities};
    struct hec_timeline out;
    struct hec_why why;
    int64_t count = 0;
    double start = now();
    activities(&run, HEC_ACTIVITY_DEVICE, ignore, &count, &why);
    double making = now() - start;
    struct hec_pass pass;
    struct hec_timeline_builder *builder;
    struct hec_pass_consumer consumer;
    start = now();
    if (hec_pass_open(&run.input, &pass, &why) != 0 || hec_timeline_begin(&pass, &builder, &consumer) != 0 ||
        hec_pass_run(&pass, &consumer, 1, &why) != 0 || hec_timeline_end(builder, NULL, &out) != 0)
        return 1;
    double all = now() - start, own = all - making;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%lld activities: %.3f s, of which %.3f s made them; analysis %.1f ns an activity, %.3g million a second\n",
           (long long)count, all, making, own * 1e9 / (double)count, (double)count / own / 1e6);
    printf(
        "memory of the process %.1f MB; busy %.1f %%, %lld steps (%s), %d kernel rows, coverage of the trace %.0f %%\n",
        (double)usage.ru_maxrss / 1000, 100 * out.devices[0].busy_s / out.devices[0].traced_s,
        (long long)out.steps.count, hec_step_source_name(out.steps.source), out.kernel_count,
        100 * out.devices[0].traced_s / out.devices[0].window_s);
    hec_timeline_free(&out);
    return 0;
}
