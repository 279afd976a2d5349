#include "diagnose/timeline/timeline.h"

#include "base/clock.h"
#include "base/trace.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/timeline/device.h"
#include "diagnose/timeline/periodic.h"
#include "diagnose/timeline/tables.h"
#include "diagnose/timeline/trace_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Memory has an end for any file: steps of which is looked how busy each device was, and kernels (with a launch
 * configuration) that are counted apart, of all devices together: 24 and 32 bytes each. */
#define COVERED_MAX (1u << 21)
#define KERNELS_MAX (1u << 22)
/* Fewer activities have no period that can be believed. */
#define PERIODIC_MIN 16

/* How busy a device was in the steps that lie wholly in traced time. */
struct step_cover {
    struct hec_intervals steps;
    int64_t busy_ns;
};

struct hec_timeline_builder {
    struct hec_pass *pass;
    const struct hec_timeline_tables *tables; /* of it */
    const struct hec_step_list *steps;        /* NULL: what could be a step of the kernels is kept */
    struct hec_timeline_device **devices;     /* by index, ascending */
    struct step_cover *covers;                /* as many */
    size_t device_count, most;                /* most: so many it will be */
    struct hec_timeline_stream *streams;      /* by track id */
    int64_t *stream_counts;                   /* activities, by track id */
    struct hec_periodic *kept;                /* by track id */
    size_t kept_count;
    int64_t stacks;
};

/* ---- devices ---- */

static void take_busy(void *context, int64_t start_ns, int64_t end_ns) {
    struct step_cover *cover = context;
    cover->busy_ns += hec_intervals_within(&cover->steps, start_ns, end_ns);
}

static int prepare_device(struct hec_timeline_builder *b, size_t at, int index) {
    const struct hec_step_list *steps = b->steps;
    struct hec_timeline_device *d = b->devices[at] = calloc(1, sizeof *d);
    struct hec_pids pids = {0};
    size_t kernels = b->tables->kernel_count < KERNELS_MAX / b->most ? b->tables->kernel_count : KERNELS_MAX / b->most;
    int err = d ? hec_timeline_device_init(d, index, kernels) : HEC_ERR_NOMEM;
    if (!err) {
        d->brief = b->pass->input->brief;
        err = hec_timeline_pids(b->tables, index, &pids);
    }
    if (!err)
        err = hec_windows_traced(&b->pass->windows, b->tables->tracers, b->tables->tracer_count, hec_pids_have, &pids,
                                 &d->traced);
    if (!err && steps && hec_pids_have(&pids, steps->pid)) {
        d->busy = take_busy;
        d->context = &b->covers[at];
        for (size_t i = 0; i < steps->count && b->covers[at].steps.count < COVERED_MAX / b->most && !err; i++) {
            const struct hec_step *s = &steps->list[i];
            if (hec_intervals_within(&d->traced, s->start_ns, s->end_ns) == s->end_ns - s->start_ns)
                err = hec_intervals_append(&b->covers[at].steps, s->start_ns, s->end_ns);
        }
    }
    free(pids.list);
    return err;
}

static int prepare_devices(struct hec_timeline_builder *b) {
    const struct hec_timeline_tables *t = b->tables;
    int *indices = NULL;
    size_t count = 0;
    int err = hec_timeline_devices(t, &indices, &count);
    b->devices = calloc(count + 1, sizeof(struct hec_timeline_device *));
    b->covers = calloc(count + 1, sizeof *b->covers);
    b->streams = calloc(t->track_count + 1, sizeof *b->streams);
    b->stream_counts = calloc(t->track_count + 1, sizeof *b->stream_counts);
    b->kept = calloc(t->track_count + 1, sizeof *b->kept);
    if (!b->devices || !b->covers || !b->streams || !b->stream_counts || !b->kept)
        err = HEC_ERR_NOMEM;
    b->most = count;
    for (size_t i = 0; i < count && !err; i++) {
        b->device_count++;
        err = prepare_device(b, i, indices[i]);
    }
    for (size_t i = 0; i < t->track_count && !err; i++) {
        b->streams[i].graph_launch_ns = HEC_TIME_UNKNOWN;
        for (size_t k = 0; k < count && t->tracks[i].id && t->tracks[i].kind == HEC_TRACK_STREAM; k++)
            if (b->devices[k]->device == t->tracks[i].device)
                b->streams[i].device = b->devices[k];
    }
    free(indices);
    return err;
}

