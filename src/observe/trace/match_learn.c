#include "observe/trace/match_learn.h"

#include <stddef.h>

#define PROBES 4u
#define TRUST_MAX 15u
#define NAME_ENOUGH 2u /* seen twice more often than contradicted */
#define STEP_ENOUGH 6u /* and where threads disturb each other: */
#define STEP_DOUBT 3u  /* seen at least three times as often */

static uint32_t place(uint64_t key, uint32_t size) {
    return (uint32_t)((key * UINT64_C(11400714819323198485)) >> 32) & (size - 1);
}

static const struct hec_match_fact *find(const struct hec_match_fact *facts, uint32_t size, uint64_t key) {
    uint32_t at = place(key, size);
    for (uint32_t i = 0; i < PROBES; i++)
        if (facts[(at + i) & (size - 1)].key == key)
            return &facts[(at + i) & (size - 1)];
    return NULL;
}

/* A contradiction weighs as `penalty` agreements. */
static void seen(struct hec_match_fact *facts, uint32_t size, uint64_t key, uint32_t value, uint32_t penalty) {
    uint32_t at = place(key, size);
    struct hec_match_fact *least = &facts[at];
    for (uint32_t i = 0; i < PROBES; i++) {
        struct hec_match_fact *fact = &facts[(at + i) & (size - 1)];
        if (fact->key == key) {
            if (fact->value == value)
                fact->trust += fact->trust < TRUST_MAX;
            else if (fact->trust > penalty)
                fact->trust -= penalty;
            else
                *fact = (struct hec_match_fact){key, value, 1};
            return;
        }
        if (fact->trust < least->trust)
            least = fact;
    }
    if (least->trust > 1) /* it goes if its turn comes again before it is seen */
        least->trust--;
    else
        *least = (struct hec_match_fact){key, value, 1};
}

enum hec_match_says hec_match_name_says(const struct hec_match_learned *learned, uint64_t func, uint32_t name) {
    if (func == 0 || name == 0)
        return HEC_MATCH_UNKNOWN;
    const struct hec_match_fact *fact = find(learned->names, HEC_MATCH_NAMES, func);
    if (!fact)
        return HEC_MATCH_UNKNOWN;
    if (fact->value == name)
        return HEC_MATCH_AGREE;
    return fact->trust >= NAME_ENOUGH ? HEC_MATCH_CONFLICT : HEC_MATCH_UNKNOWN;
}

void hec_match_name_seen(struct hec_match_learned *learned, uint64_t func, uint32_t name) {
    if (func && name)
        seen(learned->names, HEC_MATCH_NAMES, func, name, 1);
}

bool hec_match_step_get(const struct hec_match_learned *learned, uint64_t key, uint32_t *ids) {
    const struct hec_match_fact *fact = find(learned->steps, HEC_MATCH_STEPS, key);
    if (!fact || fact->trust < STEP_ENOUGH)
        return false;
    *ids = fact->value;
    return true;
}

void hec_match_step_seen(struct hec_match_learned *learned, uint64_t key, uint32_t ids) {
    seen(learned->steps, HEC_MATCH_STEPS, key, ids, STEP_DOUBT);
}
