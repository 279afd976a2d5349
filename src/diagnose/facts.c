#include "diagnose/facts.h"

#include "model/part.h"

#include <math.h>
#include <string.h>

#define SMALL_US 10.0
#define BUSY_BAND 0.5      /* of the mean power, where the power of a busy state was not unmixed */
#define IDLE_OF_LIMIT 0.17 /* idle with a context, where nothing measured it: H200 120 of 700 W, A100 66 of 400 */
#define IDLE_OF_MEAN 0.6   /* the same where there is no limit either */
#define IDLE_BAND 0.3      /* of those two, below */

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
        if (k->device != out->device->device.index || k->comm || class == HEC_KERNEL_CLASS_COMM)
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

static double finite_or(double x, double other) {
    return isfinite(x) ? x : other;
}

/* How far an end is from the value, as a part of it; 0 where it is not known. */
static double off(double end, double value) {
    return value > 0 && isfinite(end) ? fabs(end / value - 1) : 0;
}

/* seconds x watts as fractions of the run's joules. Both have intervals, independent ones. */
static struct hec_saving priced(const struct hec_facts *f, const struct hec_ledger_row *row, double low_w,
                                double best_w, double high_w) {
    double best = row->seconds * best_w / f->run_j;
    double below = hypot(off(low_w, best_w), off(row->seconds_low, row->seconds));
    double above = hypot(off(high_w, best_w), off(row->seconds_high, row->seconds));
    return (struct hec_saving){fmin(1, best * fmax(0, 1 - below)), fmin(1, best), fmin(1, best * (1 + above))};
}

/* Idle with a context: measured, or as devices of such a power limit do. */
static struct hec_saving idle_joules(const struct hec_facts *f, const struct hec_ledger_row *row) {
    double measured = f->device->energy.idle_context_watts, mean = f->mean_w;
    double guess = f->device->power_limit_w > 0 ? IDLE_OF_LIMIT * f->device->power_limit_w : IDLE_OF_MEAN * mean;
    double idle = fmin(mean, finite_or(measured, guess));
    return priced(f, row, isfinite(measured) ? idle : (1 - IDLE_BAND) * idle, idle, mean);
}

struct hec_saving hec_facts_joules(const struct hec_facts *facts, enum hec_state state, bool *estimated) {
    if (!facts->ledger || !(facts->run_j > 0))
        return (struct hec_saving){NAN, NAN, NAN};
    const struct hec_ledger_row *row = &facts->ledger->rows[state], *part = &judged(facts)->rows[state];
    if (!part->ns)
        return (struct hec_saving){0, 0, 0};
    if (isfinite(row->joules) && row->seconds > 0) {
        /* what the row took, which is its watts but for the rounding to the run's total */
        double watts = row->joules / row->seconds, scale = row->watts > 0 ? watts / row->watts : 1;
        return priced(facts, part, scale * finite_or(row->watts_low, row->watts), watts,
                      scale * finite_or(row->watts_high, row->watts));
    }
    *estimated = true;
    if (hec_state_idle(state))
        return idle_joules(facts, part);
    return priced(facts, part, (1 - BUSY_BAND) * facts->mean_w, facts->mean_w, (1 + BUSY_BAND) * facts->mean_w);
}

struct hec_saving hec_facts_compute_joules(const struct hec_facts *facts, double share_of_compute, bool *estimated) {
    struct hec_saving all = hec_facts_joules(facts, HEC_STATE_COMPUTE, estimated);
    return (struct hec_saving){all.low * share_of_compute, all.best * share_of_compute, all.high * share_of_compute};
}
