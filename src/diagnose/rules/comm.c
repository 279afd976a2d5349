/* Comm: communication that no compute hides. */
#include "diagnose/rules/compute.h"
#include "diagnose/rules/ranks.h"

#include <math.h>

#define LEAST_SHARE 0.05  /* of the time between start-up and tail */
#define SMALL_US 50.0     /* mean of a communication kernel */
#define COMPUTE_HIDES 0.8 /* of compute's time can have communication beside it */
#define GOES 0.25         /* of what compute can hide: beside compute it takes processors and bandwidth from that */
#define STATIC_SHARE 0.5  /* of the watts while it communicates goes when the time is hidden */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST_SHARE, "%",
     "least share of the time in use in communication that nothing overlaps, waiting for slower ranks "
     "left out",
     "the last bucket of gradients always stands alone"},
    {SMALL_US, "us", "mean duration below which messages are too small", "below, an all-reduce is all latency"},
    {100 * COMPUTE_HIDES, "%", "of compute's time that can hide communication",
     "the backward pass and part of the forward"},
    {100 * GOES, "%", "of what compute can hide that is saved at the best guess, from nothing to nearly all",
     "two H100, joined by NVLink, twice: 2 of 17 % were saved, since it took as much from compute"},
    {100 * STATIC_SHARE, "%", "of the watts while communicating that hiding it saves",
     "estimated: an H200 idles at 120 W, and moving the data is still to be paid for"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Let DistributedDataParallel sum gradients in buckets behind the backward pass.",
     "model = DistributedDataParallel(model, bucket_cap_mb=50,\n"
     "                                gradient_as_bucket_view=True)\n"},
    {"PyTorch", "With gradient accumulation, communicate at the last of the micro-batches only.",
     "with model.no_sync():\n"
     "    loss_of(model(inputs), targets).backward()\n"},
    {"PyTorch", "Send half the bytes.",
     "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"
     "model.register_comm_hook(None, default_hooks.bf16_compress_hook)\n"},
    {"JAX", "Let XLA overlap collectives.", "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true\n"},
};

static void report_kernels(const struct hec_facts *f, struct hec_finding *out) {
    double seconds = 0;
    int64_t count = 0;
    for (int i = 0; i < f->summary->timeline.kernel_count; i++) {
        const struct hec_kernel_row *k = &f->summary->timeline.kernels[i];
        if (k->device == f->device->device.index && k->kernel_class == HEC_KERNEL_CLASS_COMM) {
            seconds += k->seconds;
            count += k->count;
        }
    }
    if (!count)
        return;
    hec_finding_add(out, HEC_FACT(COMM_KERNELS, (double)count, seconds / (double)count));
    if (1e6 * seconds / (double)count < SMALL_US)
        out->lever = HEC_ANSWER(LARGER_MESSAGES);
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_ranks ranks;
    if (!f->timeline)
        return false;
    hec_ranks_gather(f, &ranks);
    double in_use = ranks.work_s + ranks.comm_s;
    if (!ranks.devices || !(ranks.transfer_s >= LEAST_SHARE * in_use))
        return false;
    double own = ranks.transfer_s / ranks.comm_s;
    double hidden = fmin(1, COMPUTE_HIDES * ranks.compute_s / ranks.transfer_s);
    double overlap = f->timeline->comm_overlap;
    out->title = HEC_FACT(COMM_SHARE, ranks.transfer_s / in_use);
    hec_finding_add(out, HEC_FACT(COMM_TIME, ranks.transfer_s, in_use));
    if (isfinite(overlap))
        hec_finding_add(out, HEC_FACT(COMM_OVERLAP, overlap));
    if (ranks.comm_s > 1.05 * ranks.transfer_s)
        hec_finding_add(out, HEC_FACT(COMM_WAIT, ranks.comm_s - ranks.transfer_s));
    report_kernels(f, out);
    out->confidence = overlap > 0.8 ? 0.7 : 0.9;
    out->seconds = hec_saving_scaled(hec_whole_seconds(f, HEC_STATE_COMM), 0, GOES * own * hidden, 0.95 * own * hidden);
    struct hec_saving joules = hec_whole_joules(f, HEC_STATE_COMM);
    if (isnan(joules.best)) { /* between idle watts and the mean of the run */
        double low = hec_compute_idle_watts(f) / f->mean_w;
        out->estimated = true;
        joules = hec_saving_scaled(out->seconds, low, (1 + low) / 2, 1.5);
        joules = hec_saving_scaled(joules, STATIC_SHARE, STATIC_SHARE, 1);
    } else
        joules = hec_saving_scaled(joules, 0, GOES * STATIC_SHARE * own * hidden, 0.95 * own * hidden);
    out->joules = joules;
    out->states = 1u << HEC_STATE_COMM;
    return true;
}

const struct hec_rule hec_rule_comm = {
    .cause = HEC_CAUSE_COMM,
    .meaning =
        "Devices exchange gradients or activations while none of them computes. Most of it could happen behind the "
        "backward pass.",
    .detection =
        "communication kernels (NCCL and the like) with no compute beside them, for at least 5 % of the time in use; what "
        "a device has more of it than the quickest of all is waiting for a slower rank (straggler).",
    .saving =
        "as much of it as compute can hide (80 % of compute's time), from nothing, where it slows the compute as much, to "
        "nearly all, a quarter at the best guess; of the joules half, since the bytes must still be moved.",
    .lever = HEC_LEVER_OVERLAP,
    HEC_RULE_TABLES,
    .judge = judge,
};
