#include "cli/sweep_trial.h"

#include "cli/receipt_fill.h"
#include "cli/trial_measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};

_Static_assert((int)HEC_SWEEP_BLOCKS_MOST >= (int)HEC_STEADY_BLOCKS_MAX, "blocks of a trial");

void hec_sweep_trial_failed(struct hec_sweep_trial *out) {
    *out = (struct hec_sweep_trial){
        .steady = unknown, .run = unknown, .step_p50 = NAN, .step_p99 = NAN, .memory_bytes = NAN, .memory_total = NAN};
}

/* Of the used device that had least left. */
static void find_memory(const struct hec_summary *s, struct hec_sweep_trial *out) {
    double least = INFINITY;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_summary *d = &s->devices[i].readings;
        double used = d->metric[HEC_GPU_MEM_USED].maximum, total = (double)d->device.memory_kib * 1024;
        if (!d->used)
            continue;
        out->devices++;
        if (used > 0 && total > 0 && 1 - used / total < least) { /* 0: read before the program began */
            least = 1 - used / total;
            out->memory_bytes = used;
            out->memory_total = total;
        }
    }
}

int hec_sweep_trial_measure(struct hec_trial_measure *measure, const struct hec_session *session,
                            const struct hec_session_result *result, struct hec_sweep_trial *out, struct hec_why *why) {
    struct hec_experiment_trial trial = {.steady = unknown, .run = unknown};
    struct hec_trial whole;
    int64_t steps;
    hec_sweep_trial_failed(out);
    int err = hec_trial_measure(measure, session, result, 0, &trial, &steps, why);
    if (err < 0)
        return err;
    const struct hec_summary *s = &measure->summary;
    hec_trial_of(s, out->block, &whole);
    out->block_count = whole.block_count;
    out->steady = trial.steady;
    out->run = trial.run;
    out->stopped = trial.stopped;
    out->step_p50 = s->blocks.step_p50;
    out->step_p99 = s->blocks.step_p99;
    out->steps_seen = s->blocks.whole.steps;
    find_memory(s, out);
    return HEC_OK;
}

void hec_sweep_trial_fill(struct hec_receipt *conditions, const struct hec_summary *run, bool first,
                          struct hec_sweep_trial *trial) {
    char before[sizeof conditions->unit];
    snprintf(before, sizeof before, "%s", conditions->unit);
    hec_receipt_fill_facts(conditions, run);
    if (first || strcmp(before, run->blocks.unit) == 0)
        return;
    conditions->unit[0] = '\0';
    trial->steady.units = NAN;
}
