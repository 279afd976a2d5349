/* The recorder of a node is started again, from a second on to five minutes, while there is no driver or a device does not answer. */
#include "agent/watch.h"
#include "unit.h"

#define S HEC_NS_PER_S

static int64_t now_ns;
static int64_t fake_now(void) {
    return now_ns;
}
static const struct hec_clock_source fake_clock = {fake_now, fake_now};

/* What stands for recorders. */
static int started, stopped, start_err, not_ready, hangs;
static bool finds_driver;
static struct hec_node *node;
static char one_recorder;

int hec_recorder_start(const struct hec_collector *const *all, struct hec_observe_options *options,
                       const struct hec_sink *sink, struct hec_recorder **out, struct hec_why *why) {
    assert_null(all);
    assert_string_equal(options->nvml_path, "libnvml");
    assert_int_equal(options->interval_ns, 2 * S);
    assert_ptr_equal(sink, &node->sink);
    assert_ptr_equal(options->rounds, &node->rounds);
    assert_false(node->driver); /* forgotten */
    started++;
    *out = (struct hec_recorder *)&one_recorder;
    node->driver = finds_driver && !start_err;
    return start_err ? hec_fail(why, start_err, "no threads") : HEC_OK;
}

int hec_recorder_wait_ready(struct hec_recorder *recorder, int64_t timeout_ns) {
    assert_ptr_equal(recorder, &one_recorder);
    assert_int_equal(timeout_ns, 0);
    return not_ready;
}

int hec_recorder_stop(struct hec_recorder *recorder, int64_t end_ns, int64_t timeout_ns) {
    assert_ptr_equal(recorder, &one_recorder);
    assert_int_equal(end_ns, now_ns);
    assert_int_equal(timeout_ns, 2 * S);
    stopped++;
    return hangs;
}

static struct hec_watch watch;

static int set_up(void **state) {
    (void)state;
    now_ns = 1000 * S;
    hec_clock_set_source(&fake_clock);
    started = stopped = start_err = not_ready = hangs = 0;
    finds_driver = false;
    node = hec_node_new(2 * S, NULL);
    return node ? 0 : -1;
}
static int tear_down(void **state) {
    (void)state;
    hec_node_free(node);
    hec_clock_set_source(NULL);
    return 0;
}
EACH_TEST(set_up, tear_down)

static bool poll_at(double seconds) {
    now_ns = 1000 * S + (int64_t)(seconds * 1e9);
    return hec_watch_poll(&watch, now_ns);
}

TEST(it_waits_twice_as_long_each_time) {
    double at = 1, every = 1;
    hec_watch_start(&watch, node, NULL, "libnvml");
    assert_int_equal(started, 1);
    for (int times = 1; times < 14; times++) {
        assert_false(poll_at(at - 0.001)); /* too soon: nothing is shown yet, nothing is done */
        assert_int_equal(started, times);
        assert_true(poll_at(at));
        assert_int_equal(started, times + 1);
        assert_int_equal(stopped, times);
        at += every;
        every = fmin(300, 2 * every);
    }
    finds_driver = true;
    assert_true(poll_at(at));
    int times = started;
    for (int i = 0; i < 5; i++) /* nothing lacks */
        assert_true(poll_at(at + 400 * i));
    assert_int_equal(started, times);
    node->driver = finds_driver = false; /* then it begins at a second again */
    assert_false(poll_at(at + 1600.999));
    assert_true(poll_at(at + 1601));
    assert_int_equal(started, times + 1);
    assert_false(poll_at(at + 1601.999));
    assert_true(poll_at(at + 1602));
    hec_watch_stop(&watch);
    assert_int_equal(stopped, started);
    hec_watch_stop(&watch); /* none runs */
    assert_int_equal(stopped, started);
}

