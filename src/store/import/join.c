#include "store/import/join.h"

#include "base/hash.h"

#include <stdlib.h>

static size_t slot(const struct hec_import_join *join, uint64_t correlation) {
    size_t at = (size_t)hec_hash(&correlation, sizeof correlation) & (join->size - 1);
    while (join->table[at].correlation && join->table[at].correlation != correlation)
        at = (at + 1) & (join->size - 1);
    return at;
}

static bool grow(struct hec_import_join *join) {
    struct hec_import_join larger = {.size = join->size ? join->size * 2 : 1024};
    larger.table = calloc(larger.size, sizeof *larger.table);
    if (!larger.table)
        return false;
    for (size_t i = 0; i < join->size; i++)
        if (join->table[i].correlation)
            larger.table[slot(&larger, join->table[i].correlation)] = join->table[i];
    larger.used = join->used;
    free(join->table);
    *join = larger;
    return true;
}

struct hec_import_call *hec_import_join_at(struct hec_import_join *join, uint64_t correlation) {
    if (join->used >= join->size / 3 * 2 && !grow(join))
        return NULL;
    struct hec_import_call *call = &join->table[slot(join, correlation)];
    if (!call->correlation) {
        *call = (struct hec_import_call){.correlation = correlation};
        join->used++;
    }
    return call;
}

const struct hec_import_call *hec_import_join_find(const struct hec_import_join *join, uint64_t correlation) {
    if (!join->used || !correlation)
        return NULL;
    const struct hec_import_call *call = &join->table[slot(join, correlation)];
    return call->correlation ? call : NULL;
}

void hec_import_join_free(struct hec_import_join *join) {
    free(join->table);
    *join = (struct hec_import_join){0};
}
