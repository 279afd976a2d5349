/* Numbers with an index each, sorted: linear, for arrays of millions that are nearly in order. */
#ifndef HEC_DIAGNOSE_SORTED_H
#define HEC_DIAGNOSE_SORTED_H

#include <stddef.h>
#include <stdint.h>

struct hec_sorted {
    int64_t key;
    uint32_t at;
};

/* By key, equal ones as they came. 0 or HEC_ERR_NOMEM. */
int hec_sort_keys(struct hec_sorted *list, size_t count);

#endif
