/* Straggler: devices wait inside communication for one that needs longer. */
#include "diagnose/rules/compute.h"
#include "diagnose/rules/ranks.h"

#include <math.h>

static void report_clocks(const struct hec_facts *f, int slow, struct hec_finding *out) {
    const struct hec_device_diagnosis *other = hec_summary_device(f->summary, slow);
    double mine = f->device->readings.metric[HEC_GPU_SM_CLOCK].maximum;
    double theirs = other ? other->readings.metric[HEC_GPU_SM_CLOCK].maximum : NAN;
    if (!(theirs < (1 - HEC_STRAGGLER_CLOCK_LOWER) * mine))
        return;
    hec_finding_add(out, HEC_FACT(RANK_CLOCK, theirs, mine, slow));
    out->lever = HEC_ANSWER(SLOW_DEVICE, slow);
}

bool hec_judge_straggler(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_ranks r;
    if (!f->device->timeline)
        return false;
    hec_ranks_gather(f, &r);
    double in_use = r.work_s + r.comm_s, waiting = r.comm_s - r.transfer_s;
    /* One finding a run, with the device that waits most. */
    if (r.devices < 2 || r.waits_most != f->device->readings.device.index ||
        !(waiting >= HEC_STRAGGLER_LEAST_SKEW * in_use) ||
        !(r.slowest_work_s - r.work_s >= HEC_STRAGGLER_EXPLAINED * waiting))
        return false;
    out->title = HEC_FACT(RANK_WAITS, waiting / in_use, r.slowest, r.waits_most);
    hec_finding_add(out,
                    HEC_FACT(RANK_WORK, r.slowest_work_s, r.slowest, r.waits_most, r.work_s, r.devices, r.mean_work_s));
    hec_finding_add(out, HEC_FACT(RANK_COMPUTE, r.slowest_compute_s, r.compute_s));
    hec_finding_add(out, HEC_FACT(RANK_COMM, r.transfer_s, r.comm_s));
    if (r.slowest_compute_s - r.compute_s < HEC_STRAGGLER_EXPLAINED * waiting)
        out->lever = HEC_ANSWER(SLOW_HOST, r.slowest);
    report_clocks(f, r.slowest, out);
    out->confidence = HEC_STRAGGLER_CONFIDENCE;
    out->devices = r.mask;
    /* Even shares: all take the mean. Work moves and is still paid for; the waiting of all devices goes. */
    double sooner = fmax(0, r.slowest_work_s - r.mean_work_s) / f->run_s;
    double joules = r.waiting_j / f->summary->joules;
    out->seconds = hec_saving_scaled((struct hec_saving){sooner, sooner, sooner}, HEC_STRAGGLER_GOES_LOW,
                                     HEC_STRAGGLER_GOES, HEC_STRAGGLER_GOES_HIGH);
    if (f->summary->joules > 0 && f->run_j > 0)
        out->joules =
            hec_saving_scaled((struct hec_saving){joules, joules, joules}, HEC_STRAGGLER_GOES_LOW, HEC_STRAGGLER_GOES,
                              HEC_STRAGGLER_GOES_HIGH * (r.estimated ? HEC_STRAGGLER_ESTIMATED_WIDER : 1));
    out->estimated = r.estimated;
    out->states = 1u << HEC_STATE_COMM;
    return true;
}
