/* What kind of work a kernel does, by its name: the names that cuBLAS, cuDNN, CUTLASS, PyTorch, Triton, XLA, flash
 * attention, NCCL and their ROCm counterparts give. A name is a hint, not a proof: it says which algorithm was chosen, not
 * what limited it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- names of kernels for people ---- */

/* The C++ name of a mangled one (Itanium C++ ABI), without the parameters of the function:
 * "_ZN2at6native12_GLOBAL__N_16kernelIfLi4EEEvPT_i" -> "at::native::(anonymous namespace)::kernel<float, 4>".
 * Any other text, and what this reader does not know, stays as it is. Cut at size - 1 bytes. */
void hec_kernel_readable(const char *name, char *out, size_t size);

enum hec_kernel_class {
#define HEC_KERNEL_CLASS(id, name) HEC_KERNEL_CLASS_##id,
#define HEC_KERNEL_PATTERN(id, pattern)
#define HEC_KERNEL_PRECISION(id)
#define HEC_KERNEL_PRECISION_PATTERN(id, pattern)
#include "diagnose/timeline/kernel_class.def"
    HEC_KERNEL_CLASS_COUNT
};

/* What the name says about the arithmetic; UNKNOWN is common and says nothing. */
enum hec_kernel_precision {
#define HEC_KERNEL_CLASS(id, name)
#define HEC_KERNEL_PATTERN(id, pattern)
#define HEC_KERNEL_PRECISION(id) HEC_KERNEL_PRECISION_##id,
#define HEC_KERNEL_PRECISION_PATTERN(id, pattern)
#include "diagnose/timeline/kernel_class.def"
    HEC_KERNEL_PRECISION_COUNT
};

/* Of a name as recorded, mangled or not. The case of letters does not matter. */
enum hec_kernel_class hec_kernel_class_of(const char *name);
enum hec_kernel_precision hec_kernel_precision_of(const char *name);
/* Part of a factorisation, a solver, an eigenvalue problem or an FFT: the products beside it are steps of that. */
bool hec_kernel_solves(const char *name);

const char *hec_kernel_class_name(enum hec_kernel_class kernel_class); /* "gemm"; "?" out of range */
