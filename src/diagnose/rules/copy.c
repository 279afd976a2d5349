/* Copy: the device waits for data that crosses the bus: from pageable memory, in small pieces, or there and back. */
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST 0.05      /* of the steady part */
#define LINK_REACH 0.80 /* of the link, by pinned copies */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST, "%", "least share of the steady part in copies and in waiting for them",
     "measured on an H200: pageable batches 27 %, rows one at a time 98 %, features there and back 90 %"},
    {100 * LINK_REACH, "%", "of the link's rate that copies from pinned memory reach",
     "measured on an H200, Gen5 x16: 79 %"},
    {HEC_WAITS_CHATTY_LEAST, "copies", "a step, and half of the copies' time, that are small where that is the matter",
     "ours"},
    {100 * HEC_WAITS_ROUND_SHARE, "%", "of the waits, at least, of which data goes to the host and comes back", "ours"},
    {HEC_STATE_SMALL_BYTES / 1024, "KiB", "below which a copy is small",
     "calling takes as long as copying: 5 to 10 us"},
    {100 * HEC_USE_TRANSFERS_SM, "%", "most SM activity in the time in use, where nothing was traced",
     "measured on an H200: ResNet-18 78 %, the same fed by pageable copies 57 %"},
    {100 * HEC_USE_TRANSFERS_LINK, "%", "of the link that data crossing it takes then, in one direction",
     "measured on Gen5 x16: that pageable loop 4 %, pinned copies alone 79 %, resident data 0 %"},
    {1e-9 * HEC_USE_TRANSFERS_BYTES, "GB/s", "the same where the link is not known", "3 % of a Gen4 x16 link is 0.9"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Pageable: pin the memory, so that the copy is faster and goes on beside the kernels.",
     "loader = DataLoader(..., pin_memory=True)\n"
     "batch = batch.to(device, non_blocking=True)\n"},
    {"PyTorch", "Small: put the pieces together first.",
     "inputs = torch.stack(rows).to(device)\n"
     "# not: [row.to(device) for row in rows]\n"},
    {"PyTorch", "There and back: stay on the device; .cpu(), .numpy() and .tolist() in the loop leave it.", NULL},
    {"JAX", "jax.device_put the next batch while this one is computed; np.* on device arrays copies.", NULL},
    {"CUDA", "cudaMemcpyAsync from cudaHostAlloc memory, in a stream of its own.", NULL},
};

static bool judge_telemetry(const struct hec_facts *f, struct hec_finding *out) {
    double sure = hec_use_transfers(f->device);
    if (!sure)
        return false;
    out->title = HEC_FACT(COPIES_LIKELY, f->device->activity.sm);
    hec_waits_tell_use(f, true, out);
    out->lever = HEC_ANSWER(TRACE_COPIES);
    out->confidence = fmin(HEC_WAITS_TELEMETRY, sure);
    hec_waits_save_telemetry(f, f->device->activity.sm, 0.4, out); /* copies count as activity of the engine */
    return true;
}

/* Part of the copying time that a faster, overlapped copy takes away. */
static double pinned_gain(const struct hec_waits *w) {
    double reach = LINK_REACH * w->link_bytes_per_s;
    return w->rate_bytes_per_s > 0 && reach > 0 ? fmax(0, 1 - w->rate_bytes_per_s / reach) : 0.5;
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_call_facts *c = f->calls;
    struct hec_waits w;
    hec_waits_gather(f, &w);
    if (!w.known)
        return judge_telemetry(f, out);
    double share = hec_waits_share(&w, HEC_CAUSE_COPY);
    if (!(share >= LEAST))
        return false;
    double low = 0.2, best = 0.6, high = 1;
    if (w.copies == HEC_WAITS_CHATTY) {
        out->title = HEC_FACT(SMALL_COPY_SHARE, share, w.steady);
        hec_finding_add(out, HEC_FACT(SMALL_COPIES, w.small_copies, w.syncs));
        hec_finding_add(out, HEC_FACT(SMALL_COPY_TIME, c->small_copy_s, c->small_call_s));
        out->lever = HEC_ANSWER(JOIN_COPIES, w.small_copies);
        low = 0.7, best = 0.93;
    } else if (w.copies == HEC_WAITS_ROUND_TRIPS) {
        out->title = HEC_FACT(ROUND_TRIP_SHARE, share, w.steady);
        hec_finding_add(out, HEC_FACT(ROUND_TRIPS, w.round_trips, c->round_trip_bytes / (double)c->round_trips / 2));
        out->lever = HEC_ANSWER(STAY_ON_DEVICE);
        low = 0.6, best = 0.95;
    } else if (w.copies == HEC_WAITS_PAGEABLE) {
        out->title = HEC_FACT(PAGEABLE_SHARE, share, w.steady);
        best = fmax(0.3, pinned_gain(&w));
        low = 0.3 * best;
    } else {
        out->title = HEC_FACT(WAIT_SHARE, share, w.steady);
        out->lever = HEC_ANSWER(COPY_AHEAD);
    }
    if (w.rate_bytes_per_s > 0 && w.link_bytes_per_s > 0)
        hec_finding_add(out, HEC_FACT(PAGEABLE_RATE, w.rate_bytes_per_s, w.link_bytes_per_s));
    hec_waits_tell(f, &w, HEC_CAUSE_COPY, out);
    out->confidence = hec_waits_confidence(&w, HEC_CAUSE_COPY, c ? 0.9 : 0.7);
    hec_waits_save(f, &w, HEC_CAUSE_COPY, low, best, high, out);
    return true;
}

const struct hec_rule hec_rule_copy = {
    .cause = HEC_CAUSE_COPY,
    .meaning =
        "Data crosses the bus while no kernel runs. Copies from ordinary (pageable) memory are slow and the program waits "
        "for them; many small ones cost a call each; some need not be made at all.",
    .detection =
        "time in which the device only copies, and idle time in calls that wait for copies. From the copies' sizes, "
        "directions and kinds of memory: small (less than 64 KiB, many a step), there and back (as many bytes return "
        "within 10 ms), pageable. Without a trace: data on the bus while SMs idle.",
    .saving =
        "small ones put together: 93 % of the time; round trips avoided: 95 %; pinned instead of pageable: what the link's "
        "rate makes faster; each second at idle power, for moving the bytes costs little.",
    .lever = HEC_LEVER_PIN_MEMORY,
    .limits = limits,
    .limit_count = sizeof limits / sizeof limits[0],
    .advice = advice,
    .advice_count = sizeof advice / sizeof advice[0],
    .judge = judge,
};
