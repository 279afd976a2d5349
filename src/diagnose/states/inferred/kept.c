#include "diagnose/states/inferred/kept.h"

#include "base/error.h"

#include <stdlib.h>

#define BLOCK 16384
#define MOST (1u << 22) /* 256 MB: a run of more is read again */

void hec_kept_free(struct hec_kept *k) {
    for (size_t i = 0; i < k->block_count; i++)
        free(k->blocks[i]);
    free(k->blocks);
    *k = (struct hec_kept){.cut = k->cut};
}

static int add(struct hec_kept *k, const struct hec_activity *a) {
    if (k->count == k->block_count * BLOCK) {
        struct hec_activity **grown = realloc(k->blocks, (k->block_count + 1) * sizeof(struct hec_activity *));
        if (!grown)
            return HEC_ERR_NOMEM;
        k->blocks = grown;
        if (!(k->blocks[k->block_count] = malloc(BLOCK * sizeof *a)))
            return HEC_ERR_NOMEM;
        k->block_count++;
    }
    k->blocks[k->count / BLOCK][k->count % BLOCK] = *a;
    k->count++;
    return 0;
}

int hec_kept_add(struct hec_kept *k, uint32_t kinds, const struct hec_activity *a, size_t count) {
    int err = 0;
    for (size_t i = 0; i < count && !k->cut && !err; i++) {
        if (!(kinds & HEC_ACTIVITY_BIT(a[i].kind)))
            continue;
        k->cut = k->count == MOST;
        if (k->cut)
            hec_kept_free(k);
        else
            err = add(k, &a[i]);
    }
    return err;
}

int hec_kept_visit(const struct hec_kept *k,
                   int (*visit)(void *to, const struct hec_activity *activities, size_t count), void *to) {
    int err = 0;
    for (size_t done = 0; done < k->count && !err; done += BLOCK)
        err = visit(to, k->blocks[done / BLOCK], k->count - done < BLOCK ? k->count - done : BLOCK);
    return err;
}
