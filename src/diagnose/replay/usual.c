#include "diagnose/replay/usual.h"

#include <math.h>
#include <stdlib.h>

#define LEAST 16u /* calls of a shape */

int hec_usual_begin(struct hec_usual_sample *sample) {
    *sample = (struct hec_usual_sample){.list = malloc(HEC_CALL_SHAPES * HEC_USUAL_OF * sizeof *sample->list)};
    return sample->list ? HEC_OK : HEC_ERR_NOMEM;
}

void hec_usual_free(struct hec_usual_sample *sample) {
    free(sample->list);
    *sample = (struct hec_usual_sample){0};
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t hec_usual_mean(struct hec_usual_sample *sample, int shape, size_t cut, int64_t otherwise) {
    size_t count = sample->count[shape];
    int64_t *list = sample->list + shape * HEC_USUAL_OF;
    sample->count[shape] = 0;
    if (count < LEAST)
        return otherwise;
    qsort(list, count, sizeof *list, ascending);
    double sum = 0, n = 0;
    for (size_t i = count / cut; i < count - count / cut; i++, n++)
        sum += (double)list[i];
    return llround(sum / n);
}
