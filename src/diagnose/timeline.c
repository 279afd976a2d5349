#include "diagnose/timeline.h"

#include "base/trace.h"
#include "diagnose/steps.h"
#include "diagnose/timeline_device.h"
#include "diagnose/timeline_kernels.h"
#include "diagnose/timeline_periodic.h"
#include "diagnose/timeline_tables.h"
#include "diagnose/trace_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_KINDS                                                                                                     \
    (HEC_ACTIVITY_BIT(HEC_ACTIVITY_STEP) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_PHASE) |                                      \
     HEC_ACTIVITY_BIT(HEC_ACTIVITY_VALUE) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_STACK) |                                     \
     HEC_ACTIVITY_BIT(HEC_ACTIVITY_WINDOW))
/* Memory has an end whatever the file: steps of which is looked how busy each device was, and kernels (with a launch
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

struct build {
    const struct hec_timeline_input *input;
    struct hec_timeline *out;
    struct hec_timeline_tables tables;
    struct hec_windows windows;
    struct hec_step_survey survey;
    struct hec_step_list periodic;
    struct hec_timeline_device **devices; /* by index, ascending */
    struct step_cover *covers;            /* as many */
    size_t device_count, most;            /* most: so many it will be */
    struct hec_timeline_stream *streams;  /* by track id */
    int64_t *stream_counts;               /* activities, by track id */
};

/* ---- what the host did ---- */

static int take_host(void *to, const struct hec_activity *a, size_t count) {
    struct build *b = to;
    for (size_t i = 0; i < count; i++) {
        int err = 0;
        if (!hec_timeline_plausible(&a[i]))
            continue;
        if (a[i].kind == HEC_ACTIVITY_STACK) {
            b->out->stacks++;
        } else if (a[i].kind == HEC_ACTIVITY_WINDOW) {
            const struct hec_track *track = hec_timeline_track(&b->tables, a[i].track);
            err = track ? hec_windows_add(&b->windows, track->pid, a[i].start_ns, a[i].end_ns) : 0;
        } else {
            err = hec_step_survey_add(&b->survey, &b->tables, &a[i]);
        }
        if (err)
            return err;
    }
    return 0;
}

/* ---- devices ---- */

static void take_busy(void *context, int64_t start_ns, int64_t end_ns) {
    struct step_cover *cover = context;
    cover->busy_ns += hec_intervals_within(&cover->steps, start_ns, end_ns);
}

