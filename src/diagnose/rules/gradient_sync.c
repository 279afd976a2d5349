/* Gradient sync: gradients are made the same in all ranks more often than the optimizer uses them. */
#include "diagnose/rules/facts.h"

#include <math.h>

bool hec_judge_gradient_sync(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_job_diagnosis *job = &f->summary->job;
    const struct hec_gradient_syncs *g = &job->gradients;
    const struct hec_ledger_device *steady = f->device->steady;
    double syncs = g->steps ? (double)g->syncs / (double)g->steps : 0;
    if (g->steps < HEC_GRADIENT_SYNC_STEPS || !(syncs >= HEC_GRADIENT_SYNC_LEAST) || !steady ||
        !steady->rows[HEC_STATE_COMM].ns)
        return false;
    double stays = hec_collectives_lost(&job->collectives, f->device->readings.device.index) /
                   steady->rows[HEC_STATE_COMM].seconds;
    double in_use = hec_ledger_work(steady) + steady->rows[HEC_STATE_COMM].seconds;
    double goes = (1 - 1 / syncs) * fmax(0, 1 - stays), share = steady->rows[HEC_STATE_COMM].seconds / in_use,
           of_run = share * in_use / f->run_s;
    out->title = HEC_FACT(SYNCS, syncs, goes * share);
    hec_finding_add(out, HEC_FACT(SYNC_PASSES, (double)g->passes / (double)g->steps, syncs));
    hec_finding_add(out, HEC_FACT(COMM_TIME, steady->rows[HEC_STATE_COMM].seconds, in_use));
    if (g->bytes > 0)
        hec_finding_add(out, HEC_FACT(SYNC_BYTES, g->bytes, syncs));
    out->confidence = HEC_GRADIENT_SYNC_CONFIDENCE;
    out->edit_value = 1 / syncs;
    out->seconds = hec_saving_scaled((struct hec_saving){of_run, of_run, of_run}, HEC_GRADIENT_SYNC_GOES_LOW * goes,
                                     HEC_GRADIENT_SYNC_GOES * goes, goes);
    const struct hec_ledger_row *row = &f->device->ledger->rows[HEC_STATE_COMM];
    double joules = isfinite(row->watts) && f->run_j > 0 ? row->joules / f->run_j : NAN;
    if (isfinite(joules))
        out->joules = hec_saving_scaled((struct hec_saving){joules, joules, joules}, HEC_GRADIENT_SYNC_GOES_LOW * goes,
                                        HEC_GRADIENT_SYNC_GOES * goes, goes);
    out->states = 1u << HEC_STATE_COMM;
    return true;
}
