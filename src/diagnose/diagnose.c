#include "diagnose/result.h"

#include "base/clock.h"
#include "base/trace.h"
#include "diagnose/diagnosis.h"
#include "diagnose/meter/attribution.h"
#include "diagnose/meter/device.h"
#include "diagnose/rules/findings.h"
#include "diagnose/host.h"
#include "diagnose/job.h"
#include "diagnose/timeline/others.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/phases.h"
#include "diagnose/physics.h"
#include "diagnose/rules/predict.h"
#include "diagnose/view/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one build works with. */
struct build {
    const struct hec_summary_input *input;
    struct hec_summary *out;
    int64_t end_ns;
    int64_t lost_ns[HEC_DEVICE_MAX];
    char sensor_failed[HEC_DEVICE_MAX][160];
    char no_answer[160]; /* the driver was given up at the end of the run */
    struct hec_meter meter;
    struct hec_attribution *attribution;
    struct hec_pass pass;
    struct hec_phases *phases;
    struct hec_schedule_builder *schedule;
    struct hec_step_list found;      /* steps in the sequence of kernels, where there are no others */
    struct hec_predictor *predictor; /* NULL: nothing to replay */
};

struct hec_price hec_price_default(void) {
    return (struct hec_price){
        .dollars_per_kwh = 0.13, .grams_co2_per_kwh = 473, .dollars_default = true, .carbon_default = true};
}

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
    hec_source_modules_free(&d->modules);
}

void hec_summary_free(struct hec_summary *summary) {
    for (int i = 0; i < summary->device_count; i++)
        free_device(&summary->devices[i]);
    free(summary->devices);
    free(summary->kernels);
    free(summary->steps.losses);
    free(summary->steps.gradients);
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

static void copy(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from ? from : "");
}

/* ---- events ---- */

static bool grave(enum hec_event_kind kind) {
    return kind == HEC_EVENT_DEVICE_LOST || kind == HEC_EVENT_COUNTER_RESET || kind == HEC_EVENT_STORE_FAILED ||
           kind == HEC_EVENT_DAMAGED || kind == HEC_EVENT_SENSOR_FAILED || kind == HEC_EVENT_SOURCE_UNAVAILABLE;
}

static int take_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    struct build *b = context;
    struct hec_summary *out = b->out;
    if (device >= 0 && device < HEC_DEVICE_MAX) {
        if (kind == HEC_EVENT_DEVICE_LOST && t_ns < b->lost_ns[device])
            b->lost_ns[device] = t_ns;
        if ((kind == HEC_EVENT_SENSOR_FAILED || kind == HEC_EVENT_SOURCE_UNAVAILABLE) && !b->sensor_failed[device][0])
            copy(b->sensor_failed[device], sizeof b->sensor_failed[device], text);
    }
    if (kind == HEC_EVENT_GAP && device == HEC_DEVICE_NONE && strstr(text, "GPU driver"))
        copy(b->no_answer, sizeof b->no_answer, text);
    int at = out->event_count;
    if (at == HEC_SUMMARY_EVENTS_MAX) { /* a grave one takes the place of the last that is not */
        out->events_omitted++;
        do
            at--;
        while (at >= 0 && (!grave(kind) || grave(out->events[at].kind)));
        if (at < 0)
            return 0;
        memmove(&out->events[at], &out->events[at + 1],
                (size_t)(HEC_SUMMARY_EVENTS_MAX - 1 - at) * sizeof out->events[0]);
        at = HEC_SUMMARY_EVENTS_MAX - 1;
    } else {
        out->event_count++;
    }
    struct hec_event_summary *event = &out->events[at];
    *event = (struct hec_event_summary){.kind = kind, .device = device, .t_s = (double)t_ns / HEC_NS_PER_S};
    copy(event->text, sizeof event->text, text);
    return 0;
}

static uint64_t bit(const struct hec_device_summary *d) {
    return d->device.index >= 0 && d->device.index < 64 ? UINT64_C(1) << d->device.index : 0;
}

/* ---- units and phases ---- */

