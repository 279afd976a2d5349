/* The trace collector's cost a record: a ring is filled with what a launch-bound program sends, then drained, in three
 * mixes: calls only, as in the default mode (bursts, and calls of all classes between them); calls and the kernels
 * that they launched, which are brought together; kernels without calls. Beside it, on the same records: memcpy of the
 * ring, and reading it without looking at the records. Medians over rounds; the sink counts and keeps nothing.
 *
 *   bench [ROUNDS] */
#include "base/clock.h"
#include "observe/trace/peer.h"
#include "observe/trace/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define RECORDS 65536u
#define ROUNDS_MAX 1000
#define CONFIGS 64u

static size_t reported, joined, kernels;

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
    reported += count;
    for (size_t i = 0; i < count; i++)
        if (given[i].kind == HEC_ACTIVITY_KERNEL) {
            kernels++;
            joined += given[i].launch_ns != HEC_TIME_UNKNOWN;
        }
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

static void put(struct hec_ring *ring, uint8_t kind, int64_t t_ns, const void *payload, size_t size) {
    struct hec_ring_record record = {.t_ns = t_ns, .tid = 100, .kind = kind};
    memcpy(record.u.bytes, payload, size);
    hec_ring_write(ring, &record);
}

static void define(struct hec_ring *ring, int64_t t_ns, bool matched) {
    struct hec_ring_name text = {.id = 1, .pieces = 1, .length = 14, .text = "cuLaunchKernel"};
    put(ring, HEC_RING_NAME, t_ns, &text, sizeof text);
    struct hec_trace_process process = {
        .abi = HEC_TRACE_ABI, .mode = HEC_TRACE_FULL, .flags = HEC_TRACE_CALLS_SEEN, .attached_ns = matched ? t_ns : 0};
    put(ring, HEC_TRACE_PROCESS, t_ns, &process, sizeof process);
    for (uint32_t i = 1; i <= CONFIGS; i++) {
        struct hec_ring_name name = {.id = 1 + i, .pieces = 1};
        name.length = (uint16_t)snprintf(name.text, sizeof name.text, "_Z6kernel%uPf", i);
        put(ring, HEC_RING_NAME, t_ns, &name, sizeof name);
        struct hec_trace_config config = {.id = i, .name = 1 + i, .grid = {i, 1, 1}, .block = {128, 1, 1}};
        put(ring, HEC_TRACE_CONFIG, t_ns, &config, sizeof config);
    }
}

/* A program's steps repeat 64 functions in one order. */
static uint32_t function_of(uint32_t i) {
    return 1 + (i % CONFIGS * 2654435761u >> 16) % CONFIGS;
}

#define STEP_NS 10000 /* 100 000 launches a second */

static void put_calls(struct hec_ring *ring, int64_t t_ns, uint32_t count) {
    for (uint32_t i = 0; i < count; i++, t_ns += STEP_NS) {
        struct hec_trace_burst burst = {.duration_ns = 9000, .in_calls_ns = 4000, .launches = 20};
        struct hec_trace_call call = {.duration_ns = 5000, .amount = 4096, .function = 1, .result = 0};
        call.call_class = (uint16_t)(HEC_TRACE_CALL_COPY + i / 2 % 4);
        call.from = call.call_class == HEC_TRACE_CALL_SYNC ? HEC_TRACE_WAIT_STREAM : HEC_TRACE_MEMORY_PINNED;
        if (i % 2)
            put(ring, HEC_TRACE_BURST, t_ns, &burst, sizeof burst);
        else
            put(ring, HEC_TRACE_CALL, t_ns, &call, sizeof call);
    }
}

static void put_launches(struct hec_ring *ring, int64_t t_ns, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++, t_ns += STEP_NS) {
        struct hec_trace_call call = {
            .duration_ns = 4000, .amount = 0x1000 + function_of(i), .function = 1, .call_class = HEC_TRACE_CALL_LAUNCH};
        put(ring, HEC_TRACE_CALL, t_ns, &call, sizeof call);
    }
}

static void put_kernels(struct hec_ring *ring, int64_t t_ns, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++, t_ns += STEP_NS) {
        struct hec_trace_kernel kernel = {.duration_ns = 3000 + i * 7919 % 1000,
                                          .config = function_of(i),
                                          .correlation = 2 * i + 1,
                                          .stream = 7,
                                          .context = 1};
        put(ring, HEC_TRACE_KERNEL, t_ns + 6000, &kernel, sizeof kernel);
    }
}

enum mix { MIX_CALLS, MIX_MATCHED, MIX_KERNELS, MIX_COUNT };
static const char *const mix_names[MIX_COUNT] = {"calls and bursts", "launches and kernels, matched", "kernels alone"};

/* As they are delivered: calls, then a buffer of kernels. */
static void fill(struct hec_ring *ring, enum mix mix, uint32_t round, int64_t t_ns) {
    if (mix == MIX_CALLS) {
        put_calls(ring, t_ns, RECORDS);
    } else if (mix == MIX_KERNELS) {
        put_kernels(ring, t_ns, round * RECORDS, RECORDS);
    } else {
        put_launches(ring, t_ns, round * (RECORDS / 2), RECORDS / 2);
        put_kernels(ring, t_ns, round * (RECORDS / 2), RECORDS / 2);
    }
}

