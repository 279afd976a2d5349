#include "observe/trace/map.h"

#include <stdlib.h>
#include <string.h>

void *hec_trace_resize(struct hec_trace_budget *budget, void *block, size_t old_size, size_t size) {
    if (size == 0) {
        free(block);
        budget->left += old_size;
        return NULL;
    }
    if (size > old_size && size - old_size > budget->left)
        return NULL;
    void *grown = realloc(block, size);
    if (grown)
        budget->left = budget->left + old_size - size;
    return grown;
}

static struct hec_trace_map_slot *place(struct hec_trace_map_slot *slots, uint32_t capacity, uint64_t key) {
    /* Fibonacci hashing; there is always a free slot, the table is at most half full */
    uint32_t at = (uint32_t)((key * UINT64_C(11400714819323198485)) >> 32) & (capacity - 1);
    while (slots[at].used && slots[at].key != key)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

bool hec_trace_map_get(const struct hec_trace_map *map, uint64_t key, uint32_t *value) {
    if (map->count == 0)
        return false;
    const struct hec_trace_map_slot *slot = place(map->slots, map->capacity, key);
    *value = slot->value;
    return slot->used != 0;
}

static bool grow(struct hec_trace_map *map, struct hec_trace_budget *budget) {
    uint32_t capacity = map->capacity ? map->capacity * 2 : 64;
    struct hec_trace_map_slot *slots = hec_trace_resize(budget, NULL, 0, capacity * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0, capacity * sizeof *slots);
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->slots[i].used)
            *place(slots, capacity, map->slots[i].key) = map->slots[i];
    hec_trace_resize(budget, map->slots, map->capacity * sizeof *slots, 0);
    map->slots = slots;
    map->capacity = capacity;
    return true;
}

bool hec_trace_map_put(struct hec_trace_map *map, struct hec_trace_budget *budget, uint64_t key, uint32_t value) {
    if ((map->count + 1) * 2 > map->capacity && !grow(map, budget))
        return false;
    struct hec_trace_map_slot *slot = place(map->slots, map->capacity, key);
    map->count += !slot->used;
    *slot = (struct hec_trace_map_slot){key, value, 1};
    return true;
}

void hec_trace_map_free(struct hec_trace_map *map, struct hec_trace_budget *budget) {
    hec_trace_resize(budget, map->slots, map->capacity * sizeof *map->slots, 0);
    memset(map, 0, sizeof *map);
}
