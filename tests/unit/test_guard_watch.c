/* One run and the guard: which traced process counts as the one that died, and what is reported. */
#include "base/trace.h"
#include "launch/guard.h"
#include "unit.h"

#include <limits.h>
#include <unistd.h>

static char folder[] = "/tmp/hec-guard-XXXXXX";
static char reported[2][512];
static int reported_count;

static void event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)device, (void)t_ns;
    assert_int_equal(kind, HEC_EVENT_TRACE_GUARD);
    assert_true(reported_count < 2);
    snprintf(reported[reported_count++], sizeof reported[0], "%s", text);
}

static const struct hec_sink sink = {.event = event};

/* CUPTI 13.0, or -1: none. No such process exists: its name is the command's. */
static struct hec_tracer tracer(int pid, int mode, int cupti, int windows) {
    return (struct hec_tracer){
        .pid = INT_MAX - pid, .mode = mode, .cupti_version = cupti, .driver_version = 13000, .windows = windows};
}

static void see(struct hec_guard_watch *watch, struct hec_tracer row) {
    hec_guard_watch_tracer(watch, &row);
}

/* Ends the run; returns how many are remembered then. */
static int end(const struct hec_guard_watch *watch, int signal, int exit_code) {
    struct hec_child child = {.signal = signal, .exit_code = signal ? 128 + signal : exit_code};
    struct hec_guard guard;
    reported_count = 0;
    hec_guard_watch_end(watch, &child, "/usr/bin/python3", &sink);
    assert_int_equal(hec_guard_read(&guard, NULL), HEC_OK);
    return guard.count;
}

static void begin(struct hec_guard_watch *watch, int mode) {
    hec_guard_watch_begin(watch, mode, true);
    watch->root = INT_MAX - 1;
}

static int clear(void **state) {
    (void)state;
    return hec_guard_write(&(struct hec_guard){0}, NULL);
}

TEST(test_attached_in_full_from_the_start) {
    struct hec_guard_watch watch;
    begin(&watch, HEC_TRACE_FULL);
    see(&watch, tracer(1, HEC_TRACE_FULL, 130001, 0));
    assert_int_equal(end(&watch, SIGTERM, 0), 0);
    assert_int_equal(end(&watch, 0, 1), 0);
    assert_int_equal(reported_count, 0);
    assert_int_equal(end(&watch, SIGABRT, 0), 1);
    assert_string_equal(reported[0],
                        "the command died by signal 6 with CUPTI attached to python3: remembered, --trace=auto "
                        "stays without CUPTI from now on; `hec doctor --forget` lets it in again");
    begin(&watch, HEC_TRACE_AUTO);
    assert_non_null(strstr(watch.out, "python3 died by signal 6 with CUPTI 13.0"));
    begin(&watch, HEC_TRACE_FULL);
    assert_string_equal(watch.out, "");
}

TEST(test_attached_in_auto_from_the_first_window) {
    struct hec_guard_watch watch;
    begin(&watch, HEC_TRACE_AUTO);
    see(&watch, tracer(1, HEC_TRACE_AUTO, 130001, 0));
    assert_int_equal(end(&watch, SIGSEGV, 0), 0);
    see(&watch, tracer(1, HEC_TRACE_AUTO, 130001, 1));
    assert_int_equal(end(&watch, SIGSEGV, 0), 1);
}

TEST(test_never_attached) {
    struct hec_guard_watch watch;
    struct hec_tracer held = tracer(2, HEC_TRACE_FULL, 130001, 0), failed = tracer(3, HEC_TRACE_FULL, 130001, 0);
    snprintf(held.holder, sizeof held.holder, "torch.profiler");
    snprintf(failed.why, sizeof failed.why, "CUPTI did not start");
    begin(&watch, HEC_TRACE_FULL);
    see(&watch, tracer(1, HEC_TRACE_FULL, -1, 0));
    see(&watch, held);
    see(&watch, failed);
    assert_int_equal(end(&watch, SIGSEGV, 0), 0);
}

TEST(test_another_program_in_its_place) {
    struct hec_guard_watch watch;
    begin(&watch, HEC_TRACE_FULL);
    see(&watch, tracer(1, HEC_TRACE_FULL, 130001, 1));
    see(&watch, tracer(2, HEC_TRACE_FULL, -1, 0)); /* a child without CUPTI does not change that */
    assert_true(watch.attached);
    see(&watch, tracer(1, HEC_TRACE_FULL, -1, 1)); /* exec */
    assert_int_equal(end(&watch, SIGSEGV, 0), 0);
}

TEST(test_the_command_before_its_children) {
    struct hec_guard_watch watch;
    struct hec_guard guard;
    begin(&watch, HEC_TRACE_FULL);
    see(&watch, tracer(2, HEC_TRACE_FULL, 28, 1));
    see(&watch, tracer(1, HEC_TRACE_FULL, 130001, 1));
    see(&watch, tracer(3, HEC_TRACE_FULL, 28, 1));
    assert_int_equal(end(&watch, 0, 128 + SIGSEGV), 1);
    assert_non_null(strstr(reported[0], "the command ended with the status of signal 11"));
    assert_int_equal(hec_guard_read(&guard, NULL), HEC_OK);
    assert_int_equal(guard.entries[0].cupti, 130001);
}

TEST(test_reported_only_where_cuda_was_used) {
    struct hec_guard_watch watch;
    begin(&watch, HEC_TRACE_FULL);
    see(&watch, tracer(1, HEC_TRACE_FULL, 130001, 1));
    end(&watch, SIGSEGV, 0);
    begin(&watch, HEC_TRACE_AUTO);
    struct hec_tracer nobody = tracer(1, HEC_TRACE_AUTO, -1, 0);
    nobody.driver_version = -1;
    see(&watch, nobody);
    end(&watch, 0, 0);
    assert_int_equal(reported_count, 0);
    see(&watch, tracer(1, HEC_TRACE_AUTO, -1, 0));
    end(&watch, 0, 0);
    assert_int_equal(reported_count, 1);
    assert_string_equal(reported[0], watch.out);
    assert_int_equal(end(&watch, SIGSEGV, 0), 1); /* it died without CUPTI: no new one */
}

static int set_up(void **state) {
    (void)state;
    return mkdtemp(folder) ? setenv("HEC_STATE_DIR", folder, 1) : -1;
}

static int tear_down(void **state) {
    (void)state;
    char path[PATH_MAX];
    return hec_guard_path(path, NULL) == HEC_OK && unlink(path) == 0 ? rmdir(folder) : -1;
}

ALL_TESTS(set_up, tear_down)
EACH_TEST(clear, NULL)
