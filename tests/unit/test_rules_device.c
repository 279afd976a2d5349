/* The rules about the device itself, on facts built by hand: they fire with the right numbers, and not just below their
 * thresholds. */
#include "rule_checks.h"

#include "diagnose/rules/findings.h"
#include "diagnose/rules/waits.h"

#define SGEMM "ampere_sgemm_128x64_nt"
#define BF16 "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT"
#define TF32 "cutlass_80_tensorop_s1688gemm_128x128_16x4_nt_align4"
#define GELU "at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl>"
#define RELU                                                                                                           \
    "at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, threshold_kernel_impl>>"
#define TO_NHWC "cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float>"
#define TO_NCHW "cudnn::engines_precompiled::nhwcToNchwKernel<float, float, float>"
#define CONV "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
#define NORM "at::native::batch_norm_backward_kernel<c10::BFloat16, c10::BFloat16, float, int>"
#define SOFTMAX "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, SoftMaxForwardEpilogue>"
#define LOG_SOFTMAX "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, LogSoftMaxForwardEpilogue>"

/* ---- precision ---- */

static void fp32(double share) {
    world_begin(1);
    world_kernel(0, SGEMM, share, 500);
    world_kernel(0, BF16, 1 - share, 500);
}

TEST(test_precision_fp32) {
    fp32(0.5);
    fires(HEC_CAUSE_PRECISION);
    /* TF32 is 494.5 / 67 at the peaks, three quarters of it reached; the run's compute is 80 % of its time. */
    near(w.finding.seconds.best, 0.8 * 0.5 * (1 - 67 / 494.5 / 0.75));
    near(w.finding.joules.best, 0.88 * 0.5 * (1 - 67 / 494.5 / 0.75)); /* 44 of 50 kJ are compute's */
    assert_false(w.finding.estimated);
    assert_true(w.finding.confidence > 0.8);
    assert_true(w.finding.states == 1u << HEC_STATE_COMPUTE);
    assert_true(shows(&w.finding, HEC_EVIDENCE_FP32_SHARE, 0.5));
    assert_true(answers(&w.finding, HEC_LEVER_TENSOR_CORES, 0));
    near(w.finding.seconds.high, 0.8 * 0.5 * (1 - 67 / 989.5)); /* bf16 */
    w.summary.steps.source = HEC_STEP_MODULE;                   /* inference: the same */
    saves(HEC_CAUSE_PRECISION, 0.8 * 0.5 * (1 - 67 / 494.5 / 0.75));
    fp32(0.09);
    silent(HEC_CAUSE_PRECISION);
}

/* A glimpse of 32 of 80 s of compute, all of it fp32: of a loop that is all, of a program without steps 40 %. */
TEST(test_precision_in_a_glimpse) {
    for (int steps = 0; steps <= 100; steps += 100) {
        fp32(1);
        w.of[0].rows[0].seconds = 32;
        w.of[0].rows[1].seconds = 0;
        w.of[0].ledger.basis = HEC_LEDGER_GLIMPSE;
        w.summary.steps.count = steps;
        fires(HEC_CAUSE_PRECISION);
        assert_true(shows(&w.finding, HEC_EVIDENCE_FP32_SHARE, steps ? 1 : 0.4));
    }
}

