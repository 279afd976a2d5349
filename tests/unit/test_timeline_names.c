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

/* Names that g++ 12 made, as c++filt -p reads them; but what is inside of a function is named without its parameters, numbers without their
 * types, and operators that no kernel is are left out. */
TEST(as_a_compiler_makes_them) {
    static const char *const rows[][2] = {
        {"_Z1kIJEEvDpT_", "k<>"},
        {"_Z1kIJPiS0_PS0_PKiEEvDpT_", "k<int*, int*, int**, int const*>"},
        {"_Z1kIJRKN1n1AES3_PS1_S4_EEvDpT_", "k<n::A const&, n::A const&, n::A*, n::A*>"},
        {"_Z1kIJifcN1n1AEEEvDpT_", "k<int, float, char, n::A>"},
        {"_Z1rI1WIS0_IiEEEvv", "r<W<W<int>>>"},
        {"_Z1rIA3_iEvv", "r<int [3]>"},
        {"_Z1rIDnEvv", "r<std::nullptr_t>"},
        {"_Z1rIDsEvv", "r<char16_t>"},
        {"_Z1rIFifEEvv", "r<int (float)>"},
        {"_Z1rIKiEvv", "r<int const>"},
        {"_Z1rIMN1n1AEiEvv", "r<int n::A::*>"},
        {"_Z1rIN1n1A1BEEvv", "r<n::A::B>"},
        {"_Z1rIN1n1EEEvv", "r<n::E>"},
        {"_Z1rIOiEvv", "r<int&&>"},
        {"_Z1rIPKPiEvv", "r<int* const*>"},
        {"_Z1rIPKcEvv", "r<char const*>"},
        {"_Z1rIPVKiEvv", "r<int const volatile*>"},
        {"_Z1rIRKN1n1AEEvv", "r<n::A const&>"},
        {"_Z1rIRVfEvv", "r<float volatile&>"},
        {"_Z1rIZ5outervE5LocalEvv", "r<outer::Local>"},
        {"_Z1rIZ5outervEUliE_Evv", "r<outer::{lambda#1}>"},
        {"_Z1rIaEvv", "r<signed char>"},
        {"_Z1rIbEvv", "r<bool>"},
        {"_Z1rIdEvv", "r<double>"},
        {"_Z1rIeEvv", "r<long double>"},
        {"_Z1rIhEvv", "r<unsigned char>"},
        {"_Z1rIjEvv", "r<unsigned int>"},
        {"_Z1rInEvv", "r<__int128>"},
        {"_Z1rIsEvv", "r<short>"},
        {"_Z1rItEvv", "r<unsigned short>"},
        {"_Z1rIwEvv", "r<wchar_t>"},
        {"_Z1rIxEvv", "r<long long>"},
        {"_Z1rIyEvv", "r<unsigned long long>"},
        {"_Z1vILi0ELb0ELm0ELc0ELN1n1EE0EEvv", "v<0, false, 0, 0, (n::E)0>"},
        {"_Z1vILin3ELb1ELm7ELc120ELN1n1EE5EEvv", "v<-3, true, 7, 120, (n::E)5>"},
        {"_Z2fpIXadL_Z5plainiEEEvv", "fp<...>"},
        {"_Z2ttI1WEvv", "tt<W>"},
        {"_ZN12_GLOBAL__N_13hidENS_6HiddenE", "(anonymous namespace)::hid"},
        {"_ZN1WIS_IfEE1gIN1n1AEEEvT_", "W<W<float>>::g<n::A>"},
        {"_ZN1WIiE1gIdEEvT_", "W<int>::g<double>"},
        {"_ZN1n1A1fEv", "n::A::f"},
        {"_ZN1n1AC1Ev", "n::A::A"},
        {"_ZN1n1AC2Ev", "n::A::A"},
        {"_ZN1n1AD1Ev", "n::A::~A"},
        {"_ZN1n1AD2Ev", "n::A::~A"},
        {"_ZN1n1AaSERKS0_", "n::A::operator="},
        {"_ZN1n1AcvT_IiEEv", "n::A<...>"},
        {"_ZN1n1AixEi", "n::A::operator[]"},
        {"_ZN1n1AlsEi", "n::A<...>"},
        {"_ZNK1n1A1cEv", "n::A::c"},
        {"_ZNK1n1AclEi", "n::A::operator()"},
        {"_ZNK1n1AeqERKS0_", "n::A::operator=="},
        {"_ZNK1n1AplERKS0_", "n::A::operator+"},
        {"_ZZ5outervEN5Local1mEv", "outer::Local::m"},
        {"_ZZ5outervENKUlT_E0_clIdEEDaS_", "outer::{lambda#2}::operator()<double>"},
        {"_ZZ5outervENKUliE_clEi", "outer::{lambda#1}::operator()"},
    };
    char out[512];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hec_kernel_readable(rows[i][0], out, sizeof out);
        if (strcmp(out, rows[i][1]) != 0)
            fail_msg("%s: %s", rows[i][0], out);
    }
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
