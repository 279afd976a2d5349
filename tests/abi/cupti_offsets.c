/* Our layout of CUPTI's records against one version of NVIDIA's headers: compiled by check_cupti.py, which gives the name
 * of that version's struct for each record as HEC_THEIRS_<record>. Fails to compile where a row is wrong. */
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_result.h>

#include "tracer/cupti.h"

#define THEIRS(record) HEC_THEIRS_##record

#define FIELD(record, field, type, offset, theirs)                                                                     \
    _Static_assert(offsetof(THEIRS(record), theirs) == (offset), #record "." #theirs " lies elsewhere");               \
    _Static_assert(sizeof(((THEIRS(record) *)0)->theirs) == sizeof(type), #record "." #theirs " has another size");
#define RECORD(record, theirs, bytes)                                                                                  \
    _Static_assert(sizeof(THEIRS(record)) >= (bytes), #record " is shorter than what is read of it");
#include "tracer/records.def"

/* every field that is read lies within what is checked to be there */
#define FIELD(record, field, type, offset, theirs)                                                                     \
    _Static_assert((offset) + sizeof(type) <= hec_cupti_bytes_##record, #record "." #field " reaches over the end");
#include "tracer/records.def"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(HEC_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(HEC_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(HEC_CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(HEC_CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(HEC_CUPTI_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(HEC_CUPTI_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME(HEC_CUPTI_MEMORY_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME(HEC_CUPTI_MEMORY_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
SAME(HEC_CUPTI_MEMORY_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME(HEC_CUPTI_MEMORY_ARRAY, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
SAME(HEC_CUPTI_MEMORY_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
SAME(HEC_CUPTI_MEMORY_DEVICE_STATIC, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC);
SAME(HEC_CUPTI_MEMORY_MANAGED_STATIC, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
SAME(HEC_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(HEC_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(HEC_CUPTI_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
SAME(HEC_CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(HEC_CUPTI_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
SAME(HEC_CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(HEC_CUPTI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
SAME(HEC_CUPTI_HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY);
SAME(HEC_CUPTI_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

/* the types of the calls, as far as C compares them: the same number of parameters of the same sizes */
#define CALL(name, needed, parameters) HEC_HAS_##name(typedef uint32_t(*call_##name) parameters;)
#include "tracer/cupti.def"
#undef CALL
