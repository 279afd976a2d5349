/* Calls of the host and what they caused on the device, by correlation id, in whatever order they come. */
#ifndef HEC_STORE_IMPORT_JOIN_H
#define HEC_STORE_IMPORT_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hec_import_call {
    uint64_t correlation; /* 0: a free place of the table */
    int64_t start_ns, end_ns;
    double bytes; /* that the call says it copies, NAN unknown */
    uint32_t track;
    bool called; /* the call was seen: the fields above hold */
    bool caused; /* something on the device was */
};

struct hec_import_join {
    struct hec_import_call *table;
    size_t size, used; /* size: a power of two */
};

/* The place of a correlation id (not 0), new ones with nothing known. NULL: out of memory. */
struct hec_import_call *hec_import_join_at(struct hec_import_join *join, uint64_t correlation);
const struct hec_import_call *hec_import_join_find(const struct hec_import_join *join, uint64_t correlation);
void hec_import_join_free(struct hec_import_join *join);

#endif
