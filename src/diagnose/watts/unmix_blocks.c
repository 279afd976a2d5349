#include "diagnose/watts/unmix_blocks.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

int hec_gram_init(struct hec_gram *gram, int columns) {
    *gram = (struct hec_gram){.columns = columns, .packed = columns * (columns + 1) / 2};
    gram->block = calloc((size_t)gram->packed * HEC_BLOCKS_MAX, sizeof *gram->block);
    return gram->block ? 0 : HEC_ERR_NOMEM;
}

void hec_gram_free(struct hec_gram *gram) {
    free(gram->block);
}

void hec_gram_add(struct hec_gram *gram, int block, const double *row, double weight, double seconds) {
    double *to = gram->block + (size_t)block * (size_t)gram->packed;
    int n = gram->columns;
    for (int i = 0; i < n; to += n - i, i++) {
        double x = row[i] * weight;
        if (x == 0)
            continue;
        for (int j = i; j < n; j++)
            to[j - i] += x * row[j];
    }
    gram->count[block]++;
    gram->weight[block] += weight;
    gram->seconds += seconds;
    for (int i = 0; i < gram->classes; i++)
        gram->seen_s[i] += seconds * row[i];
}

void hec_gram_time(struct hec_gram *gram, int classes, const double *from, const double *to, double weight,
                   double seconds) {
    double scale = weight * ((double)HEC_TIMING_NS * 1e-9 / seconds) * ((double)HEC_TIMING_NS * 1e-9 / seconds);
    for (int i = 0; i < classes; i++)
        for (int j = 0; j < classes; j++)
            gram->timing[i * HEC_GRAM_CLASSES + j] += scale * (from[i] * from[j] + to[i] * to[j]);
}

void hec_gram_halve(struct hec_gram *gram) {
    size_t packed = (size_t)gram->packed;
    for (int i = 0; i < HEC_BLOCKS_MAX; i++) {
        int to = i / 2;
        double *target = gram->block + (size_t)to * packed, *source = gram->block + (size_t)i * packed;
        if (i % 2) {
            for (size_t k = 0; k < packed; k++)
                target[k] += source[k];
            gram->count[to] += gram->count[i];
            gram->weight[to] += gram->weight[i];
        } else if (i) {
            memcpy(target, source, packed * sizeof *target);
            gram->count[to] = gram->count[i];
            gram->weight[to] = gram->weight[i];
        }
    }
    memset(gram->block + HEC_BLOCKS_MAX / 2 * packed, 0, HEC_BLOCKS_MAX / 2 * packed * sizeof *gram->block);
    for (int i = HEC_BLOCKS_MAX / 2; i < HEC_BLOCKS_MAX; i++) {
        gram->count[i] = 0;
        gram->weight[i] = 0;
    }
}
