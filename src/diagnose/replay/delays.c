#include "diagnose/replay/delays.h"

#include <math.h>
#include <stdlib.h>

#define LEAST 16u /* calls of a shape */

int hec_delays_begin(struct hec_delays *sample) {
    *sample = (struct hec_delays){.list = malloc(HEC_CALL_SHAPES * HEC_DELAYS_KEPT * sizeof *sample->list)};
    return sample->list ? HEC_OK : HEC_ERR_NOMEM;
}

void hec_delays_free(struct hec_delays *sample) {
    free(sample->list);
    *sample = (struct hec_delays){0};
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t hec_delays_mean(struct hec_delays *sample, int shape, size_t cut, int64_t otherwise) {
    size_t count = sample->count[shape];
    int64_t *list = sample->list + shape * HEC_DELAYS_KEPT;
    sample->count[shape] = 0;
    if (count < LEAST)
        return otherwise;
    qsort(list, count, sizeof *list, ascending);
    double sum = 0, n = 0;
    for (size_t i = count / cut; i < count - count / cut; i++, n++)
        sum += (double)list[i];
    return llround(sum / n);
}
