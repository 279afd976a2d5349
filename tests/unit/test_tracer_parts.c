/* The parts of the tracer that only calculate: the duty cycle, the mapping of clocks, since when a window is complete,
 * which libcupti is tried, and what an API call does. */
#include "tracer/tracer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS HEC_NS_PER_MS
#define S HEC_NS_PER_S

/* ---- the duty cycle ---- */

/* A program of `seconds` that launches so many kernels a second, of which a share waits in the queue; returns the share of
 * time traced. */
static double play(struct hec_duty *duty, double launches_per_s, double queued, int seconds) {
    int64_t traced = 0, step = 100 * MS;
    uint64_t launched = (uint64_t)(launches_per_s / 10);
    for (int64_t t = 0; t < seconds * S; t += step) {
        hec_duty_elapse(duty, step);
        if (duty->open) {
            struct hec_duty_work work = {launched, (uint64_t)((double)launched * queued), 0, launched};
            traced += step;
            hec_duty_work(duty, &work);
            if (hec_duty_should_close(duty))
                hec_duty_closed(duty);
        } else if (hec_duty_should_open(duty)) {
            hec_duty_opened(duty);
        }
    }
    return (double)traced / (double)(seconds * S);
}

static struct hec_duty duty_of(int64_t budget_ppm) {
    struct hec_duty duty;
    hec_duty_init(&duty, budget_ppm);
    hec_duty_opened(&duty);
    return duty;
}

static void test_duty_idle(void **state) {
    (void)state;
    struct hec_duty duty = duty_of(10000);
    assert_true(play(&duty, 1000, 0, 60) > 0.99); /* 1 ms a second: one tenth of the budget */
    assert_true(hec_duty_estimate_ppm(&duty) < 2000);
}

static void test_duty_launch_bound(void **state) {
    (void)state;
    struct hec_duty duty = duty_of(10000);
    /* 9 us a launch: tracing costs 7 % of the time, of which half of the 1 % is used; being attached costs 7 % whatever is
     * done, which is told, but pays for no window */
    double share = play(&duty, 111000, 0, 60);
    assert_true(share > 0.06 && share < 0.12);
    assert_in_range(hec_duty_estimate_ppm(&duty), 72150, 79000);
}

static void test_duty_queued(void **state) {
    (void)state;
    /* a training step of 400 kernels in 100 ms, mostly far ahead of the device */
    struct hec_duty duty = duty_of(10000);
    assert_true(play(&duty, 4000, 0.9, 60) > 0.99);
    /* many short kernels: only the device's time counts */
    duty = duty_of(10000);
    double share = play(&duty, 111000, 1, 60);
    assert_true(share > 0.03 && share < 0.1);
    assert_in_range(hec_duty_estimate_ppm(&duty), 4500, 6500);
}

static void test_duty_full(void **state) {
    (void)state;
    struct hec_duty duty = duty_of(0);
    assert_true(play(&duty, 400000, 0, 10) == 1);
    assert_true(hec_duty_estimate_ppm(&duty) > 100000);
}

static void test_duty_credit_is_bounded(void **state) {
    (void)state;
    struct hec_duty duty;
    hec_duty_init(&duty, 10000);
    hec_duty_elapse(&duty, 3600 * S);
    assert_in_range(duty.credit_ns, 1, 100 * MS); /* 10 s of it */
    hec_duty_elapse(&duty, -5 * S);
    assert_true(duty.elapsed_ns == 3600 * S);
}

/* ---- clocks ---- */

