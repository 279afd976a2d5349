#include "diagnose/sorted.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT 11
#define BUCKETS (1u << DIGIT)

/* Least digit first, of what the keys differ in. */
int hec_sort_keys(struct hec_sorted *list, size_t count) {
    int64_t least = count ? list[0].key : 0, most = least;
    bool sorted = true;
    for (size_t i = 1; i < count; i++) {
        sorted = sorted && list[i].key >= list[i - 1].key;
        least = list[i].key < least ? list[i].key : least;
        most = list[i].key > most ? list[i].key : most;
    }
    if (sorted)
        return HEC_OK;
    struct hec_sorted *other = malloc(count * sizeof *other), *from = list, *to = other;
    if (!other)
        return HEC_ERR_NOMEM;
    uint64_t span = (uint64_t)most - (uint64_t)least;
    for (unsigned shift = 0; shift < 64 && span >> shift; shift += DIGIT) {
        size_t first[BUCKETS] = {0}, sum = 0;
        for (size_t i = 0; i < count; i++)
            first[((uint64_t)from[i].key - (uint64_t)least) >> shift & (BUCKETS - 1)]++;
        for (size_t b = 0; b < BUCKETS; b++) {
            size_t n = first[b];
            first[b] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++)
            to[first[((uint64_t)from[i].key - (uint64_t)least) >> shift & (BUCKETS - 1)]++] = from[i];
        struct hec_sorted *swap = from;
        from = to;
        to = swap;
    }
    if (from != list)
        memcpy(list, from, count * sizeof *list);
    free(other);
    return HEC_OK;
}
