/* Gradient sync: gradients are made the same in all ranks more often than the optimizer uses them. */
#include "diagnose/parallelism.h"
#include "diagnose/rules/compute.h"

#include <math.h>

/* Communication of the device. unseen: of no rank it was, and idle SMs are taken for it. */
struct comm {
    double seconds, joules; /* of the steady part; of the run, NAN unknown */
    bool unseen;
    double step_s; /* where it is unseen; NAN unknown */
};

static struct comm comm_of(const struct hec_facts *f, const struct hec_ledger_device *steady) {
    const struct hec_ledger_row *priced = f->device->ledger->rows, *comm = &priced[HEC_STATE_COMM];
    struct hec_parallelism p;
    if (steady->rows[HEC_STATE_COMM].ns)
        return (struct comm){steady->rows[HEC_STATE_COMM].seconds, isfinite(comm->watts) ? comm->joules : NAN, false,
                             NAN};
    hec_parallelism_find(f->summary, &p);
    if (steady->basis != HEC_LEDGER_CALLS || isfinite(p.comm_s))
        return (struct comm){0, NAN, false, NAN};
    double seconds = hec_compute_idle_sms_s(f);
    return (struct comm){seconds, seconds * fmin(priced[HEC_STATE_COMPUTE].watts, p.comm_w), true, p.step_s};
}

bool hec_judge_gradient_sync(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_job_diagnosis *job = &f->summary->job;
    const struct hec_gradient_syncs *g = &job->gradients;
    const struct hec_ledger_device *steady = f->device->steady;
    double syncs = g->steps ? (double)g->syncs / (double)g->steps : 0;
    if (g->steps < HEC_GRADIENT_SYNC_STEPS || !(syncs >= HEC_GRADIENT_SYNC_LEAST) || !steady || !f->device->ledger)
        return false;
    struct comm comm = comm_of(f, steady);
    if (!(comm.seconds > 0))
        return false;
    double stays = hec_collectives_lost(&job->collectives, f->device->readings.device.index) / comm.seconds;
    double in_use = hec_ledger_work(steady) + steady->rows[HEC_STATE_COMM].seconds;
    double goes = (1 - 1 / syncs) * fmax(0, 1 - stays), share = comm.seconds / in_use, of_run = comm.seconds / f->run_s;
    out->title = HEC_FACT(SYNCS, syncs, goes * share);
    hec_finding_add(out, HEC_FACT(SYNC_PASSES, (double)g->passes / (double)g->steps, syncs));
    if (!comm.unseen)
        hec_finding_add(out, HEC_FACT(COMM_TIME, comm.seconds, in_use));
    else if (isfinite(comm.step_s))
        hec_finding_add(out, HEC_FACT(COMM_UNSEEN, share * comm.step_s, comm.step_s));
    if (g->bytes > 0)
        hec_finding_add(out, HEC_FACT(SYNC_BYTES, g->bytes, syncs));
    out->confidence = HEC_GRADIENT_SYNC_CONFIDENCE;
    out->estimated = comm.unseen;
    double least = comm.unseen ? 0 : HEC_GRADIENT_SYNC_GOES_LOW;
    out->edit_value = 1 / syncs;
    out->seconds = hec_saving_scaled((struct hec_saving){of_run, of_run, of_run}, least * goes,
                                     HEC_GRADIENT_SYNC_GOES * goes, goes);
    double joules = f->run_j > 0 ? comm.joules / f->run_j : NAN;
    if (isfinite(joules))
        out->joules = hec_saving_scaled((struct hec_saving){joules, joules, joules}, least * goes,
                                        HEC_GRADIENT_SYNC_GOES * goes, goes);
    out->states = 1u << HEC_STATE_COMM;
    return true;
}
