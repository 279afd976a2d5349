/* Straggler: devices wait inside communication for one that needs longer. */
#include "diagnose/rules/compute.h"
#include "diagnose/rules/ranks.h"

#include <math.h>

#define LEAST_SKEW 0.10 /* waiting by the time in use */
#define EXPLAINED 0.5   /* of the waiting must be work that the slow device has more of */
#define GOES_LEAST 0.4  /* of what even shares save by the ledger */
#define GOES_MOST 1.5
#define CLOCK_LOWER 0.05 /* then the device is slow, not its share of the work large */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST_SKEW, "%", "least waiting for the slowest rank, of the time in use of the rank that waits most",
     "batches of unequal lengths vary by some percent anyway"},
    {100 * EXPLAINED, "%", "of the waiting that the slowest rank's longer work must explain",
     "the rest may be the network or the start of the ranks"},
    {100 * EXPLAINED, "%",
     "of the waiting below which longer compute does not explain it: then the slowest rank's process is late",
     "as above"},
    {100 * GOES_LEAST, "%", "of the difference to the mean that is saved at the least", "ours"},
    {100 * GOES_MOST, "%", "and at the most", "two H100: 24 % of a step predicted, 31 proven"},
    {100 * CLOCK_LOWER, "%", "lower SM clock from which the device is slow, not its work more", "ours"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Give all ranks the same amount of work: as many samples, of similar lengths.",
     "sampler = torch.utils.data.DistributedSampler(dataset, drop_last=True)\n"},
    {"any", "Where the work is the same, the device is slow: compare clocks, temperatures and throttling.",
     "nvidia-smi --format=csv \\\n"
     "    --query-gpu=index,clocks.sm,temperature.gpu,clocks_event_reasons.active\n"},
};

static const struct hec_device_summary *device_of(const struct hec_facts *f, int index) {
    for (int i = 0; i < f->summary->device_count; i++)
        if (f->summary->devices[i].device.index == index)
            return &f->summary->devices[i];
    return NULL;
}

static void report_clocks(const struct hec_facts *f, int slow, struct hec_finding *out) {
    const struct hec_device_summary *other = device_of(f, slow);
    double mine = f->device->metric[HEC_GPU_SM_CLOCK].maximum;
    double theirs = other ? other->metric[HEC_GPU_SM_CLOCK].maximum : NAN;
    if (!(theirs < (1 - CLOCK_LOWER) * mine))
        return;
    hec_finding_add(out, HEC_FACT(RANK_CLOCK, theirs, mine, slow));
    out->lever = HEC_ANSWER(SLOW_DEVICE, slow);
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_ranks r;
    if (!f->timeline)
        return false;
    hec_ranks_gather(f, &r);
    double in_use = r.work_s + r.comm_s, waiting = r.comm_s - r.transfer_s;
    /* One finding a run, with the device that waits most. */
    if (r.devices < 2 || r.waits_most != f->device->device.index || !(waiting >= LEAST_SKEW * in_use) ||
        !(r.slowest_work_s - r.work_s >= EXPLAINED * waiting))
        return false;
    out->title = HEC_FACT(RANK_WAITS, waiting / in_use, r.slowest, r.waits_most);
    hec_finding_add(out,
                    HEC_FACT(RANK_WORK, r.slowest_work_s, r.slowest, r.waits_most, r.work_s, r.devices, r.mean_work_s));
    hec_finding_add(out, HEC_FACT(RANK_COMPUTE, r.slowest_compute_s, r.compute_s));
    hec_finding_add(out, HEC_FACT(RANK_COMM, r.transfer_s, r.comm_s));
    if (r.slowest_compute_s - r.compute_s < EXPLAINED * waiting)
        out->lever = HEC_ANSWER(SLOW_HOST, r.slowest);
    report_clocks(f, r.slowest, out);
    out->confidence = 0.85;
    out->devices = r.mask;
    /* Even shares: all take the mean. Work moves and is still paid for; the waiting of all devices goes. */
    double sooner = fmax(0, r.slowest_work_s - r.mean_work_s) / f->run_s;
    double joules = r.waiting_j / f->summary->joules;
    out->seconds = hec_saving_scaled((struct hec_saving){sooner, sooner, sooner}, GOES_LEAST, 0.95, GOES_MOST);
    if (f->summary->joules > 0 && f->run_j > 0)
        out->joules = hec_saving_scaled((struct hec_saving){joules, joules, joules}, GOES_LEAST, 0.95,
                                        GOES_MOST * (r.estimated ? 1.2 : 1));
    out->estimated = r.estimated;
    out->states = 1u << HEC_STATE_COMM;
    return true;
}

const struct hec_rule hec_rule_straggler = {
    .cause = HEC_CAUSE_STRAGGLER,
    .meaning =
        "Devices that work together finish each step together. If one has more to do, or is slower, all others wait for it "
        "inside communication kernels, which keep a device at far more than idle power.",
    .detection =
        "of several devices of the run, the one with the least communication is the slowest; what others have more of it is "
        "waiting. It fires where that is 10 % of the time in use and the slowest one's longer work explains it.",
    .saving =
        "with even shares all ranks need the mean; the work stays and is paid for, the waiting of all devices goes. "
        "Fractions are of all devices together.",
    .lever = HEC_LEVER_EVEN_WORK,
    HEC_RULE_TABLES,
    .judge = judge,
};
