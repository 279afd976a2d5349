#include "diagnose/replay/cadence.h"

#include "base/error.h"
#include "base/list.h"
#include "diagnose/meter/stat.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define LAUNCHES 16 /* whose time is one sample: a step may launch several graphs */
#define SAMPLES_LEAST 8
/* The quartiles of the samples, by their median, where launches are as far apart throughout; what recording takes comes and goes. */
#define EVEN 0.9
#define EVEN_RECORDED 0.75 /* and the median, by the mean: in a window nothing lacks that would make the mean longer */

int hec_cadence_add(struct hec_cadence *launches, int64_t begin_ns) {
    if (launches->count >= HEC_CADENCE_MOST)
        return HEC_OK;
    if (!hec_list_room(launches->begin_ns, launches->count, launches->capacity, 1024))
        return HEC_ERR_NOMEM;
    launches->begin_ns[launches->count++] = begin_ns;
    return HEC_OK;
}

/* *usual is NAN where it is not known. */
static int usual_ns(const struct hec_cadence *launches, bool recorded, double *usual) {
    size_t samples = launches->count > 0 ? (launches->count - 1) / LAUNCHES : 0;
    double even = recorded ? EVEN_RECORDED : EVEN, sum_ns = 0;
    *usual = NAN;
    if (samples < SAMPLES_LEAST)
        return HEC_OK;
    double *ns = malloc(samples * sizeof *ns);
    if (!ns)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < samples; i++) {
        ns[i] = (double)launches->begin_ns[(i + 1) * LAUNCHES] - (double)launches->begin_ns[i * LAUNCHES];
        sum_ns += ns[i];
    }
    hec_sort(ns, samples);
    double median = hec_sorted_quantile(ns, samples, 0.5);
    bool bursts = recorded && median < even * sum_ns / (double)samples;
    if (!bursts && median > 0 && hec_sorted_quantile(ns, samples, 0.25) >= even * median &&
        hec_sorted_quantile(ns, samples, 0.75) * even <= median)
        *usual = median;
    free(ns);
    return HEC_OK;
}

int hec_cadence_ratio(const struct hec_cadence *elsewhere, const struct hec_cadence *here, double *ratio) {
    double there_ns = NAN, here_ns = NAN;
    int err = usual_ns(elsewhere, false, &there_ns);
    if (!err)
        err = usual_ns(here, true, &here_ns);
    *ratio = there_ns / here_ns;
    return err;
}