static int take_unit(void *context, const char *name, double count) {
    struct hec_summary *out = ((struct build *)context)->out;
    if (out->unit_count >= HEC_SUMMARY_UNITS_MAX || !isfinite(count) || count < 0)
        return 0;
    struct hec_unit_summary *unit = &out->units[out->unit_count++];
    copy(unit->name, sizeof unit->name, name && name[0] ? name : "unit");
    unit->count = count;
    return 0;
}

static int take_phase(void *context, const char *name, int64_t total_ns, int64_t count) {
    struct hec_summary *out = ((struct build *)context)->out;
    if (out->phase_count >= HEC_SUMMARY_PHASES_MAX)
        return 0;
    struct hec_phase_summary *phase = &out->phases[out->phase_count++];
    copy(phase->name, sizeof phase->name, name);
    phase->seconds = (double)total_ns / HEC_NS_PER_S;
    phase->count = count;
    return 0;
}

/* ---- devices ---- */

static int take_device(void *context, const struct hec_device *device) {
    struct hec_summary *out = ((struct build *)context)->out;
    if (out->device_count >= HEC_DEVICE_MAX)
        return 0;
    struct hec_device_diagnosis *grown = realloc(out->devices, (size_t)(out->device_count + 1) * sizeof *grown);
    if (!grown)
        return HEC_ERR_NOMEM;
    out->devices = grown;
    memset(&grown[out->device_count], 0, sizeof *grown);
    grown[out->device_count++].readings.device = *device;
    return 0;
}

static int build_device(struct build *b, struct hec_device_summary *d, struct hec_why *why) {
    int index = d->device.index;
    bool known = index >= 0 && index < HEC_DEVICE_MAX;
    const struct hec_meter_hints hints = {
        .simulated = d->device.simulated || b->out->simulated[0],
        .lost_ns = known ? b->lost_ns[index] : INT64_MAX,
        .unavailable = known && b->sensor_failed[index][0] ? b->sensor_failed[index] : b->no_answer,
    };
    int err = hec_meter_device(&b->meter, &hints, d, why);
    if (!err)
        hec_attribution_apply(b->attribution, d);
    return err;
}

/* Joules of the used devices among those (bits by index); both are NAN unless all of them are valid. Returns how many. */
static int add_energy(const struct hec_summary *out, uint64_t devices, double *joules, double *bound) {
    int used = 0;
    bool all_valid = true;
    *joules = *bound = 0;
    for (int i = 0; i < out->device_count; i++) {
        const struct hec_device_summary *d = &out->devices[i].readings;
        if (!d->used || !(devices & bit(d)))
            continue;
        used++;
        all_valid &= d->energy.valid;
        *joules += d->energy.joules;
        *bound += d->energy.bound_joules; /* errors of devices may have one cause (a late clock): no square root */
    }
    if (!used || !all_valid)
        *joules = *bound = NAN;
    return used;
}

static double dollars_of(const struct hec_summary *out, double joules, int devices) {
    double hours = out->price.dollars_per_gpu_hour > 0 ? devices * out->seconds / 3600 : 0;
    return joules / HEC_JOULES_PER_KWH * out->price.dollars_per_kwh + hours * out->price.dollars_per_gpu_hour;
}

static void add_totals(struct hec_summary *out, const struct hec_price *price) {
    out->price = *price;
    int used = add_energy(out, UINT64_MAX, &out->joules, &out->bound_joules);
    out->dollars = dollars_of(out, out->joules, used);
    out->grams_co2 = out->joules / HEC_JOULES_PER_KWH * price->grams_co2_per_kwh;
}

/* ---- units ---- */

/* The devices of the programs whose steps count this unit; all that are used where there are no steps. */
static uint64_t devices_of(const struct hec_summary *out, const char *unit, uint64_t used) {
    uint64_t devices = 0;
    for (int i = 0; i < out->device_count; i++) {
        const struct hec_device_diagnosis *d = &out->devices[i];
        if (d->readings.used && d->steps.count && d->steps.units > 0 && strcmp(d->steps.unit, unit) == 0)
            devices |= bit(&d->readings);
    }
    return devices ? devices : used;
}

