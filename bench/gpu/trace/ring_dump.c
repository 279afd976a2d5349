/* ring_dump LIBRARY MODE BUDGET_PPM command...: run a command with the tracer in it, and print what comes out of its
 * rings, without any of hec's own reading: lines for what is rare, counts for the rest.
 *
 *   gcc -O2 -D_GNU_SOURCE -Isrc bench/gpu/trace/ring_dump.c src/base/ring.c -o ring_dump
 *   ./ring_dump lib/hec/libhectrace.so full 10000 python3 train.py */
#include "base/trace.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RINGS 64
#define NAMES 65536

struct ring {
    struct hec_ring_reader reader;
    uint32_t pid;
    uint64_t count[HEC_TRACE_LIMIT], named, late; /* late: refers to what was not defined before */
    uint64_t bytes, in_graph, calls[HEC_TRACE_CALL_CLASS_COUNT], launches;
    int64_t first_ns, busy_ns, window_ns, call_ns[HEC_TRACE_CALL_CLASS_COUNT], burst_ns, in_calls_ns, pauses_ns;
    char *names[NAMES];
    uint64_t configs[2048]; /* bits */
};
static struct ring *rings[RINGS];
static int ring_count;

static const char *const kind_names[HEC_TRACE_LIMIT - HEC_RING_TRACE_FIRST] = {
    "process", "device", "config", "kernel", "copy", "memset", "graph", "call", "burst", "window", "counts", "holder"};
static const char *const class_names[HEC_TRACE_CALL_CLASS_COUNT] = {"other", "launch", "graph", "copy",  "memset",
                                                                    "sync",  "alloc",  "free",  "module"};

static const char *name_of(struct ring *r, uint32_t id) {
    return id == 0 ? "-" : id < NAMES && r->names[id] ? r->names[id] : "?";
}

static void show(struct ring *r, const struct hec_ring_record *record) {
    union hec_trace_payload u;
    memcpy(&u, &record->u, sizeof u);
    if (r->first_ns == 0)
        r->first_ns = record->t_ns;
    double at = (double)(record->t_ns - r->first_ns) / 1e9;
    if (record->kind == HEC_RING_NAME) {
        const struct hec_ring_name *piece = &record->u.name;
        if (piece->id >= NAMES)
            return;
        if (piece->piece == 0) {
            free(r->names[piece->id]);
            r->names[piece->id] = calloc(1, (size_t)piece->length + 1);
        }
        size_t from = (size_t)piece->piece * HEC_RING_NAME_PIECE;
        if (r->names[piece->id] && from <= piece->length)
            memcpy(r->names[piece->id] + from, piece->text,
                   piece->length - from < HEC_RING_NAME_PIECE ? piece->length - from : HEC_RING_NAME_PIECE);
        r->named++;
        return;
    }
    if (record->kind < HEC_RING_TRACE_FIRST || record->kind >= HEC_TRACE_LIMIT)
        return;
    r->count[record->kind]++;
    switch (record->kind) {
    case HEC_TRACE_PROCESS:
        printf("[%u %8.3f] process: abi %u mode %u flags %u cupti %u driver %u library %s budget %u attached %.3f "
               "why %s\n",
               r->pid, at, u.process.abi, u.process.mode, u.process.flags, u.process.cupti_version,
               u.process.driver_version, name_of(r, u.process.library), u.process.budget_ppm,
               u.process.attached_ns ? (double)(u.process.attached_ns - r->first_ns) / 1e9 : -1,
               name_of(r, u.process.why));
        break;
    case HEC_TRACE_DEVICE:
        printf("[%u %8.3f] device %u at %.16s\n", r->pid, at, u.device.ordinal, u.device.pci_bus_id);
        break;
    case HEC_TRACE_CONFIG:
        if (u.config.id < 2048 * 64)
            r->configs[u.config.id / 64] |= UINT64_C(1) << (u.config.id % 64);
        if (r->count[HEC_TRACE_CONFIG] <= 3)
            printf("[%u %8.3f] config %u: %.80s <<<(%u,%u,%u), (%u,%u,%u)>>> %u registers\n", r->pid, at, u.config.id,
                   name_of(r, u.config.name), u.config.grid[0], u.config.grid[1], u.config.grid[2], u.config.block[0],
                   u.config.block[1], u.config.block[2], u.config.registers);
        break;
    case HEC_TRACE_KERNEL:
        r->late += u.kernel.config >= 2048 * 64 || !(r->configs[u.kernel.config / 64] >> (u.kernel.config % 64) & 1);
        r->busy_ns += u.kernel.duration_ns;
        r->in_graph += record->flags & HEC_TRACE_IN_GRAPH;
        break;
    case HEC_TRACE_COPY:
        r->bytes += u.copy.bytes;
        break;
    case HEC_TRACE_CALL:
        r->late += strcmp(name_of(r, u.call.function), "?") == 0;
        if (u.call.call_class < HEC_TRACE_CALL_CLASS_COUNT) {
            r->calls[u.call.call_class]++;
            r->call_ns[u.call.call_class] += u.call.duration_ns;
        }
        if (r->count[HEC_TRACE_CALL] <= 3)
            printf("[%u %8.3f] call %s tid %u %.1f us, amount %" PRIu64 ", device %u, result %d\n", r->pid, at,
                   name_of(r, u.call.function), record->tid, (double)u.call.duration_ns / 1e3, u.call.amount,
                   u.call.device, u.call.result);
        break;
    case HEC_TRACE_BURST:
        r->launches += u.burst.launches;
        r->burst_ns += u.burst.duration_ns;
        r->in_calls_ns += u.burst.in_calls_ns;
        r->pauses_ns += u.burst.pauses_ns;
        if (r->count[HEC_TRACE_BURST] <= 3)
            printf("[%u %8.3f] burst tid %u: %u launches, %u of graphs, in %.1f us, device %u\n", r->pid, at,
                   record->tid, u.burst.launches, u.burst.graphs, (double)u.burst.duration_ns / 1e3, u.burst.device);
        break;
    case HEC_TRACE_WINDOW:
        if (!(record->flags & HEC_TRACE_WINDOW_OPEN)) {
            printf("[%u %8.3f] window %u: %.3f s, %" PRIu64 " records, self %.2f ms\n", r->pid, at, u.window.number,
                   (double)u.window.duration_ns / 1e9, u.window.records, (double)u.window.self_ns / 1e6);
            r->window_ns += u.window.duration_ns;
        }
        break;
    case HEC_TRACE_COUNTS:
        printf("[%u %8.3f] counts: %" PRIu64 " records, %" PRIu64 " dropped, %" PRIu64
               " bad, estimate %u ppm, %u threads left out, "
               "self %.2f ms\n",
               r->pid, at, u.counts.records, u.counts.dropped, u.counts.bad, u.counts.estimate_ppm,
               u.counts.threads_left_out, (double)u.counts.self_ns / 1e6);
        break;
    case HEC_TRACE_HOLDER:
        printf("[%u %8.3f] holder: %s (%u)\n", r->pid, at, name_of(r, u.holder.name), u.holder.code);
        break;
    default:
        break;
    }
}

