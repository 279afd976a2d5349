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
static double comm_watts(const struct hec_device_diagnosis *d, bool *estimated) {
    const struct hec_energy *energy = &d->readings.energy;
    if (d->ledger && isfinite(d->ledger->rows[HEC_STATE_COMM].watts))
        return d->ledger->rows[HEC_STATE_COMM].watts;
    *estimated = true;
    return energy->valid && energy->window_s > 0 ? energy->joules / energy->window_s : NAN;
}

static bool communicates(const struct hec_device_diagnosis *d) {
    return d->steady && d->steady->rows[HEC_STATE_COMM].ns > 0;
}

void hec_ranks_gather(const struct hec_facts *f, struct hec_ranks *out) {
    const struct hec_summary *s = f->summary;
    const struct hec_ledger_device *least = NULL, *most = NULL;
    memset(out, 0, sizeof *out);
    if (!communicates(f->device))
        return;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_ledger_device *d = s->devices[i].steady;
        if (!communicates(&s->devices[i]))
            continue;
        out->devices++;
        out->mask |= UINT64_C(1) << d->device;
        out->mean_work_s += work_of(d);
        least = !least || d->rows[HEC_STATE_COMM].seconds < least->rows[HEC_STATE_COMM].seconds ? d : least;
        most = !most || d->rows[HEC_STATE_COMM].seconds > most->rows[HEC_STATE_COMM].seconds ? d : most;
    }
    out->mean_work_s /= out->devices;
    out->comm_s = f->device->steady->rows[HEC_STATE_COMM].seconds;
    out->transfer_s = least->rows[HEC_STATE_COMM].seconds;
    out->work_s = work_of(f->device->steady);
    out->compute_s = f->device->steady->rows[HEC_STATE_COMPUTE].seconds;
    out->slowest = least->device;
    out->slowest_work_s = work_of(least);
    out->slowest_compute_s = least->rows[HEC_STATE_COMPUTE].seconds;
    out->waits_most = most->device;
    for (int i = 0; i < s->device_count; i++)
        if (communicates(&s->devices[i]))
            out->waiting_j += (s->devices[i].steady->rows[HEC_STATE_COMM].seconds - out->transfer_s) *
                              comm_watts(&s->devices[i], &out->estimated);
}
