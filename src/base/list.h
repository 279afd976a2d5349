/* Lists that double, and the order of their numbers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for one more in `list`, a malloc'ed array of `count` (or NULL); capacity is a size_t. False: no memory, and nothing
 * has changed. */
#define hec_list_room(list, count, capacity, first)                                                                    \
    ((count) < (capacity) || hec_list_grow(&(list), sizeof *(list), &(capacity), (first)))

/* list: the address of the pointer to it. */
bool hec_list_grow(void *list, size_t size, size_t *capacity, size_t first);

/* For qsort and bsearch of int64_t: ascending. */
static inline int hec_by_int64(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
