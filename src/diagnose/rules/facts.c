#include "diagnose/rules/facts.h"

#include "diagnose/limits.h"
#include "model/part.h"

#include <math.h>
#include <string.h>

static const struct hec_device_timeline *timeline_of(const struct hec_summary *s, int device) {
    for (int i = 0; i < s->timeline.device_count; i++)
        if (s->timeline.devices[i].device == device)
            return &s->timeline.devices[i];
    return NULL;
}

static bool math_class(enum hec_kernel_class class) {
    return class == HEC_KERNEL_CLASS_GEMM || class == HEC_KERNEL_CLASS_CONV || class == HEC_KERNEL_CLASS_ATTENTION;
}

/* Part of the device's compute whose kernels were recorded. A glimpse of a loop stands for the loop; of a program without steps
 * it says what ran meanwhile and no more. */
static double seen_share(const struct hec_facts *f, double recorded_s) {
    bool glimpse = f->ledger && f->ledger->basis == HEC_LEDGER_GLIMPSE && f->steps->count == 0;
    double compute_s = glimpse ? f->ledger->rows[HEC_STATE_COMPUTE].seconds : 0;
    return compute_s > recorded_s ? recorded_s / compute_s : 1;
}

static void read_kernels(const struct hec_summary *s, struct hec_facts *out) {
    double all = 0, math = 0, small = 0;
    for (int i = 0; i < s->timeline.kernel_count; i++) {
        const struct hec_kernel_row *k = &s->timeline.kernels[i];
        enum hec_kernel_class class = k->kernel_class;
        if (k->device != out->device->device.index || class == HEC_KERNEL_CLASS_COMM)
            continue;
        all += k->seconds;
        out->class_share[class] += k->seconds;
        small += k->mean_us < HEC_KERNEL_TINY_US ? k->seconds : 0;
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
}

const struct hec_step_summary *hec_facts_steps(const struct hec_summary *summary, int device) {
    static const struct hec_step_summary none = {.confidence = NAN,
                                                 .duration = {0, NAN, NAN, NAN, NAN, NAN, NAN},
                                                 .samples_per_step = NAN,
                                                 .units = NAN,
                                                 .data_s = NAN,
                                                 .busy_share = NAN,
                                                 .value_first = NAN,
                                                 .value_last = NAN};
    const struct hec_step_summary *run = &summary->timeline.steps;
    for (int i = 0; i < summary->device_count; i++)
        if (summary->devices[i].device.index == device && !summary->devices[i].used)
            return &none;
    const struct hec_step_summary *own = hec_diagnosis_steps(&summary->diagnosis, device);
    if (own) /* that of the run knows more: how busy the device was in them */
        return own->pid == run->pid && own->source == run->source ? run : own;
    for (int i = 0; i < summary->diagnosis.ledger.device_count; i++) {
        own = hec_diagnosis_steps(&summary->diagnosis, summary->diagnosis.ledger.devices[i].device);
        if (own && own->pid == run->pid)
            return &none;
    }
    return run;
}

void hec_facts_gather(const struct hec_summary *summary, int device_at, struct hec_facts *out) {
    const struct hec_device_summary *d = &summary->devices[device_at];
    int index = d->device.index;
    memset(out, 0, sizeof *out);
    out->summary = summary;
    out->device = d;
    out->own_counters = d->activity.has_gpm && d->others == HEC_OTHERS_IDLE;
    out->part = hec_part_find(d->device.name);
    out->steps = hec_facts_steps(summary, index);
    out->timeline = timeline_of(summary, index);
    out->ledger = hec_diagnosis_of(&summary->diagnosis, index, NULL);
    out->steady = hec_diagnosis_steady(&summary->diagnosis, index);
    out->calls = hec_diagnosis_calls(&summary->diagnosis, index);
    out->profile = hec_diagnosis_profile(&summary->diagnosis, index);
    out->gaps = hec_gaps_of(&summary->diagnosis.gaps, index);
    out->run_s = out->ledger ? (double)out->ledger->window_ns / 1e9 : summary->seconds;
    out->run_j = d->energy.valid && d->others != HEC_OTHERS_BUSY ? d->energy.joules : NAN;
    out->mean_w = d->energy.window_s > 0 ? out->run_j / d->energy.window_s : NAN;
    double used_bytes = d->metric[HEC_GPU_MEM_USED].maximum;
    out->memory_free_share = d->device.memory_kib > 0 ? 1 - used_bytes / (1024 * (double)d->device.memory_kib) : NAN;
    if (out->timeline)
        read_kernels(summary, out);
}
