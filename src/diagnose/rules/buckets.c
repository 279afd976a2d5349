/* Buckets: gradients go in many small collectives, each of which costs the host a launch and the devices a round of latency. */
#include "diagnose/rules/buckets.h"

#include <math.h>

/* What would do: as PyTorch's default has it, where the bytes are known. */
static double share_that_stays(const struct hec_gradient_syncs *g, double a_sync) {
    double enough = g->bytes > 0 ? ceil(g->bytes / HEC_BUCKETS_BYTES) + 1 : a_sync * HEC_BUCKETS_STAY;
    return fmin(1, enough / a_sync);
}

/* Where they were not matched across ranks, the bytes say whether they are small. */
bool hec_buckets_gather(const struct hec_facts *f, struct hec_buckets *out) {
    const struct hec_job_diagnosis *job = &f->summary->job;
    const struct hec_collectives *c = &job->collectives;
    const struct hec_gradient_syncs *g = &job->gradients;
    double step_s = f->steps->count > 0 ? f->steps->duration.median : NAN;
    double syncs = g->steps ? fmax(1, (double)g->syncs / (double)g->steps) : 1;
    bool counted = !c->matched && g->steps >= HEC_GRADIENT_SYNC_STEPS && g->bytes > 0;
    *out = (struct hec_buckets){.step_s = step_s,
                                .a_step = c->matched ? (double)c->matched / c->met_s * step_s : c->a_step};
    if (!(step_s > 0) || !(out->a_step > 0) || !(c->matched || counted))
        return false;
    out->a_sync = out->a_step / syncs;
    out->bytes = g->bytes > 0 ? g->bytes / out->a_sync : NAN;
    out->each_s = c->matched ? c->host_s + c->transfer_s : HEC_BUCKETS_COST_US / 1e6;
    out->goes = 1 - share_that_stays(g, out->a_sync);
    bool small = c->matched ? c->transfer_s <= HEC_BUCKETS_SMALL_US / 1e6 : out->bytes <= HEC_BUCKETS_SMALL_MB * 1e6;
    return small && out->a_sync >= HEC_BUCKETS_LEAST && out->goes >= HEC_BUCKETS_GOES_LEAST;
}

/* A second less of all devices of the job, each at what it draws while it waits, of what they draw in the run. */
static double joules_a_second(const struct hec_summary *s, uint64_t devices) {
    double watts = 0, joules = 0;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        if (!(devices & hec_device_bit(d->readings.device.index)) || !d->ledger)
            continue;
        const struct hec_ledger_row *comm = &d->ledger->rows[HEC_STATE_COMM],
                                    *idle = &d->ledger->rows[HEC_STATE_LAUNCH];
        watts += comm->seconds > idle->seconds ? comm->watts : idle->watts;
        joules += d->readings.energy.joules;
    }
    return watts / joules;
}

bool hec_judge_buckets(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_job_diagnosis *job = &f->summary->job;
    const struct hec_collectives *c = &job->collectives;
    const struct hec_ledger_device *steady = f->device->steady;
    struct hec_buckets b;
    if (!steady || !steady->rows[HEC_STATE_COMM].ns || !hec_buckets_gather(f, &b))
        return false;
    const struct hec_ledger_row *rows = steady->rows;
    double waits = rows[HEC_STATE_LAUNCH].seconds + rows[HEC_STATE_HOST].seconds + rows[HEC_STATE_COMM].seconds;
    double in_use = hec_ledger_work(steady) + rows[HEC_STATE_COMM].seconds;
    double share = fmin(waits, b.goes * b.a_step * b.each_s / b.step_s * in_use) / f->run_s;
    out->title =
        c->matched ? HEC_FACT(MANY_COLLECTIVES, b.a_sync, c->transfer_s) : HEC_FACT(MANY_LIKELY, b.a_sync, b.bytes);
    hec_finding_add(out, c->matched ? HEC_FACT(COLLECTIVE_COST, c->host_s, c->transfer_s, b.a_step)
                                    : HEC_FACT(COLLECTIVE_COST_USUAL, b.each_s, b.a_step));
    if (job->gradients.bytes > 0)
        hec_finding_add(out, HEC_FACT(BUCKET_BYTES, job->gradients.bytes, job->gradients.bucket_bytes));
    out->confidence = c->matched ? HEC_BUCKETS_CONFIDENCE : HEC_BUCKETS_CONFIDENCE_INFERRED;
    out->edit_value = 1 - b.goes;
    out->seconds =
        hec_saving_scaled((struct hec_saving){share, share, share}, HEC_BUCKETS_GOES_LOW, HEC_BUCKETS_GOES, 1);
    if (!c->matched) /* all of them send as many; one finding of the job */
        for (int i = 0; i < job->rank_count; i++)
            out->devices |= job->ranks[i].devices;
    double joules = isfinite(f->run_j) ? f->run_s * joules_a_second(f->summary, out->devices) : NAN;
    if (isfinite(joules))
        out->joules = hec_saving_scaled(out->seconds, joules, joules, joules);
    out->estimated = !c->matched;
    out->states = 1u << HEC_STATE_COMM;
    return true;
}
