/* The trace collector's cost a record: a ring is filled with what a launch-bound program sends (a call and a kernel by
 * turns, kernels behind their calls by the depth of the queue), then drained. Beside it, on the same records: memcpy
 * of the ring, and reading it without looking at the records. Medians over rounds; the sink counts and keeps nothing.
 *
 *   bench [ROUNDS] */
#include "base/clock.h"
#include "observe/trace/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define RECORDS 65536u
#define ROUNDS_MAX 1000

static size_t told, joined;

static uint32_t id(void *context, const void *what) {
    (void)context, (void)what;
    static uint32_t last;
    return ++last;
}
static uint32_t name(void *context, const char *text) {
    return id(context, text);
}
static uint32_t track(void *context, const struct hec_track *given) {
    return id(context, given);
}
static uint32_t kernel(void *context, const struct hec_kernel *given) {
    return id(context, given);
}
static void activities(void *context, const struct hec_activity *given, size_t count) {
    (void)context;
    told += count;
    for (size_t i = 0; i < count; i++)
        joined += given[i].launch_ns != HEC_TIME_UNKNOWN;
}
static void tracer(void *context, const struct hec_tracer *given) {
    (void)context, (void)given;
}
static void event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)kind, (void)device, (void)t_ns;
    fprintf(stderr, "bench: %s\n", text);
}

static int64_t cpu_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

static void put(struct hec_ring *ring, uint16_t kind, int64_t t_ns, const void *payload, size_t size) {
    struct hec_ring_record record = {.t_ns = t_ns, .tid = 100, .kind = kind};
    memcpy(record.u.bytes, payload, size);
    hec_ring_write(ring, &record);
}

static void define(struct hec_ring *ring, int64_t t_ns) {
    struct hec_ring_name text = {.id = 1, .pieces = 1, .length = 16, .text = "cudaLaunchKernel"};
    put(ring, HEC_RING_NAME, t_ns, &text, sizeof text);
    struct hec_trace_process process = {.abi = HEC_TRACE_ABI, .mode = HEC_TRACE_FULL};
    put(ring, HEC_TRACE_PROCESS, t_ns, &process, sizeof process);
    for (uint32_t i = 1; i <= 64; i++) {
        struct hec_trace_config config = {.id = i, .name = 1, .grid = {i, 1, 1}, .block = {128, 1, 1}};
        put(ring, HEC_TRACE_CONFIG, t_ns, &config, sizeof config);
    }
}

/* As CUPTI delivers it: a buffer of calls, then a buffer of kernels. */
static void fill(struct hec_ring *ring, uint32_t round, int64_t t_ns) {
    uint32_t pairs = RECORDS / 2, first = round * pairs + 1;
    for (uint32_t i = 0; i < pairs; i++) {
        struct hec_trace_api api = {
            .duration_ns = 2000, .correlation = first + i, .function = 1, .api_class = HEC_TRACE_API_LAUNCH};
        put(ring, HEC_TRACE_API, t_ns + i * 100, &api, sizeof api);
    }
    for (uint32_t i = 0; i < pairs; i++) {
        struct hec_trace_kernel what = {
            .duration_ns = 90, .config = 1 + i % 64, .correlation = first + i, .stream = 7 + i % 4, .context = 1};
        put(ring, HEC_TRACE_KERNEL, t_ns + 1000 + i * 100, &what, sizeof what);
    }
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    static double copy[ROUNDS_MAX], read[ROUNDS_MAX], take[ROUNDS_MAX];
    static struct hec_trace_run run;
    struct hec_sink sink = {.event = event,
                            .trace_name = name,
                            .trace_track = track,
                            .trace_kernel = kernel,
                            .trace_activities = activities,
                            .tracer = tracer};
    struct hec_ring ring;
    struct hec_ring_reader reader, plain;
    struct hec_ring_record *copied = malloc(RECORDS * sizeof *copied);
    int fd;
    if (rounds < 1 || rounds > ROUNDS_MAX || !copied || hec_ring_create(RECORDS, HEC_RING_TRACE, &ring, &fd) < 0 ||
        hec_ring_map(fd, &reader) < 0 || hec_ring_map(fd, &plain) < 0)
        return 1;
    close(fd);
    int64_t t_ns = hec_clock_mono_ns() - 600 * HEC_NS_PER_S, now_ns = t_ns;
    hec_trace_run_init(&run, &sink, t_ns);
    struct hec_trace_peer *peer = hec_trace_peer_new(&run, reader, getpid(), -1);
    if (!peer)
        return 1;
    define(&ring, t_ns + 1);
    hec_trace_peer_drain(peer, &run, t_ns, false);
    uint64_t before = told;
    memset(copied, 1, RECORDS * sizeof *copied);
    for (int round = 0; round < rounds; round++) {
        fill(&ring, (uint32_t)round, t_ns + (int64_t)round * 5 * HEC_NS_PER_MS);
        int64_t start_ns = cpu_ns();
        memcpy(copied, ring.slots, RECORDS * sizeof *copied);
        copy[round] = (double)(cpu_ns() - start_ns) / RECORDS;
        plain.tail = peer->ring.tail; /* a second reader that gives nothing back to the writer */
        uint64_t tail = plain.header->tail;
        start_ns = cpu_ns();
        for (size_t left = RECORDS; left > 0;) {
            size_t count = hec_ring_read(&plain, copied, 256);
            if (count == 0)
                break;
            left -= count;
        }
        read[round] = (double)(cpu_ns() - start_ns) / RECORDS;
        plain.header->tail = tail;
        now_ns += 300 * HEC_NS_PER_MS; /* what came in one round may leave in the next */
        start_ns = cpu_ns();
        hec_trace_peer_drain(peer, &run, now_ns, false);
        take[round] = (double)(cpu_ns() - start_ns) / RECORDS;
    }
    uint64_t lost = hec_ring_lost(&peer->ring);
    hec_trace_peer_end(peer, &run, now_ns);
    hec_trace_flush(&run);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double copy_ns = median(copy, rounds), read_ns = median(read, rounds), take_ns = median(take, rounds);
    printf("%-34s %8.1f ns a record\n", "memcpy of the ring", copy_ns);
    printf("%-34s %8.1f ns a record, %5.1f x memcpy\n", "reading the ring", read_ns, read_ns / copy_ns);
    printf("%-34s %8.1f ns a record, %5.1f x memcpy\n", "the collector, all of it", take_ns, take_ns / copy_ns);
    printf("%zu kernels told, %zu with their launch, %llu records lost, %ld MB at most\n", told - before, joined,
           (unsigned long long)lost, usage.ru_maxrss / 1024);
    free(copied);
    return told - before == (size_t)rounds * RECORDS / 2 && joined == told - before ? 0 : 1;
}
