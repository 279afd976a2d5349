/* The parts of the tracer that only calculate: the mapping of clocks, since when a window is complete, which libcupti is
 * tried. */
#include "tracer/tracer.h"
#include "unit.h"

#define MS HEC_NS_PER_MS
#define S HEC_NS_PER_S

/* ---- clocks ---- */

TEST(test_clock_maps) {
    struct hec_clock clock;
    hec_clock_reset(&clock);
    assert_true(hec_clock_map(&clock, 5) == INT64_MIN);
    hec_clock_add(&clock, 1700000000000000000u, 1000 * S);
    assert_true(hec_clock_map(&clock, 1700000000000000000u + 7) == 1000 * S + 7);
    assert_true(hec_clock_map(&clock, 1700000000000000000u - 7) == 1000 * S - 7);
    /* a drift of 10 us a second between the pairs, and beyond them */
    hec_clock_add(&clock, 1700000001000000000u, 1001 * S + 10000);
    assert_true(hec_clock_map(&clock, 1700000000500000000u) == 1000 * S + 500 * MS + 5000);
    assert_in_range(hec_clock_map(&clock, 1700000002000000000u) - (1002 * S + 20000), 0, 2);
}

TEST(test_clock_of_ticks) {
    struct hec_clock clock;
    hec_clock_reset(&clock);
    hec_clock_add(&clock, 1000000000000u, 50 * S); /* 2.5 ticks a ns */
    hec_clock_add(&clock, 1000012500000u, 50 * S + 5 * MS);
    int64_t mapped = hec_clock_map(&clock, 1000000000000u + 2500000000u);
    assert_in_range(mapped - 51 * S + 1000, 0, 2000);
}

TEST(test_clock_steps) {
    struct hec_clock clock;
    hec_clock_reset(&clock);
    hec_clock_add(&clock, 1700000000000000000u, 1000 * S);
    hec_clock_add(&clock, 1700000001000000000u, 1001 * S);
    /* set an hour ahead: the old pairs say nothing of it */
    hec_clock_add(&clock, 1700003602000000000u, 1002 * S);
    assert_int_equal(clock.count, 1);
    assert_true(hec_clock_map(&clock, 1700003602000000100u) == 1002 * S + 100);
    /* another tool's clock, which counts ticks, and back */
    hec_clock_add(&clock, 4000000000000u, 1003 * S);
    assert_int_equal(clock.count, 1);
    hec_clock_add(&clock, 1700003604000000000u, 1004 * S);
    assert_int_equal(clock.count, 1);
    assert_true(clock.slope == 1);
    for (int i = 1; i < 100; i++)
        hec_clock_add(&clock, 1700003604000000000u + (uint64_t)(i * S), (1004 + i) * S);
    assert_int_equal(clock.count, HEC_CLOCK_PAIRS);
    assert_true(hec_clock_map(&clock, 1700003604000000000u + (uint64_t)(99 * S)) == 1103 * S);
    /* before the oldest pair that is kept: the first slope */
    assert_true(hec_clock_map(&clock, 1700003604000000000u) == 1004 * S);
    /* nonsense stays out of range */
    assert_true(hec_clock_map(&clock, UINT64_MAX) == INT64_MIN);
}

/* ---- since when a window is complete ---- */

TEST(test_lead) {
    hec_lead_reset(1000 * MS);
    assert_true(hec_lead_complete_ns(2000 * MS) == 1000 * MS);
    /* what was launched before may run until a stream's first record */
    hec_lead_device(1, 7, 1040 * MS);
    assert_true(hec_lead_complete_ns(2000 * MS) == 1040 * MS);
    /* what comes later in the stream changes nothing, what is reported later but was earlier does */
    hec_lead_device(1, 7, 1050 * MS);
    hec_lead_device(1, 7, 1030 * MS);
    assert_true(hec_lead_complete_ns(2000 * MS) == 1030 * MS);
    /* the same stream of another context is another one */
    hec_lead_device(2, 7, 1060 * MS);
    assert_true(hec_lead_complete_ns(2000 * MS) == 1060 * MS);
    /* a stream that begins late began late of its own */
    hec_lead_device(2, 9, 1800 * MS);
    assert_true(hec_lead_complete_ns(1500 * MS) == 1060 * MS);
    /* many streams: no overflow */
    for (uint32_t i = 0; i < 1000; i++)
        hec_lead_device(3, i, 1001 * MS);
    assert_true(hec_lead_complete_ns(1500 * MS) == 1060 * MS);
    hec_lead_reset(3000 * MS);
    assert_true(hec_lead_complete_ns(5000 * MS) == 3000 * MS);
}

/* ---- libraries ---- */

static char candidates[24][HEC_LIBRARY_PATH_MAX];

TEST(test_library_mapped_first) {
    struct hec_library_places places = {
        .cupti = {"/opt/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13"},
        .cupti_count = 1,
        .cudart = "/usr/local/cuda-12.4/targets/x86_64-linux/lib/libcudart.so.12",
    };
    assert_true(hec_library_candidates(&places, 13, candidates, 24) > 3);
    assert_string_equal(candidates[0], places.cupti[0]);
    /* the runtime's version, not the driver's */
    assert_string_equal(candidates[1], "/usr/local/cuda-12.4/targets/x86_64-linux/lib/libcupti.so.12");
}

TEST(test_library_wheels) {
    struct hec_library_places places = {
        .cudart = "/v/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12",
        .packages = "/v/site-packages",
    };
    uint32_t count = hec_library_candidates(&places, 13, candidates, 24);
    assert_string_equal(candidates[1], "/v/site-packages/nvidia/cuda_runtime/lib/../../cuda_cupti/lib/libcupti.so.12");
    bool found = false;
    for (uint32_t i = 0; i < count; i++)
        found |= strcmp(candidates[i], "/v/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12") == 0;
    assert_true(found);
    /* without a runtime library (linked in): the driver's version first, then older ones, 11.8 by its odd name */
    places.cudart[0] = '\0';
    count = hec_library_candidates(&places, 13, candidates, 24);
    assert_string_equal(candidates[0], "/v/site-packages/nvidia/cu13/lib/libcupti.so.13");
    assert_string_equal(candidates[count - 1], "libcupti.so.11.8");
    assert_int_equal(hec_library_candidates(&places, 13, candidates, 3), 3);
}

TEST(test_library_major) {
    assert_int_equal(hec_library_major("/usr/lib/libcudart.so.12"), 12);
    assert_int_equal(hec_library_major("libcudart.so.11.0"), 11);
    assert_int_equal(hec_library_major("/x.so.9/libcudart.so"), 0);
    assert_int_equal(hec_library_major("libcudart-a1b2.so.13.0.48"), 13);
}
