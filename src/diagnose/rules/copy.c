/* Copy: the device waits for data that crosses the bus: from pageable memory, in small pieces, or there and back. */
#include "diagnose/rules/waits.h"

#include <math.h>

static bool judge_telemetry(const struct hec_facts *f, struct hec_finding *out) {
    double sure = hec_use_transfers(&f->device->readings);
    if (!sure)
        return false;
    out->title = HEC_FACT(COPIES_LIKELY, f->device->readings.activity.sm);
    hec_waits_report_use(f, true, out);
    out->lever = HEC_ANSWER(TRACE_COPIES);
    out->confidence = fmin(HEC_TELEMETRY_CONFIDENCE, sure);
    hec_waits_save_telemetry(f, f->device->readings.activity.sm, HEC_COPY_TELEMETRY_GOES,
                             out); /* copies count as activity of the engine */
    return true;
}

/* Part of the copying time that a faster, overlapped copy takes away. */
static double pinned_gain(const struct hec_waits *w) {
    double reach = HEC_COPY_LINK_REACH * w->link_bytes_per_s;
    return w->rate_bytes_per_s > 0 && reach > 0 ? fmax(0, 1 - w->rate_bytes_per_s / reach) : HEC_COPY_PINNED_UNKNOWN;
}

/* The program is a server that answered what it was asked: its copies bring requests. */
static bool brings_requests(const struct hec_facts *f) {
    const struct hec_ledger_device *ledger = f->device->ledger;
    return ledger && ledger->rows[HEC_STATE_REQUESTS].seconds >= HEC_COPY_ASKED_LEAST * f->run_s;
}

/* Part of the copying time that goes where copies run beside the rest: a step gets no shorter than they are, nor than the host's part
 * of it, which is all but what the host waits for the device. */
static double beside_most(const struct hec_facts *f, const struct hec_waits *w) {
    const struct hec_call_facts *c = f->device->calls;
    double copies_s = w->owned_s[HEC_CAUSE_COPY], rest_s = w->whole_s - copies_s, waited_s = INFINITY;
    if (c && c->traced_s > 0 && hec_framework_of(f->summary) != HEC_FRAMEWORK_JAX)
        waited_s = c->waited_s / c->traced_s * w->whole_s;
    return copies_s > 0 ? fmin(1, fmax(0, fmin(rest_s, waited_s) / copies_s)) : 0;
}

bool hec_judge_copy(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_call_facts *c = f->device->calls;
    struct hec_waits w;
    if (!hec_waits_claim(f, HEC_COPY_LEAST, &w, out))
        return !w.known && judge_telemetry(f, out);
    double share = out->title.value[0];
    struct hec_saving goes = hec_goes_of(HEC_CAUSE_COPY)->part;
    if (w.copies == HEC_WAITS_CHATTY) {
        out->title = HEC_FACT(SMALL_COPY_SHARE, share, w.steady);
        hec_finding_add(out, HEC_FACT(SMALL_COPIES, w.small_copies, w.syncs));
        hec_finding_add(out, HEC_FACT(SMALL_COPY_TIME, c->small_copy_s, c->small_call_s));
        out->lever = HEC_ANSWER(JOIN_COPIES, w.small_copies);
        goes = (struct hec_saving){HEC_COPY_JOINED_LOW, HEC_COPY_JOINED, 1};
    } else if (w.copies == HEC_WAITS_ROUND_TRIPS) {
        out->title = HEC_FACT(ROUND_TRIP_SHARE, share, w.steady);
        hec_finding_add(out, HEC_FACT(ROUND_TRIPS, w.round_trips, c->round_trip_bytes / (double)c->round_trips / 2));
        out->lever = HEC_ANSWER(STAY_ON_DEVICE);
        goes = (struct hec_saving){HEC_COPY_STAYED_LOW, HEC_COPY_STAYED, 1};
    } else if (w.copies == HEC_WAITS_PAGEABLE && brings_requests(f)) {
        out->title = HEC_FACT(PAGEABLE_SHARE, share, w.steady);
        out->lever = HEC_ANSWER(PIN_REQUESTS);
        goes = (struct hec_saving){0, HEC_COPY_ASKED, goes.high};
    } else if (w.copies == HEC_WAITS_PAGEABLE) {
        out->title = HEC_FACT(PAGEABLE_SHARE, share, w.steady);
        goes.best = fmax(HEC_COPY_PINNED_LEAST, pinned_gain(&w));
        goes.low = HEC_COPY_PINNED_LEAST * goes.best;
    } else {
        double most = beside_most(f, &w);
        goes = (struct hec_saving){fmin(goes.low, most), fmin(goes.best, most), fmin(goes.high, most)};
        out->lever = HEC_ANSWER(COPY_AHEAD);
    }
    if (w.rate_bytes_per_s > 0 && w.link_bytes_per_s > 0)
        hec_finding_add(out, HEC_FACT(PAGEABLE_RATE, w.rate_bytes_per_s, w.link_bytes_per_s));
    if (!c) /* imported: no sizes */
        out->confidence *= HEC_WAITS_UNCOUNTED;
    hec_waits_save(f, &w, HEC_CAUSE_COPY, goes.low, goes.best, goes.high, out);
    return true;
}
