/* A simulated stream of kernels through the writer and back: bytes of run file a kernel, its launch included (limit 12),
 * CPU time to write and to read one. activities FILE [MILLIONS [launch|device]]
 *
 * launch: a program that launches as fast as it can, 9 us apart; the device waits for it (FACTS: H200, small kernels).
 * device: kernels of 9 us, queued; the device never waits.
 * Twenty kernels in a pattern that repeats; durations with 10 % of noise, calls and gaps with noise and now and then an
 * interruption, all to the nanosecond; every 50th activity is a copy, and every 20th launch an API call that is kept
 * besides. */
#include "../uniform.h"

#include "base/clock.h"
#include "store/reader.h"
#include "store/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define LIMIT_BYTES 12.0
#define KERNELS 20
#define BATCH 512 /* activities the collector hands over at a time */

static double normal(double mean, double deviation) {
    return mean + deviation * sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

static int64_t at_least(double value, double low) {
    return (int64_t)(value < low ? low : value);
}

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct stream {
    const struct hec_sink *sink;
    bool device_bound;
    uint32_t stream, thread, kernel[KERNELS], function;
    int64_t host_ns, device_ns, next; /* when the thread and the device are free; kernels so far */
    struct hec_activity batch[BATCH];
    size_t count;
    double cpu;
    int64_t activities;
};

static void hand_over(struct stream *s) {
    double before = cpu_seconds();
    s->sink->trace_activities(s->sink->context, s->batch, s->count);
    s->cpu += cpu_seconds() - before;
    s->activities += (int64_t)s->count;
    s->count = 0;
}

static struct hec_activity *add(struct stream *s) {
    if (s->count == BATCH)
        hand_over(s);
    s->batch[s->count] = (struct hec_activity){0};
    return &s->batch[s->count++];
}

static void define(struct stream *s) {
    s->stream = s->sink->trace_track(
        s->sink->context,
        &(struct hec_track){.kind = HEC_TRACK_STREAM, .pid = 100, .rank = -1, .context = 1, .stream = 7});
    s->thread = s->sink->trace_track(
        s->sink->context,
        &(struct hec_track){.kind = HEC_TRACK_THREAD, .pid = 100, .rank = -1, .device = -1, .stream = 100});
    s->function = s->sink->trace_name(s->sink->context, "cudaLaunchKernel");
    for (int i = 0; i < KERNELS; i++) {
        char name[128];
        snprintf(name, sizeof name, "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_%dEEEviT0_T1_", i);
        struct hec_kernel kernel = {.name = s->sink->trace_name(s->sink->context, name),
                                    .grid = {100 + i, 1, 1},
                                    .block = {128, 1, 1},
                                    32,
                                    0,
                                    0};
        s->kernel[i] = s->sink->trace_kernel(s->sink->context, &kernel);
    }
}

/* mean durations, us, of the pattern; in a launch-bound program they are shorter than the launches are apart */
static const double mean_us[KERNELS] = {2.1, 3.4, 5.0, 2.2, 8.1, 2.0, 2.0, 4.4, 6.1, 2.9,
                                        3.1, 2.2, 7.7, 2.5, 2.6, 3.0, 5.5, 2.1, 2.4, 4.0};

static void one_kernel(struct stream *s) {
    int which = (int)(s->next % KERNELS);
    double scale = s->device_bound ? 2.25 : 1.0;
    int64_t launch =
        s->host_ns + at_least(normal(4600, 350), 500) + (uniform() < 0.01 ? at_least(normal(30000, 15000), 0) : 0);
    int64_t launch_end = launch + at_least(normal(4400, 400), 900);
    s->host_ns = launch_end;
    int64_t earliest = launch + at_least(normal(3900, 250), 1000),
            after = s->device_ns + at_least(normal(1050, 90), 300);
    int64_t start = earliest > after ? earliest : after;
    int64_t end = start + at_least(normal(mean_us[which], 0.1 * mean_us[which]) * 1000 * scale, 800);
    s->device_ns = end;
    struct hec_activity *a = add(s);
    a->kind = HEC_ACTIVITY_KERNEL;
    a->track = s->stream;
    a->name = s->kernel[which];
    a->start_ns = start;
    a->end_ns = end;
    a->launch_ns = launch;
    a->launch_end_ns = launch_end;
    a->launch_track = s->thread;
    /* the queue is 1024 deep: then the launch waits */
    if (s->device_bound && s->device_ns - s->host_ns > 1024 * 9000)
        s->host_ns = s->device_ns - 1024 * 9000;
    if (s->next % 50 == 49) {
        a = add(s);
        *a = (struct hec_activity){.kind = HEC_ACTIVITY_COPY,
                                   .track = s->stream,
                                   .start_ns = end + 900,
                                   .end_ns = end + 900 + at_least(normal(5000, 500), 1),
                                   .launch_ns = launch_end + 300,
                                   .launch_end_ns = launch_end + 5200,
                                   .launch_track = s->thread,
                                   .amount = 4096,
                                   .from = HEC_MEMORY_PINNED,
                                   .to = HEC_MEMORY_DEVICE};
        s->device_ns = a->end_ns;
    }
    if (s->next % 20 == 19) {
        a = add(s);
        *a = (struct hec_activity){.kind = HEC_ACTIVITY_API,
                                   .detail = HEC_API_ALLOC,
                                   .track = s->thread,
                                   .name = s->function,
                                   .start_ns = launch_end,
                                   .end_ns = launch_end + at_least(normal(1500, 200), 1)};
        s->host_ns = a->end_ns;
    }
    s->next++;
}

struct seen {
    int64_t count, busy_ns;
};

static int look(void *context, const struct hec_activity *activities, size_t count) {
    struct seen *seen = context;
    seen->count += (int64_t)count;
    for (size_t i = 0; i < count; i++)
        seen->busy_ns += activities[i].end_ns - activities[i].start_ns;
    return 0;
}

static int read_back(const char *path, uint32_t kinds, const char *what, struct hec_why *why) {
    struct hec_reader *reader;
    double before = cpu_seconds();
    int err = hec_reader_open(path, &reader, why);
    struct seen seen = {0, 0};
    if (err == HEC_OK)
        err = hec_reader_activities(reader, kinds, look, &seen, why);
    hec_reader_close(reader);
    double seconds = cpu_seconds() - before;
    printf("reader, %s: %lld activities, %.1f million a second of CPU\n", what, (long long)seen.count,
           (double)seen.count / seconds / 1e6);
    return err;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE [MILLIONS [launch|device]]\n", argv[0]);
        return 2;
    }
    int64_t kernels = (int64_t)((argc > 2 ? atof(argv[2]) : 3) * 1e6);
    struct hec_why why = {""};
    struct hec_writer *writer;
    if (hec_writer_create(argv[1], true, 0, &writer, &why) != HEC_OK) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    static struct stream s;
    s.sink = hec_writer_sink(writer);
    s.device_bound = argc > 3 && strcmp(argv[3], "device") == 0;
    define(&s);
    double flush_cpu = 0;
    int64_t flushed_ns = 0, flushes = 0;
    while (s.next < kernels) {
        one_kernel(&s);
        if (s.device_ns - flushed_ns < HEC_NS_PER_S && s.next < kernels)
            continue;
        hand_over(&s);
        double before = cpu_seconds();
        if (hec_writer_flush(writer, &why) != HEC_OK)
            fprintf(stderr, "%s\n", why.text);
        flush_cpu += cpu_seconds() - before;
        flushes++;
        flushed_ns = s.device_ns;
    }
    int64_t lost = 0;
    int err = hec_writer_close(writer, &lost, &why);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    struct stat st;
    if (err || lost || stat(argv[1], &st) != 0) {
        fprintf(stderr, "lost %lld: %s\n", (long long)lost, why.text);
        return 1;
    }
    double bytes = (double)st.st_size / (double)kernels;
    printf("%s-bound, %.1f million kernels in %.0f s: %lld bytes, %.2f a kernel with its launch (limit %.0f)\n",
           s.device_bound ? "device" : "launch", (double)kernels / 1e6, (double)s.device_ns / 1e9,
           (long long)st.st_size, bytes, LIMIT_BYTES);
    printf("writer: %.0f ns of CPU an activity in the sink, %.2f ms a flush (%.0f ns an activity), %.1f MB resident at "
           "most\n",
           s.cpu * 1e9 / (double)s.activities, flush_cpu * 1e3 / (double)flushes,
           flush_cpu * 1e9 / (double)s.activities, (double)usage.ru_maxrss / 1024);
    if (read_back(argv[1], HEC_ACTIVITY_ALL, "all", &why) != HEC_OK ||
        read_back(argv[1], HEC_ACTIVITY_BIT(HEC_ACTIVITY_KERNEL), "kernels", &why) != HEC_OK ||
        read_back(argv[1], HEC_ACTIVITY_BIT(HEC_ACTIVITY_API), "API calls", &why) != HEC_OK) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    return bytes <= LIMIT_BYTES ? 0 : 1;
}