static void price_units(struct hec_summary *out) {
    uint64_t used = 0;
    for (int i = 0; i < out->device_count; i++)
        used |= out->devices[i].readings.used ? bit(&out->devices[i].readings) : 0;
    if (!out->unit_count) {
        struct hec_unit_summary *unit = &out->units[out->unit_count++];
        *unit = (struct hec_unit_summary){.name = "run", .is_default = true, .count = 1};
    }
    for (int i = 0; i < out->unit_count; i++) {
        struct hec_unit_summary *unit = &out->units[i];
        double per = unit->count > 0 ? 1 / unit->count : NAN, joules, bound;
        unit->devices = unit->is_default ? used : devices_of(out, unit->name, used);
        unit->part_of_devices = unit->devices != used;
        int devices = add_energy(out, unit->devices, &joules, &bound);
        unit->per_second = out->seconds > 0 ? unit->count / out->seconds : NAN;
        unit->joules_per_unit = joules * per;
        unit->joules_per_unit_bound = bound * per;
        unit->dollars_per_unit = dollars_of(out, joules, devices) * per;
        unit->grams_co2_per_unit = joules / HEC_JOULES_PER_KWH * out->price.grams_co2_per_kwh * per;
    }
}

/* ---- the whole ---- */

/* Sources are read about once a second at least: what is silent for longer than this has ended. */
#define SILENT_NS (2 * HEC_NS_PER_S)

/* The later one's last reading; 0: there is none. */
static int last_of(struct build *b, enum hec_metric metric, enum hec_metric other, int32_t subject, int64_t *last_ns,
                   struct hec_why *why) {
    struct hec_range range = {0}, second = {0};
    *last_ns = 0;
    int err = hec_meter_range(&b->meter, metric, subject, &range, why);
    if (!err)
        err = hec_meter_range(&b->meter, other, subject, &second, why);
    if (!err && range.count)
        *last_ns = range.last_ns;
    if (!err && second.count && second.last_ns > *last_ns)
        *last_ns = second.last_ns;
    return err;
}

/* The length of a run that was cut off, or goes on: as far as the host and each device were read that were still being
 * read. Some is read later than the rest, and what was not read yet is no gap. */
static int derive_end(struct build *b, struct hec_why *why) {
    int64_t ends_ns[2 + HEC_DEVICE_MAX], latest_ns = 0;
    int count = 2, err;
    b->end_ns = b->input->end_ns;
    if (b->end_ns > 0)
        return 0;
    err = last_of(b, HEC_SELF_CPU, HEC_HOST_CPU_BUSY, 0, &ends_ns[0], why);
    if (!err)
        err = last_of(b, HEC_TREE_CPU, HEC_TREE_CPU, 0, &ends_ns[1], why);
    for (int i = 0; i < b->out->device_count && i < HEC_DEVICE_MAX && !err; i++)
        err =
            last_of(b, HEC_GPU_POWER, HEC_GPU_ENERGY, b->out->devices[i].readings.device.index, &ends_ns[count++], why);
    if (err)
        return err;
    for (int i = 0; i < count; i++)
        latest_ns = ends_ns[i] > latest_ns ? ends_ns[i] : latest_ns;
    b->end_ns = latest_ns;
    for (int i = 0; i < count; i++)
        if (ends_ns[i] > 0 && ends_ns[i] >= latest_ns - SILENT_NS && ends_ns[i] < b->end_ns)
            b->end_ns = ends_ns[i];
    return 0;
}

const char *hec_attest_name(enum hec_attest attest) {
    static const char *const names[] = {"nothing", "set", "already", "on", "failed"};
    return (unsigned)attest < HEC_ATTESTS ? names[attest] : "?";
}

