/* hec export --perfetto: a trace of track events. Timestamps are nanoseconds from the run's start. A slice is a begin and
 * an end, written one after the other: readers sort. */
#include "report/export/export.h"

#include "base/clock.h"
#include "report/export/names.h"
#include "report/export/perfetto_tracks.h"
#include "report/export/proto.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_BYTES 65536
#define VALUES_MAX 256 /* kinds of numbers a program computes, of all processes */
#define TIES_MAX 4096  /* activities of one start that are put in order */

enum annotation {
    ANNOTATION_BYTES = 1,
    ANNOTATION_NODES,
    ANNOTATION_UNITS,
    ANNOTATION_LAUNCH,
    ANNOTATION_LAUNCHES,
    ANNOTATION_GPU,
    ANNOTATION_COUNT
};

struct perfetto {
    const struct hec_summary_input *input;
    struct hec_export_tables tables;
    struct hec_perfetto_tracks tracks;
    struct hec_proto proto;
    bool *named;      /* by name id: the name has been written */
    bool *configured; /* by kernel id: its launch configuration has been written */
    struct {
        uint64_t uuid;
        uint32_t track, name;
    } values[VALUES_MAX]; /* counter tracks of VALUE activities */
    size_t value_count;
    uint64_t counter; /* track of the readings that are written */
    struct hec_device devices[HEC_DEVICE_MAX];
    int device_count;
    struct hec_process *processes;
    size_t process_count;
    struct hec_activity *ties;
    size_t tie_count;
    uint32_t last_launch_track;
    int64_t last_launch_ns;
    hec_export_write write;
    void *context;
};

static int flush(struct perfetto *p, size_t above) {
    int err = p->proto.error;
    if (!err && p->proto.length > above) {
        err = p->write(p->context, p->proto.data, p->proto.length);
        p->proto.length = 0;
    }
    return err;
}

static size_t begin_packet(struct perfetto *p, int64_t t_ns) {
    size_t packet = hec_proto_begin(&p->proto, TRACE_PACKET);
    hec_proto_uint(&p->proto, PACKET_TIMESTAMP, t_ns > 0 ? (uint64_t)t_ns : 0);
    hec_proto_uint(&p->proto, PACKET_SEQUENCE, 1);
    hec_proto_uint(&p->proto, PACKET_FLAGS, FLAG_NEEDS_STATE);
    return packet;
}

/* ---- interned texts ---- */

static void intern(struct hec_proto *proto, enum interned_field what, uint64_t iid, const char *text) {
    size_t row = hec_proto_begin(proto, what);
    hec_proto_uint(proto, INTERNED_IID, iid);
    hec_proto_text(proto, INTERNED_TEXT, text);
    hec_proto_end(proto, row);
}

/* The first packet: all that came before is forgotten; categories are the kinds of activities. */
static void put_start(struct perfetto *p) {
    static const char *const annotations[ANNOTATION_COUNT] = {
        [ANNOTATION_BYTES] = "bytes",   [ANNOTATION_NODES] = "nodes",       [ANNOTATION_UNITS] = "units",
        [ANNOTATION_LAUNCH] = "launch", [ANNOTATION_LAUNCHES] = "launches", [ANNOTATION_GPU] = "GPU",
    };
    size_t packet = hec_proto_begin(&p->proto, TRACE_PACKET);
    hec_proto_uint(&p->proto, PACKET_SEQUENCE, 1);
    hec_proto_uint(&p->proto, PACKET_FLAGS, FLAG_STATE_CLEARED);
    size_t interned = hec_proto_begin(&p->proto, PACKET_INTERNED);
    for (int i = 0; i < HEC_ACTIVITY_KIND_COUNT; i++)
        intern(&p->proto, INTERNED_CATEGORY, (uint64_t)i + 1, hec_activity_kind_name((enum hec_activity_kind)i));
    for (int i = 1; i < ANNOTATION_COUNT; i++)
        intern(&p->proto, INTERNED_ANNOTATION, (uint64_t)i, annotations[i]);
    intern(&p->proto, INTERNED_NAME, HEC_EXPORT_NAME_LAUNCH, "launch");
    hec_proto_end(&p->proto, interned);
    hec_proto_end(&p->proto, packet);
}

static void describe_launch(const struct hec_kernel *k, char *text, size_t size) {
    snprintf(text, size, "grid %lldx%lldx%lld, block %dx%dx%d", (long long)k->grid[0], (long long)k->grid[1],
             (long long)k->grid[2], (int)k->block[0], (int)k->block[1], (int)k->block[2]);
    if (k->registers >= 0)
        snprintf(text + strlen(text), size - strlen(text), ", %d registers", (int)k->registers);
    if (k->static_shared_bytes >= 0 && k->dynamic_shared_bytes >= 0)
        snprintf(text + strlen(text), size - strlen(text), ", %lld + %lld B shared", (long long)k->static_shared_bytes,
                 (long long)k->dynamic_shared_bytes);
}

