#include "diagnose/rules/ranks.h"

#include <math.h>
#include <string.h>

static double work_of(const struct hec_ledger_device *d) {
    double seconds = 0;
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        if (s != HEC_STATE_COMM && s != HEC_STATE_STARTUP && s != HEC_STATE_TAIL && s != HEC_STATE_UNKNOWN)
            seconds += d->rows[s].seconds;
    return seconds;
}

/* Watts in communication; where they were not unmixed, the device's mean. */
static double comm_watts(const struct hec_facts *f, int device, bool *estimated) {
    const struct hec_ledger *ledger = &f->summary->diagnosis.ledger;
    for (int i = 0; i < ledger->device_count; i++)
        if (ledger->devices[i].device == device && isfinite(ledger->devices[i].rows[HEC_STATE_COMM].watts))
            return ledger->devices[i].rows[HEC_STATE_COMM].watts;
    *estimated = true;
    for (int i = 0; i < f->summary->device_count; i++) {
        const struct hec_device_summary *s = &f->summary->devices[i];
        if (s->device.index == device)
            return s->energy.valid && s->energy.window_s > 0 ? s->energy.joules / s->energy.window_s : NAN;
    }
    return NAN;
}

void hec_ranks_gather(const struct hec_facts *f, struct hec_ranks *out) {
    const struct hec_ledger *ledger = &f->summary->diagnosis.steady;
    const struct hec_ledger_device *least = NULL, *most = NULL;
    memset(out, 0, sizeof *out);
    if (!f->steady || !f->steady->rows[HEC_STATE_COMM].ns)
        return;
    for (int i = 0; i < ledger->device_count; i++) {
        const struct hec_ledger_device *d = &ledger->devices[i];
        if (!d->rows[HEC_STATE_COMM].ns)
            continue;
        out->devices++;
        out->mask |= UINT64_C(1) << d->device;
        out->mean_work_s += work_of(d);
        least = !least || d->rows[HEC_STATE_COMM].seconds < least->rows[HEC_STATE_COMM].seconds ? d : least;
        most = !most || d->rows[HEC_STATE_COMM].seconds > most->rows[HEC_STATE_COMM].seconds ? d : most;
    }
    out->mean_work_s /= out->devices;
    out->comm_s = f->steady->rows[HEC_STATE_COMM].seconds;
    out->transfer_s = least->rows[HEC_STATE_COMM].seconds;
    out->work_s = work_of(f->steady);
    out->compute_s = f->steady->rows[HEC_STATE_COMPUTE].seconds;
    out->slowest = least->device;
    out->slowest_work_s = work_of(least);
    out->slowest_compute_s = least->rows[HEC_STATE_COMPUTE].seconds;
    out->waits_most = most->device;
    for (int i = 0; i < ledger->device_count; i++) {
        const struct hec_ledger_device *d = &ledger->devices[i];
        if (d->rows[HEC_STATE_COMM].ns)
            out->waiting_j +=
                (d->rows[HEC_STATE_COMM].seconds - out->transfer_s) * comm_watts(f, d->device, &out->estimated);
    }
}
