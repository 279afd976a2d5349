/* Data: the device waits while the program fetches its next input. */
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST 0.05           /* of the steady part */
#define LEAST_TELEMETRY 0.10 /* of the steps, where nothing was traced */
#define MOST_WORKERS 64.0

static const struct hec_rule_limit limits[] = {
    {100 * LEAST, "%", "least share of the steady part in state data",
     "measured on an H200: starved loaders 92 to 96 %, with enough workers under 1 %"},
    {100 * LEAST_TELEMETRY, "%", "the same of the steps, where the device was not traced and may work meanwhile",
     "ours"},
    {MOST_WORKERS, "", "most loader workers that are asked for", "ours"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Load in processes of their own, into pinned memory, ahead of need.",
     "loader = DataLoader(dataset, batch_size=B, num_workers=N, pin_memory=True,\n"
     "                    persistent_workers=True, prefetch_factor=4)\n"
     "batch = batch.to(device, non_blocking=True)\n"},
    {"PyTorch",
     "Where all cores are busy already: decode once and store that, or do it on the device (DALI, "
     "torchvision.transforms.v2 on tensors of the device).",
     NULL},
    {"JAX", "Grain, or a thread that keeps two batches on the device ahead of need.",
     "loader = grain.DataLoader(data_source=source, sampler=sampler,\n"
     "                          worker_count=N, worker_buffer_size=2)\n"},
    {"TensorFlow", "Map in parallel and prefetch.",
     "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\n"
     "ds = ds.batch(B).prefetch(tf.data.AUTOTUNE)\n"},
};

/* Loader workers that would keep up, in all; NAN unknown. data_s: that a step waits for its input; rest_s: the rest of it.
 * Without workers it is made in data_s. n of them deliver one a step, so that each takes n steps for it. */
static double workers_needed(int have, double data_s, double rest_s) {
    double takes_s = have > 0 ? have * (data_s + rest_s) : data_s;
    return have >= 0 && data_s > 0 && rest_s > 0 ? fmin(MOST_WORKERS, ceil(takes_s / rest_s)) : NAN;
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
    if (steps->count < 1 || !(share >= LEAST_TELEMETRY) || hec_use_full(f->device))
        return false;
    out->title = HEC_FACT(WAIT_SHARE, share, true);
    hec_finding_add(out, HEC_FACT(LOADER_TIME, steps->data_s, steps_s));
    advise(f, steps->data_s / (double)steps->count, (steps_s - steps->data_s) / (double)steps->count, out);
    out->confidence = hec_use_waits(f->device) ? HEC_USE_CONFIDENCE : HEC_TELEMETRY_CONFIDENCE;
    hec_waits_save_seconds(f, steps->data_s, 0.4, 0.85, 1, out);
    return true;
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_step_summary *steps = f->steps;
    struct hec_waits w;
    if (!hec_waits_claim(f, LEAST, &w, out))
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

const struct hec_rule hec_rule_data = {
    .cause = HEC_CAUSE_DATA,
    .meaning =
        "Between two steps the program fetches its next input: reads, decodes, transforms, collates. Where that takes "
        "longer than the device needs for a step, the device waits for it, at idle power.",
    .detection =
        "time in which the device is idle and the program is in its loader (an iterator's next, or a phase called "
        "data). Without a trace, the loader's time alone, which the device may use.",
    .saving =
        "a loader that works ahead hides its time behind the device's; workers cost a start-up, and cores are finite.",
    .goes = {0.6, 0.9, 1},
    .confidence = 0.95,
    .lever = HEC_LEVER_LOAD_AHEAD,
    HEC_RULE_TABLES,
    .judge = judge,
};
