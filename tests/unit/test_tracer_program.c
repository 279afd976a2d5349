/* The whole of libhectrace.so in programs on the simulated GPU, with doubles of CUPTI 11.8, 12 and 13: what comes out of
 * its ring against what the program says it did. Label threads (pthread_create): the tracer has one of its own. The test and the
 * programs go by the common virtual clock (tests/clock): what they do in a second does not depend on how busy the machine is. */
#include "base/trace.h"
#include "sim/spec.h"
#include "sim/world.h"
#include "tests/unit/sim_fixture.h"

#include <math.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIB HEC_BINARY_DIR "/lib/hec"
#define RINGS 4

/* What one program's rings told, summed up. */
struct reported {
    int rings;
    uint64_t count[HEC_TRACE_LIMIT], in_graph, bytes, windows_closed, holders, freed, lost, why, undefined;
    uint64_t calls[HEC_TRACE_CALL_CLASS_COUNT], burst_launches, burst_graphs, call_bytes, pinned, pageable, failed,
        elsewhere;
    int64_t first_ns[HEC_TRACE_LIMIT], rest_ns;
    struct hec_trace_process process;
    struct hec_trace_counts counts;
    struct hec_trace_holder holder;
    char output[4096];
};

struct ring {
    struct hec_ring_reader reader;
    bool configs[4096], names[4096];
    uint64_t kinds; /* seen so far, to see the order of the first ones */
};

static void take_record(struct reported *reported, struct ring *ring, const struct hec_ring_record *record) {
    union hec_trace_payload u;
    memcpy(&u, &record->u, sizeof u);
    if (record->kind == HEC_RING_NAME && record->u.name.id < 4096)
        ring->names[record->u.name.id] = true;
    if (record->kind < HEC_RING_TRACE_FIRST || record->kind >= HEC_TRACE_LIMIT)
        return;
    if (ring->kinds == 0)
        assert_int_equal(record->kind, HEC_TRACE_PROCESS);
    ring->kinds |= UINT64_C(1) << (record->kind - HEC_RING_TRACE_FIRST);
    reported->count[record->kind]++;
    if (reported->first_ns[record->kind] == 0)
        reported->first_ns[record->kind] = record->t_ns;
    switch (record->kind) {
    case HEC_TRACE_PROCESS:
        reported->process = u.process;
        reported->why += u.process.why != 0;
        break;
    case HEC_TRACE_CONFIG:
        reported->undefined += u.config.name >= 4096 || !ring->names[u.config.name];
        if (u.config.id < 4096)
            ring->configs[u.config.id] = true;
        break;
    case HEC_TRACE_KERNEL:
        reported->undefined += u.kernel.config >= 4096 || !ring->configs[u.kernel.config];
        reported->in_graph += record->flags & HEC_TRACE_IN_GRAPH;
        break;
    case HEC_TRACE_COPY:
        reported->bytes += u.copy.bytes;
        break;
    case HEC_TRACE_CALL:
        reported->undefined += u.call.function >= 4096 || !ring->names[u.call.function];
        assert_true(u.call.call_class < HEC_TRACE_CALL_CLASS_COUNT && record->tid != 0);
        reported->calls[u.call.call_class]++;
        reported->failed += u.call.result != 0;
        reported->elsewhere += u.call.device != 0;
        if (u.call.call_class == HEC_TRACE_CALL_COPY) {
            reported->call_bytes += u.call.amount;
            reported->pinned += u.call.from == HEC_TRACE_MEMORY_PINNED || u.call.to == HEC_TRACE_MEMORY_PINNED;
            reported->pageable += u.call.from == HEC_TRACE_MEMORY_PAGEABLE || u.call.to == HEC_TRACE_MEMORY_PAGEABLE;
        }
        break;
    case HEC_TRACE_BURST:
        reported->burst_launches += u.burst.launches;
        reported->burst_graphs += u.burst.graphs;
        reported->elsewhere += u.burst.device != 0;
        assert_true(u.burst.in_calls_ns + u.burst.pauses_ns <= u.burst.duration_ns + 2 * (int64_t)u.burst.launches);
        break;
    case HEC_TRACE_REST:
        assert_int_equal(u.rest.duration_ns == 0, record->flags == HEC_TRACE_WINDOW_OPEN);
        reported->rest_ns += u.rest.duration_ns;
        break;
    case HEC_TRACE_WINDOW:
        reported->windows_closed += !(record->flags & HEC_TRACE_WINDOW_OPEN);
        break;
    case HEC_TRACE_COUNTS:
        reported->counts = u.counts;
        break;
    case HEC_TRACE_HOLDER:
        reported->holders += u.holder.name != 0;
        reported->freed += u.holder.name == 0;
        reported->holder = u.holder;
        break;
    }
}