/* hec_peer_drain, but with a clock that is given: rounds are 0.3 to 0.7 s of the program. */
static void drain(struct hec_trace_peer *peer, struct hec_trace_run *run, int64_t now_ns) {
    struct hec_ring_record batch[256];
    for (size_t count; (count = hec_ring_read(&peer->process.ring, batch, 256)) > 0;)
        for (size_t i = 0; i < count; i++)
            hec_trace_peer_record(peer, run, &batch[i], now_ns);
    hec_trace_release(&peer->tracks, run, hec_trace_ms(run, now_ns), false);
}

static double copy[ROUNDS_MAX], plain_ns[ROUNDS_MAX], take[ROUNDS_MAX];

/* Medians of a mix; false: something was lost, or not matched. */
static bool measure(enum mix mix, int rounds, struct hec_ring_record *copied) {
    static struct hec_trace_run run;
    struct hec_sink sink = {.event = event,
                            .trace_name = name,
                            .trace_track = track,
                            .trace_kernel = kernel,
                            .trace_activities = activities,
                            .tracer = tracer};
    struct hec_ring ring;
    struct hec_ring_reader reader, plain;
    int fd;
    if (hec_ring_create(RECORDS, HEC_RING_TRACE, &ring, &fd) < 0 || hec_ring_map(fd, &reader) < 0 ||
        hec_ring_map(fd, &plain) < 0)
        return false;
    close(fd);
    int64_t round_ns = (mix == MIX_MATCHED ? RECORDS / 2 : RECORDS) * (int64_t)STEP_NS;
    int64_t t_ns = hec_clock_mono_ns() - (rounds + 2) * round_ns, now_ns = t_ns + HEC_NS_PER_MS;
    hec_trace_run_init(&run, &sink, t_ns);
    struct hec_peers peers = {.kind = &hec_trace_peers, .run = &run, .reporter = &run.reporter};
    struct hec_trace_peer *peer =
        (struct hec_trace_peer *)hec_peer_new(&peers, &(struct hec_intake_ring){reader, getpid(), -1}, now_ns);
    if (!peer)
        return false;
    define(&ring, t_ns + 1, mix == MIX_MATCHED);
    drain(peer, &run, t_ns + HEC_NS_PER_MS);
    reported = joined = kernels = 0;
    for (int round = 0; round < rounds; round++) {
        fill(&ring, mix, (uint32_t)round, t_ns + 1000 + round * round_ns);
        int64_t start_ns = cpu_ns();
        memcpy(copied, ring.slots, RECORDS * sizeof *copied);
        copy[round] = (double)(cpu_ns() - start_ns) / RECORDS;
        plain.tail = peer->process.ring.tail; /* a second reader that gives nothing back to the writer */
        uint64_t tail = plain.header->tail;
        start_ns = cpu_ns();
        for (size_t left = RECORDS; left > 0;) {
            size_t count = hec_ring_read(&plain, copied, 256);
            if (count == 0)
                break;
            left -= count;
        }
        plain_ns[round] = (double)(cpu_ns() - start_ns) / RECORDS;
        plain.header->tail = tail;
        now_ns += round_ns;
        start_ns = cpu_ns();
        drain(peer, &run, now_ns);
        take[round] = (double)(cpu_ns() - start_ns) / RECORDS;
    }
    uint64_t lost = hec_ring_lost(&peer->process.ring);
    int64_t start_ns = cpu_ns();
    hec_peer_end(&peers, &peer->process, now_ns);
    hec_trace_flush(&run);
    double end_ms = (double)(cpu_ns() - start_ns) / 1e6;
    hec_ring_unmap(&ring);
    double copy_ns = median(copy, rounds), read_ns = median(plain_ns, rounds), take_ns = median(take, rounds);
    printf("%s:\n", mix_names[mix]);
    printf("  %-32s %8.1f ns a record\n", "memcpy of the ring", copy_ns);
    printf("  %-32s %8.1f ns a record, %5.1f x memcpy\n", "reading the ring", read_ns, read_ns / copy_ns);
    printf("  %-32s %8.1f ns a record, %5.1f x memcpy; the end %.1f ms\n", "the collector, all of it", take_ns,
           take_ns / copy_ns, end_ms);
    printf("  %zu activities told, %zu kernels, %zu with their launch, %llu records lost\n", reported, kernels, joined,
           (unsigned long long)lost);
    size_t records = (size_t)rounds * RECORDS;
    /* each record is reported once; a launch that was found is reported by its kernel */
    return lost == 0 && reported + joined == records && (mix != MIX_MATCHED || joined * 10 >= kernels * 9);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    struct hec_ring_record *copied = malloc(RECORDS * sizeof *copied);
    if (rounds < 1 || rounds > ROUNDS_MAX || !copied)
        return 1;
    memset(copied, 1, RECORDS * sizeof *copied);
    bool good = true;
    for (int mix = 0; mix < MIX_COUNT; mix++)
        good = measure((enum mix)mix, rounds, copied) && good;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld MB at most\n", usage.ru_maxrss / 1024);
    free(copied);
    return good ? 0 : 1;
}