/* No kernel was seen: FP32 pipes that work and tensor pipes that do not are products only in a network. */
TEST(test_precision_unseen) {
    static const struct {
        enum hec_step_source steps;
        const char *module;
        double tensor, fp32;
        bool fires;
    } rows[] = {
        {HEC_STEP_OPTIMIZER, "", 0.01, 0.25, true},  {HEC_STEP_NONE, "UNet", 0.01, 0.25, true},
        {HEC_STEP_MODULE, "UNet", 0.01, 0.25, true}, {HEC_STEP_NONE, "", 0.01, 0.70, false}, /* n-body */
        {HEC_STEP_NONE, "UNet", 0.03, 0.25, false},  {HEC_STEP_NONE, "UNet", 0.01, 0.14, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world_begin(1);
        w.summary.steps.source = rows[i].steps;
        snprintf(w.summary.step_module, sizeof w.summary.step_module, "%s", rows[i].module);
        world_counters(0, 0.95, 0.3, rows[i].tensor, rows[i].fp32, 0.2);
        w.devices[0].timeline = NULL;
        if (!rows[i].fires) {
            silent(HEC_CAUSE_PRECISION);
            continue;
        }
        fires(HEC_CAUSE_PRECISION);
        assert_true(w.finding.confidence <= 0.5 && w.finding.joules.low <= 0);
        near(w.finding.seconds.best, 0.8 * 0.25 / 0.6 * (1 - 67 / 494.5 / 0.75));
    }
}

TEST(test_precision_conv_gains_less) {
    fp32(1);
    fires(HEC_CAUSE_PRECISION);
    double gemm = w.finding.seconds.best;
    world_begin(1);
    world_kernel(0, "cudnn::cnn::implicit_convolve_sgemm<float, float>", 1, 500);
    fires(HEC_CAUSE_PRECISION);
    assert_true(w.finding.seconds.best < 0.85 * gemm);
}

TEST(test_precision_unknown_names) {
    fp32(0.2);
    world_kernel(0, "cudnn::cnn::implicit_convolve<...>", 1, 500);
    fires(HEC_CAUSE_PRECISION);
    double before = w.finding.seconds.best;
    world_counters(0, 0.9, 0.3, 0.0, 0.7, 0.3);
    fires(HEC_CAUSE_PRECISION); /* tensor pipes are idle: these are fp32 as well */
    assert_true(w.finding.seconds.best > 1.5 * before);
    world_begin(1);
    world_kernel(0, "triton_mm", 1, 500); /* products by their name, in fp32 by the pipes */
    silent(HEC_CAUSE_PRECISION);
    world_counters(0, 0.95, 0.12, 0.0, 0.75, 0.06);
    fires(HEC_CAUSE_PRECISION);
    assert_true(w.finding.confidence <= 0.5);
    world_counters(0, 0.95, 0.12, 0.03, 0.75, 0.06);
    silent(HEC_CAUSE_PRECISION);
    world_counters(0, 0.95, 0.12, 0.0, 0.29, 0.06);
    silent(HEC_CAUSE_PRECISION);
}

/* Kernels that nobody saw: FP32 pipes of a network that is trained are busy with products; of anything else nobody knows. */
TEST(test_precision_of_unseen_training) {
    world_untraced();
    w.summary.steps.source = HEC_STEP_OPTIMIZER;
    world_counters(0, 0.79, 0.2, 0.0, 0.27, 0.37);
    fires(HEC_CAUSE_PRECISION);
    assert_true(w.finding.confidence <= 0.5 && answers(&w.finding, HEC_LEVER_TENSOR_CORES, 0));
    near(w.finding.seconds.best, 0.8 * 0.27 / 0.6 * (1 - 67 / 494.5 / 0.75));
    near(w.finding.seconds.low, 0);
    assert_true(shows(&w.finding, HEC_EVIDENCE_FP32_SHARE, 0.27 / 0.6) && shows(&w.finding, HEC_EVIDENCE_PIPES, 0));
    world_counters(0, 0.79, 0.2, 0.0, 0.14, 0.37);
    silent(HEC_CAUSE_PRECISION);
    world_counters(0, 0.79, 0.2, 0.03, 0.27, 0.37);
    silent(HEC_CAUSE_PRECISION);
    world_counters(0, 0.79, 0.2, 0.0, 0.27, 0.37);
    w.summary.steps.source = HEC_STEP_MARKED;
    silent(HEC_CAUSE_PRECISION);
}

TEST(test_precision_shapes) {
    world_kernel(0, "cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>", 0.5, 2061);
    world_kernel(0, BF16, 0.5, 500);
    fires(HEC_CAUSE_PRECISION);
    assert_true(answers(&w.finding, HEC_LEVER_PAD_SIZES, 8));
    near(w.finding.seconds.best, 0.8 * 0.5 * (1 - 1 / 4.5));
    world_begin(1);
    world_kernel(0, "cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_256x128_32x3_tn_align1>", 0.5, 324); /* TF32 */
    world_kernel(0, BF16, 0.5, 500);
    saves(HEC_CAUSE_PRECISION, 0.8 * 0.5 * (1 - 1 / 2.2));
    world_begin(1);
    world_kernel(0, "cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_tn_align16>", 1, 500);
    silent(HEC_CAUSE_PRECISION);
}

static double counted_step_s(void) {
    struct hec_waits waits;
    w.devices[0].calls = &w.of[0].calls;
    w.of[0].calls.steps = w.of[0].calls.traced_s = 1;
    hec_waits_gather(&w.facts, &waits);
    return waits.compute_s;
}

/* Kernels that nobody saw, of steps whose compute is known: products of odd rows by their shapes, a tenth of it if they were aligned. */
TEST(test_precision_of_unseen_shapes) {
    w.devices[0].timeline = NULL;
    silent(HEC_CAUSE_PRECISION);
    double flops = 0.1 * counted_step_s() * 0.65 * 989.5e12;
    w.summary.flops.all = 2 * flops;
    silent(HEC_CAUSE_PRECISION);
    w.summary.flops.odd[HEC_PRECISION_FP16] = flops;
    fires(HEC_CAUSE_PRECISION);
    assert_true(answers(&w.finding, HEC_LEVER_PAD_SIZES, 8) && shows(&w.finding, HEC_EVIDENCE_ODD_PRODUCTS, 0.5));
    near(w.finding.seconds.best, 0.8 * 0.1 * (4.5 - 1));
    assert_true(w.finding.confidence < HEC_PRECISION_ALIGNED_CONFIDENCE);
    w.summary.flops.odd[HEC_PRECISION_FP16] = 4 * flops; /* faster than misaligned ones: what they would save is less */
    fires(HEC_CAUSE_PRECISION);
    near(w.finding.seconds.best, 0.8 * (1 - 0.4));
    w.summary.flops.odd[HEC_PRECISION_FP16] = flops / 8;
    silent(HEC_CAUSE_PRECISION);
}

/* Autocast converts weights at each step: so many bytes for any number of rows. */
TEST(test_precision_converts_weights) {
    world_kernel(0, TF32, 0.6, 500);
    world_kernel(0, GELU, 0.4, 50);
    saves(HEC_CAUSE_PRECISION, 0.8 * 0.6 * 0.58);
    double step_s = counted_step_s();
    w.summary.flops.weights = 0.2 * step_s * 0.85 * 4800e9 / 6;
    saves(HEC_CAUSE_PRECISION, 0.8 * (0.6 * 0.58 - 0.2));
    assert_true(shows(&w.finding, HEC_EVIDENCE_WEIGHTS_CONVERTED, 0.2 * step_s));
    w.summary.flops.weights *= 2; /* it takes more than products gain */
    silent(HEC_CAUSE_PRECISION);
}

TEST(test_precision_tf32_is_a_choice) {
    world_kernel(0, TF32, 0.35, 500);
    world_kernel(0, GELU, 0.65, 50);
    fires(HEC_CAUSE_PRECISION);
    assert_true(w.finding.confidence < HEC_FINDING_SURE);
    near(w.finding.seconds.best, 0.8 * 0.35 * 0.58);
    near(w.finding.joules.best, 0.88 * 0.35 * 0.58); /* for as many watts */
    world_counters(0, 0.9, 0.2, 0.08, 0.01, 0.1);    /* of the products' time tensor pipes are busy for a quarter */
    fires(HEC_CAUSE_PRECISION);
    world_counters(0, 0.9, 0.2, 0.06, 0.01, 0.1); /* a recurrent network's, which wait for each other */
    silent(HEC_CAUSE_PRECISION);
    world_counters(0, 0.9, 0.2, 0.08, 0.01, 0.1);
    w.of[0].rows[0].seconds *= 0.7;
    silent(HEC_CAUSE_PRECISION);
    world_begin(1); /* attention in fp32 beside them has kernels for half precision */
    world_kernel(0, TF32, 0.35, 500);
    world_kernel(0, "fmha_cutlassB_f32_aligned_64x64_k64_sm80", 0.3, 500);
    world_kernel(0, GELU, 0.35, 50);
    saves(HEC_CAUSE_PRECISION, 0.8 * (0.35 * 0.58 + 0.3 * 0.88));
    world_begin(
        1); /* passes over what products give take less too, but for short ones, and those in half precision already */
    world_kernel(0, TF32, 0.35, 500);
    world_kernel(0, RELU, 0.3, 50);
    world_kernel(0, RELU, 0.1, 0.9 * HEC_MEMORY_LARGE_US);
    world_kernel(0, GELU, 0.25, 50);
    saves(HEC_CAUSE_PRECISION, 0.8 * (0.35 * 0.58 + 0.3 * HEC_PRECISION_TF32_GAIN_PASSES));
    near(w.finding.title.value[0], 0.35); /* of which it speaks */
}

/* Images in channels_last are changed to NCHW for fp32 convolutions: with TF32 that goes too, and no other layout is advised. In NCHW they
 * need no change, and TF32 brings some. */
TEST(test_precision_of_convolutions) {
    for (int last = 0; last < 2; last++) {
        world_begin(1);
        world_kernel(0, "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize256x64x8_stage3_ffma",
                     0.5, 100);
        if (last) {
            world_kernel(0, TO_NCHW, 0.14, 10);
            world_kernel(0, TO_NHWC, 0.07, 10);
        }
        world_kernel(0, GELU, last ? 0.29 : 0.5, 50);
        double convolutions = 0.5 * (1 - 67 / 494.5 / (last ? 0.47 : 0.35));
        saves(HEC_CAUSE_PRECISION, 0.8 * (convolutions + (last ? 0.95 * 0.21 : 0)));
        assert_true(shows(&w.finding, HEC_EVIDENCE_FP32_SHARE, 0.5));
        silent(HEC_CAUSE_LAYOUT);
    }
}

/* Of all rules about the device at most `none` fires. */
static void nothing_is_claimed(void) {
    for (int cause = HEC_CAUSE_PRECISION; cause < HEC_CAUSE_NONE; cause++)
        silent((enum hec_cause)cause);
}

/* fp32 arithmetic that no tensor core does: kernels of CUDA's samples and of cuFFT, with the counters that they show. */
TEST(test_precision_needs_products) {
    world_kernel(0,
                 "void integrateBodies<float>(vec4<float>::Type*, vec4<float>::Type*, vec4<float>::Type*, "
                 "unsigned int, unsigned int, float, float, int)",
                 1, 9000);
    world_counters(0, 0.98, 0.49, 0.0, 0.86, 0.01);
    nothing_is_claimed();
    fires(HEC_CAUSE_NONE);
    world_untraced();
    d->activity.to_s = 99;
    nothing_is_claimed();
    world_begin(1);
    world_kernel(0,
                 "void vector_fft<1024u, EPT<8u>, 32u, 64u, (padding_t)0, (twiddle_t)0, (loadstore_modifier_t)2, "
                 "(layout_t)0, unsigned int, float>(kernel_arguments_t<unsigned int>)",
                 0.5, 300);
    world_kernel(0,
                 "void regular_fft<512u, EPT<8u>, 1u, 1u, (padding_t)2, (twiddle_t)0, (loadstore_modifier_t)2, "
                 "(layout_t)1, unsigned int, float>(kernel_arguments_t<unsigned int>)",
                 0.3, 300);
    world_kernel(0, "radix2_fft_kernel(float2*, int, int)", 0.2, 300);
    world_counters(0, 0.96, 0.6, 0.0, 0.45, 0.55);
    nothing_is_claimed();
    fires(HEC_CAUSE_NONE);
}

/* A Gaussian process by Cholesky: what the products of a factorisation are for is lost in TF32 and in bf16. */
TEST(test_precision_of_a_solver) {
    for (int kind = 0; kind < 2; kind++) {
        world_begin(1);
        world_kernel(0, kind ? TF32 : SGEMM, 0.9, 900);
        world_kernel(0, "void potrf_alg2_cta_lower<float, float, 32>(int, int, float*, int, int*)", 0.03, 60);
        world_kernel(0, GELU, 0.07, 100);
        silent(HEC_CAUSE_PRECISION);
        fires(HEC_CAUSE_NONE);
        assert_true(shows(&w.finding, HEC_EVIDENCE_SOLVERS, 0.03));
        w.of[0].rows[1].seconds /= 3; /* a trace of it */
        fires(HEC_CAUSE_PRECISION);
        fires(HEC_CAUSE_NONE);
        assert_null(fact_of(&w.finding, HEC_EVIDENCE_SOLVERS));
    }
}

/* cuBLAS does fp64 products on the tensor cores of the parts that have them; others have none to offer. */
TEST(test_precision_fp64) {
    world_kernel(0,
                 "sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16_stage4_warpsize2x2x1_tensor8x8x4_"
                 "execute_kernel__5x_cublas",
                 0.6, 2000);
    world_kernel(0, "void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_128x64_16x3_nn_align1>(Params)", 0.4, 2000);
    world_counters(0, 0.98, 0.12, 0.9, 0.0, 0.1);
    nothing_is_claimed();
    fires(HEC_CAUSE_NONE);
    assert_true(shows(&w.finding, HEC_EVIDENCE_FP64_PRODUCTS, 1));
    world_begin(1);
    snprintf(d->device.name, sizeof d->device.name, "NVIDIA GeForce RTX 4090");
    world_kernel(0, "cutlass_80_simt_dgemm_128x64_8x3_nn_align1", 1, 2000);
    nothing_is_claimed();
}

/* fp16 from compute capability 7.0, TF32 and bf16 from 8.0; nothing where it is not known. */
TEST(test_precision_old_devices) {
    world_kernel(0, "maxwell_sgemm_128x64_nn", 1, 500);
    struct hec_device *device = &d->device;
    snprintf(device->name, sizeof device->name, "NVIDIA GeForce GTX 1080 Ti");
    device->cuda_major = 6;
    device->cuda_minor = 1;
    nothing_is_claimed();
    snprintf(device->name, sizeof device->name, "Tesla P100-PCIE-16GB");
    device->cuda_minor = 0;
    nothing_is_claimed();
    device->cuda_major = device->cuda_minor = -1; /* not recorded, and the part is not in the table */
    nothing_is_claimed();
    snprintf(device->name, sizeof device->name, "Tesla V100-SXM2-16GB");
    for (device->cuda_major = -1; device->cuda_major <= 7; device->cuda_major += 8) {
        saves(HEC_CAUSE_PRECISION, 0.8 * (1 - 15.7 / 125 / 0.75));
        assert_true(shows(&w.finding, HEC_EVIDENCE_PEAKS, 125 / 15.7));
        assert_true(isnan(fact_of(&w.finding, HEC_EVIDENCE_PEAKS)->value[1])); /* it has no TF32 */
        assert_true(answers(&w.finding, HEC_LEVER_FP16, 0));
    }
    snprintf(device->name, sizeof device->name, "AMD Radeon Graphics"); /* gfx90a: no compute capability */
    snprintf(device->vendor, sizeof device->vendor, "%s", hec_vendor_info(HEC_VENDOR_AMD)->name);
    device->cuda_major = 9;
    nothing_is_claimed();
}

/* ---- layout ---- */

static void images(double layout, double norm) {
    world_begin(1);
    world_kernel(0, TO_NHWC, layout, 100);
    world_kernel(0, NORM, norm, 1000);
    world_kernel(0, CONV, 1 - layout - norm, 200);
}

TEST(test_layout) {
    images(0.2, 0.5);
    saves(HEC_CAUSE_LAYOUT, 0.8 * (0.95 * 0.2 + 0.7 * 0.5));
    assert_true(w.finding.joules.best < w.finding.seconds.best * 0.88 / 0.8); /* what stays is denser */
    assert_true(answers(&w.finding, HEC_LEVER_CHANNELS_LAST, 0));
    images(0.045, 0.5);
    silent(HEC_CAUSE_LAYOUT);
    images(0.2, 0);
    saves(HEC_CAUSE_LAYOUT, 0.8 * 0.95 * 0.2);
    world_untraced();
    silent(HEC_CAUSE_LAYOUT);
}

/* PyTorch's group normalisation takes and gives NCHW: with one at each second convolution nothing is saved. */
TEST(test_layout_with_group_normalisation) {
    images(0.2, 0);
    world_kernel(0, "at::native::(anonymous namespace)::ComputeFusedParamsCUDAKernel<float>", 0.8 / 200 * 0.49, 1);
    fires(HEC_CAUSE_LAYOUT);
    images(0.2, 0);
    world_kernel(0, "at::native::(anonymous namespace)::ComputeFusedParamsCUDAKernel<float>", 0.8 / 200 * 0.51, 1);
    silent(HEC_CAUSE_LAYOUT);
}

TEST(test_layout_transposes) {
    world_kernel(0, TO_NHWC, 0.2, 100);
    world_kernel(0, BF16, 0.8, 500);
    fires(HEC_CAUSE_LAYOUT);
    assert_true(w.finding.confidence <= 0.5);
    assert_true(answers(&w.finding, HEC_LEVER_KEEP_ORDER, 0));
    w.of[0].rows[0].seconds /= 2;
    silent(HEC_CAUSE_LAYOUT);
}

/* ---- batch ---- */

static void underfilled(double sm, double tensor, double dram) {
    world_begin(1);
    world_counters(0, sm, 0.1, tensor, 0.01, dram);
    d->metric[HEC_GPU_MEM_USED].maximum = 10.0 * (1 << 30);
    world_kernel(0, BF16, 1, 12);
}

/* Gradients are as large for many samples; what stages send each other is of each sample. */
TEST(test_batch_of_ranks) {
    const enum hec_sharing sharing[] = {HEC_SHARING_DDP, HEC_SHARING_FSDP, HEC_SHARING_NONE};
    for (int i = 0; i < 3; i++) {
        underfilled(0.38, 0.38, 0.1);
        world_state(0, HEC_STATE_COMM, 10, 240);
        w.summary.job.size = 2;
        w.summary.sizes.sharing = sharing[i];
        fires(HEC_CAUSE_BATCH);
        near(w.finding.seconds.best, 0.8 * (1 - 0.38 / 0.95) + (i < 2 ? 0.1 * 3 / 4 : 0));
    }
}

TEST(test_batch_empty_sms) {
    underfilled(0.38, 0.38, 0.1);
    saves(HEC_CAUSE_BATCH, 0.8 * (1 - 0.38 / 0.95));
    assert_true(w.finding.confidence > 0.8);
    assert_true(w.finding.estimated);
    d->metric[HEC_GPU_MEM_USED].maximum = 120.0 * (1 << 30); /* no room */
    silent(HEC_CAUSE_BATCH);
    underfilled(0.51, 0.38, 0.1);
    silent(HEC_CAUSE_BATCH);
    underfilled(0.38, 0.38, 0.1);
    w.summary.steps.busy_share = 0.55; /* launching or waiting is the matter */
    silent(HEC_CAUSE_BATCH);
}

TEST(test_batch_same_work_keeps_its_joules) {
    underfilled(0.38, 0.38, 0.1);
    world_state(0, HEC_STATE_COMPUTE, 80, 240);
    fires(HEC_CAUSE_BATCH);
    double time = 0.38 / 0.95, stays = (120 * time + 120) / 240;
    near(w.finding.joules.best, 80 * 240 / RULE_WORLD_RUN_J * (1 - stays));
    underfilled(
        0.38, 0.02,
        0.1); /* products that read weights: four fifths of what they take is shared by four times the samples */
    world_state(0, HEC_STATE_COMPUTE, 80, 240);
    fires(HEC_CAUSE_BATCH);
    stays = (120 / 4.0 + (0.2 + 0.8 / 4) * 120) / 240;
    near(w.finding.joules.best, 80 * 240 / RULE_WORLD_RUN_J * (1 - stays));
    assert_true(w.finding.joules.best <= w.finding.joules.high);
    underfilled(0.38, 0.03, 0.1);
    world_state(0, HEC_STATE_COMPUTE, 80, 240);
    w.summary.steps.source = HEC_STEP_NONE;
    snprintf(w.summary.framework, sizeof w.summary.framework, "jax"); /* whose compiler leaves products alone */
    fires(HEC_CAUSE_BATCH);
    double own = 0.03 / 0.65;
    stays = (120 / 4.0 + (own + (1 - own) / 4) * 120) / 240;
    near(w.finding.joules.best, 80 * 240 / RULE_WORLD_RUN_J * (1 - stays));
}

/* What little products leave idle is not always reading weights: graph networks gather and scatter what belongs to each sample. */
TEST(test_batch_of_what_is_gathered) {
    underfilled(0.38, 0.02, 0.1);
    world_state(0, HEC_STATE_COMPUTE, 80, 240);
    fires(HEC_CAUSE_BATCH);
    double shared = w.finding.joules.best;
    d->metric[HEC_GPM_INTEGER_ACTIVE].mean = 0.8 * 0.09; /* the addresses of products */
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.8;
    fires(HEC_CAUSE_BATCH);
    near(w.finding.joules.best, shared);
    d->metric[HEC_GPM_INTEGER_ACTIVE].mean = 0.8 * 0.25;
    fires(HEC_CAUSE_BATCH);
    near(w.finding.joules.best, 80 * 240 / RULE_WORLD_RUN_J * (1 - (120 / 4.0 + 120) / 240));
}

/* Several factorisations at once are another algorithm: what this one leaves of the device tells nothing of it. */
TEST(test_batch_of_a_solver) {
    world_kernel(0, SGEMM, 0.9, 900);
    world_kernel(0, "void potrf_alg2_cta_lower<float, float, 32>(int, int, float*, int, int*)", 0.1, 60);
    world_counters(0, 0.13, 0.02, 0.0, 0.4, 0.05);
    silent(HEC_CAUSE_BATCH);
    w.of[0].rows[1].seconds = 0.01;
    fires(HEC_CAUSE_BATCH);
}

TEST(test_batch_rereads_weights) {
    underfilled(0.82, 0.09, 0.65);
    w.summary.steps.samples_per_step = 64;
    saves(HEC_CAUSE_BATCH, 0.8 * (1 - 1 / 4.0));
    assert_true(shows(&w.finding, HEC_EVIDENCE_BATCH_WEIGHTS, 0.09) && w.finding.lever.value[0] == 4);
    w.summary.steps.samples_per_step = 4096;
    silent(HEC_CAUSE_BATCH);
    underfilled(0.82, 0.31, 0.65);
    w.summary.steps.samples_per_step = 64;
    silent(HEC_CAUSE_BATCH);
}

/* Half of compute is an optimizer's, and ten sixteenths of the memory are free: as much for 16 / 6 of the samples. */
TEST(test_batch_shares_its_optimizer) {
    underfilled(0.82, 0.09, 0.65);
    d->metric[HEC_GPU_MEM_USED].maximum = 6 / 16.0 * 141 * (1 << 30);
    w.of[0].rows[0].seconds /= 2;
    world_kernel(0, "void at::native::multi_tensor_apply_kernel<SgdFunctor>", 0.5, 500);
    w.summary.steps.samples_per_step = 64;
    saves(HEC_CAUSE_BATCH, 0.8 * (1 - 6 / 16.0));
}

/* What is no product and fills the device grows with the batch; so do convolutions, which read pictures. */
TEST(test_batch_of_what_grows) {
    underfilled(0.82, 0.09, 0.65);
    w.summary.steps.samples_per_step = 64;
    w.of[0].watts.profile = (struct hec_class_profile){.sms = 132};
    w.devices[0].watts = &w.of[0].watts;
    w.of[0].rows[0].seconds *= 0.6;
    w.of[0].rows[0].grid[0] = w.of[0].rows[0].grid[1] = w.of[0].rows[0].grid[2] = 10;
    struct hec_kernel_row *k = world_kernel(0, "pytorch_flash::flash_fwd_kernel<bf16>", 0.4, 50);
    k->grid[0] = k->grid[1] = k->grid[2] = 10;
    saves(HEC_CAUSE_BATCH, 0.8 * 0.6 * (1 - 1 / 4.0));
    k->grid[0] = k->grid[1] = k->grid[2] = 4; /* 64 blocks */
    saves(HEC_CAUSE_BATCH, 0.8 * (1 - 1 / 4.0));
    w.of[0].rows[0].kernel_class = HEC_KERNEL_CLASS_CONV;
    hec_facts_gather(&w.summary, &w.devices[0], &w.facts);
    silent(HEC_CAUSE_BATCH);
}

TEST(test_batch_few_blocks) {
    struct hec_kernel_row *k = world_kernel(0, BF16, 1, 12);
    k->grid[0] = 8, k->grid[1] = 4, k->grid[2] = 1;
    w.of[0].watts.profile = (struct hec_class_profile){.sms = 132};
    w.devices[0].watts = &w.of[0].watts;
    fires(HEC_CAUSE_BATCH);
    assert_true(w.finding.confidence < 0.7);
    k->grid[1] = 16; /* 128 of 132: persistent */
    silent(HEC_CAUSE_BATCH);
}

TEST(test_batch_telemetry) {
    world_untraced();
    w.summary.steps.source = HEC_STEP_MARKED;
    world_counters(0, 0.13, 0.02, 0.02, 0.0, 0.0);
    fires(HEC_CAUSE_BATCH);
    assert_true(w.finding.confidence <= 0.5);
    w.summary.steps.source = HEC_STEP_NONE;
    silent(HEC_CAUSE_BATCH); /* no step says that it is many problems */
    w.summary.steps.source = HEC_STEP_MARKED;
    d->activity.engine = 0.31; /* a launch-bound loop */
    silent(HEC_CAUSE_BATCH);
    w.summary.steps.source = HEC_STEP_NONE;
    world_counters(0, 0.82, 0.3, 0.09, 0.012, 0.65);
    w.summary.steps.samples_per_step = 64;
    fires(HEC_CAUSE_BATCH);
    w.summary.steps.samples_per_step = NAN; /* nobody counted */
    fires(HEC_CAUSE_BATCH);
    w.summary.steps.samples_per_step = 64;
    world_counters(0, 0.82, 0.3, 0.07, 0.057, 0.77); /* unfused attention */
    silent(HEC_CAUSE_BATCH);
    world_counters(0, 0.82, 0.41, 0.09, 0.012, 0.65); /* element-wise kernels among the products */
    silent(HEC_CAUSE_BATCH);
    world_counters(0, 0.82, 0.49, 0.09, 0.005, 0.65); /* as many warps, that read alone */
    fires(HEC_CAUSE_BATCH);
}

/* What a larger batch saves of work that is no product, and was not seen, lies anywhere between nothing and all; and it may be one problem
 * that waits for itself, where no step says that it is many. */
TEST(test_batch_of_unseen_work) {
    world_untraced();
    world_counters(0, 0.19, 0.04, 0.0005, 0.05, 0.01);
    w.summary.steps.source = HEC_STEP_NONE;
    silent(HEC_CAUSE_BATCH);
    w.summary.steps.source = HEC_STEP_MARKED;
    fires(HEC_CAUSE_BATCH);
    near(w.finding.seconds.low, 0);
    double best = w.finding.seconds.best;
    assert_true(best > 0 && 2 * best <= w.finding.seconds.high);
    snprintf(w.summary.step_module, sizeof w.summary.step_module,
             "Block"); /* of a network, whose products read weights */
    fires(HEC_CAUSE_BATCH);
    assert_true(w.finding.seconds.low > 0 && w.finding.seconds.best > 1.9 * best);
    w.summary.step_module[0] = 0;
    world_counters(0, 0.19, 0.04, 0.05, 0.0, 0.01); /* products */
    fires(HEC_CAUSE_BATCH);
    assert_true(w.finding.seconds.low > 0 && w.finding.seconds.best > 1.9 * best);
    world_counters(0, 0.82, 0.3, 0.09, 0.012, 0.65); /* that read weights, beside whatever else reads memory */
    w.summary.steps.samples_per_step = 64;
    fires(HEC_CAUSE_BATCH);
    assert_true(w.finding.seconds.low == 0 && 2 * w.finding.seconds.best <= w.finding.seconds.high);
    w.summary.steps.source = HEC_STEP_NONE;
    w.summary.steps.samples_per_step = NAN;
    fires(HEC_CAUSE_BATCH);
    best = w.finding.seconds.best;
    snprintf(w.summary.framework, sizeof w.summary.framework, "jax"); /* its compiler fuses what is no product */
    fires(HEC_CAUSE_BATCH);
    near(w.finding.seconds.best / best, HEC_BATCH_FUSED_GAIN / HEC_BATCH_UNSEEN_GAIN);
}

TEST(test_batch_leaves_layout_alone) {
    images(0.2, 0.5);
    world_counters(0, 0.4, 0.2, 0.03, 0.01, 0.1);
    silent(HEC_CAUSE_BATCH);
}

/* ---- memory ---- */

static void chain(double share, double kernels, double mean_us) {
    world_begin(1);
    world_kernel(0, GELU, share, mean_us);
    world_kernel(0, BF16, 1 - share, 500);
    w.of[0].calls = (struct hec_call_facts){.chains = 100, .chain_s = 80 * share, .chain_mean = kernels};
    w.devices[0].calls = &w.of[0].calls;
}

TEST(test_memory_chain) {
    chain(0.5, 5, 100);
    world_counters(0, 0.97, 0.8, 0.0, 0.1, 0.9);
    saves(HEC_CAUSE_MEMORY, 0.8 * 0.5 * (1 - 1 / 5.0));
    near(w.finding.joules.best, 0.88 * 0.5 * (1 - 1 / 5.0));
    assert_true(answers(&w.finding, HEC_LEVER_FUSE, 0));
    near(w.finding.edit_value, 1 / 5.0); /* of the kernels, and of their launches */
    assert_true(w.finding.confidence > 0.85);
    world_counters(0, 0.97, 0.8, 0.5, 0.1, 0.3);
    fires(HEC_CAUSE_MEMORY);
    assert_true(w.finding.confidence <= 0.5); /* memory is not what limits */
    chain(0.5, 2.9, 100);
    silent(HEC_CAUSE_MEMORY);
    chain(0.5, 5, 4); /* bound by launching */
    silent(HEC_CAUSE_MEMORY);
    chain(0.5, 5, 100); /* half of those kernels are in no chain */
    w.of[0].calls.chain_s /= 2;
    saves(HEC_CAUSE_MEMORY, 0.8 * 0.25 * (1 - 1 / 5.0));
    near(w.finding.edit_value, 1 - (1 - 1 / 5.0) / 2);
    chain(0.12, 5, 100);
    silent(HEC_CAUSE_MEMORY);
    chain(0.5, NAN, 100);
    silent(HEC_CAUSE_MEMORY);
}

TEST(test_memory_chain_ends_with_a_step) {
    chain(1, 10000, 100);
    w.of[0].calls.steps = w.of[0].rows[0].count / 4;
    saves(HEC_CAUSE_MEMORY, 0.8 * (1 - 1 / 4.0));
    w.of[0].calls.steps = 0;
    saves(HEC_CAUSE_MEMORY, 0.8 * (1 - 1 / 10.0));
}

TEST(test_memory_without_calls) {
    chain(0.9, 5, 100);
    w.devices[0].calls = NULL;
    fires(HEC_CAUSE_MEMORY);
    assert_true(w.finding.confidence < 0.7);
    chain(0.3, 5, 100); /* as many products as passes */
    w.devices[0].calls = NULL;
    silent(HEC_CAUSE_MEMORY);
}

TEST(test_memory_attention) {
    world_kernel(0, SOFTMAX, 0.25, 600);
    world_kernel(0, GELU, 0.17, 450);
    world_kernel(0, BF16, 0.58, 500);
    fires(HEC_CAUSE_MEMORY);
    assert_true(answers(&w.finding, HEC_LEVER_FUSED_ATTENTION, 0));
    near(w.finding.seconds.best, 0.8 * (0.95 * 0.42 + 0.6 * 1.2 * 0.42));
    static const char *const softmax[] = {LOG_SOFTMAX, "softmax_warp_forward<float, float, float, 4, true, false>",
                                          "softmax_warp_forward<float, float, float, 4, false, true>"};
    for (int i = 0; i < 3; i++) {
        snprintf(w.of[0].rows[0].name, sizeof w.of[0].rows[0].name, "%s", softmax[i]);
        assert_int_equal(world_judge(0, HEC_CAUSE_MEMORY), i == 2); /* the others are of a loss */
    }
}

TEST(test_memory_telemetry) {
    world_untraced();
    silent(HEC_CAUSE_MEMORY);
    world_counters(0, 0.95, 0.7, 0.0, 0.05, 0.61);
    fires(HEC_CAUSE_MEMORY);
    assert_true(w.finding.confidence <= 0.5);
    near(w.finding.seconds.best, 0); /* a stencil goes no faster */
    assert_true(w.finding.lever.id == HEC_LEVER_TRACE_KERNELS);
    world_counters(0, 0.95, 0.49, 0.0, 0.05, 0.59);
    silent(HEC_CAUSE_MEMORY);
    world_counters(0, 0.81, 0.52, 0.08, 0.03, 0.51); /* beside products */
    fires(HEC_CAUSE_MEMORY);
    world_counters(0, 0.81, 0.52, 0.08, 0.03, 0.49);
    silent(HEC_CAUSE_MEMORY);
    world_counters(0, 0.95, 0.7, 0.11, 0.05, 0.61);
    silent(HEC_CAUSE_MEMORY);
}

/* ---- throttle ---- */

TEST(test_throttle_heat) {
    d->throttled_share[HEC_THROTTLE_THERMAL] = 0.5;
    d->metric[HEC_GPU_TEMPERATURE].maximum = 88;
    world_counters(0, 0.95, 0.3, 0.6, 0, 0.3);
    d->metric[HEC_GPU_SM_CLOCK] = (struct hec_stat){1500, 1386, 345, 1980, 100};
    saves(HEC_CAUSE_THROTTLE, 0.8 * 0.5 * 0.3);
    near(w.finding.joules.best, 0.88 * 0.35 * 0.5 * 0.3);
    assert_true(shows(&w.finding, HEC_EVIDENCE_THROTTLED, 0.5) && w.finding.title.value[1]); /* by heat */
    d->throttled_share[HEC_THROTTLE_THERMAL] = 0.04;
    silent(HEC_CAUSE_THROTTLE);
    d->throttled_share[HEC_THROTTLE_HARDWARE] = 0.06;
    fires(HEC_CAUSE_THROTTLE);
    assert_true(shows(&w.finding, HEC_EVIDENCE_THROTTLED, 0.06) && !w.finding.title.value[1]);
}

TEST(test_throttle_power) {
    d->throttled_share[HEC_THROTTLE_POWER] = 0.9;
    fires(HEC_CAUSE_THROTTLE);
    assert_true(w.finding.joules.best < 0.05 && w.finding.seconds.best < 0.05); /* normal: not worth acting on */
    assert_true(w.finding.estimated);
    d->throttled_share[HEC_THROTTLE_POWER] = 0.09;
    silent(HEC_CAUSE_THROTTLE);
}

TEST(test_throttle_lowered_limit) {
    d->throttled_share[HEC_THROTTLE_POWER] = 0.9;
    d->power_limit_w = 400;
    saves(HEC_CAUSE_THROTTLE, 0.8 * 0.9 * (1 - pow(400.0 / 700, 0.4)));
    assert_true(isnan(w.finding.joules.best)); /* either way */
    d->power_limit_w = 640;
    saves(HEC_CAUSE_THROTTLE, 0);
}

/* ---- none, and all together ---- */

TEST(test_none) {
    world_kernel(0, BF16, 0.94, 1500);
    world_kernel(0, GELU, 0.06, 100);
    world_counters(0, 0.97, 0.22, 0.7, 0.02, 0.2);
    d->throttled_share[HEC_THROTTLE_POWER] = 0.8; /* held at its limit, as it should be */
    fires(HEC_CAUSE_NONE);
    near(w.finding.joules.best, 0);
    silent(HEC_CAUSE_PRECISION);
    silent(HEC_CAUSE_LAYOUT);
    silent(HEC_CAUSE_BATCH);
    silent(HEC_CAUSE_MEMORY);
    silent(HEC_CAUSE_COMM);
    silent(HEC_CAUSE_STRAGGLER);
    w.summary.steps.busy_share = 0.69;
    silent(HEC_CAUSE_NONE);
    w.summary.steps.busy_share = NAN; /* no steps: 85 of 90 s in use */
    fires(HEC_CAUSE_NONE);
    w.of[0].timeline.compute_s = 0.7 * 85; /* the rest of its busy time it copies or communicates */
    silent(HEC_CAUSE_NONE);
}

TEST(test_none_telemetry) {
    world_untraced();
    world_counters(0, 0.97, 0.22, 0.7, 0.02, 0.2);
    silent(HEC_CAUSE_NONE);
    d->activity.readings = 500, d->activity.to_s = 90, d->activity.sm = 0.97;
    fires(HEC_CAUSE_NONE);
    assert_true(w.finding.confidence <= 0.5);
    d->metric[HEC_GPM_TENSOR_ACTIVE].mean = 0.19 * d->metric[HEC_GPM_GR_ACTIVE].mean;
    silent(HEC_CAUSE_NONE); /* busy, and with what is not known */
}

/* Calls alone say that the device has work, not what work; a whole graph says no more, and a moment of many little of the rest. */
TEST(test_none_by_what_was_seen) {
    w.of[0].steady.basis = HEC_LEDGER_CALLS;
    w.devices[0].timeline = NULL;
    silent(HEC_CAUSE_NONE);
    world_counters(0, 0.97, 0.22, 0.7, 0.02, 0.2);
    fires(HEC_CAUSE_NONE);
    world_begin(1);
    world_kernel(0, BF16, 0.4, 1500);
    world_kernel(0, "graph", 0.6, 1500)->kernel_class = HEC_KERNEL_CLASS_GRAPH;
    silent(HEC_CAUSE_NONE);
    world_begin(1);
    world_kernel(0, BF16, 0.4, 1500);
    w.summary.steps.count = 0;
    w.of[0].ledger.basis = w.of[0].steady.basis = HEC_LEDGER_GLIMPSE;
    silent(HEC_CAUSE_NONE);
    w.of[0].rows[0].seconds *= 1.5;
    fires(HEC_CAUSE_NONE);
}

TEST(test_nothing_known) {
    const enum hec_cause causes[] = {HEC_CAUSE_STRAGGLER, HEC_CAUSE_COMM,   HEC_CAUSE_PRECISION, HEC_CAUSE_LAYOUT,
                                     HEC_CAUSE_BATCH,     HEC_CAUSE_MEMORY, HEC_CAUSE_THROTTLE,  HEC_CAUSE_NONE};
    world_untraced();
    d->energy = (struct hec_energy){.joules = NAN, .idle_context_watts = NAN};
    d->power_w = (struct hec_stat){NAN, NAN, NAN, NAN, 0};
    d->power_limit_w = NAN;
    d->device.name[0] = '\0';
    d->device.memory_kib = 0;
    w.summary.joules = NAN;
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        silent(causes[i]);
}

/* What telemetry reads is of somebody else as well: rules that rest on it alone are silent, those of kernels say less. */
TEST(test_shared) {
    const enum hec_cause by_counters[] = {HEC_CAUSE_BATCH, HEC_CAUSE_MEMORY, HEC_CAUSE_NONE, HEC_CAUSE_PRECISION};
    const double shown[][5] = {
        {0.13, 0.02, 0.02, 0, 0}, {0.95, 0.7, 0, 0.05, 0.9}, {0.97, 0.22, 0.7, 0.02, 0.2}, {0.95, 0.3, 0, 0.75, 0.1}};
    for (int others = HEC_OTHERS_MAYBE; others <= HEC_OTHERS_BUSY; others++)
        for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
            const double *c = shown[i];
            world_begin(1);
            world_untraced();
            w.summary.steps.source = HEC_STEP_MARKED;
            world_counters(0, c[0], c[1], c[2], c[3], c[4]);
            d->activity.readings = 500, d->activity.to_s = 90, d->activity.sm = c[0];
            if (by_counters[i] != HEC_CAUSE_PRECISION) /* which no counters show alone */
                fires(by_counters[i]);
            d->others = (enum hec_others)others;
            for (size_t k = 0; k < sizeof by_counters / sizeof by_counters[0]; k++)
                silent(by_counters[k]);
        }
    /* kernels of few blocks are this program's, and so are products without tensor cores */
    fp32(1);
    world_counters(0, 0.95, 0.12, 0.0, 0.75, 0.06);
    fires(HEC_CAUSE_PRECISION);
    double sure = w.finding.confidence;
    d->others = HEC_OTHERS_BUSY;
    fires(HEC_CAUSE_PRECISION);
    assert_true(w.finding.confidence < sure);
    assert_true(w.finding.seconds.best > 0.3 && isnan(w.finding.joules.best));
    for (int i = 0; i < w.finding.evidence_count; i++)
        assert_true(w.finding.evidence[i].what != HEC_EVIDENCE_PIPES);
    /* seen throughout: kept busy, and by whom is another matter */
    world_begin(1);
    world_kernel(0, BF16, 1, 1500);
    fires(HEC_CAUSE_NONE);
    d->others = HEC_OTHERS_MAYBE;
    fires(HEC_CAUSE_NONE);
    d->others = HEC_OTHERS_BUSY;
    silent(HEC_CAUSE_NONE);
    /* heat and limits are the device's: reported, and no joules promised */
    d->throttled_share[HEC_THROTTLE_THERMAL] = 0.3;
    fires(HEC_CAUSE_THROTTLE);
    assert_true(isnan(w.finding.joules.best));
}

