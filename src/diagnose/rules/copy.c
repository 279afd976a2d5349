/* Copy: the device waits for data that crosses the bus: from pageable memory, in small pieces, or there and back. */
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST 0.05      /* of the steady part */
#define LINK_REACH 0.80 /* of the link, by pinned copies */
/* Of the copies' time goes, at least and at best guess: pieces that are joined, trips that are not made. */
#define JOINED_LOW 0.7
#define JOINED 0.93
#define STAYED_LOW 0.6
#define STAYED 0.95
#define PINNED_LEAST 0.3 /* of pageable copies' time; and at least so much of the best guess */

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
    {100 * JOINED, "%", "of their time that small copies lose when they are put together",
     "fitted to the planted programs on an H200"},
    {100 * JOINED_LOW, "%", "and at least", "ours"},
    {100 * STAYED, "%", "the same of data that stays on the device", "fitted to the planted programs on an H200"},
    {100 * STAYED_LOW, "%", "and at least", "ours"},
    {100 * PINNED_LEAST, "%", "least of the time of pageable copies that pinned memory saves", "ours"},
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
    hec_waits_report_use(f, true, out);
    out->lever = HEC_ANSWER(TRACE_COPIES);
    out->confidence = fmin(HEC_TELEMETRY_CONFIDENCE, sure);
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
    if (!hec_waits_claim(f, LEAST, &w, out))
        return !w.known && judge_telemetry(f, out);
    double share = out->title.value[0];
    struct hec_saving goes = hec_rule_copy.goes;
    if (w.copies == HEC_WAITS_CHATTY) {
        out->title = HEC_FACT(SMALL_COPY_SHARE, share, w.steady);
        hec_finding_add(out, HEC_FACT(SMALL_COPIES, w.small_copies, w.syncs));
        hec_finding_add(out, HEC_FACT(SMALL_COPY_TIME, c->small_copy_s, c->small_call_s));
        out->lever = HEC_ANSWER(JOIN_COPIES, w.small_copies);
        goes = (struct hec_saving){JOINED_LOW, JOINED, 1};
    } else if (w.copies == HEC_WAITS_ROUND_TRIPS) {
        out->title = HEC_FACT(ROUND_TRIP_SHARE, share, w.steady);
        hec_finding_add(out, HEC_FACT(ROUND_TRIPS, w.round_trips, c->round_trip_bytes / (double)c->round_trips / 2));
        out->lever = HEC_ANSWER(STAY_ON_DEVICE);
        goes = (struct hec_saving){STAYED_LOW, STAYED, 1};
    } else if (w.copies == HEC_WAITS_PAGEABLE) {
        out->title = HEC_FACT(PAGEABLE_SHARE, share, w.steady);
        goes.best = fmax(PINNED_LEAST, pinned_gain(&w));
        goes.low = PINNED_LEAST * goes.best;
    } else
        out->lever = HEC_ANSWER(COPY_AHEAD);
    if (w.rate_bytes_per_s > 0 && w.link_bytes_per_s > 0)
        hec_finding_add(out, HEC_FACT(PAGEABLE_RATE, w.rate_bytes_per_s, w.link_bytes_per_s));
    if (!c) /* imported: no sizes */
        out->confidence *= HEC_WAITS_UNCOUNTED;
    hec_waits_save(f, &w, HEC_CAUSE_COPY, goes.low, goes.best, goes.high, out);
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
        "small ones put together and round trips avoided, most of the time; pinned instead of pageable memory, what the "
        "link's rate makes faster; moving the bytes costs little.",
    .goes = {0.2, 0.6, 1},
    .confidence = 0.9,
    .lever = HEC_LEVER_PIN_MEMORY,
    HEC_RULE_TABLES,
    .judge = judge,
};
