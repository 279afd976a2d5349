/* A process whose records are made by hand, for tests of the trace collector. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "observe/trace/peer.h"
#include "observe/trace/records.h"
#include "tests/unit/kept.h"

#include <unistd.h>

struct process {
    struct hec_ring ring;
    struct hec_trace_run *run;
    struct hec_peers peers;
    struct hec_trace_peer *peer;
    int64_t t0_ns; /* times of records are given relative to this, in microseconds */
};

static struct process p;

static int trace_begin(void **state) {
    (void)state;
    kept_clear();
    return 0;
}
EACH_TEST(trace_begin, NULL)

static void process_open(struct process *process, pid_t pid) {
    int fd;
    struct hec_ring_reader reader;
    memset(process, 0, sizeof *process);
    process->run = malloc(sizeof *process->run);
    process->t0_ns = hec_clock_mono_ns() - 60 * HEC_NS_PER_S;
    hec_trace_run_init(process->run, &keeping, process->t0_ns);
    assert_int_equal(hec_ring_create(1024, HEC_RING_TRACE, &process->ring, &fd), HEC_OK);
    assert_int_equal(hec_ring_map(fd, &reader), HEC_OK);
    close(fd);
    process->peers =
        (struct hec_peers){.kind = &hec_trace_peers, .run = process->run, .reporter = &process->run->reporter};
    struct hec_intake_ring arrived = {.ring = reader, .pid = pid, .pid_fd = -1};
    process->peer = (struct hec_trace_peer *)hec_peer_new(&process->peers, &arrived, process->t0_ns);
    assert_non_null(process->peer);
}

static int64_t at_us(const struct process *process, double us) {
    return process->t0_ns + (int64_t)(us * 1e3);
}

static void give(struct process *process, uint16_t kind, double t_us, const void *payload, size_t size, uint16_t flags,
                 double now_us) {
    struct hec_ring_record record = {.t_ns = at_us(process, t_us), .tid = 77, .kind = kind, .flags = flags};
    memcpy(record.u.bytes, payload, size);
    hec_trace_peer_record(process->peer, process->run, &record, at_us(process, now_us));
}
#define GIVE(process, kind, t_us, now_us, flags, type, ...)                                                            \
    give(process, kind, t_us, &(struct type)__VA_ARGS__, sizeof(struct type), flags, now_us)

static void give_name(struct process *process, uint32_t id, const char *text) {
    size_t length = strlen(text);
    uint8_t pieces = (uint8_t)((length + 31) / 32);
    for (uint8_t i = 0; i < pieces; i++) {
        struct hec_ring_name name = {.id = id, .piece = i, .pieces = pieces, .length = (uint16_t)length};
        size_t rest = length - 32u * i;
        memcpy(name.text, text + 32 * i, rest < 32 ? rest : 32);
        give(process, HEC_RING_NAME, 0, &name, sizeof name, 0, 1);
    }
}

/* attached_ns 0: calls and what they launched are not brought together. */
static void give_attached(struct process *process, int64_t attached_ns) {
    give_name(process, 1, "/usr/lib/libcupti.so.13");
    GIVE(process, HEC_TRACE_PROCESS, 1, 10, 0, hec_trace_process,
         {.abi = HEC_TRACE_ABI,
          .mode = HEC_TRACE_FULL,
          .cupti_version = 130000,
          .driver_version = 13000,
          .library = 1,
          .attached_ns = attached_ns});
}

static inline void give_process(struct process *process) {
    give_attached(process, 0);
}

static inline void give_config(struct process *process, uint32_t id, const char *name) {
    give_name(process, 1000 + id, name);
    GIVE(process, HEC_TRACE_CONFIG, 2, 10, 0, hec_trace_config,
         {.id = id, .name = 1000 + id, .grid = {8, 1, 1}, .block = {256, 1, 1}, .registers = 32});
}

static void release(struct process *process, double now_us) {
    hec_trace_release(&process->peer->tracks, process->run, hec_trace_ms(process->run, at_us(process, now_us)), false);
    hec_trace_flush(process->run);
}

static void process_end(struct process *process, double end_us) {
    hec_peer_end(&process->peers, &process->peer->process, at_us(process, end_us));
    hec_trace_flush(process->run);
    assert_int_equal(process->run->held, 0);
    assert_int_equal(process->run->budget.left, HEC_TRACE_BUDGET_BYTES);
    free(process->run);
    hec_ring_unmap(&process->ring);
}
