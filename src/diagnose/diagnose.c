/* A diagnosis is its stages (stages.def): how each begins and ends, and what runs them. */
#include "base/trace.h"
#include "diagnose/build.h"
#include "diagnose/meter/device.h"
#include "diagnose/rules/findings.h"
#include "diagnose/rules/predict.h"
#include "diagnose/view/view.h"

#include <stdlib.h>
#include <string.h>

/* Ends stages, in the order of what they need. */
struct ending {
    struct hec_build *b;
    const struct hec_stage_functions *stages;
    uint32_t taken, ended; /* bits of stages */
    enum hec_stage stage;  /* that ends alone */
    struct hec_why why;
    int err;
};

static bool next(const struct ending *e, enum hec_stage *stage) {
    for (int s = 0; s < HEC_STAGE_COUNT; s++)
        if (!(e->taken >> s & 1) && !(hec_stages[s].needs & ~e->ended)) {
            *stage = (enum hec_stage)s;
            return true;
        }
    return false;
}

static void end_alone(void *to) {
    struct ending *e = to;
    e->err = e->stages[e->stage].end(e->b, &e->why);
}

static void end_ready(void *to);

/* A stage that ends alone, and beside it all that do not need it. */
static void end_beside(struct ending *e, enum hec_stage stage) {
    struct ending alone = {.b = e->b, .stages = e->stages, .stage = stage};
    const struct hec_task tasks[2] = {{end_ready, e}, {end_alone, &alone}};
    hec_tasks_run(e->b->input->together, tasks, 2);
    if (!e->err && alone.err) {
        e->err = alone.err;
        e->why = alone.why;
    }
}

static void end_ready(void *to) {
    struct ending *e = to;
    enum hec_stage stage;
    while (!e->err && next(e, &stage)) {
        e->taken |= UINT32_C(1) << stage;
        if (hec_stages[stage].beside == HEC_STAGE_ALONE)
            end_beside(e, stage);
        else if (e->stages[stage].end)
            e->err = e->stages[stage].end(e->b, &e->why);
        e->ended |= UINT32_C(1) << stage;
    }
}

/* Begins all of them (HEC_STAGE_COUNT), feeds them, and ends each when those that it needs have ended. 0, or what the first that
 * failed returned; those after it have not ended then. */
static int stages_run(struct hec_build *b, const struct hec_stage_functions *stages, struct hec_why *why) {
    struct ending ending = {.b = b, .stages = stages};
    int err = 0;
    for (int s = 0; s < HEC_STAGE_COUNT && !err; s++)
        err = stages[s].begin ? stages[s].begin(b, why) : 0;
    if (!err)
        err = hec_pass_run(&b->pass, b->consumers, HEC_STAGE_COUNT, why);
    if (err)
        return err;
    end_ready(&ending);
    if (ending.err && why)
        *why = ending.why;
    return ending.err;
}

/* ---- what no trace is needed for ---- */

static int begin_host(struct hec_build *b, struct hec_why *why) {
    return hec_host_fill(&b->meter, b->out, why);
}

static int measure(struct hec_build *b, const struct hec_attribution *attribution, struct hec_device_summary *d,
                   struct hec_why *why) {
    int index = d->device.index;
    bool known = index >= 0 && index < HEC_DEVICE_MAX;
    const struct hec_meter_hints hints = {
        .simulated = d->device.simulated || b->out->simulated[0],
        .lost_ns = known ? b->lost_ns[index] : INT64_MAX,
        .unavailable = known && b->sensor_failed[index][0] ? b->sensor_failed[index] : b->no_answer,
    };
    int err = hec_meter_device(&b->meter, &hints, d, why);
    if (!err)
        hec_attribution_apply(attribution, d);
    return err;
}

static int begin_devices(struct hec_build *b, struct hec_why *why) {
    struct hec_summary *out = b->out;
    struct hec_attribution *attribution = NULL;
    int err = hec_attribution_create(b->input, b->meter.end_ns, &attribution, &out->host.processes, why);
    for (int i = 0; i < out->device_count && !err; i++)
        err = measure(b, attribution, &out->devices[i].readings, why);
    hec_attribution_free(attribution);
    if (out->imported[0]) {
        out->energy_unavailable = HEC_BECAUSE(IMPORTED);
    } else if (!out->device_count) {
        const char *reason = NULL;
        for (int i = 0; i < out->event_count && !reason; i++)
            if (out->events[i].kind == HEC_EVENT_SOURCE_UNAVAILABLE)
                reason = hec_vendor_event(out->events[i].text);
        out->energy_unavailable = hec_reason_said(reason ? reason : b->no_answer);
        if (!out->energy_unavailable.id)
            out->energy_unavailable = HEC_BECAUSE(NO_GPU);
    }
    return err;
}

/* ---- what is fed by the pass ---- */