/* So long it had been busy by t, traced or not. */
static int64_t busy_until(const struct hec_union *u, int64_t t_ns) {
    return u->length_ns + (u->start_ns <= u->end_ns ? (t_ns < u->end_ns ? t_ns : u->end_ns) - u->start_ns : 0);
}

static int keep(struct hec_timeline_builder *b, struct hec_timeline_device *d, const struct hec_activity *a) {
    struct hec_intervals everywhere = {.everywhere = true};
    int err = b->kept_count++ < HEC_PERIODIC_KEPT
                  ? hec_periodic_add(&b->kept[a->track], b->tables, a, busy_until(&d->all, a->start_ns))
                  : 0;
    hec_union_add(&d->all, &everywhere, a->start_ns, a->end_ns);
    return err;
}

static int take_device(struct hec_timeline_builder *b, const struct hec_activity *a) {
    struct hec_timeline_stream *stream = a->track < b->tables->track_count ? &b->streams[a->track] : NULL;
    if (!stream || !stream->device)
        return 0;
    b->stream_counts[a->track]++;
    hec_timeline_device_add(stream->device, stream, a, hec_timeline_communicates(b->tables, a));
    return b->steps ? 0 : keep(b, stream->device, a);
}

static int take_activities(void *to, const struct hec_activity *a, size_t count) {
    struct hec_timeline_builder *b = to;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        uint32_t bit = HEC_ACTIVITY_BIT(a[i].kind);
        if (!(hec_stages[HEC_STAGE_TIMELINE].kinds & bit) || !hec_timeline_plausible(&a[i]))
            continue;
        if (HEC_ACTIVITY_DEVICE & bit)
            err = take_device(b, &a[i]);
        else if (a[i].kind == HEC_ACTIVITY_STACK)
            b->stacks++;
        else
            err = hec_step_survey_add(&b->pass->survey, b->tables, &a[i]);
    }
    return err;
}

static bool used(const struct hec_timeline_device *d) {
    return d->from_ns <= d->to_ns;
}

static const struct hec_device *capability_of(const struct hec_timeline_input *input, int index) {
    for (int i = 0; i < input->device_count; i++)
        if (input->devices[i].index == index)
            return &input->devices[i];
    return NULL;
}

static int device_results(struct hec_timeline_builder *b, struct hec_timeline *out) {
    int err = 0;
    out->devices = calloc(b->device_count + 1, sizeof *out->devices);
    if (!out->devices)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < b->device_count; i++) {
        struct hec_timeline_device *d = b->devices[i];
        if (!used(d))
            continue;
        struct hec_device_timeline *row = &out->devices[out->device_count++];
        hec_timeline_device_end(d);
        hec_timeline_device_result(d, row);
        for (size_t k = 0; k < b->tables->track_count; k++)
            row->streams += b->stream_counts[k] > 0 && b->streams[k].device == d;
        row->row_count = -out->kernel_count;
        err = hec_timeline_kernel_rows(d, b->tables, capability_of(b->pass->input, d->device), b->device_count,
                                       &out->kernels, &out->kernel_count);
        row->row_count += out->kernel_count;
        if (err)
            return err;
    }
    const struct hec_kernel_row *next = out->kernels; /* which is not moved any more; null when there are none */
    for (int i = 0; i < out->device_count && next; next += out->devices[i++].row_count)
        out->devices[i].rows = next;
    return 0;
}

/* ---- steps ---- */

/* Of the devices that the steps' process uses, the busiest. */
static double busy_share(const struct hec_timeline_builder *b) {
    int64_t most = -1, length = 0;
    for (size_t i = 0; i < b->device_count; i++) {
        const struct hec_intervals *steps = &b->covers[i].steps;
        if (!steps->count || !used(b->devices[i]) || b->covers[i].busy_ns <= most)
            continue;
        const struct hec_interval *last = &steps->list[steps->count - 1];
        most = b->covers[i].busy_ns;
        length = last->before_ns + last->end_ns - last->start_ns;
    }
    return length > 0 ? (double)most / (double)length : NAN;
}

/* The stream with most activities; 0: none has enough. */
static uint32_t busiest_stream(const struct hec_timeline_builder *b) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < b->tables->track_count; i++)
        if (b->stream_counts[i] >= PERIODIC_MIN && b->stream_counts[i] > b->stream_counts[best])
            best = i;
    return best;
}

