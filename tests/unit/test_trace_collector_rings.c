/* The collector as the recorder drives it: rings that arrive by the socket, processes that end, are killed or call
 * exec, and what must not be taken. */
#include "base/clock.h"
#include "base/error.h"
#include "observe/collector.h"
#include "base/trace.h"
#include "tests/unit/kept.h"

#include <sys/wait.h>
#include <unistd.h>

static char path[100];
static struct hec_observe_options options;
static void *collector;

static int begin(void **state) {
    (void)state;
    kept_clear();
    snprintf(path, sizeof path, "trace-%d", (int)getpid());
    options = (struct hec_observe_options){.root = 4321, .trace_socket = path, .trace_mode = HEC_TRACE_AUTO};
    struct hec_why why;
    return hec_collector_trace.open(&options, &keeping, &collector, &why);
}

static int end(void **state) {
    (void)state;
    hec_collector_trace.close(collector);
    return access(path, F_OK) == 0 ? -1 : 0; /* the socket is gone */
}

static void poll_now(void) {
    hec_collector_trace.poll(collector, hec_clock_mono_ns());
}

static void finish(void) {
    hec_collector_trace.finish(collector, hec_clock_mono_ns());
}

static void write_at(struct hec_ring *ring, int64_t t_ns, enum hec_trace_kind kind, const void *payload, size_t size) {
    struct hec_ring_record record = {.t_ns = t_ns, .tid = 7, .kind = (uint8_t)kind};
    memcpy(record.u.bytes, payload, size);
    hec_ring_write(ring, &record);
}

static void write_record(struct hec_ring *ring, enum hec_trace_kind kind, const void *payload, size_t size) {
    write_at(ring, hec_clock_mono_ns(), kind, payload, size);
}

static void write_kernels(struct hec_ring *ring, int count) {
    struct hec_trace_process process = {.abi = HEC_TRACE_ABI, .mode = HEC_TRACE_AUTO};
    struct hec_trace_kernel kernel = {.duration_ns = 1000, .stream = 7};
    write_record(ring, HEC_TRACE_PROCESS, &process, sizeof process);
    for (int i = 0; i < count; i++)
        write_record(ring, HEC_TRACE_KERNEL, &kernel, sizeof kernel);
}

static void connect_ring(struct hec_ring *ring, uint32_t records, enum hec_ring_role role) {
    int fd;
    assert_int_equal(hec_ring_create(records, role, ring, &fd), HEC_OK);
    assert_int_equal(hec_ring_send(path, role, 0, fd), HEC_OK);
    close(fd);
}

TEST(test_nobody_came) {
    poll_now();
    finish();
    assert_int_equal(kept.tracers, 1);
    assert_int_equal(kept.tracer[0].pid, 4321);
    assert_int_equal(kept.tracer[0].mode, HEC_TRACE_AUTO);
    assert_int_equal(kept.tracer[0].cupti_version, -1);
    assert_string_equal(kept.tracer[0].why, "no process of the command used CUDA");
}

/* What a process wrote before it ended is read, also when nobody polled in between. */
TEST(test_short_process) {
    pid_t child = fork();
    if (child == 0) {
        struct hec_ring ring;
        connect_ring(&ring, 64, HEC_RING_TRACE);
        write_kernels(&ring, 20);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    finish();
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 20);
    assert_int_equal(kept.tracer[0].pid, child);
    assert_int_equal(kept.tracer[0].lost, 0);
}

TEST(test_full_ring_is_reported) {
    struct hec_ring ring;
    connect_ring(&ring, 64, HEC_RING_TRACE);
    write_kernels(&ring, 100);
    poll_now();
    assert_non_null(kept_event(HEC_EVENT_TRACE_LOST, ": 37 records"));
    finish();
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 63);
    assert_int_equal(kept.tracer[0].lost, 37);
    assert_true(hec_ring_closed(&ring)); /* the tracer may stop */
    hec_ring_unmap(&ring);
}

/* The second ring of a pid: its program was replaced, and the row of the process counts both. */
TEST(test_exec) {
    struct hec_ring first, second;
    connect_ring(&first, 64, HEC_RING_TRACE);
    write_kernels(&first, 10);
    poll_now();
    connect_ring(&second, 64, HEC_RING_TRACE);
    write_kernels(&second, 5);
    finish();
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 15);
    assert_int_equal(kept.tracers, 1);
    assert_int_equal(kept.tracer[0].records, 15);
    assert_true(hec_ring_closed(&first));
    hec_ring_unmap(&first);
    hec_ring_unmap(&second);
}