static int prepare_device(struct build *b, size_t at, int index, const struct hec_step_list *steps) {
    struct hec_timeline_device *d = b->devices[at] = calloc(1, sizeof *d);
    struct hec_pids pids = {0};
    size_t kernels = b->tables.kernel_count < KERNELS_MAX / b->most ? b->tables.kernel_count : KERNELS_MAX / b->most;
    int err = d ? hec_timeline_device_init(d, index, kernels) : HEC_ERR_NOMEM;
    if (!err)
        err = hec_timeline_pids(&b->tables, index, &pids);
    if (!err)
        err = hec_windows_traced(&b->windows, b->tables.tracers, b->tables.tracer_count, hec_pids_have, &pids,
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

static int prepare_devices(struct build *b, const struct hec_step_list *steps) {
    const struct hec_timeline_tables *t = &b->tables;
    int *indices = NULL;
    size_t count = 0;
    int err = hec_timeline_devices(t, &indices, &count);
    b->devices = calloc(count + 1, sizeof(struct hec_timeline_device *));
    b->covers = calloc(count + 1, sizeof *b->covers);
    b->streams = calloc(t->track_count + 1, sizeof *b->streams);
    b->stream_counts = calloc(t->track_count + 1, sizeof *b->stream_counts);
    if (!b->devices || !b->covers || !b->streams || !b->stream_counts)
        err = HEC_ERR_NOMEM;
    b->most = count;
    for (size_t i = 0; i < count && !err; i++) {
        b->device_count++;
        err = prepare_device(b, i, indices[i], steps);
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

static int take_device(void *to, const struct hec_activity *a, size_t count) {
    struct build *b = to;
    for (size_t i = 0; i < count; i++) {
        uint32_t track = a[i].track;
        struct hec_timeline_stream *stream = track < b->tables.track_count ? &b->streams[track] : NULL;
        if (!stream || !stream->device || !hec_timeline_plausible(&a[i]))
            continue;
        bool comm = a[i].kind == HEC_ACTIVITY_KERNEL &&
                    hec_timeline_kernel_class(&b->tables, a[i].name) == HEC_KERNEL_CLASS_COMM;
        b->stream_counts[track]++;
        hec_timeline_device_add(stream->device, stream, &a[i], comm);
    }
    return 0;
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

static int device_results(struct build *b, struct hec_why *why) {
    struct hec_timeline *out = b->out;
    int err =
        b->input->activities ? b->input->activities(b->input->context, HEC_ACTIVITY_DEVICE, take_device, b, why) : 0;
    if (err && err != HEC_ERR_NOTFOUND)
        return err;
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
        for (size_t k = 0; k < b->tables.track_count; k++)
            row->streams += b->stream_counts[k] > 0 && b->streams[k].device == d;
        err = hec_timeline_kernel_rows(d, &b->tables, capability_of(b->input, d->device), b->device_count,
                                       &out->kernels, &out->kernel_count);
        if (err)
            return err;
    }
    return 0;
}

/* ---- steps ---- */

/* Of the devices that the steps' process uses, the busiest. */
static double busy_share(const struct build *b) {
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
static uint32_t busiest_stream(const struct build *b) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < b->tables.track_count; i++)
        if (b->stream_counts[i] >= PERIODIC_MIN && b->stream_counts[i] > b->stream_counts[best])
            best = i;
    return best;
}

static int step_results(struct build *b, const struct hec_step_list *steps, struct hec_why *why) {
    struct hec_step_summary *out = &b->out->steps;
    double confidence = 1, share = busy_share(b);
    uint32_t track = steps ? 0 : busiest_stream(b);
    int err = 0;
    if (track) {
        b->periodic.pid = b->tables.tracks[track].pid;
        b->periodic.source = HEC_STEP_PERIODIC;
        err = hec_timeline_periodic(b->input, &b->tables, b->streams[track].device, track, b->stream_counts[track],
                                    &b->periodic, &confidence, &share, why);
        steps = b->periodic.count ? &b->periodic : NULL;
    }
    if (!err)
        err = hec_step_survey_result(&b->survey, &b->tables, steps, out);
    if (!err && steps) {
        out->confidence = confidence;
        out->busy_share = share;
    }
    return err;
}

static bool is_pid(const void *context, int32_t pid) {
    return *(const int32_t *)context == pid;
}

static int cost_results(struct build *b, const struct hec_step_list *steps) {
    struct hec_intervals traced = {.everywhere = true};
    int err = 0;
    if (steps)
        err = hec_windows_traced(&b->windows, b->tables.tracers, b->tables.tracer_count, is_pid, &steps->pid, &traced);
    if (!err) {
        hec_trace_cost_of(&b->tables, steps, &traced, b->input->hooks_share, &b->out->trace);
        if (!b->tables.tracer_count && !b->out->device_count)
            snprintf(b->out->trace.why, sizeof b->out->trace.why, "the run has no trace");
    }
    hec_intervals_free(&traced);
    return err;
}

/* ---- the whole ---- */

static int build_all(struct build *b, struct hec_why *why) {
    const struct hec_timeline_input *in = b->input;
    int err = hec_timeline_tables_load(in, &b->tables, why);
    if (!err && in->activities)
        err = in->activities(in->context, HOST_KINDS, take_host, b, why);
    if (err && err != HEC_ERR_NOTFOUND)
        return err;
    const struct hec_step_list *steps = hec_step_survey_best(&b->survey, &b->tables);
    if ((err = prepare_devices(b, steps)) != 0 || (err = device_results(b, why)) != 0 ||
        (err = step_results(b, steps, why)) != 0)
        return err;
    return cost_results(b, steps);
}

static void free_build(struct build *b) {
    for (size_t i = 0; i < b->device_count; i++) {
        if (b->devices[i])
            hec_timeline_device_free(b->devices[i]);
        free(b->devices[i]);
        hec_intervals_free(&b->covers[i].steps);
    }
    free(b->devices);
    free(b->covers);
    free(b->streams);
    free(b->stream_counts);
    free(b->periodic.list);
    hec_step_survey_free(&b->survey);
    hec_windows_free(&b->windows);
    hec_timeline_tables_free(&b->tables);
}

int hec_timeline_build(const struct hec_timeline_input *input, struct hec_timeline *out, struct hec_why *why) {
    struct build b = {.input = input, .out = out};
    memset(out, 0, sizeof *out);
    int err = build_all(&b, why);
    free_build(&b);
    if (err) {
        hec_timeline_free(out);
        if (err == HEC_ERR_NOMEM)
            hec_fail(why, err, "out of memory");
    }
    return err;
}

void hec_timeline_free(struct hec_timeline *timeline) {
    free(timeline->devices);
    free(timeline->kernels);
    memset(timeline, 0, sizeof *timeline);
}