/* A driver that is still being opened has a minute. */
TEST(a_slow_driver_is_waited_for) {
    not_ready = 1;
    hec_watch_start(&watch, node, NULL, "libnvml");
    assert_true(poll_at(1));
    assert_true(poll_at(59.999));
    assert_int_equal(started, 1);
    assert_true(poll_at(60));
    assert_int_equal(started, 2);
    not_ready = 0;
    assert_true(poll_at(61));
    assert_int_equal(started, 3);
    hec_watch_stop(&watch);
}

/* Threads that hang in the driver add up; with eight of them it is left alone. */
TEST(a_driver_that_hangs_is_left_alone) {
    hangs = 3;
    hec_watch_start(&watch, node, NULL, "libnvml");
    for (double at = 1; at < 2000; at += 1)
        poll_at(at);
    assert_int_equal(watch.abandoned, 9);
    assert_int_equal(started, 4);
    hangs = 0;
    hec_watch_stop(&watch);
}

/* A lane read a counter, and hangs before it has listed the processes: the state that is saved then has what was read, as the counter
 * may be reset before the next agent reads it. So has the device where it is found at another index, as drivers order them anew. */
TEST(what_a_lane_that_hangs_had_read_counts) {
    struct hec_device device = {.index = 0, .uuid = "GPU-0", .power_limit_mw = 700000};
    hangs = 1;
    finds_driver = true;
    hec_watch_start(&watch, node, NULL, "libnvml");
    node->sink.device(node, &device);
    for (int i = 0; i < 2; i++)
        node->sink.sample(node, HEC_GPU_ENERGY, 0, now_ns += 2 * S, 5000000 + i * 160000);
    assert_int_equal(node->devices[0]->total[HEC_NODE_ENERGY_MJ], 0);
    hec_watch_stop(&watch);
    assert_int_equal(node->devices[0]->total[HEC_NODE_ENERGY_MJ], 160000);
    assert_int_equal(node->devices[0]->settled_mj, 5160000);
    node->sink.device(node, &(struct hec_device){.index = 0, .uuid = "GPU-1"});
    device.index = 1;
    node->sink.device(node, &device);
    node->sink.sample(node, HEC_GPU_ENERGY, 1, now_ns += 2 * S, 82000); /* it was reset */
    node->sink.sample(node, HEC_GPU_CONTEXTS, 1, now_ns, 0);
    assert_int_equal(node->devices[1]->total[HEC_NODE_ENERGY_MJ], 160000 + 82000);
    assert_int_equal(node->devices[1]->total[HEC_NODE_RESETS], 1);
}

TEST(a_recorder_that_does_not_start) {
    start_err = HEC_ERR_NOMEM;
    hec_watch_start(&watch, node, NULL, "libnvml");
    assert_null(watch.recorder);
    assert_true(poll_at(1));
    assert_int_equal(started, 2);
    assert_int_equal(stopped, 0); /* there was none */
    start_err = 0;
    finds_driver = true;
    assert_true(poll_at(2));
    assert_non_null(watch.recorder);
    hec_watch_stop(&watch);
    assert_int_equal(stopped, 1);
    assert_null(watch.recorder);
}

/* What is wrong is kept, so that it is logged once. */
TEST(trouble_is_named) {
    finds_driver = true;
    hec_watch_start(&watch, node, NULL, "libnvml");
    node->sink.device(node, &(struct hec_device){.index = 3, .uuid = "GPU-3"});
    node->devices[3]->up = false;
    assert_true(poll_at(1));
    assert_string_equal(watch.trouble, "GPU 3 does not answer");
    assert_int_equal(started, 2);
    node->devices[3]->up = true;
    assert_true(poll_at(2));
    assert_string_equal(watch.trouble, "");
    node->driver = finds_driver = false;
    snprintf(node->trouble, sizeof node->trouble, "no driver is loaded");
    assert_true(poll_at(5));
    assert_string_equal(watch.trouble, "no driver is loaded");
    hec_watch_stop(&watch);
}