static void drain(struct reported *reported, struct ring *rings) {
    static struct hec_ring_record records[2048];
    for (int i = 0; i < reported->rings; i++)
        for (size_t got; (got = hec_ring_read(&rings[i].reader, records, 2048)) > 0;)
            for (size_t at = 0; at < got; at++)
                take_record(reported, &rings[i], &records[at]);
}

static void accept_ring(int listener, struct reported *reported, struct ring *rings) {
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC), fd = -1;
    struct hec_ring_hello hello;
    assert_true(connection >= 0);
    for (int i = 0; i < 1000 && fd < 0 && hec_ring_receive(connection, &hello, &fd) != 0; i++)
        usleep(1000);
    assert_true(fd >= 0 && reported->rings < RINGS);
    assert_int_equal(hec_ring_map(fd, &rings[reported->rings++].reader), 0);
    close(fd);
    close(connection);
}

/* Run a program with the tracer; `cupti` is the folder of the double ("cupti-13"), `extra` one more VARIABLE=value. */
static void run(struct reported *reported, const char *mode, const char *cupti, const char *extra,
                const char *const *arguments) {
    static struct ring rings[RINGS];
    char path[64], program[512], libraries[1024];
    int listener, out[2];
    memset(reported, 0, sizeof *reported);
    memset(rings, 0, sizeof rings);
    snprintf(path, sizeof path, "program.%d", (int)getpid());
    snprintf(program, sizeof program, "%s/tests/bin/%s", HEC_BINARY_DIR, arguments[0]);
    snprintf(libraries, sizeof libraries, "%s/sim:%s/sim/%s", LIB, LIB, cupti);
    assert_int_equal(hec_ring_listen(path, &listener), 0);
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("CUDA_INJECTION64_PATH", LIB "/libhectrace.so", 1);
        setenv("LD_LIBRARY_PATH", libraries, 1);
        setenv(HEC_TRACE_ENV_SOCKET, path, 1);
        setenv(HEC_TRACE_ENV_MODE, mode, 1);
#ifdef TEST_CLOCK
        setenv("LD_PRELOAD", TEST_CLOCK, 1);
#endif
        /* what a program has not freed at its end is no leak of the tracer's */
        const char *sanitizer = getenv("ASAN_OPTIONS");
        char options[512];
        snprintf(options, sizeof options, "%s:detect_leaks=0", sanitizer ? sanitizer : "");
        setenv("ASAN_OPTIONS", options, 1);
        if (extra)
            putenv(strdup(extra));
        dup2(out[1], 1);
        close(out[0]);
        execv(program, (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(out[1]);
    size_t length = 0;
    bool open = true;
    while (open) {
        struct pollfd wait[] = {{listener, POLLIN, 0}, {out[0], POLLIN, 0}};
        poll(wait, 2, 20);
        if (wait[0].revents)
            accept_ring(listener, reported, rings);
        if (wait[1].revents) {
            ssize_t got = read(out[0], reported->output + length, sizeof reported->output - 1 - length);
            open = got > 0;
            length += got > 0 ? (size_t)got : 0;
        }
        drain(reported, rings);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: status %x", arguments[0], status);
    struct pollfd last = {listener, POLLIN, 0};
    while (poll(&last, 1, 0) > 0)
        accept_ring(listener, reported, rings);
    drain(reported, rings);
    for (int i = 0; i < reported->rings; i++) {
        reported->lost += hec_ring_lost(&rings[i].reader);
        hec_ring_close(&rings[i].reader);
    }
    close(out[0]);
    close(listener);
    unlink(path);
}
#define RUN(reported, mode, cupti, extra, ...)                                                                         \
    run(reported, mode, cupti, extra, (const char *const[]){__VA_ARGS__, NULL})

static long number(const struct reported *reported, const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(reported->output, quoted);
    if (!at)
        fail_msg("no %s in %s", key, reported->output);
    return atol(at + strlen(quoted));
}

/* Launches of kernels, graphs and memsets, one by one or in bursts. */
static uint64_t launches(const struct reported *reported) {
    return reported->burst_launches + reported->calls[HEC_TRACE_CALL_LAUNCH] + reported->calls[HEC_TRACE_CALL_GRAPH] +
           reported->calls[HEC_TRACE_CALL_MEMSET];
}

static void assert_clean(const struct reported *reported) {
    assert_int_equal(reported->counts.dropped, 0);
    assert_int_equal(reported->counts.bad, 0);
    assert_int_equal(reported->lost, 0);
    assert_int_equal(reported->undefined, 0);
    assert_int_equal(reported->failed, 0);
    assert_true(reported->process.flags & HEC_TRACE_CALLS_SEEN);
}

TEST(test_full) {
    static const struct {
        const char *folder;
        uint32_t version;
    } versions[] = {{"cupti-11.8", 18}, {"cupti-12", 26}, {"cupti-13", 130001}};
    struct reported reported;
    for (size_t v = 0; v < 3; v++) {
        RUN(&reported, "full", versions[v].folder, NULL, "cuda_program", "kernels=3000", "h2d=4096", "pageable=1000",
            "batch=10", "memset=64");
        assert_int_equal(reported.rings, 1);
        assert_int_equal(reported.process.abi, HEC_TRACE_ABI);
        assert_int_equal(reported.process.cupti_version, versions[v].version);
        assert_int_equal(reported.process.mode, HEC_TRACE_FULL);
        assert_true(reported.process.library != 0 && reported.process.driver_version > 0);
        assert_int_equal(reported.why, 0);
        assert_int_equal(reported.count[HEC_TRACE_KERNEL], number(&reported, "kernels"));
        assert_int_equal(reported.count[HEC_TRACE_COPY], number(&reported, "copies"));
        assert_int_equal(reported.count[HEC_TRACE_MEMSET], number(&reported, "memsets"));
        assert_int_equal(reported.bytes, number(&reported, "h2d_pinned") + number(&reported, "h2d_pageable"));
        /* CUPTI is there from the first call on: each launch is a call of its own */
        assert_int_equal(reported.count[HEC_TRACE_BURST], 0);
        assert_int_equal(reported.calls[HEC_TRACE_CALL_LAUNCH], number(&reported, "kernels"));
        assert_int_equal(reported.calls[HEC_TRACE_CALL_MEMSET], number(&reported, "memsets"));
        assert_int_equal(reported.calls[HEC_TRACE_CALL_COPY], number(&reported, "copies"));
        assert_int_equal(reported.call_bytes, reported.bytes);
        assert_int_equal(reported.pinned, 300);
        assert_int_equal(reported.pageable, 300);
        assert_int_equal(reported.calls[HEC_TRACE_CALL_SYNC], 300);
        assert_int_equal(reported.calls[HEC_TRACE_CALL_MODULE], 1);
        assert_int_equal(reported.calls[HEC_TRACE_CALL_ALLOC], 2);
        assert_true(reported.first_ns[HEC_TRACE_WINDOW] <= reported.first_ns[HEC_TRACE_KERNEL]);
        assert_int_equal(reported.elsewhere, 0);
        assert_int_equal(reported.count[HEC_TRACE_CONFIG], 2);
        assert_true(reported.count[HEC_TRACE_DEVICE] >= 1);
        assert_int_equal(reported.windows_closed, 1);
        assert_int_equal(reported.holders, 0);
        assert_clean(&reported);
    }
}

TEST(test_graphs) {
    struct reported reported;
    RUN(&reported, "full", "cupti-13", NULL, "cuda_program", "kernels=200", "graph=50");
    assert_int_equal(reported.count[HEC_TRACE_KERNEL], number(&reported, "kernels"));
    assert_int_equal(reported.in_graph, reported.count[HEC_TRACE_KERNEL]);
    assert_int_equal(reported.count[HEC_TRACE_GRAPH_LAUNCH], 0);
    assert_int_equal(reported.calls[HEC_TRACE_CALL_GRAPH], 200);
    RUN(&reported, "graph", "cupti-13", NULL, "cuda_program", "kernels=200", "graph=50");
    assert_int_equal(reported.count[HEC_TRACE_GRAPH_LAUNCH], number(&reported, "graphs"));
    assert_int_equal(reported.count[HEC_TRACE_KERNEL], 0);
    assert_clean(&reported);
    RUN(&reported, "auto", "cupti-13", NULL, "cuda_program", "kernels=200", "graph=50");
    assert_int_equal(reported.burst_graphs + reported.calls[HEC_TRACE_CALL_GRAPH], 200);
    assert_int_equal(launches(&reported), 200 + 50); /* and those that were captured */
    assert_clean(&reported);
}

/* Calls alone, whatever the reason. */
static void assert_calls_alone(const struct reported *reported, uint64_t kernels) {
    assert_int_equal(reported->rings, 1);
    assert_int_equal(reported->count[HEC_TRACE_KERNEL] + reported->count[HEC_TRACE_WINDOW], 0);
    assert_int_equal(number(reported, "kernels"), kernels);
    if (reported->rest_ns == 0) /* a busy machine makes four seconds of many launches long */
        assert_int_equal(launches(reported), kernels);
    assert_true(reported->count[HEC_TRACE_BURST] > 0);
    assert_true(reported->count[HEC_TRACE_COUNTS] > 0);
    assert_int_equal(reported->why, 1);
    assert_clean(reported);
}

TEST(test_off_and_missing) {
    struct reported reported;
    RUN(&reported, "off", "cupti-13", NULL, "cuda_program", "kernels=10");
    assert_int_equal(reported.rings, 0);
    /* no libcupti at all: one record that says why, and the program runs on */
    RUN(&reported, "full", "nowhere", NULL, "cuda_program", "kernels=10");
    assert_calls_alone(&reported, 10);
    assert_int_equal(reported.process.cupti_version, 0);
    RUN(&reported, "full", "cupti-13", HEC_TRACE_ENV_CUPTI "=/nonexistent/libcupti.so.13", "cuda_program",
        "kernels=10");
    assert_calls_alone(&reported, 10);
    /* instructed to leave it alone */
    RUN(&reported, "full", "cupti-13", HEC_TRACE_ENV_NO_CUPTI "=because", "cuda_program", "kernels=10");
    assert_calls_alone(&reported, 10);
    assert_int_equal(reported.process.cupti_version, 0);
    RUN(&reported, "full", "cupti-13", HEC_TRACE_ENV_NO_CUPTI "=", "cuda_program", "kernels=10");
    assert_int_equal(reported.count[HEC_TRACE_KERNEL], 10);
    /* nobody listens */
    RUN(&reported, "full", "cupti-13", HEC_TRACE_ENV_SOCKET "=/nonexistent/socket", "cuda_program", "kernels=10");
    assert_int_equal(reported.rings, 0);
    assert_int_equal(number(&reported, "kernels"), 10);
}

TEST(test_forks) {
    struct reported reported;
    static const char *const modes[] = {"full", "auto"};
    for (size_t m = 0; m < 2; m++) {
        /* forked before CUDA was used: the child is traced; afterwards: the parent is, and the child, whose calls go through
         * the trampolines too, only exits */
        static const char *const ways[] = {"fork=1", "fork=2", "exec=1"};
        for (size_t w = 0; w < 3; w++) {
            RUN(&reported, modes[m], "cupti-13", NULL, "cuda_program", "kernels=500", ways[w]);
            assert_int_equal(reported.rings, 1);
            assert_int_equal(reported.count[HEC_TRACE_KERNEL], m == 0 ? 500 : 0);
            assert_int_equal(reported.windows_closed, m == 0);
            assert_int_equal(launches(&reported), 500);
            assert_int_equal(reported.calls[HEC_TRACE_CALL_SYNC], 1);
            assert_clean(&reported);
        }
    }
}

TEST(test_lookups) {
    static const char *const ways[] = {"by=0", "by=1", "by=2", "by=3"};
    struct reported reported;
    for (size_t w = 0; w < 4; w++) {
        RUN(&reported, "auto", "cupti-13", NULL, "cuda_program", "kernels=300", ways[w]);
        assert_calls_alone(&reported, 300);
    }
}

static void assert_pace_of_the_host(const struct reported *reported) {
    assert_calls_alone(reported, (uint64_t)number(reported, "kernels"));
    assert_true(reported->process.why != 0 && reported->process.cupti_version == 0);
}

TEST(test_auto) {
    struct reported reported;
    /* it waits for the device: 2 s after the first launch there is a window of 2 s */
    RUN(&reported, "auto", "cupti-13", NULL, "cuda_program", "seconds=6", "batch=10", "ns=50000");
    assert_int_equal(reported.windows_closed, 1);
    assert_int_equal(reported.why, 0);
    assert_true(reported.count[HEC_TRACE_KERNEL] > 100);
    assert_true((long)reported.count[HEC_TRACE_KERNEL] < number(&reported, "kernels"));
    assert_true(reported.first_ns[HEC_TRACE_KERNEL] - reported.first_ns[HEC_TRACE_PROCESS] >= INT64_C(2000000000));
    assert_int_equal(launches(&reported), number(&reported, "kernels"));
    assert_clean(&reported);
    /* the same in the child of a fork */
    RUN(&reported, "auto", "cupti-13", NULL, "cuda_program", "seconds=4", "batch=10", "ns=1000000", "fork=1");
    assert_true(reported.count[HEC_TRACE_KERNEL] > 0);
    RUN(&reported, "auto", "cupti-13", NULL, "cuda_program", "seconds=4", "batch=10", "ns=1000000", "fork=2");
    assert_int_equal(reported.rings, 1);
    assert_true(reported.count[HEC_TRACE_KERNEL] > 0);
    /* the host sets the pace: CUPTI is never loaded, and the last PROCESS record says why */
    RUN(&reported, "auto", "cupti-13", NULL, "cuda_program", "seconds=3", "batch=400000", "ns=10");
    assert_pace_of_the_host(&reported);
    /* over before that */
    RUN(&reported, "auto", "cupti-13", NULL, "cuda_program", "kernels=100");
    assert_calls_alone(&reported, 100);
}

/* So many launches that recording them costs something: after 10 s half of the time is enough, and what is told of it is whole. */
TEST(test_rests) {
    struct reported reported;
    RUN(&reported, "auto", "cupti-13", NULL, "cuda_program", "seconds=22", "batch=400000", "ns=10");
#ifdef TEST_CLOCK /* by the real clock, how many launches a second depends on the machine, and on whether they are recorded */
    double rest_s = (double)reported.rest_ns * 1e-9, kernels = (double)number(&reported, "kernels"),
           whole_s = (double)number(&reported, "window_us") * 1e-6, share = (double)launches(&reported) / kernels;
    assert_true(whole_s >= 22 && kernels > whole_s * 20000); /* it ends with a batch */
    assert_true(fabs(rest_s - (whole_s - 10) / 2) <=
                2.1); /* one in every two halves of 2 s, and the last pair may be cut */
    assert_true(fabs(share - (1 - rest_s / whole_s)) <= 0.03);
    assert_true(reported.first_ns[HEC_TRACE_REST] - reported.first_ns[HEC_TRACE_BURST] >= INT64_C(9900000000));
#endif
    assert_clean(&reported);
    /* who asked for all of it gets it */
    RUN(&reported, "full", "nowhere", NULL, "cuda_program", "seconds=13", "batch=400000", "ns=10");
    assert_int_equal(reported.rest_ns, 0);
    assert_int_equal(launches(&reported), number(&reported, "kernels"));
}

static int set_up(void **state) {
    (void)state;
    make_world("h200");
    return 0;
}

static int set_up_in_real_time(void **state) {
    (void)state;
    setenv("HEC_TEST_CLOCK", "real", 1);
    make_world("h200");
    return unsetenv("HEC_TEST_CLOCK");
}

/* So does a host that waits for a processor, in a launch or after a batch: that is no waiting for the device. By the virtual clock
 * nothing waits for a processor. */
TEST_WITH(test_auto_on_a_busy_machine, set_up_in_real_time, set_up) {
    struct reported reported;
    RUN(&reported, "auto", "cupti-13", NULL, "cuda_program", "seconds=4", "batch=400000", "ns=10");
    assert_pace_of_the_host(&reported);
}

TEST(test_memory) {
    struct reported reported;
    RUN(&reported, "full", "cupti-13", HEC_TRACE_ENV_MEMORY "=33", "cuda_program", "seconds=3", "batch=100", "ns=2000");
    assert_int_equal(reported.why, 1);
    assert_int_equal(reported.windows_closed, 1);
    assert_true(reported.count[HEC_TRACE_KERNEL] >= (1 << 20) / 32);
    assert_true((long)reported.count[HEC_TRACE_KERNEL] < number(&reported, "kernels"));
    assert_int_equal(launches(&reported), number(&reported, "kernels"));
    assert_clean(&reported);
}

TEST(test_another_user) {
    struct reported reported;
    static const char *const clients[] = {"cupti_client", "cupti_client_late"};
    for (size_t c = 0; c < 2; c++) {
        RUN(&reported, "full", "cupti-13", NULL, clients[c], "rounds=2", "kernels=300", "idle_ms=1400");
        /* the user sees what it would see alone */
        assert_int_equal(number(&reported, "unknown"), 0);
        assert_int_equal(number(&reported, "errors"), 0);
        assert_non_null(strstr(reported.output, "\"profiled\": [300, 300]"));
        /* it is named, and we do not come back: what was before is all that there is. One that is linked with libcupti may
         * have buffers in it already: it is not joined at all */
        assert_true(reported.holders >= 1);
        assert_true(reported.freed >= 1);
        assert_int_equal(reported.count[HEC_TRACE_KERNEL], c == 0 ? 0 : 300);
        assert_int_equal(reported.windows_closed, c);
        assert_int_equal(launches(&reported), number(&reported, "launched"));
        assert_clean(&reported);
    }
}

ALL_TESTS(set_up, destroy_world)
