/* CUDA's driver API, bound at run time: our own declarations, so that building needs no SDK. Every function of the table
 * returns 0 or one of NVIDIA's result codes; the functions of this header follow base/error.h. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct hec_cuda_context_opaque *hec_cuda_context;   /* CUcontext */
typedef struct hec_cuda_module_opaque *hec_cuda_module;     /* CUmodule */
typedef struct hec_cuda_function_opaque *hec_cuda_function; /* CUfunction */
typedef struct hec_cuda_stream_opaque *hec_cuda_stream;     /* CUstream; NULL: the null stream */
typedef struct hec_cuda_event_opaque *hec_cuda_event;       /* CUevent */

enum { /* constants of cuda.h */
       HEC_CUDA_SUCCESS = 0,
       HEC_CUDA_OUT_OF_MEMORY = 2,
       HEC_CUDA_NO_DEVICE = 100,
       HEC_CUDA_INVALID_PTX = 218,
       HEC_CUDA_UNSUPPORTED_PTX_VERSION = 222,
       HEC_CUDA_NO_BINARY_FOR_GPU = 209,

       HEC_CUDA_ATTRIBUTE_CLOCK_KHZ = 13,
       HEC_CUDA_ATTRIBUTE_SMS = 16,
       HEC_CUDA_ATTRIBUTE_L2_BYTES = 38,
       HEC_CUDA_ATTRIBUTE_MAJOR = 75,
       HEC_CUDA_ATTRIBUTE_MINOR = 76,
};

/* The bound library, a plain struct, so that a test can fill it by hand. */
struct hec_cuda {
#define HEC_CUDA_SYMBOL(member, arguments, newest, older) int(*member) arguments;
#include "driver/cuda_symbols.def"
#undef HEC_CUDA_SYMBOL
    void *library; /* NULL in a table filled by hand */
};

/* Load the library at path (NULL: libcuda.so.1 of the system) and bind it; calls no function of it.
 * HEC_ERR_NOTFOUND: no such library. HEC_ERR_UNSUPPORTED: it lacks a function. */
int hec_cuda_load(const char *path, struct hec_cuda *cuda, struct hec_why *why);
/* The library stays mapped: NVIDIA's does not survive being unloaded once it was initialised. */
void hec_cuda_unload(struct hec_cuda *cuda);

/* Fill why with "what: NVIDIA's sentence" and return the error. */
int hec_cuda_fail(const struct hec_cuda *cuda, int code, const char *what, struct hec_why *why);

/* The text NVML gives for the same 16 bytes: "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6". */
void hec_cuda_uuid_text(const unsigned char uuid[16], char text[48]);
