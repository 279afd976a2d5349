/* RAPL through powercap: domains, unwrapping, resets, permission, absence. The files are a fixture, the clock is
 * simulated. */
#include "base/clock.h"
#include "observe/collector.h"
#include "tests/unit/host_fixture.h"

#define SECOND HEC_NS_PER_S
#define RANGE_UJ INT64_C(262143328850)

static int64_t now_ns;

static int64_t simulated_now(void) {
    return now_ns;
}

struct world {
    char *folder;
    struct recorded recorded;
    struct hec_sink sink;
    struct hec_observe_options options;
    void *collector;
    struct hec_why why;
};

static void zone(const struct world *world, const char *zone_name, const char *name, int64_t range_uj,
                 int64_t energy_uj) {
    char path[128];
    snprintf(path, sizeof path, "%s/name", zone_name);
    fixture_file(world->folder, path, "%s\n", name);
    snprintf(path, sizeof path, "%s/energy_uj", zone_name);
    fixture_file(world->folder, path, "%lld\n", (long long)energy_uj);
    snprintf(path, sizeof path, "%s/max_energy_range_uj", zone_name);
    if (range_uj > 0)
        fixture_file(world->folder, path, "%lld\n", (long long)range_uj);
}

static void set_energy(const struct world *world, const char *zone_name, int64_t energy_uj) {
    char path[128];
    snprintf(path, sizeof path, "%s/energy_uj", zone_name);
    fixture_file(world->folder, path, "%lld\n", (long long)energy_uj);
}

static int set_up(void **state) {
    static const struct hec_clock_source source = {simulated_now, simulated_now};
    struct world *world = calloc(1, sizeof *world);
    now_ns = 1000 * SECOND;
    hec_clock_set_source(&source);
    world->folder = fixture_make();
    world->sink = recording_sink(&world->recorded);
    world->options.powercap_path = world->folder;
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    if (world->collector)
        hec_collector_rapl.close(world->collector);
    fixture_remove(world->folder);
    free(world->recorded.samples);
    free(world);
    hec_clock_set_source(NULL);
    return 0;
}

static int open_it(struct world *world) {
    return hec_collector_rapl.open(&world->options, &world->sink, &world->collector, &world->why);
}

static void poll_after(struct world *world, int64_t passed_ns) {
    now_ns += passed_ns;
    hec_collector_rapl.poll(world->collector, now_ns);
}

TEST(packages_and_dram_are_read_the_rest_is_not) {
    struct world *world = *unit_state;
    zone(world, "intel-rapl:0", "package-0", RANGE_UJ, 1000000);
    zone(world, "intel-rapl:0:0", "core", RANGE_UJ, 500);
    zone(world, "intel-rapl:0:1", "dram", 65712999613, 2000);
    zone(world, "intel-rapl:1", "package-1", RANGE_UJ, 3000000);
    zone(world, "intel-rapl:2", "psys", RANGE_UJ, 9);
    zone(world, "intel-rapl-mmio:0", "package-0", RANGE_UJ, 77);
    assert_int_equal(open_it(world), HEC_OK);
    assert_int_equal(world->recorded.count, 3); /* the first readings, at open */
    set_energy(world, "intel-rapl:0", 61000000);
    set_energy(world, "intel-rapl:0:1", 5002000);
    poll_after(world, SECOND);
    assert_int_equal(world->recorded.count, 6);
    assert_int_equal(last_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY, 0).value, 61000000);
    assert_int_equal(last_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY, 0).t_ns, now_ns);
    assert_int_equal(last_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY, 1).value, 3000000);
    assert_int_equal(last_of(&world->recorded, HEC_RAPL_DRAM_ENERGY, 0).value, 5002000);
    set_energy(world, "intel-rapl:1", 3500000);
    now_ns += SECOND / 2;
    hec_collector_rapl.finish(world->collector, now_ns); /* the last readings, whatever is due */
    assert_int_equal(world->recorded.count, 9);
    assert_int_equal(last_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY, 1).value, 3500000);
    assert_int_equal(world->recorded.event_count, 0);
}

TEST(it_is_polled_once_a_second) {
    struct world *world = *unit_state;
    zone(world, "intel-rapl:0", "package-0", RANGE_UJ, 1);
    assert_int_equal(open_it(world), HEC_OK);
    int64_t first = hec_collector_rapl.poll(world->collector, now_ns);
    assert_int_equal(first, now_ns + SECOND);
    assert_int_equal(world->recorded.count, 1); /* not due yet */
    now_ns = first;
    assert_int_equal(hec_collector_rapl.poll(world->collector, now_ns), first + SECOND);
    assert_int_equal(world->recorded.count, 2);
}

TEST(a_small_range_is_polled_faster) {
    struct world *world = *unit_state;
    zone(world, "intel-rapl:0", "package-0", 600000000, 1); /* 600 J: 2 s at 300 W */
    fixture_file(world->folder, "intel-rapl:0/constraint_0_power_limit_uw", "100000000\n");
    assert_int_equal(open_it(world), HEC_OK);
    int64_t next = hec_collector_rapl.poll(world->collector, now_ns);
    assert_int_equal((next - now_ns) / HEC_NS_PER_MS, 500); /* a quarter of 600 J / (3 x 100 W) */
}

