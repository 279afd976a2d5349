/* Data: the device waits while the program fetches its next input. */
#include "diagnose/rules/waits.h"

#include <math.h>

/* Loader workers that would keep up, in all; NAN unknown. data_s: that a step waits for its input; rest_s: the rest of it.
 * Without workers it is made in data_s. n of them deliver one a step, so that each takes n steps for it. */
static double workers_needed(int have, double data_s, double rest_s) {
    double takes_s = have > 0 ? have * (data_s + rest_s) : data_s;
    return have >= 0 && data_s > 0 && rest_s > 0 ? fmin(HEC_DATA_MOST_WORKERS, ceil(takes_s / rest_s)) : NAN;
}

/* The workers that are needed, and whether the host has the cores for them. */
static void advise(const struct hec_facts *f, double data_s, double rest_s, struct hec_finding *out) {
    int have = f->summary->loader_workers;
    if (have >= 0)
        hec_finding_add(out, HEC_FACT(LOADER_WORKERS, have));
    double spare = hec_waits_report_cores(f, out);
    if (isnan(spare))
        return;
    double needed = workers_needed(have, data_s, rest_s), idle = floor(spare);
    if (spare < 1)
        out->lever = HEC_ANSWER(CHEAPER_INPUT);
    else if (isfinite(needed))
        out->lever = needed - have <= spare ? HEC_ANSWER(LOADER_WORKERS, needed, idle)
                                            : HEC_ANSWER(LOADER_ALL_CORES, have + idle, idle, needed);
}

static bool judge_phases(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_step_summary *steps = f->steps;
    double steps_s = (double)steps->count * steps->duration.mean, share = steps->data_s / steps_s;
    if (steps->count < 1 || !(share >= HEC_DATA_LEAST_TELEMETRY) || hec_use_full(&f->device->readings))
        return false;
    out->title = HEC_FACT(WAIT_SHARE, share, true);
    hec_finding_add(out, HEC_FACT(LOADER_TIME, steps->data_s, steps_s));
    advise(f, steps->data_s / (double)steps->count, (steps_s - steps->data_s) / (double)steps->count, out);
    out->confidence = hec_use_waits(&f->device->readings) ? HEC_USE_CONFIDENCE : HEC_TELEMETRY_CONFIDENCE;
    hec_waits_save_seconds(f, steps->data_s, HEC_DATA_PHASES_GO_LOW, HEC_DATA_PHASES_GO, 1, out);
    return true;
}

bool hec_judge_data(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_step_summary *steps = f->steps;
    struct hec_waits w;
    if (!hec_waits_claim(f, HEC_DATA_LEAST, &w, out))
        return !w.known && judge_phases(f, out);
    double data_s = w.owned_s[HEC_CAUSE_DATA];
    if (w.work > 0 && steps->samples_per_step > 0 && w.per == HEC_PER_STEP) {
        double samples = steps->samples_per_step * w.work, without_s = fmax(w.whole_s - data_s, w.whole_s * 1e-3);
        hec_finding_add_of(out, steps->unit[0] ? steps->unit : "samples",
                           HEC_FACT(THROUGHPUT, samples / w.whole_s, samples / without_s));
    }
    advise(f, w.work > 0 ? data_s / w.work : NAN, w.work > 0 ? (w.whole_s - data_s) / w.work : NAN, out);
    return true;
}
