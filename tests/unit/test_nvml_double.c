/* The collector and the probe against the simulated GPU's libnvidia-ml, loaded as the real one is. Virtual time: what the
 * counter showed, and when it changed, is known exactly. */
#include "base/clock.h"
#include "observe/collector.h"
#include "observe/nvml/probe.h"
#include "sim/sensor.h"
#include "tests/unit/kept.h"
#include "tests/unit/sim_fixture.h"

#include <unistd.h>

#define S HEC_NS_PER_S

static struct {
    int64_t energy_t, energy, slack_max_us, power_t;
    int misplaced, disordered;
} got;

static void look_at_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t, int64_t value) {
    keep_sample(context, metric, subject, t, value);
    if (metric == HEC_GPU_ENERGY) {
        got.energy_t = t;
        got.energy = value;
    } else if (metric == HEC_GPU_ENERGY_SLACK) {
        int64_t edge = sim_sensor_edge_ns(world, subject, got.energy_t);
        got.misplaced += edge < t - value * HEC_NS_PER_US;
        got.misplaced += (int64_t)sim_sensor_energy_mj(world, subject, got.energy_t) != got.energy;
        got.slack_max_us = value > got.slack_max_us ? value : got.slack_max_us;
    } else if (metric == HEC_GPU_POWER && subject == 0) {
        got.disordered += got.power_t && t <= got.power_t;
        got.power_t = t;
    }
}

static char library[512];

static void make(const char *text) {
    memset(&got, 0, sizeof got);
    kept_clear();
    make_world(text);
    snprintf(library, sizeof library, "%s/lib/hec/%s", HEC_BINARY_DIR, sim_spec_library(sim_world_spec(world)));
    hec_clock_set_source(&world_clock);
}

static void observe(double seconds) {
    struct hec_observe_options options = {.nvml_path = library};
    struct hec_sink sink = keeping;
    struct hec_why why;
    void *self;
    sink.sample = look_at_sample;
    if (hec_collector_nvml.open(&options, &sink, &self, &why) != HEC_OK)
        fail_msg("%s", why.text);
    int64_t end = world_mono() + (int64_t)(seconds * 1e9);
    while (world_mono() < end) {
        int64_t next = hec_collector_nvml.poll(self, world_mono());
        sim_world_set_now_ns(world, next < end ? next : end);
    }
    hec_collector_nvml.finish(self, end);
    hec_collector_nvml.close(self);
}

static int samples_of(enum hec_metric metric) {
    return kept_reports(metric) - kept_missing(metric);
}

static void work(double seconds) {
    int64_t now;
    struct sim_piece pieces[2];
    assert_int_equal(sim_context_open(world, 0, 0, getpid(), 1 << 30, &now), HEC_OK);
    for (int i = 0; i * 0.137 < seconds; i++)
        assert_true(sim_segment_append(world, 0, getpid(), i % 2 ? SIM_ELEMENTWISE : SIM_GEMM_BF16,
                                       now + (int64_t)(i * 0.137e9), 100000000, pieces) > 0);
}

TEST(test_readings_are_placed_exactly) {
    make("h200x2,clock=virtual");
    work(20);
    observe(30);
    assert_string_equal(kept_meta("simulated"), "h200");
    assert_true(kept_device(0)->simulated && kept_device(1)->simulated);
    assert_int_equal(kept_device(0)->cuda_major, 9);
    assert_string_equal(kept_device(0)->architecture, "hopper");
    assert_int_equal(kept_device(0)->pcie_kib_per_s, 61538461); /* 32 GT/s x 16 lanes x 128/130 */
    assert_int_equal(got.misplaced, 0);
    assert_int_equal(got.disordered, 0);
    assert_true(got.slack_max_us < 25000);
    assert_true(samples_of(HEC_GPU_ENERGY) >= 40);
    assert_true(samples_of(HEC_GPU_POWER) >= 2 * (30 * 50 + 100));
    assert_true(samples_of(HEC_GPM_DRAM_ACTIVE) > 450);
    for (int i = 0; i < kept.samples; i++)
        assert_false(kept.sample[i].missing);
    assert_int_equal(kept.events, 0);
}

TEST(test_faults) {
    make("h200x2,clock=virtual,lost@5:1,reset@10:0,fail=nvmlDeviceGetUtilizationRates@3");
    observe(20);
    assert_int_equal(kept_events(HEC_EVENT_DEVICE_LOST), 1);
    assert_int_equal(kept_events(HEC_EVENT_COUNTER_RESET), 1);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 2); /* one a device, before the second is lost */
    assert_int_equal(got.misplaced, 0);
}

TEST(test_old_driver) {
    make("h200,driver=450,clock=virtual");
    observe(10);
    assert_int_equal(kept_device(0)->has_gpm, 0);
    assert_int_equal(samples_of(HEC_GPM_SM_ACTIVE), 0);
    assert_true(samples_of(HEC_GPU_MEM_USED) >= 10);
    assert_true(samples_of(HEC_GPU_ENERGY) > 10);
    assert_int_equal(got.misplaced, 0);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 0);
}

TEST(test_part_without_counter) {
    make("p100,clock=virtual");
    observe(10);
    assert_int_equal(kept_device(0)->has_energy_counter, 0);
    assert_int_equal(samples_of(HEC_GPU_ENERGY) + kept_missing(HEC_GPU_ENERGY), 0);
    assert_true(samples_of(HEC_GPU_POWER) + samples_of(HEC_GPU_POWER_INSTANT) > 90);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 0);
}

TEST(test_probe) {
    make("h200x2");
    hec_clock_set_source(NULL);
    struct hec_nvml_probed *devices;
    struct hec_why why;
    assert_int_equal(hec_nvml_probe(library, "1", &devices, &why), 2);
    assert_false(devices[0].device.visible);
    assert_true(devices[1].device.visible);
    for (int r = 0; r < devices[1].reading_count; r++) {
        const struct hec_nvml_reading *reading = &devices[1].readings[r];
        if (!reading->works || !reading->value[0] || !(reading->cost_us > 0))
            fail_msg("%s: %s", reading->name, reading->why);
    }
    free(devices);
    struct hec_check_list *list = calloc(1, sizeof *list);
    hec_nvml_check(&(struct hec_observe_options){.nvml_path = library}, list);
    assert_int_equal(list->items[0].status, HEC_CHECK_OK);
    assert_string_equal(list->items[list->count - 1].finding, "as for gpu 0");
    list->count = 0;
    hec_nvml_check(&(struct hec_observe_options){.nvml_path = "/nonexistent/libnvidia-ml.so.1"}, list);
    assert_int_equal(list->count, 1);
    assert_int_equal(list->items[0].status, HEC_CHECK_MISSING);
    assert_true(list->items[0].remedy[0]);
    free(list);
}

EACH_TEST(NULL, destroy_world)
