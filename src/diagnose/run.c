#include "base/clock.h"
#include "diagnose/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from ? from : "");
}

static bool grave(enum hec_event_kind kind) {
    return kind == HEC_EVENT_DEVICE_LOST || kind == HEC_EVENT_COUNTER_RESET || kind == HEC_EVENT_STORE_FAILED ||
           kind == HEC_EVENT_DAMAGED || kind == HEC_EVENT_SENSOR_FAILED || kind == HEC_EVENT_SOURCE_UNAVAILABLE;
}

static int take_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    struct hec_build *b = context;
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

static int take_unit(void *context, const char *name, double count) {
    struct hec_summary *out = ((struct hec_build *)context)->out;
    if (out->unit_count >= HEC_SUMMARY_UNITS_MAX || !isfinite(count) || count < 0)
        return 0;
    struct hec_unit_summary *unit = &out->units[out->unit_count++];
    copy(unit->name, sizeof unit->name, name && name[0] ? name : "unit");
    unit->count = count;
    return 0;
}

static int take_phase(void *context, const char *name, int64_t total_ns, int64_t count) {
    struct hec_summary *out = ((struct hec_build *)context)->out;
    if (out->phase_count >= HEC_SUMMARY_PHASES_MAX)
        return 0;
    struct hec_phase_summary *phase = &out->phases[out->phase_count++];
    copy(phase->name, sizeof phase->name, name);
    phase->seconds = (double)total_ns / HEC_NS_PER_S;
    phase->count = count;
    return 0;
}

static int take_device(void *context, const struct hec_device *device) {
    struct hec_summary *out = ((struct hec_build *)context)->out;
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

/* Sources are read about once a second at least: what is silent for longer than this has ended. */
#define SILENT_NS (2 * HEC_NS_PER_S)

/* The later one's last reading; 0: there is none. */
static int last_of(struct hec_build *b, enum hec_metric metric, enum hec_metric other, int32_t subject,
                   int64_t *last_ns, struct hec_why *why) {
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
static int derive_end(struct hec_build *b, struct hec_why *why) {
    int64_t ends_ns[2 + HEC_DEVICE_MAX], latest_ns = 0;
    int count = 2, err;
    b->meter.end_ns = b->input->end_ns;
    if (b->meter.end_ns > 0)
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
    b->meter.end_ns = latest_ns;
    for (int i = 0; i < count; i++)
        if (ends_ns[i] > 0 && ends_ns[i] >= latest_ns - SILENT_NS && ends_ns[i] < b->meter.end_ns)
            b->meter.end_ns = ends_ns[i];
    return 0;
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

/* Tables: an absent one is empty. */
static int table(int err) {
    return err == HEC_ERR_NOTFOUND || err > 0 ? 0 : err;
}

int hec_run_read(struct hec_build *b, struct hec_why *why) {
    const struct hec_summary_input *in = b->input;
    int err;
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        b->lost_ns[i] = INT64_MAX;
    label(in, b->out);
    if ((in->devices && (err = table(in->devices(in->context, take_device, b, why))) != 0) ||
        (in->events && (err = table(in->events(in->context, take_event, b, why))) != 0) ||
        (in->units && (err = table(in->units(in->context, take_unit, b, why))) != 0) ||
        (in->phases && (err = table(in->phases(in->context, take_phase, b, why))) != 0) ||
        (err = derive_end(b, why)) != 0)
        return err;
    b->out->seconds = (double)b->meter.end_ns / HEC_NS_PER_S;
    return 0;
}

void hec_run_left_out(struct hec_build *b) {
    const char *what = b->input->left_out ? b->input->left_out(b->input->context) : NULL;
    char text[sizeof b->out->events[0].text];
    if (!what)
        return;
    snprintf(text, sizeof text, "a part of the run file is damaged and left out: %s", what);
    take_event(b, HEC_EVENT_DAMAGED, HEC_DEVICE_NONE, b->meter.end_ns, text);
}