static void test_clock_maps(void **state) {
    (void)state;
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

static void test_clock_of_ticks(void **state) {
    (void)state;
    struct hec_clock clock;
    hec_clock_reset(&clock);
    hec_clock_add(&clock, 1000000000000u, 50 * S); /* 2.5 ticks a ns */
    hec_clock_add(&clock, 1000012500000u, 50 * S + 5 * MS);
    int64_t mapped = hec_clock_map(&clock, 1000000000000u + 2500000000u);
    assert_in_range(mapped - 51 * S + 1000, 0, 2000);
}

static void test_clock_steps(void **state) {
    (void)state;
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

static void test_lead(void **state) {
    (void)state;
    hec_lead_reset(1000 * MS);
    assert_true(hec_lead_complete_ns(2000 * MS) == 1000 * MS);
    /* launched into an idle stream: nothing was before it */
    hec_lead_api(1, 1100 * MS);
    assert_false(hec_lead_device(1, 7, 1, 1100 * MS + 5000));
    assert_true(hec_lead_complete_ns(2000 * MS) == 1000 * MS);
    /* launched behind 30 ms of work that is not recorded */
    hec_lead_api(2, 1010 * MS);
    assert_true(hec_lead_device(1, 8, 2, 1040 * MS));
    assert_true(hec_lead_complete_ns(2000 * MS) == 1040 * MS);
    /* what comes later in the stream changes nothing, what is told later but was earlier does */
    hec_lead_api(3, 1011 * MS);
    hec_lead_device(1, 8, 3, 1050 * MS);
    hec_lead_api(4, 1005 * MS);
    hec_lead_device(1, 8, 4, 1030 * MS);
    assert_true(hec_lead_complete_ns(2000 * MS) == 1030 * MS);
    /* the call was not seen: to be on the safe side, busy; the call may come after the kernel */
    hec_lead_device(2, 8, 5, 1060 * MS);
    assert_true(hec_lead_complete_ns(2000 * MS) == 1060 * MS);
    hec_lead_api(5, 1060 * MS - 3000);
    assert_true(hec_lead_complete_ns(2000 * MS) == 1030 * MS);
    /* a stream that begins late began late of its own */
    hec_lead_device(2, 9, 6, 1800 * MS);
    assert_true(hec_lead_complete_ns(1500 * MS) == 1030 * MS);
    /* many streams: no overflow */
    for (uint32_t i = 0; i < 1000; i++)
        hec_lead_device(3, i, 100 + i, 1001 * MS);
    assert_true(hec_lead_complete_ns(1500 * MS) == 1030 * MS);
}

/* ---- libraries ---- */

static char candidates[24][HEC_LIBRARY_PATH_MAX];

static void test_library_mapped_first(void **state) {
    (void)state;
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

static void test_library_wheels(void **state) {
    (void)state;
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

static void test_library_major(void **state) {
    (void)state;
    assert_int_equal(hec_library_major("/usr/lib/libcudart.so.12"), 12);
    assert_int_equal(hec_library_major("libcudart.so.11.0"), 11);
    assert_int_equal(hec_library_major("/x.so.9/libcudart.so"), 0);
    assert_int_equal(hec_library_major("libcudart-a1b2.so.13.0.48"), 13);
}

/* ---- API calls ---- */

static void test_calls(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum hec_trace_api_class api_class;
    } rows[] = {
        {"cudaLaunchKernel_v7000", HEC_TRACE_API_LAUNCH},   {"__cudaLaunchKernel_ptsz_v13000", HEC_TRACE_API_LAUNCH},
        {"cuLaunchKernelEx", HEC_TRACE_API_LAUNCH},         {"cudaLaunchHostFunc_v10000", HEC_TRACE_API_OTHER},
        {"cudaGraphLaunch_v10000", HEC_TRACE_API_GRAPH},    {"cuGraphInstantiateWithFlags", HEC_TRACE_API_GRAPH},
        {"cudaMemcpyAsync_v3020", HEC_TRACE_API_COPY},      {"cuMemcpyHtoD_v2", HEC_TRACE_API_COPY},
        {"cuMemsetD8Async", HEC_TRACE_API_MEMSET},          {"cudaStreamSynchronize_v3020", HEC_TRACE_API_SYNC},
        {"cudaStreamWaitEvent_v3020", HEC_TRACE_API_OTHER}, {"cudaMalloc_v3020", HEC_TRACE_API_ALLOC},
        {"cudaMallocAsync_v11020", HEC_TRACE_API_ALLOC},    {"cuMemAllocHost_v2", HEC_TRACE_API_ALLOC},
        {"cudaFreeHost_v3020", HEC_TRACE_API_FREE},         {"cuModuleLoadData", HEC_TRACE_API_MODULE},
        {"cuLibraryLoadData", HEC_TRACE_API_MODULE},        {"cudaGetDevice_v3020", HEC_TRACE_API_OTHER},
        {"cudaPeekAtLastError_v3020", HEC_TRACE_API_OTHER}, {"", HEC_TRACE_API_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (hec_calls_classify(rows[i].name) != rows[i].api_class)
            fail_msg("%s: %d", rows[i].name, hec_calls_classify(rows[i].name));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duty_idle),
        cmocka_unit_test(test_duty_launch_bound),
        cmocka_unit_test(test_duty_queued),
        cmocka_unit_test(test_duty_full),
        cmocka_unit_test(test_duty_credit_is_bounded),
        cmocka_unit_test(test_clock_maps),
        cmocka_unit_test(test_clock_of_ticks),
        cmocka_unit_test(test_clock_steps),
        cmocka_unit_test(test_lead),
        cmocka_unit_test(test_library_mapped_first),
        cmocka_unit_test(test_library_wheels),
        cmocka_unit_test(test_library_major),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