static int begin_trace(struct hec_build *b, struct hec_why *why) {
    int count = b->out->device_count;
    b->devices = malloc(((size_t)count + 1) * sizeof *b->devices);
    if (!b->devices)
        return HEC_ERR_NOMEM;
    for (int i = 0; i < count; i++)
        b->devices[i] = b->out->devices[i].readings.device;
    b->trace = b->input->timeline;
    b->trace.devices = b->devices;
    b->trace.device_count = count;
    b->trace.end_ns = b->meter.end_ns;
    b->trace.brief = b->input->schedule;
    return hec_pass_open(&b->trace, &b->pass, why);
}

static int end_trace(struct hec_build *b, struct hec_why *why) {
    (void)why;
    hec_pass_close(&b->pass);
    free(b->found.list);
    b->pass = (struct hec_pass){0};
    b->found = (struct hec_step_list){0};
    return 0;
}

static int begin_job(struct hec_build *b, struct hec_why *why) {
    (void)why;
    return hec_job_ranks(b->input, &b->pass.tables, &b->out->job);
}

static int end_job(struct hec_build *b, struct hec_why *why) {
    (void)why;
    return hec_job_find(b->out, &b->schedule, &b->out->job);
}

static int begin_timeline(struct hec_build *b, struct hec_why *why) {
    (void)why;
    return hec_timeline_begin(&b->pass, &b->timeline, &b->consumers[HEC_STAGE_TIMELINE]);
}

/* What the trace alone can show of a device: that the command used it. Activities were recorded in its own processes, whatever the
 * lists of processes, which are polled, say of short ones. */
static void mark_used(const struct hec_summary *out, struct hec_device_summary *d, bool recorded,
                      struct hec_reason why) {
    if (d->used || !(recorded || d->use_unknown || out->imported[0]))
        return;
    d->used = true;
    d->use_unknown = false;
    d->used_why = why;
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
static int end_timeline(struct hec_build *b, struct hec_why *why) {
    struct hec_summary *out = b->out;
    struct hec_timeline t;
    int err = hec_timeline_end(b->timeline, &b->found, &t);
    (void)why;
    b->timeline = NULL;
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
        mark_used(out, &d->readings, true, HEC_BECAUSE(USED_TRACED));
    }
    t.kernels = NULL;
    t.steps = (struct hec_step_summary){0};
    hec_timeline_free(&t);
    if (!err && out->imported[0]) {
        out->trace.why = hec_reason_with(HEC_BECAUSE(IMPORTED_FROM), out->imported);
        for (int i = 0; i < out->device_count; i++)
            out->devices[i].readings.energy.why = HEC_BECAUSE(IMPORTED);
    }
    return err;
}

static int begin_phases(struct hec_build *b, struct hec_why *why) {
    (void)why;
    return hec_phases_begin(&b->pass.tables, b->meter.end_ns, b->out, &b->phases, &b->consumers[HEC_STAGE_PHASES]);
}

static int end_phases(struct hec_build *b, struct hec_why *why) {
    return hec_phases_end(b->phases, &b->meter, why);
}

static int begin_parts(struct hec_build *b, struct hec_why *why) {
    (void)why;
    return hec_step_parts_begin(&b->pass, &b->parts, &b->consumers[HEC_STAGE_PARTS]);
}

static int end_parts(struct hec_build *b, struct hec_why *why) {
    struct hec_step_parts_builder *parts = b->parts;
    (void)why;
    b->parts = NULL;
    return hec_step_parts_end(parts, b->out);
}

static int begin_view(struct hec_build *b, struct hec_why *why) {
    struct hec_summary *out = b->out;
    (void)why;
    if (!b->input->view)
        return 0;
    out->view = hec_view_new(b->input->view);
    return out->view ? hec_view_begin(out->view, &b->pass, out->device_count, &b->consumers[HEC_STAGE_VIEW])
                     : HEC_ERR_NOMEM;
}

static int end_view(struct hec_build *b, struct hec_why *why) {
    return b->out->view ? hec_view_end(b->out->view, &b->pass, &b->meter, b->out, why) : 0;
}

/* And of what else the states are made, or feed. */
static int begin_states(struct hec_build *b, struct hec_why *why) {
    (void)why;
    return hec_diagnosis_begin(&b->pass, !b->out->imported[0], b->out->view, &b->diagnosis, b->consumers);
}

static int end_states(struct hec_build *b, struct hec_why *why) {
    struct hec_summary *out = b->out;
    int err = hec_diagnosis_end(b->diagnosis, &b->meter, out, why);
    b->diagnosis = NULL;
    for (int i = 0; i < out->device_count && !err; i++)
        if (out->devices[i].ledger)
            mark_used(out, &out->devices[i].readings, false, HEC_BECAUSE(USED_CALLED));
    for (int i = 0; i < out->device_count && strcmp(out->trace.why.text, HEC_TRACE_WHY_NOBODY) == 0; i++)
        if (out->devices[i].readings.used)
            out->trace.why = HEC_BECAUSE(TRACER_NOT_LOADED);
    return err;
}