TEST(wraps_are_unwrapped) {
    struct world *world = *unit_state;
    zone(world, "intel-rapl:0", "package-0", RANGE_UJ, RANGE_UJ - 50000000);
    assert_int_equal(open_it(world), HEC_OK);
    int64_t truth = RANGE_UJ - 50000000;
    for (int wrap = 0; wrap < 3; wrap++) {
        set_energy(world, "intel-rapl:0", 100000000); /* 150 J in a second, over the edge */
        poll_after(world, SECOND);
        truth += 150000000;
        assert_int_equal(value_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY), truth);
        /* far on, but without a doubt: 262 kJ take more than 87 s at three times a kilowatt */
        for (int64_t at = 100000000; at < RANGE_UJ - 50000000; at += 60 * INT64_C(1000000000)) {
            set_energy(world, "intel-rapl:0", at);
            poll_after(world, 60 * SECOND);
        }
        set_energy(world, "intel-rapl:0", RANGE_UJ - 50000000);
        poll_after(world, 60 * SECOND);
        truth += RANGE_UJ - 150000000;
        assert_int_equal(value_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY), truth);
    }
    assert_int_equal(world->recorded.event_count, 1); /* no DRAM, nothing else */
}

TEST(a_reset_is_reported_and_not_taken_for_a_wrap) {
    struct world *world = *unit_state;
    zone(world, "intel-rapl:0", "package-0", RANGE_UJ, 5000000000);
    assert_int_equal(open_it(world), HEC_OK);
    set_energy(world, "intel-rapl:0", 1000000); /* as a wrap: 257 kJ in a second */
    poll_after(world, SECOND);
    assert_true(last_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY, 0).missing);
    assert_true(reported(&world->recorded, HEC_EVENT_COUNTER_RESET, "package-0"));
    set_energy(world, "intel-rapl:0", 101000000);
    poll_after(world, SECOND);
    assert_int_equal(value_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY),
                     5000000000 + 100000000); /* goes on, never back */
}

TEST(a_long_silence_is_a_gap) {
    struct world *world = *unit_state;
    zone(world, "intel-rapl:0", "package-0", RANGE_UJ, 1000);
    assert_int_equal(open_it(world), HEC_OK);
    set_energy(world, "intel-rapl:0", 2000);
    poll_after(world, 3600 * SECOND); /* suspended: it may have wrapped any number of times */
    assert_true(last_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY, 0).missing);
    assert_true(reported(&world->recorded, HEC_EVENT_GAP, "3600"));
}

TEST(without_a_range_going_back_is_a_reset) {
    struct world *world = *unit_state;
    zone(world, "intel-rapl:0", "package-0", 0, 1000000);
    assert_int_equal(open_it(world), HEC_OK);
    set_energy(world, "intel-rapl:0", 10);
    poll_after(world, SECOND);
    assert_true(last_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY, 0).missing);
    assert_true(reported(&world->recorded, HEC_EVENT_COUNTER_RESET, "backwards"));
}

TEST(missing_dram_is_said) {
    struct world *world = *unit_state;
    zone(world, "intel-rapl:0", "package-0", RANGE_UJ, 1);
    assert_int_equal(open_it(world), HEC_OK);
    assert_true(reported(&world->recorded, HEC_EVENT_SOURCE_UNAVAILABLE, "DRAM"));
    assert_int_equal(count_of(&world->recorded, HEC_RAPL_DRAM_ENERGY), 0);
}

TEST(a_domain_that_fails_is_missing_and_reported_once) {
    struct world *world = *unit_state;
    zone(world, "intel-rapl:0", "package-0", RANGE_UJ, 1000);
    assert_int_equal(open_it(world), HEC_OK);
    fixture_file(world->folder, "intel-rapl:0/energy_uj", "nonsense\n");
    poll_after(world, SECOND);
    poll_after(world, SECOND);
    assert_true(last_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY, 0).missing);
    int reported_times = 0;
    for (int i = 0; i < world->recorded.event_count; i++)
        reported_times += world->recorded.event_kinds[i] == HEC_EVENT_SENSOR_FAILED;
    assert_int_equal(reported_times, 1);
    set_energy(world, "intel-rapl:0", 2000); /* and comes back, nothing lost */
    poll_after(world, SECOND);
    assert_int_equal(value_of(&world->recorded, HEC_RAPL_PACKAGE_ENERGY), 2000);
}

TEST(absence_is_a_sentence) {
    struct world *world = *unit_state;
    assert_int_equal(open_it(world), HEC_ERR_UNSUPPORTED);
    assert_string_equal(world->why.text, "no RAPL here (virtual machine or unsupported CPU)");
    assert_null(world->collector);
    world->options.powercap_path = "/nonexistent/powercap";
    assert_int_equal(open_it(world), HEC_ERR_UNSUPPORTED);
    zone(world, "intel-rapl:0", "psys", RANGE_UJ, 1); /* nothing but what would be counted twice */
    world->options.powercap_path = world->folder;
    assert_int_equal(open_it(world), HEC_ERR_UNSUPPORTED);
}

TEST(a_refusal_is_a_sentence_with_the_remedy) {
    struct world *world = *unit_state;
    char path[300];
    zone(world, "intel-rapl:0", "package-0", RANGE_UJ, 1);
    snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", world->folder);
    assert_int_equal(chmod(path, 0), 0);
    bool root = geteuid() == 0; /* to whom nothing is refused */
    if (root)
        assert_int_equal(seteuid(65534), 0);
    int err = open_it(world);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(err, HEC_ERR_PERMISSION);
    assert_non_null(strstr(world->why.text, "needs read permission on "));
    assert_non_null(strstr(world->why.text, "/intel-rapl:0/energy_uj: run as root or grant it by a udev rule"));
}

EACH_TEST(set_up, tear_down)