static void label(const struct hec_summary_input *in, struct hec_summary *out) {
    copy(out->command, sizeof out->command, in->command);
    copy(out->started, sizeof out->started, in->started);
    copy(out->file, sizeof out->file, in->file);
    copy(out->hec_version, sizeof out->hec_version, in->hec_version);
    copy(out->hostname, sizeof out->hostname, in->hostname);
    copy(out->simulated, sizeof out->simulated, in->simulated);
    copy(out->imported, sizeof out->imported, in->imported);
    copy(out->cpu, sizeof out->cpu, in->cpu);
    copy(out->os, sizeof out->os, in->os);
    copy(out->stopped, sizeof out->stopped, in->stopped);
    copy(out->kernel, sizeof out->kernel, in->kernel);
    copy(out->pytorch, sizeof out->pytorch, in->pytorch);
    copy(out->python, sizeof out->python, in->python);
    copy(out->framework, sizeof out->framework, in->framework);
    out->lever_count = in->levers ? in->levers(in->context, out->levers) : 0;
    out->exit_code = in->exit_code;
    out->loader_workers = in->loader_workers;
    out->job.size = in->ranks;
    out->complete = in->complete;
    out->in_progress = in->in_progress;
}

/* What the trace alone can show of a device: that the command used it. */
static void mark_used(const struct hec_summary *out, struct hec_device_summary *d, const char *why) {
    if (d->used || (!d->use_unknown && !out->imported[0]))
        return;
    d->used = true;
    d->use_unknown = false;
    copy(d->used_why, sizeof d->used_why, why);
}

/* The one pass over the trace. */
static int read_trace(struct build *b, struct hec_timeline_builder **timeline, struct hec_diagnosis_builder **diagnosis,
                      struct hec_why *why) {
    struct hec_summary *out = b->out;
    struct hec_pass_consumer consumers[HEC_STAGE_COUNT] = {{0}};
    int err = hec_timeline_begin(&b->pass, timeline, &consumers[HEC_STAGE_TIMELINE]);
    if (!err)
        err = hec_phases_begin(&b->pass.tables, b->end_ns, out, &b->phases, &consumers[HEC_STAGE_PHASES]);
    if (!err)
        err = hec_diagnosis_begin(&b->pass, !out->imported[0], out->view, diagnosis, consumers);
    if (!err && out->view)
        err = hec_view_begin(out->view, &b->pass, out->device_count, &consumers[HEC_STAGE_VIEW]);
    if (!err)
        err = hec_schedule_begin(&b->pass, b->input->schedule ? HEC_SCHEDULE_CALLS_MAX : HEC_PREDICT_CALLS,
                                 &b->schedule, &consumers[HEC_STAGE_SCHEDULE]);
    return err ? err : hec_pass_run(&b->pass, consumers, HEC_STAGE_COUNT, why);
}

static int keep_timeline(struct hec_device_diagnosis *d, struct hec_device_timeline *timeline) {
    d->timeline = malloc(sizeof *d->timeline);
    if (!d->timeline)
        return HEC_ERR_NOMEM;
    *d->timeline = *timeline;
    timeline->traced = (struct hec_intervals){0};
    return 0;
}

/* The kernels, steps and costs of the run; to each dossier its own timeline. Of a device that nobody listed there is none. */
static int finish_timeline(struct build *b, struct hec_timeline_builder *builder) {
    struct hec_summary *out = b->out;
    struct hec_timeline t;
    int err = hec_timeline_end(builder, &b->found, &t);
    if (err)
        return err;
    out->trace = t.trace;
    out->steps = t.steps;
    out->stacks = t.stacks;
    out->kernels = t.kernels;
    out->kernel_count = t.kernel_count;
    for (int i = 0; i < t.device_count && !err; i++) {
        struct hec_device_diagnosis *d = hec_summary_device(out, t.devices[i].device);
        if (!d)
            continue;
        err = keep_timeline(d, &t.devices[i]);
        mark_used(out, &d->readings, "its activity is in the trace of the command");
    }
    t.kernels = NULL;
    t.steps = (struct hec_step_summary){0};
    hec_timeline_free(&t);
    if (!err && out->imported[0]) {
        snprintf(out->trace.why, sizeof out->trace.why, "imported from a trace (%s)", out->imported);
        for (int i = 0; i < out->device_count; i++)
            copy(out->devices[i].readings.energy.why, sizeof out->devices[i].readings.energy.why,
                 "imported from a trace: time only");
    }
    return err;
}