static const struct hec_kernel *kernel_of(const struct perfetto *p, const struct hec_activity *a) {
    const struct hec_timeline_tables *t = &p->tables.timeline;
    bool known = a->kind == HEC_ACTIVITY_KERNEL && a->name && a->name < t->kernel_count;
    return known && t->kernels[a->name].id && t->kernels[a->name].grid[0] >= 0 ? &t->kernels[a->name] : NULL;
}

/* What this packet names for the first time. */
static void put_interned(struct perfetto *p, const struct hec_activity *a, uint64_t name) {
    const struct hec_kernel *kernel = kernel_of(p, a);
    bool config = kernel && !p->configured[a->name];
    char text[2048];
    if (p->named[name] && !config)
        return;
    size_t interned = hec_proto_begin(&p->proto, PACKET_INTERNED);
    if (!p->named[name])
        intern(&p->proto, INTERNED_NAME, name, hec_export_name(&p->tables, a, text, sizeof text));
    if (config) {
        describe_launch(kernel, text, sizeof text);
        intern(&p->proto, INTERNED_STRING, a->name, text);
        p->configured[a->name] = true;
    }
    p->named[name] = true;
    hec_proto_end(&p->proto, interned);
}

/* ---- slices ---- */

static void annotate(struct perfetto *p, enum annotation name, double value) {
    size_t row;
    if (!isfinite(value))
        return;
    row = hec_proto_begin(&p->proto, EVENT_ANNOTATION);
    hec_proto_uint(&p->proto, ANNOTATION_NAME_IID, name);
    hec_proto_double(&p->proto, ANNOTATION_DOUBLE, value);
    hec_proto_end(&p->proto, row);
}

static void put_annotations(struct perfetto *p, const struct hec_activity *a) {
    if (a->kind == HEC_ACTIVITY_COPY || a->kind == HEC_ACTIVITY_MEMSET)
        annotate(p, ANNOTATION_BYTES, a->amount);
    else if (a->kind == HEC_ACTIVITY_GRAPH)
        annotate(p, ANNOTATION_NODES, a->amount);
    else if (a->kind == HEC_ACTIVITY_STEP)
        annotate(p, ANNOTATION_UNITS, a->amount);
    else if (a->kind == HEC_ACTIVITY_BURST)
        annotate(p, ANNOTATION_LAUNCHES, a->amount);
    else if (a->kind == HEC_ACTIVITY_API && a->amount > 0) /* where bytes are known */
        annotate(p, ANNOTATION_BYTES, a->amount);
    if (a->device)
        annotate(p, ANNOTATION_GPU, a->device - 1);
    if (kernel_of(p, a)) {
        size_t row = hec_proto_begin(&p->proto, EVENT_ANNOTATION);
        hec_proto_uint(&p->proto, ANNOTATION_NAME_IID, ANNOTATION_LAUNCH);
        hec_proto_uint(&p->proto, ANNOTATION_STRING_IID, a->name);
        hec_proto_end(&p->proto, row);
    }
}

/* A launch and what it launched have the thread and the instant of the call in common: an arrow without a table. */
static uint64_t flow_id(const struct hec_activity *a) {
    uint64_t mixed = ((uint64_t)a->launch_ns ^ (uint64_t)a->launch_track << 44) * UINT64_C(0x9e3779b97f4a7c15);
    return (mixed ^ mixed >> 32) | 1;
}

static bool has_launch(const struct hec_activity *a) {
    return (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)) && a->launch_track &&
           a->launch_ns >= -HEC_TIMELINE_TIME_MAX && a->launch_ns <= a->start_ns;
}

static size_t begin_slice(struct perfetto *p, int64_t start_ns, uint64_t track, uint64_t name,
                          enum hec_activity_kind kind, size_t *packet, const struct hec_activity *named) {
    *packet = begin_packet(p, start_ns);
    if (named)
        put_interned(p, named, name);
    size_t event = hec_proto_begin(&p->proto, PACKET_EVENT);
    hec_proto_uint(&p->proto, EVENT_TYPE, EVENT_BEGIN);
    hec_proto_uint(&p->proto, EVENT_TRACK, track);
    hec_proto_uint(&p->proto, EVENT_NAME_IID, name);
    hec_proto_uint(&p->proto, EVENT_CATEGORY_IID, (uint64_t)kind + 1);
    return event;
}

