/* Calls of the host and what they caused on the device, by correlation id, in any order. What is kept of
 * a call is small, for nothing can be forgotten before the file ends: 24 bytes in a table that is 1/3 to 2/3 full. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_IMPORT_CALL_NS_MAX ((INT64_C(1) << 40) - 1) /* 18 minutes; calls that take longer are cut */

struct hec_import_call {
    uint64_t correlation; /* 0: a free place of the table */
    int64_t start_ns;
    uint64_t duration_ns : 40;
    uint64_t track : 17;
    uint64_t called : 1; /* the call was seen: the fields above hold */
    uint64_t caused : 1; /* something on the device was */
    uint64_t graph : 1;  /* it launched a graph, of which what it caused are the nodes */
};
_Static_assert(sizeof(struct hec_import_call) == 24, "there is one for every launch");

struct hec_import_join {
    struct hec_import_call *table;
    size_t size, used; /* size: a power of two */
};

/* The place of a correlation id (not 0), new ones with nothing known. NULL: out of memory. */
struct hec_import_call *hec_import_join_at(struct hec_import_join *join, uint64_t correlation);
const struct hec_import_call *hec_import_join_find(const struct hec_import_join *join, uint64_t correlation);
void hec_import_join_free(struct hec_import_join *join);
