/* What rules read: shares from the kernels' names, and what states cost, with intervals that hold the value. */
#include "diagnose/rules/facts.h"
#include "fake_dossier.h"
#include "unit.h"

#define S INT64_C(1000000000)

static struct hec_summary summary;
static struct hec_device_diagnosis device;
static struct fake_dossier of;
static struct hec_facts facts;

/* A run of 10 s and 2000 J: 4 s compute at 320 W, 6 s host at 120 W; half of it is steady. */
static int setup(void **state) {
    (void)state;
    memset(&summary, 0, sizeof summary);
    device = fake_dossier(&of, 2);
    struct hec_ledger_device *ledger = &of.ledger, *steady = &of.steady;
    device.readings.device = (struct hec_device){.index = 2, .name = "NVIDIA H200", .memory_kib = 1000000};
    device.readings.energy =
        (struct hec_energy){.valid = true, .joules = 2000, .window_s = 10, .idle_context_watts = 120};
    device.readings.power_limit_w = 700;
    device.readings.metric[HEC_GPU_MEM_USED].maximum = 256000000;
    *ledger = (struct hec_ledger_device){.device = 2, .to_ns = 10 * S, .window_ns = 10 * S, .traced_ns = 10 * S};
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        ledger->rows[i].joules = ledger->rows[i].watts = ledger->rows[i].watts_low = ledger->rows[i].watts_high = NAN;
    ledger->rows[HEC_STATE_COMPUTE] = (struct hec_ledger_row){.ns = 4 * S,
                                                              .seconds = 4,
                                                              .seconds_low = 4,
                                                              .seconds_high = 4,
                                                              .joules = 1280,
                                                              .watts = 320,
                                                              .watts_low = 288,
                                                              .watts_high = 352};
    ledger->rows[HEC_STATE_HOST] = (struct hec_ledger_row){.ns = 6 * S,
                                                           .seconds = 6,
                                                           .seconds_low = 6,
                                                           .seconds_high = 6,
                                                           .joules = 720,
                                                           .watts = 120,
                                                           .watts_low = 108,
                                                           .watts_high = NAN};
    *steady = *ledger;
    steady->window_ns = 5 * S;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        steady->rows[i].ns = ledger->rows[i].ns / 2;
        steady->rows[i].seconds = steady->rows[i].seconds_low = steady->rows[i].seconds_high =
            ledger->rows[i].seconds / 2;
    }
    of.watts.profile.sms = 132;
    summary.seconds = 10;
    summary.devices = &device;
    summary.device_count = 1;
    return 0;
}

TEST(kernels_by_name) {
    fake_kernel(&of, "ampere_sgemm_128x64_tn", 3, 50);
    fake_kernel(&of, "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 1, 9);
    fake_kernel(&of, "vectorized_elementwise_kernel", 4, 100); /* blocks unknown */
    fake_kernel(&of, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 9, 1);
    fake_kernel(&of, "cross_device_reduce_1stage", 9, 1);
    hec_facts_gather(&summary, &device, &facts);
    assert_near(facts.class_share[HEC_KERNEL_CLASS_GEMM], 0.5, 1e-12);
    assert_near(facts.class_share[HEC_KERNEL_CLASS_ELEMENTWISE], 0.5, 1e-12);
    assert_near(facts.class_share[HEC_KERNEL_CLASS_COMM], 0, 0);
    assert_near(facts.math_share, 0.5, 1e-12);
    assert_near(facts.precision_share[HEC_KERNEL_PRECISION_SIMT_FP32], 0.75, 1e-12);
    assert_near(facts.precision_share[HEC_KERNEL_PRECISION_TENSOR_HALF], 0.25, 1e-12);
    assert_near(facts.small_share, 0.125, 1e-12);
}

TEST(the_run) {
    hec_facts_gather(&summary, &device, &facts);
    assert_ptr_equal(facts.device, &device);
    assert_ptr_equal(facts.profile, &of.watts.profile);
    assert_string_equal(facts.part->id, "H200_SXM");
    assert_near(facts.run_s, 10, 1e-12);
    assert_near(facts.run_j, 2000, 1e-9);
    assert_near(facts.mean_w, 200, 1e-9);
    assert_near(facts.memory_free_share, 0.75, 1e-9);
}

TEST(unknown_is_not_zero) {
    device.readings.energy.valid = false;
    hec_facts_gather(&summary, &device, &facts);
    assert_true(isnan(facts.run_j) && isnan(facts.mean_w));
    fake_dossier_untraced(&device);
    device.readings.metric[HEC_GPU_MEM_USED].maximum = NAN;
    hec_facts_gather(&summary, &device, &facts);
    assert_null(facts.profile);
    assert_near(facts.run_s, 10, 0);
    assert_true(isnan(facts.memory_free_share));
}

EACH_TEST(setup, NULL)