/* *steps: those that were found where there were none. */
static int step_results(struct hec_timeline_builder *b, struct hec_step_list *periodic, struct hec_step_summary *out) {
    const struct hec_step_list *steps = b->steps;
    double confidence = 1, share = busy_share(b);
    uint32_t track = steps ? 0 : busiest_stream(b);
    int err = 0;
    if (track) {
        periodic->pid = b->tables->tracks[track].pid;
        periodic->source = HEC_STEP_PERIODIC;
        err = hec_periodic_steps(&b->kept[track], b->tables, &b->streams[track].device->traced, periodic, &confidence,
                                 &share);
        steps = periodic->count ? periodic : NULL;
    }
    if (!err)
        err = hec_step_survey_result(&b->pass->survey, b->tables, steps, out);
    if (!err && steps)
        err = hec_step_survey_losses(&b->pass->survey, steps, out);
    if (!err && steps) {
        out->confidence = confidence;
        out->busy_share = share;
    }
    return err;
}

static bool is_pid(const void *context, int32_t pid) {
    return *(const int32_t *)context == pid;
}

static int cost_results(struct hec_timeline_builder *b, struct hec_timeline *out) {
    struct hec_intervals traced = {.everywhere = true};
    int err = 0;
    if (b->steps)
        err = hec_windows_traced(&b->pass->windows, b->tables->tracers, b->tables->tracer_count, is_pid, &b->steps->pid,
                                 &traced);
    if (!err) {
        hec_trace_cost_of(b->tables, b->steps, &traced, b->pass->input->hooks_share, &out->trace);
        for (size_t i = 0; i < b->pass->rests.count; i++)
            out->trace.rest_s +=
                (double)(b->pass->rests.list[i].end_ns - b->pass->rests.list[i].start_ns) / HEC_NS_PER_S;
        if (!b->tables->tracer_count && !out->device_count)
            out->trace.why = HEC_BECAUSE(NO_TRACE);
    }
    hec_intervals_free(&traced);
    return err;
}

/* The traced time of each device, which goes on to the result. */
static void give_traced(struct hec_timeline_builder *b, struct hec_timeline *out) {
    for (size_t i = 0, row = 0; i < b->device_count; i++)
        if (used(b->devices[i])) {
            out->devices[row++].traced = b->devices[i]->traced;
            b->devices[i]->traced = (struct hec_intervals){0};
        }
}

/* ---- the whole ---- */

int hec_timeline_begin(struct hec_pass *pass, struct hec_timeline_builder **out, struct hec_pass_consumer *consumer) {
    struct hec_timeline_builder *b = *out = calloc(1, sizeof *b);
    if (!b)
        return HEC_ERR_NOMEM;
    b->pass = pass;
    b->tables = &pass->tables;
    b->steps = hec_step_survey_best(&pass->survey, b->tables);
    *consumer = hec_stage_consumer(HEC_STAGE_TIMELINE, b, take_activities);
    int err = prepare_devices(b);
    if (err) {
        hec_timeline_abandon(b);
        *out = NULL;
    }
    return err;
}

int hec_timeline_end(struct hec_timeline_builder *b, struct hec_step_list *found, struct hec_timeline *out) {
    struct hec_step_list periodic = {0};
    memset(out, 0, sizeof *out);
    out->stacks = b->stacks;
    int err = device_results(b, out);
    if (!err)
        err = step_results(b, &periodic, &out->steps);
    if (!err)
        err = cost_results(b, out);
    if (!err)
        give_traced(b, out);
    if (err || !found)
        free(periodic.list);
    else
        *found = periodic;
    hec_timeline_abandon(b);
    if (err)
        hec_timeline_free(out);
    return err;
}

void hec_timeline_abandon(struct hec_timeline_builder *b) {
    if (!b)
        return;
    for (size_t i = 0; i < b->device_count; i++) {
        if (b->devices[i])
            hec_timeline_device_free(b->devices[i]);
        free(b->devices[i]);
        hec_intervals_free(&b->covers[i].steps);
    }
    for (size_t i = 0; b->kept && i < b->tables->track_count; i++)
        free(b->kept[i].list);
    free(b->devices);
    free(b->covers);
    free(b->streams);
    free(b->stream_counts);
    free(b->kept);
    free(b);
}

void hec_timeline_free(struct hec_timeline *timeline) {
    for (int i = 0; i < timeline->device_count; i++)
        hec_intervals_free(&timeline->devices[i].traced);
    free(timeline->devices);
    free(timeline->kernels);
    free(timeline->steps.losses);
    free(timeline->steps.gradients);
    memset(timeline, 0, sizeof *timeline);
}
