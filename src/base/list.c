#include "base/list.h"

#include <stdlib.h>
#include <string.h>

bool hec_list_grow(void *list, size_t size, size_t *capacity, size_t first) {
    size_t larger = *capacity ? 2 * *capacity : first;
    void *items;
    memcpy(&items, list, sizeof items);
    items = realloc(items, larger * size);
    if (!items)
        return false;
    memcpy(list, &items, sizeof items);
    *capacity = larger;
    return true;
}
