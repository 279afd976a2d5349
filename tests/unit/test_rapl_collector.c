/* RAPL through powercap: domains, unwrapping, resets, permission, absence. The files are a fixture, the clock is
 * simulated. */
#include "base/clock.h"
#include "observe/collector.h"
#include "tests/unit/folder.h"
#include "tests/unit/kept.h"

#define SECOND HEC_NS_PER_S
#define RANGE_UJ INT64_C(262143328850)

static int64_t now_ns;

static int64_t simulated_now(void) {
    return now_ns;
}

static struct {
    struct hec_observe_options options;
    void *collector;
    struct hec_why why;
} world;

static void zone(const char *zone_name, const char *name, int64_t range_uj, int64_t energy_uj) {
    char path[128];
    snprintf(path, sizeof path, "%s/name", zone_name);
    folder_text(path, "%s\n", name);
    snprintf(path, sizeof path, "%s/energy_uj", zone_name);
    folder_text(path, "%lld\n", (long long)energy_uj);
    snprintf(path, sizeof path, "%s/max_energy_range_uj", zone_name);
    if (range_uj > 0)
        folder_text(path, "%lld\n", (long long)range_uj);
}

static void set_energy(const char *zone_name, int64_t energy_uj) {
    char path[128];
    snprintf(path, sizeof path, "%s/energy_uj", zone_name);
    folder_text(path, "%lld\n", (long long)energy_uj);
}

static int set_up(void **state) {
    static const struct hec_clock_source source = {simulated_now, simulated_now};
    kept_clear();
    memset(&world, 0, sizeof world);
    now_ns = 1000 * SECOND;
    hec_clock_set_source(&source);
    world.options.powercap_path = folder;
    return folder_make(state);
}

static int tear_down(void **state) {
    if (world.collector)
        hec_collector_rapl.close(world.collector);
    hec_clock_set_source(NULL);
    return folder_remove(state);
}

static int open_it(void) {
    return hec_collector_rapl.open(&world.options, &keeping, &world.collector, &world.why);
}

static void poll_after(int64_t passed_ns) {
    now_ns += passed_ns;
    hec_collector_rapl.poll(world.collector, now_ns);
}

TEST(packages_and_dram_are_read_the_rest_is_not) {
    zone("intel-rapl:0", "package-0", RANGE_UJ, 1000000);
    zone("intel-rapl:0:0", "core", RANGE_UJ, 500);
    zone("intel-rapl:0:1", "dram", 65712999613, 2000);
    zone("intel-rapl:1", "package-1", RANGE_UJ, 3000000);
    zone("intel-rapl:2", "psys", RANGE_UJ, 9);
    zone("intel-rapl-mmio:0", "package-0", RANGE_UJ, 77);
    assert_int_equal(open_it(), HEC_OK);
    assert_int_equal(kept.samples, 3); /* the first readings, at open */
    set_energy("intel-rapl:0", 61000000);
    set_energy("intel-rapl:0:1", 5002000);
    poll_after(SECOND);
    assert_int_equal(kept.samples, 6);
    assert_int_equal(kept_last(HEC_RAPL_PACKAGE_ENERGY, 0).value, 61000000);
    assert_int_equal(kept_last(HEC_RAPL_PACKAGE_ENERGY, 0).t_ns, now_ns);
    assert_int_equal(kept_last(HEC_RAPL_PACKAGE_ENERGY, 1).value, 3000000);
    assert_int_equal(kept_last(HEC_RAPL_DRAM_ENERGY, 0).value, 5002000);
    set_energy("intel-rapl:1", 3500000);
    now_ns += SECOND / 2;
    hec_collector_rapl.finish(world.collector, now_ns); /* the last readings, whatever is due */
    assert_int_equal(kept.samples, 9);
    assert_int_equal(kept_last(HEC_RAPL_PACKAGE_ENERGY, 1).value, 3500000);
    assert_int_equal(kept.events, 0);
}

TEST(it_is_polled_once_a_second) {
    zone("intel-rapl:0", "package-0", RANGE_UJ, 1);
    assert_int_equal(open_it(), HEC_OK);
    int64_t first = hec_collector_rapl.poll(world.collector, now_ns);
    assert_int_equal(first, now_ns + SECOND);
    assert_int_equal(kept.samples, 1); /* not due yet */
    now_ns = first;
    assert_int_equal(hec_collector_rapl.poll(world.collector, now_ns), first + SECOND);
    assert_int_equal(kept.samples, 2);
}

TEST(a_small_range_is_polled_faster) {
    zone("intel-rapl:0", "package-0", 600000000, 1); /* 600 J: 2 s at 300 W */
    folder_text("intel-rapl:0/constraint_0_power_limit_uw", "100000000\n");
    assert_int_equal(open_it(), HEC_OK);
    int64_t next = hec_collector_rapl.poll(world.collector, now_ns);
    assert_int_equal((next - now_ns) / HEC_NS_PER_MS, 500); /* a quarter of 600 J / (3 x 100 W) */
}