/* Ends the begin's event and packet, and writes the end. */
static void end_slice(struct perfetto *p, size_t event, size_t packet, int64_t end_ns, uint64_t track) {
    hec_proto_end(&p->proto, event);
    hec_proto_end(&p->proto, packet);
    packet = begin_packet(p, end_ns);
    event = hec_proto_begin(&p->proto, PACKET_EVENT);
    hec_proto_uint(&p->proto, EVENT_TYPE, EVENT_END);
    hec_proto_uint(&p->proto, EVENT_TRACK, track);
    hec_proto_end(&p->proto, event);
    hec_proto_end(&p->proto, packet);
}

/* The call that launched it: a run keeps it with what it caused. Of a graph the nodes have one launch. */
static void put_launch(struct perfetto *p, const struct hec_activity *a) {
    const struct hec_activity call = {
        .kind = HEC_ACTIVITY_API,
        .track = a->launch_track,
        .start_ns = a->launch_ns,
        .end_ns = a->launch_end_ns >= a->launch_ns && a->launch_end_ns <= HEC_TIMELINE_TIME_MAX ? a->launch_end_ns
                                                                                                : a->launch_ns,
    };
    if ((a->flags & HEC_ACTIVITY_IN_GRAPH) && a->launch_track == p->last_launch_track &&
        a->launch_ns == p->last_launch_ns)
        return;
    p->last_launch_track = a->launch_track;
    p->last_launch_ns = a->launch_ns;
    uint64_t track = hec_perfetto_track_of(&p->tracks, HEC_PART_LAUNCHES, &call);
    size_t packet;
    if (!track)
        return;
    size_t event = begin_slice(p, call.start_ns, track, HEC_EXPORT_NAME_LAUNCH, HEC_ACTIVITY_API, &packet, NULL);
    hec_proto_fixed64(&p->proto, EVENT_FLOW, flow_id(a));
    end_slice(p, event, packet, call.end_ns, track);
}

static enum hec_track_part part_of(const struct hec_activity *a) {
    return a->kind == HEC_ACTIVITY_STEP     ? HEC_PART_STEPS
           : a->kind == HEC_ACTIVITY_WINDOW ? HEC_PART_WINDOWS
           : a->kind == HEC_ACTIVITY_STACK  ? HEC_PART_STACKS
           : a->kind == HEC_ACTIVITY_BURST  ? HEC_PART_LAUNCHES /* phases begin and end within it */
                                            : HEC_PART_MAIN;
}

static void put_slice(struct perfetto *p, const struct hec_activity *a) {
    bool launched = has_launch(a);
    size_t packet;
    if (launched)
        put_launch(p, a);
    uint64_t track = hec_perfetto_track_of(&p->tracks, part_of(a), a), name = hec_export_name_id(&p->tables, a);
    if (!track)
        return;
    size_t event = begin_slice(p, a->start_ns, track, name, (enum hec_activity_kind)a->kind, &packet, a);
    put_annotations(p, a);
    if (launched)
        hec_proto_fixed64(&p->proto, EVENT_FLOW, flow_id(a));
    end_slice(p, event, packet, a->end_ns, track);
}

/* ---- counters ---- */

static void put_count(struct perfetto *p, uint64_t track, int64_t t_ns, double value) {
    size_t packet = begin_packet(p, t_ns), event = hec_proto_begin(&p->proto, PACKET_EVENT);
    hec_proto_uint(&p->proto, EVENT_TYPE, EVENT_COUNTER);
    hec_proto_uint(&p->proto, EVENT_TRACK, track);
    hec_proto_double(&p->proto, EVENT_DOUBLE_VALUE, value);
    hec_proto_end(&p->proto, event);
    hec_proto_end(&p->proto, packet);
}

static void put_value(struct perfetto *p, const struct hec_activity *a) {
    uint64_t uuid = 0;
    if (!isfinite(a->amount))
        return;
    for (size_t i = 0; i < p->value_count && !uuid; i++)
        if (p->values[i].track == a->track && p->values[i].name == a->name)
            uuid = p->values[i].uuid;
    if (!uuid) {
        char name[256];
        uint64_t process = p->value_count < VALUES_MAX ? hec_perfetto_process(&p->tracks, a->track) : 0;
        if (!process)
            return;
        uuid = hec_perfetto_counter(&p->tracks, process, hec_export_name(&p->tables, a, name, sizeof name), "");
        p->values[p->value_count].track = a->track;
        p->values[p->value_count].name = a->name;
        p->values[p->value_count++].uuid = uuid;
    }
    put_count(p, uuid, a->start_ns, a->amount);
}