static int finish_diagnosis(struct build *b, struct hec_diagnosis_builder *diagnosis, struct hec_why *why) {
    struct hec_summary *out = b->out;
    int err = hec_diagnosis_end(diagnosis, &b->meter, out, why);
    for (int i = 0; i < out->device_count && !err; i++)
        if (out->devices[i].ledger)
            mark_used(out, &out->devices[i].readings, "the command's calls give it work");
    for (int i = 0; i < out->device_count && strcmp(out->trace.why, HEC_TRACE_WHY_NOBODY) == 0; i++)
        if (out->devices[i].readings.used)
            copy(out->trace.why, sizeof out->trace.why,
                 "the command used a GPU and did not load HEC's tracer: another profiler may have its place");
    return err;
}

/* What is made of the trace once it is read. */
struct ending {
    struct build *b;
    struct hec_diagnosis_builder *diagnosis;
    struct hec_schedule schedule;
    struct hec_why why;
    int err;
};

static void end_diagnosis(void *to) {
    struct ending *e = to;
    struct build *b = e->b;
    struct hec_summary *out = b->out;
    for (int i = 0; i < out->device_count && !e->err; i++)
        e->err = hec_others_find(&b->meter, out->devices[i].timeline, &out->devices[i].readings, &e->why);
    if (!e->err) {
        e->err = finish_diagnosis(b, e->diagnosis, &e->why);
        e->diagnosis = NULL;
    }
    if (!e->err)
        e->err = hec_steady_blocks_build(&b->pass, &b->meter, out, &out->blocks, &e->why);
    if (!e->err && out->view)
        e->err = hec_view_end(out->view, &b->pass, &b->meter, out, &e->why);
}

/* Nothing to replay is no error. */
static void end_schedule(void *to) {
    struct ending *e = to;
    e->err = hec_schedule_end(e->b->schedule, &e->b->found, e->b->input->together, &e->schedule);
    e->b->schedule = NULL;
    e->err = e->err == HEC_ERR_NOTFOUND ? 0 : e->err;
}

/* What is to be replayed shares nothing with the rest but the trace. */
static int end_all(struct build *b, struct hec_timeline_builder *timeline, struct hec_diagnosis_builder *diagnosis,
                   struct hec_why *why) {
    struct ending rest = {.b = b, .diagnosis = diagnosis}, replayed = {.b = b};
    const struct hec_task tasks[2] = {{end_diagnosis, &rest}, {end_schedule, &replayed}};
    rest.err = finish_timeline(b, timeline); /* which finds steps for both */
    if (!rest.err)
        rest.err = hec_job_ranks(&b->pass.tables, &b->out->job);
    hec_tasks_run(b->input->together, tasks, 2);
    hec_diagnosis_abandon(rest.diagnosis);
    int err = rest.err ? rest.err : replayed.err;
    if (rest.err)
        *why = rest.why;
    if (err) {
        hec_schedule_free(&replayed.schedule);
        return err;
    }
    hec_job_find(b->out, &b->out->job);
    if (b->input->schedule)
        *b->input->schedule = replayed.schedule;
    else if (replayed.schedule.count > 0)
        err = hec_predictor_begin(&b->meter, b->out, &replayed.schedule, &b->predictor, why);
    return err;
}

static int build_timeline(struct build *b, struct hec_why *why) {
    struct hec_summary *out = b->out;
    struct hec_timeline_input input = b->input->timeline;
    struct hec_timeline_builder *timeline = NULL;
    struct hec_diagnosis_builder *diagnosis = NULL;
    struct hec_device *devices = malloc(((size_t)out->device_count + 1) * sizeof *devices);
    if (!devices)
        return HEC_ERR_NOMEM;
    for (int i = 0; i < out->device_count; i++)
        devices[i] = out->devices[i].readings.device;
    input.devices = devices;
    input.device_count = out->device_count;
    input.end_ns = b->end_ns;
    input.brief = b->input->schedule;
    int err = hec_pass_open(&input, &b->pass, why);
    if (!err)
        err = read_trace(b, &timeline, &diagnosis, why);
    if (!err) {
        err = end_all(b, timeline, diagnosis, why);
    } else {
        hec_schedule_abandon(b->schedule);
        hec_timeline_abandon(timeline);
        hec_diagnosis_abandon(diagnosis);
    }
    hec_pass_close(&b->pass);
    free(b->found.list);
    free(devices);
    return err;
}

