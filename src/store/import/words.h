/* What names in profilers' files mean: tables, case and spelling. */
#pragma once

#include "model/trace.h"

#include <stdbool.h>
#include <stddef.h>

#define HEC_IMPORT_NO_KIND 255 /* nothing that HEC uses */

int hec_import_kind_of_category(const char *text, size_t length); /* enum hec_activity_kind, or HEC_IMPORT_NO_KIND */
enum hec_api_class hec_import_api_class(const char *name, size_t length);
enum hec_sync_type hec_import_sync_type(const char *text, size_t length); /* "Stream Wait Event" */

struct hec_import_direction {
    enum hec_memory_kind from, to;
    bool peer;
};

/* "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Host -> Device)", "Memset (Device)", "[CUDA memcpy HtoD]" */
struct hec_import_direction hec_import_direction(const char *name, size_t length);

/* Length of an API's name without the version that some tools append: "cudaLaunchKernel_v7000" is 16. */
size_t hec_import_api_length(const char *name, size_t length);

/* Bytes that a collective moves over the bus of each rank, as nccl-tests count them (PERFORMANCE.md there), by PyTorch's names of it and
 * of its elements. 0: not known. */
double hec_import_bus_bytes(const char *collective, const char *element, double elements_in, double elements_out,
                            double ranks);
int hec_import_element_bytes(const char *element);     /* 0: not known */
bool hec_import_ends_together(const char *collective); /* on all ranks at once: none ends before the last has begun */

/* What a range or an operator is by its name (range.def). */
enum hec_import_range {
    HEC_IMPORT_RANGE_OTHER,
    HEC_IMPORT_RANGE_PROFILER_STEP, /* the profiler's own count of steps */
    HEC_IMPORT_RANGE_STEP,          /* a step by the word of the program or a library */
    HEC_IMPORT_RANGE_DATA,          /* these are phases */
    HEC_IMPORT_RANGE_CHECKPOINT,
    HEC_IMPORT_RANGE_COMPILE,
};
enum hec_import_range hec_import_range_of(const char *name, size_t length);
const char *hec_import_phase(enum hec_import_range range); /* "data"; NULL: it is no phase */
