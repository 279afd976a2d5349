/* What rules read of a run: shares from the kernels' names, time, energy and memory. */
#include "diagnose/rules/facts.h"
#include "rule_world.h"
#include "unit.h"

static const struct hec_facts *gather(void) {
    hec_facts_gather(&w.summary, &w.devices[0], &w.facts);
    return &w.facts;
}

static int setup(void **state) {
    (void)state;
    world_begin(1);
    w.devices[0].watts = &w.of[0].watts;
    w.of[0].watts.profile.sms = 132;
    d->device.memory_kib = 1000000;
    d->metric[HEC_GPU_MEM_USED].maximum = 256000000;
    return 0;
}

TEST(kernels_by_name) {
    fake_kernel(&w.of[0], "ampere_sgemm_128x64_tn", 3, 50);
    fake_kernel(&w.of[0], "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 1, 9);
    fake_kernel(&w.of[0], "vectorized_elementwise_kernel", 4, 100); /* blocks unknown */
    fake_kernel(&w.of[0], "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 9, 1);
    fake_kernel(&w.of[0], "cross_device_reduce_1stage", 9, 1);
    const struct hec_facts *f = gather();
    assert_near(f->class_share[HEC_KERNEL_CLASS_GEMM], 0.5, 1e-12);
    assert_near(f->class_share[HEC_KERNEL_CLASS_ELEMENTWISE], 0.5, 1e-12);
    assert_near(f->class_share[HEC_KERNEL_CLASS_COMM], 0, 0);
    assert_near(f->math_share, 0.5, 1e-12);
    assert_near(f->precision_share[HEC_KERNEL_PRECISION_SIMT_FP32], 0.75, 1e-12);
    assert_near(f->precision_share[HEC_KERNEL_PRECISION_TENSOR_HALF], 0.25, 1e-12);
    assert_near(f->small_share, 0.125, 1e-12);
}

TEST(the_run) {
    const struct hec_facts *f = gather();
    assert_ptr_equal(f->device, &w.devices[0]);
    assert_ptr_equal(f->profile, &w.of[0].watts.profile);
    assert_string_equal(f->part->id, "H200_SXM");
    assert_near(f->run_s, 100, 1e-12);
    assert_near(f->run_j, 50000, 1e-9);
    assert_near(f->mean_w, 500, 1e-9);
    assert_near(f->memory_free_share, 0.75, 1e-9);
}

TEST(unknown_is_not_zero) {
    d->energy.valid = false;
    const struct hec_facts *f = gather();
    assert_true(isnan(f->run_j) && isnan(f->mean_w));
    fake_dossier_untraced(&w.devices[0]);
    d->metric[HEC_GPU_MEM_USED].maximum = NAN;
    assert_null(gather()->profile);
    assert_near(f->run_s, 100, 0);
    assert_true(isnan(f->memory_free_share));
}

EACH_TEST(setup, NULL)
