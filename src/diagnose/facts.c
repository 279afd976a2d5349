#include "diagnose/facts.h"

#include "model/part.h"

#include <math.h>
#include <string.h>

#define SMALL_US 10.0
#define BUSY_BAND 0.5 /* of the mean power, where the power of a busy state was not unmixed */
#define TELEMETRY_IDLE_W                                                                                               \
    0.6 /* of the mean: idle with a context, where nothing measured it (H200: 120 W of a mean of 200) */

static const struct hec_device_timeline *timeline_of(const struct hec_summary *s, int device) {
    for (int i = 0; i < s->timeline.device_count; i++)
        if (s->timeline.devices[i].device == device)
            return &s->timeline.devices[i];
    return NULL;
}

static bool math_class(enum hec_kernel_class class) {
    return class == HEC_KERNEL_CLASS_GEMM || class == HEC_KERNEL_CLASS_CONV || class == HEC_KERNEL_CLASS_ATTENTION;
}

static void read_kernels(const struct hec_summary *s, struct hec_facts *out) {
    double all = 0, math = 0, known = 0, below = 0, small = 0;
    double sms = out->profile ? out->profile->sms : NAN;
    for (int i = 0; i < s->timeline.kernel_count; i++) {
        const struct hec_kernel_row *k = &s->timeline.kernels[i];
        enum hec_kernel_class class = hec_kernel_class_of(k->name);
        if (k->device != out->device->device.index || k->comm)
            continue;
        all += k->seconds;
        out->class_share[class] += k->seconds;
        small += k->mean_us < SMALL_US ? k->seconds : 0;
        if (math_class(class)) {
            math += k->seconds;
            out->precision_share[hec_kernel_precision_of(k->name)] += k->seconds;
        }
        if (k->grid[0] > 0 && k->grid[1] > 0 && k->grid[2] > 0) {
            known += k->seconds;
            below += (double)k->grid[0] * (double)k->grid[1] * (double)k->grid[2] < sms ? k->seconds : 0;
        }
    }
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT && all > 0; c++)
        out->class_share[c] /= all;
    for (int p = 0; p < HEC_KERNEL_PRECISION_COUNT && math > 0; p++)
        out->precision_share[p] /= math;
    out->math_share = all > 0 ? math / all : 0;
    out->small_share = all > 0 ? small / all : 0;
    out->underfilled_share = isfinite(sms) && known > 0 ? below / known : NAN;
}

void hec_facts_gather(const struct hec_summary *summary, int device_at, struct hec_facts *out) {
    const struct hec_device_summary *d = &summary->devices[device_at];
    int index = d->device.index;
    memset(out, 0, sizeof *out);
    out->summary = summary;
    out->device = d;
    out->part = hec_part_find(d->device.name);
    out->timeline = timeline_of(summary, index);
    out->ledger = hec_diagnosis_of(&summary->diagnosis, index, NULL);
    out->steady = hec_diagnosis_steady(&summary->diagnosis, index);
    out->calls = hec_diagnosis_calls(&summary->diagnosis, index);
    out->profile = hec_diagnosis_profile(&summary->diagnosis, index);
    out->gaps = hec_gaps_of(&summary->diagnosis.gaps, index);
    out->run_s = out->ledger ? (double)out->ledger->window_ns / 1e9 : summary->seconds;
    out->run_j = d->energy.valid ? d->energy.joules : NAN;
    out->mean_w = d->energy.valid && d->energy.window_s > 0 ? d->energy.joules / d->energy.window_s : NAN;
    out->steps_per_s = summary->timeline.steps.count > 0 && summary->timeline.steps.duration.mean > 0
                           ? 1 / summary->timeline.steps.duration.mean
                           : NAN;
    double used_bytes = d->metric[HEC_GPU_MEM_USED].maximum;
    out->memory_free_share = d->device.memory_kib > 0 ? 1 - used_bytes / (1024 * (double)d->device.memory_kib) : NAN;
    out->underfilled_share = NAN;
    if (out->timeline)
        read_kernels(summary, out);
}

/* Without steps the whole run is judged. */
static const struct hec_ledger_device *judged(const struct hec_facts *facts) {
    return facts->steady ? facts->steady : facts->ledger;
}

static double share_of(const struct hec_ledger_device *d, enum hec_state state, double whole_ns) {
    return d && whole_ns > 0 ? (double)d->rows[state].ns / whole_ns : 0;
}

double hec_facts_state_share(const struct hec_facts *facts, enum hec_state state) {
    return share_of(judged(facts), state, facts->run_s * 1e9);
}

double hec_facts_steady_share(const struct hec_facts *facts, enum hec_state state) {
    const struct hec_ledger_device *d = judged(facts);
    return share_of(d, state, d ? (double)d->window_ns : 0);
}

struct hec_saving hec_facts_seconds(const struct hec_facts *facts, enum hec_state state) {
    if (!facts->ledger || !(facts->run_s > 0))
        return (struct hec_saving){NAN, NAN, NAN};
    const struct hec_ledger_row *row = &judged(facts)->rows[state];
    return (struct hec_saving){row->seconds_low / facts->run_s, row->seconds / facts->run_s,
                               row->seconds_high / facts->run_s};
}

/* seconds x watts as fractions of the run's joules. */
static struct hec_saving priced(const struct hec_facts *f, double seconds, double low_w, double best_w, double high_w) {
    return (struct hec_saving){fmin(1, seconds * low_w / f->run_j), fmin(1, seconds * best_w / f->run_j),
                               fmin(1, seconds * high_w / f->run_j)};
}

static double finite_or(double x, double other) {
    return isfinite(x) ? x : other;
}

struct hec_saving hec_facts_joules(const struct hec_facts *facts, enum hec_state state, bool *estimated) {
    if (!facts->ledger || !(facts->run_j > 0))
        return (struct hec_saving){NAN, NAN, NAN};
    const struct hec_ledger_row *row = &facts->ledger->rows[state];
    double seconds = judged(facts)->rows[state].seconds;
    if (!judged(facts)->rows[state].ns)
        return (struct hec_saving){0, 0, 0};
    if (isfinite(row->joules))
        return priced(facts, seconds, finite_or(row->watts_low, row->watts), row->watts,
                      finite_or(row->watts_high, row->watts));
    *estimated = true;
    double mean = facts->mean_w;
    if (!hec_state_idle(state))
        return priced(facts, seconds, (1 - BUSY_BAND) * mean, mean, (1 + BUSY_BAND) * mean);
    double idle = fmin(mean, finite_or(facts->device->energy.idle_context_watts, TELEMETRY_IDLE_W * mean));
    return priced(facts, seconds, idle, idle, mean);
}

struct hec_saving hec_facts_compute_joules(const struct hec_facts *facts, double share_of_compute, bool *estimated) {
    struct hec_saving all = hec_facts_joules(facts, HEC_STATE_COMPUTE, estimated);
    return (struct hec_saving){all.low * share_of_compute, all.best * share_of_compute, all.high * share_of_compute};
}
