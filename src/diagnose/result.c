#include "diagnose/result.h"

#include "base/names.h"
#include "diagnose/physics.h"
#include "diagnose/rules/findings.h"
#include "diagnose/view/view.h"

#include <math.h>
#include <stdlib.h>

struct hec_price hec_price_default(void) {
    return (struct hec_price){
        .dollars_per_kwh = 0.13, .grams_co2_per_kwh = 473, .dollars_default = true, .carbon_default = true};
}

HEC_NAME_OF(hec_attest_name, enum hec_attest, "nothing", "set", "already", "on", "failed")

static void free_device(struct hec_device_diagnosis *d) {
    if (d->timeline)
        hec_intervals_free(&d->timeline->traced);
    free(d->timeline);
    free(d->ledger);
    free(d->steady);
    free(d->gaps);
    free(d->calls);
    free(d->watts);
    hec_source_lines_free(&d->source);
    hec_source_lines_free(&d->steady_source);
    hec_source_lines_free(&d->setup_source);
    hec_source_modules_free(&d->modules);
}

void hec_summary_free(struct hec_summary *summary) {
    for (int i = 0; i < summary->device_count; i++)
        free_device(&summary->devices[i]);
    free(summary->devices);
    free(summary->kernels);
    free(summary->steps.losses);
    free(summary->steps.gradients);
    hec_source_lines_free(&summary->lines);
    hec_findings_free(&summary->job.findings);
    free(summary->job.ranks);
    hec_view_free(summary->view);
    summary->devices = NULL;
    summary->device_count = 0;
    summary->kernels = NULL;
    summary->kernel_count = 0;
    summary->steps.losses = summary->steps.gradients = NULL;
    summary->steps.loss_count = summary->steps.gradient_count = 0;
    summary->job.ranks = NULL;
    summary->job.rank_count = 0;
    summary->view = NULL;
}

struct hec_device_diagnosis *hec_summary_device(const struct hec_summary *summary, int index) {
    for (int i = 0; i < summary->device_count; i++)
        if (summary->devices[i].readings.device.index == index)
            return &summary->devices[i];
    return NULL;
}

const struct hec_device_diagnosis *hec_rank_device(const struct hec_summary *s, const struct hec_rank *rank) {
    return __builtin_popcountll(rank->devices) == 1 ? hec_summary_device(s, __builtin_ctzll(rank->devices)) : NULL;
}

double hec_rank_joules(const struct hec_device_diagnosis *d) {
    return d && d->readings.energy.valid ? d->readings.energy.joules : NAN;
}

double hec_device_idle_watts(const struct hec_device_diagnosis *d) {
    double seconds = 0, joules = 0, watts = d->readings.energy.idle_context_watts;
    for (int s = 0; d->ledger && s < HEC_STATE_COUNT; s++)
        if (hec_state_idle((enum hec_state)s) && d->ledger->rows[s].ns) {
            seconds += d->ledger->rows[s].seconds;
            joules += d->ledger->rows[s].joules;
        }
    bool lowest = d->readings.energy.idle_source.id == HEC_REASON_LEVEL_LOWEST; /* a bound, of what never rests */
    if ((!(watts > 0) || lowest) && seconds > 0 && joules > 0)
        watts = joules / seconds;
    if (!(watts > 0))
        watts = HEC_IDLE_CONTEXT_BY_LOWEST * d->readings.power_w.minimum;
    return watts > 0 ? watts : NAN;
}

int hec_summary_traced(const struct hec_summary *summary) {
    int traced = 0;
    for (int i = 0; i < summary->device_count; i++)
        traced += summary->devices[i].timeline != NULL;
    return traced;
}

const struct hec_step_summary *hec_steps_of(const struct hec_summary *summary,
                                            const struct hec_device_diagnosis *device) {
    static const struct hec_step_summary none = {.confidence = NAN,
                                                 .duration = {0, NAN, NAN, NAN, NAN, NAN, NAN},
                                                 .samples_per_step = NAN,
                                                 .units = NAN,
                                                 .data_s = NAN,
                                                 .busy_share = NAN,
                                                 .value_first = NAN,
                                                 .value_last = NAN};
    const struct hec_step_summary *run = &summary->steps, *own = &device->steps;
    if (!device->readings.used)
        return &none;
    if (own->count) /* that of the run knows more: how busy the device was in them */
        return own->pid == run->pid && own->source == run->source ? run : own;
    for (int i = 0; i < summary->device_count; i++)
        if (summary->devices[i].steps.count && summary->devices[i].steps.pid == run->pid)
            return &none;
    return run;
}

static double times_as_fast(double saved) {
    return saved < 1 ? 1 / (1 - saved) : NAN;
}

struct hec_speed hec_finding_speed(const struct hec_summary *s, const struct hec_finding *f) {
    const struct hec_device_diagnosis *d = hec_summary_device(s, f->device);
    bool of_step = d && hec_steps_of(s, d)->count && isfinite(f->step_seconds.best);
    const struct hec_saving *saving = of_step ? &f->step_seconds : &f->seconds;
    return (struct hec_speed){of_step, times_as_fast(saving->low), times_as_fast(saving->best),
                              times_as_fast(saving->high)};
}
