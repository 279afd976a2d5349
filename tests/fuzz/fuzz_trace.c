/* Arbitrary records through the trace collector, against a sink that checks what it is given: ids are defined before
 * use, starts are not behind ends, numbers are bounded. Input: one byte of choices, then records of 48 bytes: kind,
 * flags, thread, time, payload. Times and ids are made small by default, so that records meet each other. */
#include "base/clock.h"
#include "observe/trace/peer.h"
#include "observe/trace/records.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUT_BYTES 48u
#define ACTIVITIES_MAX 4096u

static uint32_t names, tracks, kernels;
static size_t activities, rests;
static int64_t records, windows;

static void check(int holds) {
    if (!holds)
        abort();
}

static uint32_t name(void *context, const char *text) {
    (void)context;
    check(strlen(text) <= HEC_RING_NAME_BYTES_MAX);
    return ++names % 50 == 0 ? 0 : names; /* as when the sink's table is full */
}

static uint32_t track(void *context, const struct hec_track *given) {
    (void)context;
    check(given->kind < HEC_TRACK_KIND_COUNT && memchr(given->name, '\0', sizeof given->name));
    check(given->kind == HEC_TRACK_STREAM ? given->device >= 0 : given->device == -1);
    return ++tracks % 20 == 0 ? 0 : tracks;
}

static uint32_t kernel(void *context, const struct hec_kernel *given) {
    (void)context;
    check(given->name >= 1 && given->name <= names);
    return ++kernels;
}

static void give(void *context, const struct hec_activity *given, size_t count) {
    int64_t opened_ns = *(const int64_t *)context;
    check(count > 0 && count <= HEC_TRACE_BATCH);
    activities += count;
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &given[i];
        check(a->start_ns <= a->end_ns && a->start_ns >= opened_ns - HEC_NS_PER_S);
        check(a->kind < HEC_ACTIVITY_KIND_COUNT && a->track >= 1 && a->track <= tracks && a->launch_track <= tracks);
        check(a->name <= (a->kind == HEC_ACTIVITY_KERNEL ? kernels : names));
        check(a->kind == HEC_ACTIVITY_BURST || (a->from < HEC_MEMORY_KIND_COUNT && a->to < HEC_MEMORY_KIND_COUNT));
        check(a->device <= HEC_TRACE_ORDINALS_MAX);
        if (a->kind == HEC_ACTIVITY_BURST)
            check(a->amount >= 1 && a->amount <= UINT32_MAX);
        check((a->launch_ns == HEC_TIME_UNKNOWN) == (a->launch_end_ns == HEC_TIME_UNKNOWN));
        check(!(a->amount < 0) && !(a->amount > (double)UINT64_MAX / 8)); /* bytes: at most 2^60 */
        if (a->kind == HEC_ACTIVITY_SYNC)
            check(a->detail < HEC_SYNC_TYPE_COUNT);
        if (a->kind == HEC_ACTIVITY_API)
            check(a->detail < HEC_API_CLASS_COUNT);
        rests += a->kind == HEC_ACTIVITY_WINDOW && a->detail == HEC_TRACE_OFF;
    }
}

static void tracer(void *context, const struct hec_tracer *given) {
    (void)context;
    check(memchr(given->why, '\0', sizeof given->why) && memchr(given->holder, '\0', sizeof given->holder) &&
          memchr(given->library, '\0', sizeof given->library));
    check(given->records >= 0 && given->dropped >= 0 && given->lost >= 0 && given->bad >= 0 && given->windows >= 0 &&
          given->traced_ns >= 0 && given->holder_ns >= 0 && given->self_ns >= 0);
    records = given->records;
    windows = given->windows;
}

static void event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)device, (void)t_ns;
    check(kind < HEC_EVENT_COUNT && strlen(text) < 256);
}

static uint32_t word(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct hec_trace_run run;
    if (size < 1)
        return 0;
    uint8_t choice = *data++;
    size--;
    names = tracks = kernels = 0;
    activities = rests = 0;
    records = windows = 0;
    int64_t t0_ns = hec_clock_mono_ns() - 30 * HEC_NS_PER_S;
    struct hec_sink sink = {.context = &t0_ns,
                            .event = event,
                            .trace_name = name,
                            .trace_track = track,
                            .trace_kernel = kernel,
                            .trace_activities = give,
                            .tracer = tracer};
    hec_trace_run_init(&run, &sink, t0_ns);
    int fd;
    struct hec_ring ring;
    struct hec_ring_reader reader;
    if (hec_ring_create(HEC_RING_RECORDS_MIN, HEC_RING_TRACE, &ring, &fd) < 0 || hec_ring_map(fd, &reader) < 0)
        abort();
    close(fd);
    struct hec_peers peers = {.kind = &hec_trace_peers, .run = &run, .reporter = &run.reporter};
    struct hec_trace_peer *peer =
        (struct hec_trace_peer *)hec_peer_new(&peers, &(struct hec_intake_ring){reader, 1234, -1}, t0_ns);
    check(peer != NULL);
    if (choice & 1) {
        struct hec_ring_record first = {.t_ns = t0_ns + 1, .kind = HEC_TRACE_PROCESS};
        struct hec_trace_process process = {.abi = HEC_TRACE_ABI, .mode = HEC_TRACE_FULL};
        process.attached_ns = choice & 128 ? t0_ns + 1 : 0; /* calls and what they launched are brought together */
        memcpy(first.u.bytes, &process, sizeof process);
        hec_trace_peer_record(peer, &run, &first, t0_ns + 2);
    }
    size_t of_others = choice & 2 ? run.budget.left - (1 << 16) : 0; /* memory runs out */
    run.budget.left -= of_others;
    if (choice & 4)
        run.held = HEC_TRACE_HELD_MAX - 4;
    if (choice & 8)
        run.end_ns = t0_ns + HEC_NS_PER_S;
    uint32_t held_by_others = run.held;
    size_t taken = 0, rests_taken = 0;
    int64_t now_ns = t0_ns + HEC_NS_PER_S;
    for (; size >= INPUT_BYTES && taken < ACTIVITIES_MAX; data += INPUT_BYTES, size -= INPUT_BYTES, taken++) {
        uint8_t kind = (uint8_t)(HEC_TRACE_PROCESS + data[0] % (HEC_TRACE_LIMIT - HEC_TRACE_PROCESS + 1));
        struct hec_ring_record record = {
            .kind = choice & 16 ? (uint8_t)word(data) : kind, .flags = data[2], .tid = data[3]};
        if (record.kind == HEC_TRACE_LIMIT)
            record.kind = HEC_RING_NAME;
        uint32_t t = word(data + 4);
        rests_taken += record.kind == HEC_TRACE_REST;
        record.t_ns = choice & 32 ? (int64_t)((uint64_t)t << 31) : t0_ns + t;
        memcpy(record.u.bytes, data + 8, HEC_RING_PAYLOAD_BYTES);
        now_ns += choice & 64 ? (int64_t)data[3] * 20 * HEC_NS_PER_MS : 1000;
        hec_trace_peer_record(peer, &run, &record, now_ns);
        if (taken % 64 == 63)
            hec_trace_release(&peer->tracks, &run, hec_trace_ms(&run, now_ns), false);
    }
    hec_peer_end(&peers, &peer->process, now_ns);
    hec_trace_flush(&run);
    check(run.held == held_by_others && run.budget.left == HEC_TRACE_BUDGET_BYTES - of_others);
    check(activities <= (uint64_t)(records + windows) + rests &&
          activities <= taken + 1); /* nothing is reported twice */
    check(rests <= rests_taken);
    hec_ring_unmap(&ring);
    return 0;
}