/* After all passes, as an event at the end of the run. */
static void report_left_out(struct build *b, const char *what) {
    char text[sizeof b->out->events[0].text];
    snprintf(text, sizeof text, "a part of the run file is damaged and left out: %s", what);
    take_event(b, HEC_EVENT_DAMAGED, HEC_DEVICE_NONE, b->end_ns, text);
}

/* Tables: an absent one is empty. */
static int table(int err) {
    return err == HEC_ERR_NOTFOUND || err > 0 ? 0 : err;
}

static int build_all(struct build *b, const struct hec_price *price, struct hec_why *why) {
    const struct hec_summary_input *in = b->input;
    struct hec_summary *out = b->out;
    int err;
    if ((in->devices && (err = table(in->devices(in->context, take_device, b, why))) != 0) ||
        (in->events && (err = table(in->events(in->context, take_event, b, why))) != 0) ||
        (in->units && (err = table(in->units(in->context, take_unit, b, why))) != 0) ||
        (in->phases && (err = table(in->phases(in->context, take_phase, b, why))) != 0) ||
        (err = derive_end(b, why)) != 0)
        return err;
    out->seconds = (double)b->end_ns / HEC_NS_PER_S;
    b->meter.end_ns = b->end_ns;
    if ((err = hec_attribution_create(in, b->end_ns, &b->attribution, &out->host.processes, why)) != 0 ||
        (err = hec_host_fill(&b->meter, out, why)) != 0)
        return err;
    for (int i = 0; i < out->device_count; i++)
        if ((err = build_device(b, &out->devices[i].readings, why)) != 0)
            return err;
    if (out->imported[0]) {
        copy(out->energy_unavailable, sizeof out->energy_unavailable, "imported from a trace: time only");
    } else if (!out->device_count) {
        const char *reason = NULL;
        for (int i = 0; i < out->event_count && !reason; i++)
            if (out->events[i].kind == HEC_EVENT_SOURCE_UNAVAILABLE)
                reason = hec_vendor_event(out->events[i].text);
        if (!reason)
            reason = b->no_answer[0] ? b->no_answer : "no GPU was found";
        copy(out->energy_unavailable, sizeof out->energy_unavailable, reason);
    }
    if ((err = build_timeline(b, why)) != 0)
        return err;
    const char *left_out = in->left_out ? in->left_out(in->context) : NULL;
    if (left_out)
        report_left_out(b, left_out);
    add_totals(out, price);
    price_units(out);
    if ((err = hec_phases_end(b->phases, &b->meter, why)) != 0)
        return err;
    if (in->schedule)
        return 0;
    if ((err = hec_findings_build(out, b->predictor, &out->job.findings)) != 0 || !out->view)
        return err;
    struct hec_view *v = out->view;
    return hec_predict_lanes(b->predictor, &out->job.findings, &v->recorded, &v->answered, &v->answers);
}

int hec_summary_build(const struct hec_summary_input *input, const struct hec_price *price, struct hec_summary *out,
                      struct hec_why *why) {
    struct build *b = calloc(1, sizeof *b);
    if (!b)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    memset(out, 0, sizeof *out);
    if (why)
        why->text[0] = '\0';
    b->input = input;
    b->out = out;
    hec_meter_open(&b->meter, input, 0);
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        b->lost_ns[i] = INT64_MAX;
    label(input, out);
    out->view = input->view ? hec_view_new(input->view) : NULL;
    int err = input->view && !out->view ? HEC_ERR_NOMEM : build_all(b, price, why);
    hec_predictor_end(b->predictor);
    hec_attribution_free(b->attribution);
    hec_phases_free(b->phases);
    hec_meter_close(&b->meter);
    free(b);
    if (err) {
        hec_summary_free(out);
        memset(out, 0, sizeof *out);
        if (why && !why->text[0])
            hec_fail(why, err, "%s", hec_err_text(err));
    }
    return err;
}