static int begin_schedule(struct hec_build *b, struct hec_why *why) {
    (void)why;
    return hec_schedule_begin(&b->pass, b->input->schedule ? HEC_SCHEDULE_CALLS_MAX : HEC_PREDICT_CALLS, &b->recorder,
                              &b->consumers[HEC_STAGE_SCHEDULE]);
}

/* Nothing to replay is no error. */
static int end_schedule(struct hec_build *b, struct hec_why *why) {
    int err = hec_schedule_end(b->recorder, &b->found, b->input->together, &b->schedule);
    (void)why;
    b->recorder = NULL;
    return err == HEC_ERR_NOTFOUND ? 0 : err;
}

/* ---- what is made of them ---- */

static int end_others(struct hec_build *b, struct hec_why *why) {
    int err = 0;
    for (int i = 0; i < b->out->device_count && !err; i++)
        err = hec_others_find(&b->meter, b->out->devices[i].timeline, &b->out->devices[i].readings, why);
    return err;
}

static int end_blocks(struct hec_build *b, struct hec_why *why) {
    int err = hec_steady_blocks_build(&b->pass, &b->meter, b->out, &b->out->blocks, why);
    return err ? err : hec_loop_build(&b->pass, &b->meter, b->out, why);
}

static int end_totals(struct hec_build *b, struct hec_why *why) {
    hec_totals_find(b->out, b->price, b->input->carbon);
    hec_mfu_find(b->out);
    return hec_printed_find(b, why);
}

static int end_predictions(struct hec_build *b, struct hec_why *why) {
    struct hec_schedule schedule = b->schedule;
    b->schedule = (struct hec_schedule){0};
    if (b->input->schedule)
        *b->input->schedule = schedule;
    else if (schedule.count > 0)
        return hec_predictor_begin(&b->meter, b->out, &schedule, &b->predictor, why);
    return 0;
}

static int end_findings(struct hec_build *b, struct hec_why *why) {
    struct hec_summary *out = b->out;
    struct hec_view *v = out->view;
    (void)why;
    hec_run_left_out(b);
    if (b->input->schedule)
        return 0;
    int err = hec_findings_build(out, b->predictor, &out->job.findings);
    if (!err && v)
        err = hec_predict_lanes(b->predictor, &out->job.findings, &v->recorded, &v->answered, &v->answers);
    hec_job_split(out); /* rules take what communicates and what waits together */
    return err;
}

/* ---- the whole ---- */

/* NULL: there is nothing to do, or another one does it (INFERRED, LINES, MODULES and CALLS are of STATES). */
static const struct hec_stage_functions stages[HEC_STAGE_COUNT] = {
    [HEC_STAGE_RUN] = {hec_run_read, NULL},
    [HEC_STAGE_HOST] = {begin_host, NULL},
    [HEC_STAGE_DEVICES] = {begin_devices, NULL},
    [HEC_STAGE_TRACE] = {begin_trace, end_trace},
    [HEC_STAGE_JOB] = {begin_job, end_job},
    [HEC_STAGE_TIMELINE] = {begin_timeline, end_timeline},
    [HEC_STAGE_PARTS] = {begin_parts, end_parts},
    [HEC_STAGE_PHASES] = {begin_phases, end_phases},
    [HEC_STAGE_VIEW] = {begin_view, end_view},
    [HEC_STAGE_STATES] = {begin_states, end_states},
    [HEC_STAGE_SCHEDULE] = {begin_schedule, end_schedule},
    [HEC_STAGE_OTHERS] = {NULL, end_others},
    [HEC_STAGE_BLOCKS] = {NULL, end_blocks},
    [HEC_STAGE_TOTALS] = {NULL, end_totals},
    [HEC_STAGE_PREDICTIONS] = {NULL, end_predictions},
    [HEC_STAGE_FINDINGS] = {NULL, end_findings},
};

int hec_summary_build(const struct hec_summary_input *input, const struct hec_price *price, struct hec_summary *out,
                      struct hec_why *why) {
    struct hec_build *b = calloc(1, sizeof *b);
    if (!b)
        return hec_fail(why, HEC_ERR_NOMEM, "%s", hec_err_text(HEC_ERR_NOMEM));
    memset(out, 0, sizeof *out);
    if (why)
        why->text[0] = '\0';
    b->input = input;
    b->price = price;
    b->out = out;
    hec_meter_open(&b->meter, input, 0);
    int err = stages_run(b, stages, why);
    hec_timeline_abandon(b->timeline);
    hec_diagnosis_abandon(b->diagnosis);
    hec_schedule_abandon(b->recorder);
    hec_schedule_free(&b->schedule);
    hec_predictor_end(b->predictor);
    hec_phases_free(b->phases);
    hec_step_parts_free(b->parts);
    end_trace(b, why);
    free(b->devices);
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
