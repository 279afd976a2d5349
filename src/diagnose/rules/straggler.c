/* Straggler: devices wait inside communication for one that needs longer. */
#include "diagnose/rules/facts.h"

#include <math.h>

static void report_clocks(const struct hec_facts *f, const struct hec_device_diagnosis *slow, struct hec_finding *out) {
    double mine = f->device->readings.metric[HEC_GPU_SM_CLOCK].maximum;
    double theirs = slow->readings.metric[HEC_GPU_SM_CLOCK].maximum;
    int index = slow->readings.device.index;
    if (!(theirs < (1 - HEC_STRAGGLER_CLOCK_LOWER) * mine))
        return;
    hec_finding_add(out, HEC_FACT(RANK_CLOCK, theirs, mine, index));
    out->lever = HEC_ANSWER(SLOW_DEVICE, index);
}

bool hec_judge_straggler(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_collectives *c = &f->summary->job.collectives;
    /* One finding a run, with the device that waits most. */
    if (!f->device->timeline || c->count < 2 || c->waits_most != f->device->readings.device.index)
        return false;
    const struct hec_device_diagnosis *slow = hec_summary_device(f->summary, c->slowest);
    const struct hec_ledger_row *own = f->device->steady->rows, *its = slow->steady->rows;
    double work_s = hec_ledger_work(f->device->steady), slow_work_s = hec_ledger_work(slow->steady);
    double comm_s = own[HEC_STATE_COMM].seconds, in_use = work_s + comm_s, waiting = comm_s - c->transfer_s;
    double compute_s = own[HEC_STATE_COMPUTE].seconds, slow_compute_s = its[HEC_STATE_COMPUTE].seconds;
    if (!(waiting >= HEC_STRAGGLER_LEAST_SKEW * in_use) || !(slow_work_s - work_s >= HEC_STRAGGLER_EXPLAINED * waiting))
        return false;
    out->title = HEC_FACT(RANK_WAITS, waiting / in_use, c->slowest, c->waits_most);
    hec_finding_add(out, HEC_FACT(RANK_WORK, slow_work_s, c->slowest, c->waits_most, work_s, c->count, c->mean_work_s));
    hec_finding_add(out, HEC_FACT(RANK_COMPUTE, slow_compute_s, compute_s));
    hec_finding_add(out, HEC_FACT(RANK_COMM, c->transfer_s, comm_s));
    if (slow_compute_s - compute_s < HEC_STRAGGLER_EXPLAINED * waiting)
        out->lever = HEC_ANSWER(SLOW_HOST, c->slowest);
    report_clocks(f, slow, out);
    out->confidence = HEC_STRAGGLER_CONFIDENCE;
    out->devices = c->devices;
    /* Even shares: all take the mean. Work moves and is still paid for; the waiting of all devices goes. */
    double sooner = fmax(0, slow_work_s - c->mean_work_s) / f->run_s;
    double joules = c->waiting_j / f->summary->joules;
    out->seconds = hec_saving_scaled((struct hec_saving){sooner, sooner, sooner}, HEC_STRAGGLER_GOES_LOW,
                                     HEC_STRAGGLER_GOES, HEC_STRAGGLER_GOES_HIGH);
    if (f->summary->joules > 0 && f->run_j > 0)
        out->joules =
            hec_saving_scaled((struct hec_saving){joules, joules, joules}, HEC_STRAGGLER_GOES_LOW, HEC_STRAGGLER_GOES,
                              HEC_STRAGGLER_GOES_HIGH * (c->estimated ? HEC_STRAGGLER_ESTIMATED_WIDER : 1));
    out->estimated = c->estimated;
    out->states = 1u << HEC_STATE_COMM;
    return true;
}
