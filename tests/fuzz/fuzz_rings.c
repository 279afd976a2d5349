/* Bytes as what the programs of one process do to their rings, one program after the other (exec): records, counts of
 * what was lost, times between. What is reported of the process stays within bounds, however many there were. Input: an
 * operation, then what it takes. */
#include "base/clock.h"
#include "observe/trace/peer.h"
#include "observe/trace/records.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAMS_MAX 64

static struct hec_tracer reported;

static void check(int holds) {
    if (!holds)
        abort();
}

static uint32_t definition(void *context, const char *text) {
    (void)context, (void)text;
    return 1;
}

static uint32_t track(void *context, const struct hec_track *given) {
    (void)context, (void)given;
    return 1;
}

static uint32_t kernel(void *context, const struct hec_kernel *given) {
    (void)context, (void)given;
    return 1;
}

static void give(void *context, const struct hec_activity *given, size_t count) {
    (void)context, (void)given, (void)count;
}

static void event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)device, (void)t_ns;
    check(kind < HEC_EVENT_COUNT && strlen(text) < 256);
}

static void tracer(void *context, const struct hec_tracer *now) {
    (void)context;
    check(now->records >= reported.records && now->lost >= 0 && now->dropped >= 0 && now->bad >= 0 &&
          now->windows >= 0 && now->traced_ns >= 0 && now->holder_ns >= 0 && now->self_ns >= 0);
    reported = *now;
}

static struct hec_trace_peer *begin(struct hec_peers *peers, struct hec_ring *ring, int64_t now_ns) {
    int fd;
    struct hec_ring_reader reader;
    if (hec_ring_create(HEC_RING_RECORDS_MIN, HEC_RING_TRACE, ring, &fd) < 0 || hec_ring_map(fd, &reader) < 0)
        abort();
    close(fd);
    struct hec_trace_peer *peer =
        (struct hec_trace_peer *)hec_peer_new(peers, &(struct hec_intake_ring){reader, 1234, -1}, now_ns);
    check(peer != NULL);
    struct hec_ring_record first = {.t_ns = now_ns, .kind = HEC_TRACE_PROCESS};
    struct hec_trace_process process = {.abi = HEC_TRACE_ABI, .mode = HEC_TRACE_FULL};
    memcpy(first.u.bytes, &process, sizeof process);
    hec_trace_peer_record(peer, peers->run, &first, now_ns);
    return peer;
}

static uint64_t take(const uint8_t **data, size_t *size, void *bytes, size_t length) {
    uint64_t value = 0;
    size_t n = *size < length ? *size : length;
    memset(bytes ? bytes : &value, 0, bytes ? length : sizeof value);
    memcpy(bytes ? bytes : &value, *data, n);
    *data += n;
    *size -= n;
    return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct hec_trace_run run;
    int64_t now_ns = hec_clock_mono_ns() - 30 * HEC_NS_PER_S;
    struct hec_sink sink = {.event = event,
                            .trace_name = definition,
                            .trace_track = track,
                            .trace_kernel = kernel,
                            .trace_activities = give,
                            .tracer = tracer};
    reported = (struct hec_tracer){0};
    hec_trace_run_init(&run, &sink, now_ns);
    struct hec_ring ring;
    struct hec_peers peers = {.kind = &hec_trace_peers, .run = &run, .reporter = &run.reporter};
    struct hec_trace_peer *peer = begin(&peers, &ring, now_ns);
    for (int programs = 1; size > 0;) {
        uint8_t what = *data++;
        size--;
        if (what % 4 == 0 && programs++ < PROGRAMS_MAX) {
            hec_peer_drain(&peers, &peer->process, now_ns, true); /* as the collector ends an earlier program */
            hec_trace_peers.replaced(&run, &peer->process, now_ns);
            hec_peer_end(&peers, &peer->process, now_ns);
            hec_ring_unmap(&ring);
            peer = begin(&peers, &ring, now_ns);
        } else if (what % 4 == 1) {
            ring.header->dropped = take(&data, &size, NULL, 8);
        } else if (what % 4 == 2) {
            struct hec_ring_record record = {.kind = (uint16_t)(what / 4), .tid = 7, .t_ns = now_ns};
            record.kind = (uint16_t)(HEC_TRACE_PROCESS + record.kind % (HEC_TRACE_LIMIT - HEC_TRACE_PROCESS));
            record.flags = (uint8_t)take(&data, &size, NULL, 1);
            take(&data, &size, record.u.bytes, HEC_RING_PAYLOAD_BYTES);
            hec_trace_peer_record(peer, &run, &record, now_ns);
        } else {
            now_ns += (int64_t)take(&data, &size, NULL, 1) << what / 8;
            hec_peer_drain(&peers, &peer->process, now_ns, true);
        }
    }
    hec_peer_end(&peers, &peer->process, now_ns);
    hec_ring_unmap(&ring);
    hec_trace_flush(&run);
    check(run.held == 0 && run.budget.left == HEC_TRACE_BUDGET_BYTES);
    return 0;
}
