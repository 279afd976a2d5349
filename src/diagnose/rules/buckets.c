/* Buckets: gradients go in many small collectives, each of which costs the host a launch and the devices a round of latency. */
#include "diagnose/rules/facts.h"

#include <math.h>

/* What would do: as PyTorch's default has it, where the bytes are known. */
static double share_that_stays(const struct hec_gradient_syncs *g, double a_sync) {
    double enough = g->bytes > 0 ? ceil(g->bytes / HEC_BUCKETS_BYTES) + 1 : a_sync * HEC_BUCKETS_STAY;
    return fmin(1, enough / a_sync);
}

bool hec_judge_buckets(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_job_diagnosis *job = &f->summary->job;
    const struct hec_collectives *c = &job->collectives;
    const struct hec_ledger_device *steady = f->device->steady;
    double step_s = f->steps->count > 0 ? f->steps->duration.mean : NAN;
    if (!c->matched || !steady || !steady->rows[HEC_STATE_COMM].ns || !(step_s > 0) ||
        !(c->transfer_s <= HEC_BUCKETS_SMALL_US / 1e6))
        return false;
    double a_step = (double)c->matched / c->met_s * step_s;
    double a_sync =
        a_step / (job->gradients.steps ? fmax(1, (double)job->gradients.syncs / (double)job->gradients.steps) : 1);
    double goes = 1 - share_that_stays(&job->gradients, a_sync);
    if (!(a_sync >= HEC_BUCKETS_LEAST) || !(goes >= HEC_BUCKETS_GOES_LEAST))
        return false;
    const struct hec_ledger_row *rows = steady->rows;
    double in_use = hec_ledger_work(steady) + rows[HEC_STATE_COMM].seconds;
    double waits =
        (rows[HEC_STATE_LAUNCH].seconds + rows[HEC_STATE_HOST].seconds + rows[HEC_STATE_COMM].seconds) / in_use;
    double share = fmin(waits, goes * a_step * (c->host_s + c->transfer_s) / step_s);
    out->title = HEC_FACT(MANY_COLLECTIVES, a_sync, c->transfer_s);
    hec_finding_add(out, HEC_FACT(COLLECTIVE_COST, c->host_s, c->transfer_s, a_step));
    if (job->gradients.bytes > 0)
        hec_finding_add(out, HEC_FACT(BUCKET_BYTES, job->gradients.bytes, job->gradients.bucket_bytes));
    out->confidence = HEC_BUCKETS_CONFIDENCE;
    out->edit_value = 1 - goes;
    out->seconds =
        hec_saving_scaled((struct hec_saving){share, share, share}, HEC_BUCKETS_GOES_LOW, HEC_BUCKETS_GOES, 1);
    double idle_w = f->device->ledger->rows[HEC_STATE_LAUNCH].watts;
    double joules = isfinite(idle_w) && f->mean_w > 0 ? fmin(1, idle_w / f->mean_w) : NAN;
    if (isfinite(joules))
        out->joules = hec_saving_scaled(out->seconds, joules, joules, 1);
    out->states = 1u << HEC_STATE_COMM;
    return true;
}
