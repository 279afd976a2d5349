#include "diagnose/rules/facts.h"

#include "diagnose/limits.h"

#include <math.h>
#include <string.h>

static bool math_class(enum hec_kernel_class class) {
    return class == HEC_KERNEL_CLASS_GEMM || class == HEC_KERNEL_CLASS_CONV || class == HEC_KERNEL_CLASS_ATTENTION;
}

/* Part of the device's compute whose kernels were recorded. A glimpse of a loop stands for the loop; of a program without steps
 * it says what ran meanwhile and no more. */
static double seen_share(const struct hec_facts *f, double recorded_s) {
    const struct hec_ledger_device *ledger = f->device->ledger;
    bool glimpse = ledger && ledger->basis == HEC_LEDGER_GLIMPSE && f->steps->count == 0;
    double compute_s = glimpse ? ledger->rows[HEC_STATE_COMPUTE].seconds : 0;
    return compute_s > recorded_s ? recorded_s / compute_s : 1;
}

static void read_kernels(const struct hec_device_timeline *timeline, struct hec_facts *out) {
    double all = 0, math = 0, small = 0, solver = 0;
    for (int i = 0; i < timeline->row_count; i++) {
        const struct hec_kernel_row *k = &timeline->rows[i];
        enum hec_kernel_class class = k->kernel_class;
        if (class == HEC_KERNEL_CLASS_COMM)
            continue;
        all += k->seconds;
        out->class_share[class] += k->seconds;
        small += k->mean_us < HEC_KERNEL_TINY_US ? k->seconds : 0;
        solver += hec_kernel_solves(k->name) ? k->seconds : 0;
        if (math_class(class)) {
            math += k->seconds;
            out->precision_share[k->precision] += k->seconds;
        }
    }
    out->compute_s = all / seen_share(out, all);
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT && all > 0; c++)
        out->class_share[c] /= out->compute_s;
    for (int p = 0; p < HEC_KERNEL_PRECISION_COUNT && math > 0; p++)
        out->precision_share[p] /= math;
    out->math_share = all > 0 ? math / out->compute_s : 0;
    out->small_share = all > 0 ? small / out->compute_s : 0;
    out->solver_share = all > 0 ? solver / out->compute_s : 0;
    out->kernels_seen = all > 0 ? all / out->compute_s - out->class_share[HEC_KERNEL_CLASS_GRAPH] : 0;
}

void hec_facts_gather(const struct hec_summary *summary, const struct hec_device_diagnosis *d, struct hec_facts *out) {
    const struct hec_device_summary *r = &d->readings;
    memset(out, 0, sizeof *out);
    out->summary = summary;
    out->device = d;
    out->own_counters = r->activity.has_gpm && r->others == HEC_OTHERS_IDLE;
    out->part = hec_part_find(r->device.name);
    out->steps = hec_steps_of(summary, d);
    out->profile = hec_profile_of(d);
    out->run_s = d->ledger ? (double)d->ledger->window_ns / 1e9 : summary->seconds;
    out->run_j = r->energy.valid && r->others != HEC_OTHERS_BUSY ? r->energy.joules : NAN;
    out->mean_w = r->energy.window_s > 0 ? out->run_j / r->energy.window_s : NAN;
    double used_bytes = r->metric[HEC_GPU_MEM_USED].maximum;
    out->memory_free_share = r->device.memory_kib > 0 ? 1 - used_bytes / (1024 * (double)r->device.memory_kib) : NAN;
    if (d->timeline)
        read_kernels(d->timeline, out);
}

double hec_collectives_lost(const struct hec_collectives *c, int device) {
    bool one = c->inferred || (c->matched && c->slowest_share >= HEC_STRAGGLER_MOSTLY);
    return one ? c->lost_s[device] : 0;
}

double hec_facts_launched_point_wise(const struct hec_facts *f) {
    const struct hec_call_facts *calls = f->device->calls;
    bool known = calls && (double)calls->drawn_named >= HEC_MEMORY_LEAST_DRAWN;
    return known ? (double)calls->drawn_point_wise / (double)calls->drawn : NAN;
}

bool hec_facts_network(const struct hec_facts *f) {
    return f->steps->source == HEC_STEP_OPTIMIZER || f->steps->source == HEC_STEP_MODULE || f->summary->step_module[0];
}
