/* Comm: communication that no compute hides. */
#include "diagnose/rules/compute.h"

#include <math.h>

static void report_kernels(const struct hec_facts *f, struct hec_finding *out) {
    double seconds = 0, each_s = f->summary->job.collectives.transfer_s; /* without the waiting, where it is known */
    int64_t count = 0;
    for (int i = 0; i < f->device->timeline->row_count; i++) {
        const struct hec_kernel_row *k = &f->device->timeline->rows[i];
        if (k->kernel_class == HEC_KERNEL_CLASS_COMM) {
            seconds += k->seconds;
            count += k->count;
        }
    }
    if (!count)
        return;
    hec_finding_add(out, HEC_FACT(COMM_KERNELS, (double)count, seconds / (double)count));
    if (1e6 * hec_finite_or(each_s, seconds / (double)count) < HEC_COMM_SMALL_US)
        out->lever = HEC_ANSWER(LARGER_MESSAGES);
}

bool hec_judge_comm(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_collectives *c = &f->summary->job.collectives;
    const struct hec_ledger_device *steady = f->device->steady;
    if (!f->device->timeline || !steady || !steady->rows[HEC_STATE_COMM].ns)
        return false;
    double comm_s = steady->rows[HEC_STATE_COMM].seconds, in_use = hec_ledger_work(steady) + comm_s;
    double transfer_s = comm_s - c->waited_s[f->device->readings.device.index];
    if (!(transfer_s >= HEC_COMM_LEAST_SHARE * in_use))
        return false;
    double own = transfer_s / comm_s;
    double hidden = fmin(1, HEC_COMM_COMPUTE_HIDES * steady->rows[HEC_STATE_COMPUTE].seconds / transfer_s);
    double overlap = f->device->timeline->comm_overlap;
    out->title = HEC_FACT(COMM_SHARE, transfer_s / in_use);
    hec_finding_add(out, HEC_FACT(COMM_TIME, transfer_s, in_use));
    if (isfinite(overlap))
        hec_finding_add(out, HEC_FACT(COMM_OVERLAP, overlap));
    if (comm_s > HEC_COMM_WAIT_SAID * transfer_s)
        hec_finding_add(out, HEC_FACT(COMM_WAIT, comm_s - transfer_s));
    report_kernels(f, out);
    out->confidence = overlap > HEC_COMM_OVERLAP_GOOD ? HEC_COMM_CONFIDENCE_TUNED : HEC_COMM_CONFIDENCE;
    out->seconds = hec_saving_scaled(hec_whole_seconds(f, HEC_STATE_COMM), 0, HEC_COMM_GOES * own * hidden,
                                     HEC_COMM_MOST_HIDDEN * own * hidden);
    struct hec_saving joules = hec_whole_joules(f, HEC_STATE_COMM);
    if (isnan(joules.best)) { /* between idle watts and the mean of the run */
        double low = hec_compute_idle_watts(f) / f->mean_w;
        out->estimated = true;
        joules = hec_saving_scaled(out->seconds, low, (1 + low) / 2, HEC_COMM_JOULES_HIGH);
        joules = hec_saving_scaled(joules, HEC_COMM_STATIC_SHARE, HEC_COMM_STATIC_SHARE, 1);
    } else
        joules = hec_saving_scaled(joules, 0, HEC_COMM_GOES * HEC_COMM_STATIC_SHARE * own * hidden,
                                   HEC_COMM_MOST_HIDDEN * own * hidden);
    out->joules = joules;
    out->states = 1u << HEC_STATE_COMM;
    return true;
}
