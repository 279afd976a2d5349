/* Inside src/diagnose: names of kernels for people. */
#ifndef HEC_DIAGNOSE_TIMELINE_KERNEL_NAME_H
#define HEC_DIAGNOSE_TIMELINE_KERNEL_NAME_H

#include <stddef.h>

/* The C++ name of a mangled one (Itanium C++ ABI), without the parameters of the function:
 * "_ZN2at6native12_GLOBAL__N_16kernelIfLi4EEEvPT_i" -> "at::native::(anonymous namespace)::kernel<float, 4>".
 * Any other text, and what this reader does not know, stays as it is. Cut at size - 1 bytes. */
void hec_kernel_readable(const char *name, char *out, size_t size);

#endif
