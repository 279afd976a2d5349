/* The recorder's start: what is waited for before a command may begin. */
#include "base/clock.h"
#include "observe/collector.h"
#include "observe/recorder.h"
#include "observe/rounds.h"
#include "unit.h"

#include <time.h>

static bool opened[HEC_LANE_COUNT], released;

static void rest(int64_t ns) {
    nanosleep(&(struct timespec){ns / HEC_NS_PER_S, ns % HEC_NS_PER_S}, NULL);
}

static int take_long(enum hec_lane lane, void **self) {
    rest(200 * HEC_NS_PER_MS); /* its thread did not run */
    *self = &opened[lane];
    __atomic_store_n(&opened[lane], true, __ATOMIC_RELEASE);
    return HEC_OK;
}

static int open_host(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                     struct hec_why *why) {
    (void)options, (void)sink, (void)why;
    return take_long(HEC_LANE_HOST, self);
}

static int open_trace(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                      struct hec_why *why) {
    (void)options, (void)sink, (void)why;
    return take_long(HEC_LANE_TRACE, self);
}

static int open_driver(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                       struct hec_why *why) {
    (void)options, (void)sink, (void)why;
    while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE)) /* a driver that initialises a GPU */
        rest(HEC_NS_PER_MS);
    *self = &opened[HEC_LANE_GPU];
    return HEC_OK;
}

static int64_t never(void *self, int64_t now_ns) {
    (void)self, (void)now_ns;
    return INT64_MAX;
}

static void finish(void *self, int64_t end_ns) {
    (void)self, (void)end_ns;
}

static void leave(void *self) {
    (void)self;
}

static void no_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)kind, (void)device, (void)t_ns, (void)text;
}

static void no_meta(void *context, const char *key, const char *value) {
    (void)context, (void)key, (void)value;
}

TEST(a_command_begins_when_its_rings_can_arrive) {
    static const struct hec_collector host = {"host", HEC_LANE_HOST, open_host, never, finish, leave},
                                      trace = {"trace", HEC_LANE_TRACE, open_trace, never, finish, leave},
                                      driver = {"driver", HEC_LANE_GPU, open_driver, never, finish, leave};
    static const struct hec_collector *const all[] = {&trace, &host, &driver, NULL};
    const struct hec_sink sink = {.event = no_event, .meta = no_meta};
    struct hec_observe_options options = {0};
    struct hec_recorder *recorder;
    struct hec_why why = {""};
    assert_int_equal(hec_recorder_start(all, &options, &sink, &recorder, &why), HEC_OK);
    assert_int_equal(hec_recorder_wait_ready(recorder, HEC_NS_PER_MS), 1); /* not for the driver */
    assert_true(__atomic_load_n(&opened[HEC_LANE_HOST], __ATOMIC_ACQUIRE));
    assert_true(__atomic_load_n(&opened[HEC_LANE_TRACE], __ATOMIC_ACQUIRE));
    __atomic_store_n(&released, true, __ATOMIC_RELEASE);
    assert_int_equal(hec_recorder_wait_ready(recorder, 60 * HEC_NS_PER_S), 0);
    assert_int_equal(hec_recorder_stop(recorder, 0, 60 * HEC_NS_PER_S), 0);
}

static int polls;

/* The first round leaves one that was due 5 s ago: the thread did not run. */
static int64_t comes_late(void *self, int64_t now_ns) {
    (void)self;
    return __atomic_add_fetch(&polls, 1, __ATOMIC_ACQ_REL) == 1 ? now_ns - 5 * HEC_NS_PER_S : INT64_MAX;
}

TEST(rounds_that_come_late_are_counted) {
    static const struct hec_collector driver = {"driver", HEC_LANE_GPU, open_driver, comes_late, finish, leave};
    static const struct hec_collector *const all[] = {&driver, NULL};
    const struct hec_sink sink = {.event = no_event, .meta = no_meta};
    struct hec_rounds rounds = {.due_ns = INT64_MAX};
    struct hec_observe_options options = {.rounds = &rounds};
    struct hec_recorder *recorder;
    struct hec_why why = {""};
    __atomic_store_n(&released, true, __ATOMIC_RELEASE);
    assert_int_equal(hec_recorder_start(all, &options, &sink, &recorder, &why), HEC_OK);
    while (__atomic_load_n(&polls, __ATOMIC_ACQUIRE) < 2)
        rest(HEC_NS_PER_MS);
    int64_t late_ns = hec_rounds_late_ns(&rounds, hec_clock_mono_ns());
    assert_true(late_ns >= 5 * HEC_NS_PER_S);
    rest(10 * HEC_NS_PER_MS); /* while none is due, none is late */
    assert_int_equal(hec_rounds_late_ns(&rounds, hec_clock_mono_ns()), late_ns);
    assert_int_equal(hec_recorder_stop(recorder, 0, 60 * HEC_NS_PER_S), 0);
    hec_rounds_due(&rounds, 1000);
    assert_int_equal(hec_rounds_late_ns(&rounds, 1600), late_ns + 600);
    hec_rounds_begin(&rounds, 1600);
    assert_int_equal(hec_rounds_late_ns(&rounds, 9999), late_ns + 600);
}