static void drain(void) {
    static struct hec_ring_record records[4096];
    for (int i = 0; i < ring_count; i++)
        for (size_t got; (got = hec_ring_read(&rings[i]->reader, records, 4096)) > 0;)
            for (size_t at = 0; at < got; at++)
                show(rings[i], &records[at]);
}

static void take(int listener) {
    int connection = accept(listener, NULL, NULL);
    if (connection < 0 || ring_count == RINGS)
        return;
    struct hec_ring_hello hello;
    int fd = -1;
    for (int i = 0; i < 100 && fd < 0 && hec_ring_receive(connection, &hello, &fd) != 0; i++)
        usleep(1000); /* connected, but nothing sent yet */
    if (fd >= 0) {
        struct ring *r = calloc(1, sizeof *r);
        if (r && hec_ring_map(fd, &r->reader) == 0) {
            r->pid = hello.pid;
            rings[ring_count++] = r;
        }
        close(fd);
    }
    close(connection);
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: ring_dump LIBRARY MODE BUDGET_PPM command...\n");
        return 2;
    }
    char path[64];
    snprintf(path, sizeof path, "/tmp/ring_dump.%d", (int)getpid());
    int listener;
    if (hec_ring_listen(path, &listener) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        setenv("CUDA_INJECTION64_PATH", argv[1], 1);
        setenv(HEC_TRACE_ENV_SOCKET, path, 1);
        setenv(HEC_TRACE_ENV_MODE, argv[2], 1);
        setenv(HEC_TRACE_ENV_BUDGET, argv[3], 1);
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    int status = 0;
    bool ended = false;
    while (!ended) {
        struct pollfd wait = {listener, POLLIN, 0};
        if (poll(&wait, 1, 20) > 0)
            take(listener);
        ended = waitpid(child, &status, WNOHANG) == child;
        drain();
    }
    unlink(path);
    for (int i = 0; i < ring_count; i++) {
        struct ring *r = rings[i];
        printf("[%u] total:", r->pid);
        for (int kind = HEC_RING_TRACE_FIRST; kind < HEC_TRACE_LIMIT; kind++)
            if (r->count[kind])
                printf(" %s %" PRIu64, kind_names[kind - HEC_RING_TRACE_FIRST], r->count[kind]);
        printf("; in graphs %" PRIu64 ", copied %" PRIu64
               " bytes, kernels' time %.3f s, windows %.3f s, undefined %" PRIu64 ", lost in the ring %" PRIu64
               "\n[%u] calls:",
               r->in_graph, r->bytes, (double)r->busy_ns / 1e9, (double)r->window_ns / 1e9, r->late,
               hec_ring_lost(&r->reader), r->pid);
        for (int c = 0; c < HEC_TRACE_CALL_CLASS_COUNT; c++)
            if (r->calls[c])
                printf(" %s %" PRIu64 " (%.3f s)", class_names[c], r->calls[c], (double)r->call_ns[c] / 1e9);
        printf("\n[%u] bursts: %" PRIu64 " launches in %.3f s, %.3f s of it in calls, %.3f s in pauses\n", r->pid,
               r->launches, (double)r->burst_ns / 1e9, (double)r->in_calls_ns / 1e9, (double)r->pauses_ns / 1e9);
    }
    printf("exit %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
