/* What kind of work a kernel does, by its name: the names that cuBLAS, cuDNN, CUTLASS, PyTorch, Triton, XLA, flash
 * attention, NCCL and their ROCm counterparts give. A name is a hint, not a proof: it says which algorithm was chosen, not
 * what limited it. */
#ifndef HEC_DIAGNOSE_TIMELINE_KERNEL_CLASS_H
#define HEC_DIAGNOSE_TIMELINE_KERNEL_CLASS_H

#include <stdint.h>

enum hec_kernel_class {
#define HEC_KERNEL_CLASS(id, name, meaning) HEC_KERNEL_CLASS_##id,
#define HEC_KERNEL_PATTERN(id, pattern)
#define HEC_KERNEL_PRECISION(id, name, meaning)
#define HEC_KERNEL_PRECISION_PATTERN(id, pattern)
#include "diagnose/timeline/kernel_class.def"
#undef HEC_KERNEL_CLASS
#undef HEC_KERNEL_PATTERN
#undef HEC_KERNEL_PRECISION
#undef HEC_KERNEL_PRECISION_PATTERN
    HEC_KERNEL_CLASS_COUNT
};

/* What the name says about the arithmetic; UNKNOWN is common and says nothing. */
enum hec_kernel_precision {
#define HEC_KERNEL_CLASS(id, name, meaning)
#define HEC_KERNEL_PATTERN(id, pattern)
#define HEC_KERNEL_PRECISION(id, name, meaning) HEC_KERNEL_PRECISION_##id,
#define HEC_KERNEL_PRECISION_PATTERN(id, pattern)
#include "diagnose/timeline/kernel_class.def"
#undef HEC_KERNEL_CLASS
#undef HEC_KERNEL_PATTERN
#undef HEC_KERNEL_PRECISION
#undef HEC_KERNEL_PRECISION_PATTERN
    HEC_KERNEL_PRECISION_COUNT
};

/* Of a name as recorded, mangled or not. The case of letters does not matter. */
enum hec_kernel_class hec_kernel_class_of(const char *name);
enum hec_kernel_precision hec_kernel_precision_of(const char *name);

const char *hec_kernel_class_name(enum hec_kernel_class kernel_class);             /* "gemm"; "?" out of range */
const char *hec_kernel_precision_name(enum hec_kernel_precision kernel_precision); /* "tf32" */

#endif
