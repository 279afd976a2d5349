/* CUPTI as far as the tracer uses it: own declarations, so that a build needs no SDK and one binary serves CUPTI 11.8 to
 * 13.x. Names and numbers are NVIDIA's; tests/abi compares them with NVIDIA's headers of each version. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* cuptiGetVersion: 18 for 11.8 to 12.1, 20 to 28 for 12.2 to 12.9, major * 10000 + minor * 100 + n from 13.0 on. */
#define HEC_CUPTI_VERSION_MIN 18u
#define HEC_CUPTI_VERSION_LIMIT 140000u /* of a major version that nobody has compared with records.def */

enum hec_cupti_result {
    HEC_CUPTI_SUCCESS = 0,
    HEC_CUPTI_OUT_OF_MEMORY = 8,
    HEC_CUPTI_MAX_LIMIT_REACHED = 12, /* no record is left in the buffer */
    HEC_CUPTI_NOT_COMPATIBLE = 14,    /* somebody uses the second version of the activity API */
    HEC_CUPTI_NOT_INITIALIZED = 15,   /* libcupti does not suit the driver */
    HEC_CUPTI_INVALID_KIND = 21,      /* a record is not complete yet */
    HEC_CUPTI_HARDWARE_BUSY = 26,
    HEC_CUPTI_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
};

enum hec_cupti_kind {
    HEC_CUPTI_MEMCPY = 1,
    HEC_CUPTI_MEMSET = 2,
    HEC_CUPTI_KERNEL = 3,
    HEC_CUPTI_CONCURRENT_KERNEL = 10,
    HEC_CUPTI_MEMCPY2 = 22, /* between devices */
    HEC_CUPTI_GRAPH_TRACE = 51,
};

/* Of memory, in copies and memsets. */
enum hec_cupti_memory {
    HEC_CUPTI_MEMORY_UNKNOWN,
    HEC_CUPTI_MEMORY_PAGEABLE,
    HEC_CUPTI_MEMORY_PINNED,
    HEC_CUPTI_MEMORY_DEVICE,
    HEC_CUPTI_MEMORY_ARRAY,
    HEC_CUPTI_MEMORY_MANAGED,
    HEC_CUPTI_MEMORY_DEVICE_STATIC,
    HEC_CUPTI_MEMORY_MANAGED_STATIC,
};

#define HEC_CUPTI_FLUSH_FORCED 1u

typedef void (*hec_cupti_requested)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*hec_cupti_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

struct hec_cupti {
#define CALL(name, needed, parameters) uint32_t(*name) parameters;
#include "tracer/cupti.def"
#undef CALL
};

/* hec_cupti_offset_kernel_start = 16, hec_cupti_bytes_kernel = 160, ... */
enum hec_cupti_layout {
#define FIELD(record, field, type, offset, theirs) hec_cupti_offset_##record##_##field = offset,
#define RECORD(record, theirs, bytes) hec_cupti_bytes_##record = bytes,
#include "tracer/records.def"
};
#define FIELD(record, field, type, offset, theirs) typedef type hec_cupti_type_##record##_##field;
#include "tracer/records.def"

/* The value of a field of the record at `bytes`. Records are 8-byte aligned, fields of old ones need not be. */
#define HEC_CUPTI_GET(bytes, record, field)                                                                            \
    (__extension__({                                                                                                   \
        hec_cupti_type_##record##_##field value_;                                                                      \
        memcpy(&value_, (const char *)(bytes) + hec_cupti_offset_##record##_##field, sizeof value_);                   \
        value_;                                                                                                        \
    }))
