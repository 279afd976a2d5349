/* What rules read: shares from the kernels' names, and what states cost, with intervals that hold the value. */
#include "diagnose/rules/facts.h"
#include "unit.h"

#define S INT64_C(1000000000)

static struct hec_summary summary;
static struct hec_device_summary device;
static struct hec_device_timeline timeline;
static struct hec_kernel_row kernels[6];
static struct hec_ledger_device ledger, steady;
static struct hec_device_result result;
static struct hec_facts facts;

/* A run of 10 s and 2000 J: 4 s compute at 320 W, 6 s host at 120 W; half of it is steady. */
static int setup(void **state) {
    (void)state;
    memset(&summary, 0, sizeof summary);
    memset(&device, 0, sizeof device);
    memset(&timeline, 0, sizeof timeline);
    memset(kernels, 0, sizeof kernels);
    memset(&ledger, 0, sizeof ledger);
    memset(&steady, 0, sizeof steady);
    memset(&result, 0, sizeof result);
    device.device = (struct hec_device){.index = 2, .name = "NVIDIA H200", .memory_kib = 1000000};
    device.energy = (struct hec_energy){.valid = true, .joules = 2000, .window_s = 10, .idle_context_watts = 120};
    device.power_limit_w = 700;
    device.metric[HEC_GPU_MEM_USED].maximum = 256000000;
    ledger = (struct hec_ledger_device){.device = 2, .to_ns = 10 * S, .window_ns = 10 * S, .traced_ns = 10 * S};
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        ledger.rows[i].joules = ledger.rows[i].watts = ledger.rows[i].watts_low = ledger.rows[i].watts_high = NAN;
    ledger.rows[HEC_STATE_COMPUTE] = (struct hec_ledger_row){.ns = 4 * S,
                                                             .seconds = 4,
                                                             .seconds_low = 4,
                                                             .seconds_high = 4,
                                                             .joules = 1280,
                                                             .watts = 320,
                                                             .watts_low = 288,
                                                             .watts_high = 352};
    ledger.rows[HEC_STATE_HOST] = (struct hec_ledger_row){.ns = 6 * S,
                                                          .seconds = 6,
                                                          .seconds_low = 6,
                                                          .seconds_high = 6,
                                                          .joules = 720,
                                                          .watts = 120,
                                                          .watts_low = 108,
                                                          .watts_high = NAN};
    steady = ledger;
    steady.window_ns = 5 * S;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        steady.rows[i].ns = ledger.rows[i].ns / 2;
        steady.rows[i].seconds = steady.rows[i].seconds_low = steady.rows[i].seconds_high = ledger.rows[i].seconds / 2;
    }
    result.calls.device = result.watts.profile.device = timeline.device = 2;
    result.watts.profile.sms = 132;
    summary.seconds = 10;
    summary.devices = &device;
    summary.device_count = 1;
    summary.timeline.devices = &timeline;
    summary.timeline.device_count = 1;
    summary.timeline.kernels = kernels;
    summary.diagnosis.ledger = (struct hec_ledger){&ledger, 1};
    summary.diagnosis.steady = (struct hec_ledger){&steady, 1};
    summary.diagnosis.results = &result;
    return 0;
}

static void row(const char *name, double seconds, double mean_us, int64_t blocks, int of) {
    struct hec_kernel_row *k = &kernels[summary.timeline.kernel_count++];
    snprintf(k->name, sizeof k->name, "%s", name);
    k->device = of;
    k->seconds = seconds;
    k->mean_us = mean_us;
    k->grid[0] = blocks;
    k->grid[1] = k->grid[2] = blocks < 0 ? -1 : 1;
    k->kernel_class = hec_kernel_class_of(name);
    k->precision = hec_kernel_precision_of(name);
}

static void kernels_by_name(void **state) {
    (void)state;
    row("ampere_sgemm_128x64_tn", 3, 50, 131, 2);
    row("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 1, 9, 132, 2);
    row("vectorized_elementwise_kernel", 4, 100, -1, 2); /* blocks unknown */
    row("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 9, 1, 1, 2);
    row("cross_device_reduce_1stage", 9, 1, 1, 2);
    row("ampere_sgemm_128x64_tn", 9, 1, 1, 0); /* of another device */
    hec_facts_gather(&summary, 0, &facts);
    assert_near(facts.class_share[HEC_KERNEL_CLASS_GEMM], 0.5, 1e-12);
    assert_near(facts.class_share[HEC_KERNEL_CLASS_ELEMENTWISE], 0.5, 1e-12);
    assert_near(facts.class_share[HEC_KERNEL_CLASS_COMM], 0, 0);
    assert_near(facts.math_share, 0.5, 1e-12);
    assert_near(facts.precision_share[HEC_KERNEL_PRECISION_SIMT_FP32], 0.75, 1e-12);
    assert_near(facts.precision_share[HEC_KERNEL_PRECISION_TENSOR_HALF], 0.25, 1e-12);
    assert_near(facts.small_share, 0.125, 1e-12);
}

static void the_run(void **state) {
    (void)state;
    hec_facts_gather(&summary, 0, &facts);
    assert_ptr_equal(facts.ledger, &ledger);
    assert_ptr_equal(facts.steady, &steady);
    assert_ptr_equal(facts.calls, &result.calls);
    assert_ptr_equal(facts.profile, &result.watts.profile);
    assert_string_equal(facts.part->id, "H200_SXM");
    assert_near(facts.run_s, 10, 1e-12);
    assert_near(facts.run_j, 2000, 1e-9);
    assert_near(facts.mean_w, 200, 1e-9);
    assert_near(facts.memory_free_share, 0.75, 1e-9);
}

static void unknown_is_not_zero(void **state) {
    (void)state;
    device.energy.valid = false;
    hec_facts_gather(&summary, 0, &facts);
    assert_true(isnan(facts.run_j) && isnan(facts.mean_w));
    summary.diagnosis.ledger.device_count = summary.diagnosis.steady.device_count = 0;
    summary.timeline.device_count = 0;
    device.metric[HEC_GPU_MEM_USED].maximum = NAN;
    hec_facts_gather(&summary, 0, &facts);
    assert_null(facts.ledger);
    assert_null(facts.calls);
    assert_null(facts.timeline);
    assert_near(facts.run_s, 10, 0);
    assert_true(isnan(facts.memory_free_share));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(kernels_by_name, setup),
        cmocka_unit_test_setup(the_run, setup),
        cmocka_unit_test_setup(unknown_is_not_zero, setup),
    };
    return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