/* Kernels are known, and no energy: seconds are reported, joules are not. */
TEST(test_joules_unknown) {
    fp32(0.5);
    d->energy.valid = false;
    fires(HEC_CAUSE_PRECISION);
    assert_true(w.finding.seconds.best > 0.3);
    assert_true(isnan(w.finding.joules.low) && isnan(w.finding.joules.best) && isnan(w.finding.joules.high));
}

/* The ledger has no watts: idle time is charged at the watts of a context, compute has what is left. */
TEST(test_joules_not_unmixed) {
    fp32(1);
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        world_state(0, (enum hec_state)s, w.of[0].ledger.rows[s].seconds, NAN);
    fires(HEC_CAUSE_PRECISION);
    assert_true(w.finding.estimated);
    double compute_j = RULE_WORLD_RUN_J - 20 * 120;
    near(w.finding.joules.best, compute_j / RULE_WORLD_RUN_J * (1 - 67 / 494.5 / 0.75));
}

/* Windows of a duty-cycled trace lie in busy time: the engine's counter bounds what they are extrapolated to. */
TEST(test_duty_cycled) {
    fp32(1);
    w.of[0].ledger.windows = 3;
    world_counters(0, 0.9, 0.1, 0, 0.7, 0.1);
    d->metric[HEC_GPM_GR_ACTIVE].mean = 0.2;
    d->metric[HEC_GPM_FP32_ACTIVE].mean = 0.15;
    saves(HEC_CAUSE_PRECISION, 1.1 * 0.2 * (1 - 67 / 494.5 / 0.75));
    assert_true(w.finding.estimated);
}

EACH_TEST(before_each, NULL)