static int take_reading(void *to, const struct hec_export_reading *r) {
    struct perfetto *p = to;
    if (r->first)
        p->counter = hec_perfetto_counter(&p->tracks, r->device < 0 ? 0 : hec_perfetto_device(&p->tracks, r->device),
                                          r->counter->name, r->counter->unit);
    if (isfinite(r->value) && r->start_ns >= 0)
        put_count(p, p->counter, r->start_ns, r->value);
    return flush(p, FLUSH_BYTES);
}

/* ---- activities ---- */

/* Of one start the longest first: what nests comes after what it is in. */
static int outermost_first(const void *a, const void *b) {
    const struct hec_activity *one = a, *other = b;
    if (one->track != other->track)
        return one->track < other->track ? -1 : 1;
    return (one->end_ns < other->end_ns) - (one->end_ns > other->end_ns);
}

static int put_ties(struct perfetto *p) {
    int err = 0;
    if (p->tie_count > 1)
        qsort(p->ties, p->tie_count, sizeof *p->ties, outermost_first);
    for (size_t i = 0; i < p->tie_count && !err; i++) {
        if (p->ties[i].kind == HEC_ACTIVITY_VALUE)
            put_value(p, &p->ties[i]);
        else
            put_slice(p, &p->ties[i]);
        err = flush(p, FLUSH_BYTES);
    }
    p->tie_count = 0;
    return err;
}

static int take_activities(void *to, const struct hec_activity *a, size_t count) {
    struct perfetto *p = to;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        if (a[i].kind >= HEC_ACTIVITY_KIND_COUNT || !hec_timeline_plausible(&a[i]))
            continue;
        if (p->tie_count == TIES_MAX || (p->tie_count && p->ties[0].start_ns != a[i].start_ns))
            err = put_ties(p);
        p->ties[p->tie_count++] = a[i];
    }
    return err;
}

static int take_device(void *context, const struct hec_device *device) {
    struct perfetto *p = context;
    if (p->device_count < HEC_DEVICE_MAX)
        p->devices[p->device_count++] = *device;
    return 0;
}

static int take_process(void *context, const struct hec_process *process) {
    struct perfetto *p = context;
    struct hec_process *grown = p->processes;
    if ((p->process_count & (p->process_count - 1)) == 0) /* full at each power of two */
        grown = realloc(p->processes, (p->process_count ? 2 * p->process_count : 1) * sizeof *grown);
    if (!grown)
        return HEC_ERR_NOMEM;
    p->processes = grown;
    p->processes[p->process_count++] = *process;
    return 0;
}

static int put_all(struct perfetto *p, struct hec_why *why) {
    const struct hec_summary_input *in = p->input;
    int err = hec_export_tables_load(&in->timeline, &p->tables, why);
    if (!err)
        err = hec_perfetto_tracks_init(&p->tracks, &p->tables, &p->proto);
    p->named = calloc(hec_export_name_count(&p->tables) + 1, sizeof *p->named);
    p->configured = calloc(p->tables.timeline.kernel_count + 1, sizeof *p->configured);
    p->ties = malloc(TIES_MAX * sizeof *p->ties);
    if (!err && (!p->named || !p->configured || !p->ties))
        err = HEC_ERR_NOMEM;
    if (!err && in->devices)
        err = in->devices(in->context, take_device, p, why);
    if (err && err != HEC_ERR_NOTFOUND)
        return err;
    err = in->processes ? in->processes(in->context, take_process, p, why) : 0;
    if (err && err != HEC_ERR_NOTFOUND)
        return err;
    p->tracks.devices = p->devices;
    p->tracks.device_count = p->device_count;
    p->tracks.processes = p->processes;
    p->tracks.process_count = p->process_count;
    put_start(p);
    if ((err = hec_export_counters(in, p->devices, p->device_count, take_reading, p, why)) != 0)
        return err;
    if (in->timeline.activities)
        err = in->timeline.activities(in->timeline.context, HEC_ACTIVITY_ALL, take_activities, p, why);
    if (err && err != HEC_ERR_NOTFOUND)
        return err;
    err = put_ties(p);
    return err ? err : flush(p, 0);
}

int hec_export_perfetto(const struct hec_summary_input *input, hec_export_write write, void *context,
                        struct hec_why *why) {
    struct perfetto *p = calloc(1, sizeof *p);
    if (!p)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    p->input = input;
    p->write = write;
    p->context = context;
    int err = put_all(p, why);
    if (err == HEC_ERR_NOMEM)
        hec_fail(why, err, "out of memory");
    hec_perfetto_tracks_free(&p->tracks);
    hec_export_tables_free(&p->tables);
    hec_proto_free(&p->proto);
    free(p->named);
    free(p->configured);
    free(p->ties);
    free(p->processes);
    free(p);
    return err;
}
