/* Names of kernels for people, and which of them communicate. */
#include "diagnose/timeline/kernel_class.h"
#include "diagnose/timeline/device.h"
#include "unit.h"

TEST(mangled) {
    static const char *const rows[][2] = {
        {"_Z5saxpyifPfS_", "saxpy"},
        {"_ZN2at6native12_GLOBAL__N_16kernelIfLi4EEEvPT_i", "at::native::(anonymous namespace)::kernel<float, 4>"},
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_6detail5ArrayIPcLi1EEEEEviT0_T1_",
         "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1>>"},
        {"_ZN2at6native27unrolled_elementwise_kernelIZZZNS0_23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE0_"
         "clEvENKUlvE5_clEvEUlfE_NS_6detail5ArrayIPcLi2EEELi4E23TrivialOffsetCalculatorILi1EjESC_NS0_6memory12LoadWith"
         "CastILi1EEENSD_13StoreWithCastILi1EEEEEviT_T0_T2_T3_T4_T5_",
         "at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda::{lambda#2}::operator()::"
         "{lambda#7}::operator()::{lambda#1}, at::detail::Array<char*, 2>, 4, TrivialOffsetCalculator<1, unsigned int>, "
         "TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, "
         "at::native::memory::StoreWithCast<1>>"},
        {"_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_functorIfffEclERNS_14"
         "TensorIteratorEEUlffE_EEjfLi4EEEEEvT1_",
         "at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
         "at::native::sum_functor<float, float, float>::operator()::{lambda#1}>, unsigned int, float, 4>>"},
        {"_Z1fIJifEEvv", "f<int, float>"},
        {"_Z1fILb1ELb0ELin3EEvv", "f<true, false, -3>"},
        {"_Z1fIL1E2EEvv", "f<(E)2>"},
        {"_Z1fIL_Z1gvEEvv", "f<g>"},
        {"_Z1fIPKcRiOfEvv", "f<char const*, int&, float&&>"},
        {"_Z1fIPFviEEvv", "f<void (int)*>"},
        {"_Z1fIA4_iEvv", "f<int [4]>"},
        {"_ZNSt6vectorIiE4pushEv", "std::vector<int>::push"},
        {"_ZN1AC2Ev", "A::A"},
        {"_ZN1AD1Ev", "A::~A"},
        {"_ZN3foo3barIXT_EEEvv", "foo::bar<...>"}, /* an expression */
        /* not mangled, or not as the ABI says */
        {"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
        {"void at::native::kernel<float>(float*)", "void at::native::kernel<float>(float*)"},
        {"_Z", "_Z"},
        {"_ZN", "_ZN"},
        {"_Z99saxpy", "_Z99saxpy"},
        {"_Z99999999999999999999999saxpy", "_Z99999999999999999999999saxpy"},
        {"_ZS_", "_ZS_"},
        {"", ""},
    };
    char out[512];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hec_kernel_readable(rows[i][0], out, sizeof out);
        assert_string_equal(out, rows[i][1]);
    }
    hec_kernel_readable("_ZN2at6native6kernelIfEEvPT_", out, 10);
    assert_string_equal(out, "at::nativ");
}

/* The names of the simulated GPU are names that a compiler could have made. */
TEST(simulated) {
    static const char *const names[] = {
#define SIM_PACE(activity, device_ns, host_ns)
#define SIM_KERNEL(activity, part, ns, grid, block, registers, shared, name) name,
#include "sim/kernels.def"
#undef SIM_KERNEL
#undef SIM_PACE
    };
    char out[2048];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hec_kernel_readable(names[i], out, sizeof out);
        bool mangled_name = strncmp(names[i], "_Z", 2) == 0;
        if (mangled_name == (strcmp(out, names[i]) == 0) || strstr(out, "<...>") || strstr(out, "operator!"))
            fail_msg("%s is read as %s", names[i], out);
    }
}

/* Whatever comes in, something comes out: every prefix, and every byte changed, of a long name; deep and exponential ones. */
TEST(hostile) {
    static const char name[] =
        "_ZN2at6native27unrolled_elementwise_kernelIZZZNS0_23direct_copy_kernel_cudaERNS_18Tensor"
        "IteratorBaseEENKUlvE0_clEvENKUlvE5_clEvEUlfE_NS_6detail5ArrayIPcLi2EEELi4E23TrivialOf"
        "fsetCalculatorILi1EjESC_NS0_6memory12LoadWithCastILi1EEENSD_13StoreWithCastILi1EEEEEviT_";
    static const char letters[] = "IJEZNSTKPRXLULD_0129aceilmnop";
    char copy[sizeof name], out[512], deep[4096];
    for (size_t i = 0; i < sizeof name - 1; i++) {
        memcpy(copy, name, sizeof name);
        copy[i] = '\0';
        hec_kernel_readable(copy, out, sizeof out);
        for (size_t k = 0; k < sizeof letters - 1; k++) {
            copy[i] = letters[k];
            hec_kernel_readable(copy, out, sizeof out);
            assert_true(strlen(out) < sizeof out);
        }
    }
    for (size_t k = 0; k < sizeof letters - 1; k++) {
        memset(deep, letters[k], sizeof deep - 1);
        memcpy(deep, "_Z1fI", 5);
        deep[sizeof deep - 1] = '\0';
        hec_kernel_readable(deep, out, sizeof out);
    }
    strcpy(deep, "_Z1fI1aI"); /* each argument is twice the one before */
    for (int i = 0; i < 30; i++)
        strcat(deep, "1bIS_S_E");
    hec_kernel_readable(deep, out, sizeof out);
}

TEST(communication) {
    static const char *const yes[] = {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                                      "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
                                      "void ncclKernel_x(int)",
                                      "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"};
    static const char *const no[] = {"sgemm", "", "_Z", "_Znccl", "void my_nccl_like(int)", "_Z6mynccli"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        assert_int_equal(hec_kernel_class_of(yes[i]), HEC_KERNEL_CLASS_COMM);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        assert_int_not_equal(hec_kernel_class_of(no[i]), HEC_KERNEL_CLASS_COMM);
}
