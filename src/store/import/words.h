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

/* An NVTX range that is a step: "ProfilerStep#7", "step 7", "Iteration_7", "iter: 7". */
bool hec_import_is_step(const char *name, size_t length);

/* The phase that a range or an operator of that name is: "data" for what PyTorch puts around a loader's next,
 * "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"; NULL: none. */
const char *hec_import_phase(const char *name, size_t length);
