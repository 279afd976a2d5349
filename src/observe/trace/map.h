/* Small tables of the trace collector that grow with what a process sends, out of one budget of memory: what a
 * hostile process may cost. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hec_trace_budget {
    size_t left; /* bytes */
};

/* realloc within the budget; NULL when it is used up or memory is out (the old block stays). size 0 frees. */
void *hec_trace_resize(struct hec_trace_budget *budget, void *block, size_t old_size, size_t size);

/* Numbers by numbers; open addressing, nothing is ever taken out. */
struct hec_trace_map {
    struct hec_trace_map_slot {
        uint64_t key;
        uint32_t value;
        uint32_t used;
    } * slots;
    uint32_t count, capacity;
};

bool hec_trace_map_get(const struct hec_trace_map *map, uint64_t key, uint32_t *value);
/* false: no room, the map is as before. */
bool hec_trace_map_put(struct hec_trace_map *map, struct hec_trace_budget *budget, uint64_t key, uint32_t value);
void hec_trace_map_free(struct hec_trace_map *map, struct hec_trace_budget *budget);
