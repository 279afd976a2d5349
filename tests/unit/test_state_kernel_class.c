/* Names of kernels, as libraries give them, and the class and arithmetic that they tell. */
#include "diagnose/timeline/kernel_class.h"
#include "unit.h"

struct row {
    enum hec_kernel_class kernel_class;
    enum hec_kernel_precision precision;
    const char *name;
};
#define ROW(kernel_class, precision, name)                                                                             \
    { HEC_KERNEL_CLASS_##kernel_class, HEC_KERNEL_PRECISION_##precision, name }

static const struct row rows[] = {
    ROW(GEMM, TENSOR_HALF, "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT"),
    ROW(GEMM, TENSOR_HALF, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas"),
    ROW(GEMM, TENSOR_HALF, "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nt"),
    ROW(GEMM, TENSOR_TF32, "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_32x3_nt_align1>(Params)"),
    ROW(GEMM, TENSOR_HALF, "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn"),
    ROW(GEMM, SIMT_FP32, "ampere_sgemm_32x32_sliced1x4_tn"),
    ROW(GEMM, SIMT_FP32, "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)"),
    ROW(GEMM, FP64, "volta_dgemm_64x64_nn"),
    ROW(GEMM, TENSOR_FP64,
        "sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16_stage4_tensor8x8x4_execute_kernel__5x_cublas"),
    ROW(GEMM, TENSOR_FP64, "cutlass_80_tensorop_d884gemm_128x64_16x3_nn_align1"),
    ROW(OTHER, UNKNOWN, "void integrateBodies<float>(vec4<float>::Type*, float, int)"),
    ROW(OTHER, UNKNOWN, "void regular_fft<512u, EPT<8u>, 1u, 1u, (padding_t)2>(kernel_arguments_t<unsigned int>)"),
    ROW(GEMM, UNKNOWN, "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>"),
    ROW(GEMM, UNKNOWN, "triton_mm"),
    ROW(GEMM, UNKNOWN, "gemm_fusion_dot_3"),
    ROW(GEMM, TENSOR, "Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1_SN_LDSB0"),
    ROW(CONV, TENSOR_TF32,
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16"),
    ROW(CONV, SIMT_FP32, "cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1"),
    ROW(CONV, UNKNOWN, "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(Params)"),
    ROW(ATTENTION, TENSOR_HALF,
        "_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi64EEEEvNS_16Flash_fwd_paramsE"),
    ROW(ATTENTION, UNKNOWN, "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel)"),
    ROW(NORM, UNKNOWN,
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)"),
    ROW(NORM, UNKNOWN, "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(Params)"),
    ROW(NORM, UNKNOWN, "triton_red_fused_native_layer_norm_4"),
    ROW(SOFTMAX, UNKNOWN, "void (anonymous namespace)::softmax_warp_forward<float, float, float, 1, false, false>"),
    ROW(SOFTMAX, UNKNOWN, "triton_per_fused__softmax_2"),
    ROW(ELEMENTWISE, UNKNOWN, "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >"),
    ROW(ELEMENTWISE, UNKNOWN,
        "void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>"),
    ROW(ELEMENTWISE, UNKNOWN, "triton_poi_fused_convolution_relu_3"),
    ROW(ELEMENTWISE, UNKNOWN, "loop_add_fusion_12"),
    ROW(REDUCTION, UNKNOWN,
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float> > >"),
    ROW(REDUCTION, UNKNOWN, "input_reduce_fusion"),
    ROW(REDUCTION, UNKNOWN, "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>)"),
    ROW(LAYOUT, UNKNOWN, "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(Params)"),
    ROW(LAYOUT, UNKNOWN, "wrapped_transpose"),
    ROW(COPYING, UNKNOWN, "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_T1_"),
    ROW(COPYING, UNKNOWN,
        "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>"),
    ROW(EMBEDDING, UNKNOWN,
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, int, unsigned int, 1, 1, -2, true>"),
    ROW(OPTIMIZER, UNKNOWN,
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4> >"),
    ROW(RANDOM, UNKNOWN,
        "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>"),
    ROW(SCATTER, UNKNOWN,
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, float, int> >(int*)"),
    ROW(COMM, UNKNOWN, "_Z34ncclDevKernel_AllReduce_Sum_f32_RING_LLv"),
    ROW(COMM, UNKNOWN, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"),
    ROW(COMM, UNKNOWN, "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(RankData*)"),
    ROW(OTHER, UNKNOWN, "my_kernel"),
    ROW(OTHER, UNKNOWN, ""),
    ROW(OTHER, UNKNOWN, "_Z"),
};

TEST(names) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (hec_kernel_class_of(rows[i].name) != rows[i].kernel_class ||
            hec_kernel_precision_of(rows[i].name) != rows[i].precision)
            fail_msg("%s: %s, %d", rows[i].name, hec_kernel_class_name(hec_kernel_class_of(rows[i].name)),
                     hec_kernel_precision_of(rows[i].name));
    }
}

TEST(each_has_a_name) {
    for (int i = 0; i < HEC_KERNEL_CLASS_COUNT; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(hec_kernel_class_name(i), hec_kernel_class_name(k));
    assert_string_equal(hec_kernel_class_name(HEC_KERNEL_CLASS_COUNT), "?");
}

/* What stands beside the products of a factorisation, a solver or a transform; not the products, nor what only sounds like it. */
TEST(test_solvers) {
    static const struct {
        bool solves;
        const char *name;
    } solvers[] = {
        {true, "void getrf_pivot<float, float, 0, 5, 256, 64>(int, int, int, int, float*, int)"},
        {true, "void potrf_alg2_cta_lower<float, float, 32>(int, int, float*, int, int*)"},
        {true, "void trsm_ln_up_kernel<float, 32u, 32u, 4u, false>(int, int, float const*, int, float*, int)"},
        {true, "void larft_gen_phase1<float, 32>(int, float*)"},
        {true, "void lacpy_kernel<float, float>(int, int, float const*, int, float*, int)"},
        {true, "void dlaswp_kernel(int, double**, int)"},
        {true, "void batch_jacobi_kernel<float>(int, float*)"},
        {true, "_Z20magma_spotf2_batchedIfEviPT_"},
        {true, "void vector_fft<1024u, EPT<8u>, 32u, 64u, (padding_t)0>(kernel_arguments_t<unsigned int>)"},
        {true, "void spRadix0016B::kernel1Mem<unsigned int, float, (fftDirection_t)-1>(kernel_parameters_t)"},
        {false, "ampere_sgemm_128x64_nt"},
        {false, "magma_lds128_sgemm_kernel"},
        {false, "void fft2d_r2c_32x32<float, false, 0u, false>(float2*, float const*)"},
        {false, "void cub::DeviceRadixSortOnesweepKernel<int>(int*)"},
        {false, "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >"},
    };
    for (size_t i = 0; i < sizeof solvers / sizeof solvers[0]; i++)
        if (hec_kernel_solves(solvers[i].name) != solvers[i].solves)
            fail_msg("%s", solvers[i].name);
}