TEST(wraps_are_unwrapped) {
    zone("intel-rapl:0", "package-0", RANGE_UJ, RANGE_UJ - 50000000);
    assert_int_equal(open_it(), HEC_OK);
    int64_t truth = RANGE_UJ - 50000000;
    for (int wrap = 0; wrap < 3; wrap++) {
        set_energy("intel-rapl:0", 100000000); /* 150 J in a second, over the edge */
        poll_after(SECOND);
        truth += 150000000;
        assert_int_equal(kept_value(HEC_RAPL_PACKAGE_ENERGY, 0), truth);
        /* far on, but without a doubt: 262 kJ take more than 87 s at three times a kilowatt */
        for (int64_t at = 100000000; at < RANGE_UJ - 50000000; at += 60 * INT64_C(1000000000)) {
            set_energy("intel-rapl:0", at);
            poll_after(60 * SECOND);
        }
        set_energy("intel-rapl:0", RANGE_UJ - 50000000);
        poll_after(60 * SECOND);
        truth += RANGE_UJ - 150000000;
        assert_int_equal(kept_value(HEC_RAPL_PACKAGE_ENERGY, 0), truth);
    }
    assert_int_equal(kept.events, 1); /* no DRAM, nothing else */
}

TEST(a_reset_is_reported_and_not_taken_for_a_wrap) {
    zone("intel-rapl:0", "package-0", RANGE_UJ, 5000000000);
    assert_int_equal(open_it(), HEC_OK);
    set_energy("intel-rapl:0", 1000000); /* as a wrap: 257 kJ in a second */
    poll_after(SECOND);
    assert_true(kept_last(HEC_RAPL_PACKAGE_ENERGY, 0).missing);
    assert_non_null(kept_event(HEC_EVENT_COUNTER_RESET, "package-0"));
    set_energy("intel-rapl:0", 101000000);
    poll_after(SECOND);
    assert_int_equal(kept_value(HEC_RAPL_PACKAGE_ENERGY, 0), 5000000000 + 100000000); /* goes on, never back */
}

TEST(a_long_silence_is_a_gap) {
    zone("intel-rapl:0", "package-0", RANGE_UJ, 1000);
    assert_int_equal(open_it(), HEC_OK);
    set_energy("intel-rapl:0", 2000);
    poll_after(3600 * SECOND); /* suspended: it may have wrapped any number of times */
    assert_true(kept_last(HEC_RAPL_PACKAGE_ENERGY, 0).missing);
    assert_non_null(kept_event(HEC_EVENT_GAP, "3600"));
}

TEST(without_a_range_going_back_is_a_reset) {
    zone("intel-rapl:0", "package-0", 0, 1000000);
    assert_int_equal(open_it(), HEC_OK);
    set_energy("intel-rapl:0", 10);
    poll_after(SECOND);
    assert_true(kept_last(HEC_RAPL_PACKAGE_ENERGY, 0).missing);
    assert_non_null(kept_event(HEC_EVENT_COUNTER_RESET, "backwards"));
}

TEST(missing_dram_is_said) {
    zone("intel-rapl:0", "package-0", RANGE_UJ, 1);
    assert_int_equal(open_it(), HEC_OK);
    assert_non_null(kept_event(HEC_EVENT_SOURCE_UNAVAILABLE, "DRAM"));
    assert_int_equal(kept_reports(HEC_RAPL_DRAM_ENERGY), 0);
}

TEST(a_domain_that_fails_is_missing_and_reported_once) {
    zone("intel-rapl:0", "package-0", RANGE_UJ, 1000);
    assert_int_equal(open_it(), HEC_OK);
    folder_text("intel-rapl:0/energy_uj", "nonsense\n");
    poll_after(SECOND);
    poll_after(SECOND);
    assert_true(kept_last(HEC_RAPL_PACKAGE_ENERGY, 0).missing);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 1);
    set_energy("intel-rapl:0", 2000); /* and comes back, nothing lost */
    poll_after(SECOND);
    assert_int_equal(kept_value(HEC_RAPL_PACKAGE_ENERGY, 0), 2000);
}

TEST(absence_is_a_sentence) {
    assert_int_equal(open_it(), HEC_ERR_UNSUPPORTED);
    assert_string_equal(world.why.text, "no RAPL here (virtual machine or unsupported CPU)");
    assert_null(world.collector);
    world.options.powercap_path = "/nonexistent/powercap";
    assert_int_equal(open_it(), HEC_ERR_UNSUPPORTED);
    zone("intel-rapl:0", "psys", RANGE_UJ, 1); /* nothing but what would be counted twice */
    world.options.powercap_path = folder;
    assert_int_equal(open_it(), HEC_ERR_UNSUPPORTED);
}

TEST(a_refusal_is_a_sentence_with_the_remedy) {
    zone("intel-rapl:0", "package-0", RANGE_UJ, 1);
    assert_int_equal(chmod(in_folder("intel-rapl:0/energy_uj"), 0), 0);
    bool root = geteuid() == 0; /* to whom nothing is refused */
    if (root)
        assert_int_equal(seteuid(65534), 0);
    int err = open_it();
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(err, HEC_ERR_PERMISSION);
    assert_non_null(strstr(world.why.text, "needs read permission on "));
    assert_non_null(strstr(world.why.text, "/intel-rapl:0/energy_uj: run as root or grant it by a udev rule"));
}

EACH_TEST(set_up, tear_down)
