/* Comm: communication that no compute hides. */
#include "diagnose/rules/compute.h"
#include "diagnose/rules/ranks.h"

#include <math.h>

static void report_kernels(const struct hec_facts *f, struct hec_finding *out) {
    double seconds = 0;
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
    if (1e6 * seconds / (double)count < HEC_COMM_SMALL_US)
        out->lever = HEC_ANSWER(LARGER_MESSAGES);
}

bool hec_judge_comm(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_ranks ranks;
    if (!f->device->timeline)
        return false;
    hec_ranks_gather(f, &ranks);
    double in_use = ranks.work_s + ranks.comm_s;
    if (!ranks.devices || !(ranks.transfer_s >= HEC_COMM_LEAST_SHARE * in_use))
        return false;
    double own = ranks.transfer_s / ranks.comm_s;
    double hidden = fmin(1, HEC_COMM_COMPUTE_HIDES * ranks.compute_s / ranks.transfer_s);
    double overlap = f->device->timeline->comm_overlap;
    out->title = HEC_FACT(COMM_SHARE, ranks.transfer_s / in_use);
    hec_finding_add(out, HEC_FACT(COMM_TIME, ranks.transfer_s, in_use));
    if (isfinite(overlap))
        hec_finding_add(out, HEC_FACT(COMM_OVERLAP, overlap));
    if (ranks.comm_s > HEC_COMM_WAIT_SAID * ranks.transfer_s)
        hec_finding_add(out, HEC_FACT(COMM_WAIT, ranks.comm_s - ranks.transfer_s));
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