/* Rings of one pid that claim the largest losses: their sum stops at the largest number, and does not turn negative. */
TEST(test_large_counts_of_one_process) {
    struct hec_ring rings[6];
    for (int i = 0; i < 6; i++) {
        connect_ring(&rings[i], 64, HEC_RING_TRACE);
        write_kernels(&rings[i], 1);
        struct hec_trace_counts counts = {
            .dropped = (uint64_t)INT64_MAX / 4, .bad = (uint64_t)INT64_MAX / 4, .self_ns = INT64_MAX};
        write_record(&rings[i], HEC_TRACE_COUNTS, &counts, sizeof counts);
        hec_ring_drop(&rings[i], UINT64_MAX - 5);
        poll_now();
    }
    finish();
    assert_int_equal(kept.tracers, 1);
    const struct hec_tracer *row = &kept.tracer[0];
    assert_int_equal(row->records, 6);
    const int64_t sums[] = {row->lost, row->dropped, row->bad, row->self_ns};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        assert_int_equal(sums[i], HEC_TRACER_COUNT_MAX);
    for (int i = 0; i < 6; i++)
        hec_ring_unmap(&rings[i]);
}

TEST(test_what_is_not_taken) {
    struct hec_ring marks, huge;
    connect_ring(&marks, 64, HEC_RING_MARKS);
    connect_ring(&huge, 1u << 21, HEC_RING_TRACE);
    write_kernels(&marks, 10);
    write_kernels(&huge, 10);
    finish();
    assert_int_equal(kept.activities, 0);
    assert_true(hec_ring_closed(&marks) && hec_ring_closed(&huge));
    assert_non_null(kept_event(HEC_EVENT_NOTE, "traces of 2 processes left out"));
    hec_ring_unmap(&marks);
    hec_ring_unmap(&huge);
}

/* A program whose clock is not the machine's (libfaketime), and times that nobody has: the row of the process has times
 * of this run all the same, and says why it has no more. */
TEST(test_shifted_clock) {
    static const int64_t shifted[] = {INT64_C(1) << 61, INT64_MAX, INT64_MIN, -1, 0, 1};
    struct hec_trace_process process = {.abi = HEC_TRACE_ABI, .mode = HEC_TRACE_AUTO};
    struct hec_trace_kernel kernel = {.duration_ns = 1000, .stream = 7};
    int64_t before_ns = hec_clock_mono_ns();
    for (size_t i = 0; i < sizeof shifted / sizeof shifted[0]; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct hec_ring ring;
            connect_ring(&ring, 64, HEC_RING_TRACE);
            write_at(&ring, shifted[i], HEC_TRACE_PROCESS, &process, sizeof process);
            write_at(&ring, shifted[i], HEC_TRACE_KERNEL, &kernel, sizeof kernel);
            write_at(&ring, shifted[i], HEC_TRACE_PROCESS, &process, sizeof process);
            _exit(0);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        poll_now();
    }
    finish();
    assert_int_equal(kept.activities, 0);
    assert_int_equal(kept.tracers, sizeof shifted / sizeof shifted[0]);
    for (int i = 0; i < kept.tracers; i++) {
        assert_in_range(kept.tracer[i].first_ns, before_ns, hec_clock_mono_ns());
        assert_in_range(kept.tracer[i].last_ns, kept.tracer[i].first_ns, hec_clock_mono_ns());
        assert_non_null(strstr(kept.tracer[i].why, "its clock is not that of this machine"));
        assert_int_equal(kept.tracer[i].bad, 1);
    }
}

/* Abandoned without finish: nothing is reported, everything is freed. */
TEST(test_close_alone) {
    struct hec_ring ring;
    connect_ring(&ring, 64, HEC_RING_TRACE);
    write_kernels(&ring, 10);
    poll_now();
    hec_ring_unmap(&ring);
}

TEST(test_no_socket) {
    struct hec_observe_options none = {0};
    struct hec_why why;
    void *self;
    assert_int_equal(hec_collector_trace.open(&none, &keeping, &self, &why), HEC_ERR_UNSUPPORTED);
    none.trace_socket = "no/such/folder/trace";
    assert_true(hec_collector_trace.open(&none, &keeping, &self, &why) < 0);
    assert_non_null(strstr(why.text, "no/such/folder/trace"));
}

EACH_TEST(begin, end)
