/* What one reading of a process's stacks takes, without waking up: CPU time of it, calls of process_vm_readv, samples. See reading.py. */
#include "base/clock.h"
#include "observe/stacks/sampler.h"
#include "observe/stacks/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define READINGS_MAX 20000
#ifndef MOST /* of a tree whose sampler is told how many threads */
#define MOST
#endif

static struct hec_stacks_sampler sampler;
static struct hec_python_scratch scratch;
static struct hec_stacks_out out;
static size_t (*read_it)(void *context, const struct iovec *pieces, size_t count, void *to);
static long calls;
static uint32_t ids;
static int64_t took_ns[READINGS_MAX];

static uint32_t keep_name(void *context, const char *text) {
    return context || !text ? 0 : ++ids;
}
static uint32_t keep_track(void *context, const struct hec_track *track) {
    return context || !track ? 0 : ++ids;
}
static uint32_t keep_frame(void *context, const struct hec_frame *frame) {
    return context || !frame ? 0 : ++ids;
}
static void keep_activities(void *context, const struct hec_activity *list, size_t count) {
    (void)context;
    (void)list;
    (void)count;
}

static size_t counted(void *context, const struct iovec *pieces, size_t count, void *to) {
    calls++;
    return read_it(context, pieces, count, to);
}

static int64_t cpu_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

static int by_time(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    static const struct hec_sink sink = {.trace_name = keep_name,
                                         .trace_track = keep_track,
                                         .trace_frame = keep_frame,
                                         .trace_activities = keep_activities};
    const struct timespec pause = {.tv_nsec =
                                       500000}; /* others have the core meanwhile, as between two readings of hec */
    struct hec_why why = {""};
    int readings = argc == 3 ? atoi(argv[2]) : 0;
    out.sink = &sink;
    hec_stacks_sampler_init(&sampler, &sink);
    if (readings < 1 || readings > READINGS_MAX || hec_python_process_open(atoi(argv[1]), &sampler.process, &why) < 0) {
        fprintf(stderr, "usage: reading PID READINGS: %s\n", why.text);
        return 1;
    }
    read_it = sampler.process.memory.read;
    sampler.process.memory.read = counted;
    int64_t now_ns = hec_clock_mono_ns();
    for (int i = -150; i < readings; i++) { /* after 1.5 s it is known who waits */
        if (i == 0)
            calls = out.counts.samples = out.counts.torn = 0;
        nanosleep(&pause, NULL);
        now_ns += HEC_STACKS_PERIOD_NS;
        int64_t before_ns = cpu_ns();
        hec_stacks_sample(&sampler, now_ns, HEC_STACKS_PERIOD_NS, MOST & scratch, &out);
        if (i >= 0)
            took_ns[i] = cpu_ns() - before_ns;
    }
    qsort(took_ns, (size_t)readings, sizeof *took_ns, by_time);
    printf("%.1f %.1f %.1f %.2f %.2f %ld\n", (double)took_ns[readings / 10] / 1e3, (double)took_ns[readings / 4] / 1e3,
           (double)took_ns[readings / 2] / 1e3, (double)calls / readings, (double)out.counts.samples / readings,
           (long)out.counts.torn);
    return 0;
}
