/* Kineto's events as activities. */
#include "base/hash.h"
#include "base/list.h"
#include "base/text.h"
#include "store/import/event.h"
#include "store/import/words.h"
#include "store/import/xla.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGUN_MAX 65536 /* open at a time, over all threads: real ones nest a few hundred deep */

static int32_t small(struct hec_import_number n) {
    return n.known && n.value >= 0 && n.value <= INT32_MAX ? (int32_t)n.value : -1;
}

static double amount(struct hec_import_number n) {
    return n.known && n.value >= 0 ? (double)n.value : NAN;
}

/* A kernel of a communicator has its name: of two with the same kernels, one waits for other ranks than the other. */
static uint32_t kernel_name(struct hec_import *import, const struct hec_import_event *e) {
    char text[512 + sizeof e->communicator];
    if (!e->communicator[0] || e->name_length >= 512)
        return hec_import_name(import, e->name, e->name_length);
    int length =
        snprintf(text, sizeof text, "%.*s" HEC_COMMUNICATOR "%s]", (int)e->name_length, e->name, e->communicator);
    return hec_import_name(import, text, (size_t)length);
}

static uint32_t kernel_id(struct hec_import *import, const struct hec_import_event *e) {
    struct hec_kernel kernel = {
        .name = kernel_name(import, e),
        .registers = small(e->registers),
        .static_shared_bytes = small(e->shared_bytes), /* Kineto gives the sum of both */
        .dynamic_shared_bytes = e->shared_bytes.known ? 0 : -1,
    };
    for (int i = 0; i < 3; i++) {
        kernel.grid[i] = e->grid[i].known && e->grid[i].value >= 0 ? e->grid[i].value : -1;
        kernel.block[i] = small(e->block[i]);
    }
    return import->sink->trace_kernel(import->sink->context, &kernel);
}

static bool track_of(struct hec_import_event *e, struct hec_import_track *track) {
    memset(track, 0, sizeof *track);
    track->device = -1;
    if (e->kind == HEC_ACTIVITY_KERNEL || e->kind == HEC_ACTIVITY_COPY || e->kind == HEC_ACTIVITY_MEMSET) {
        /* device rows have the device as process and the stream as thread */
        struct hec_import_number device = e->device.known ? e->device : e->pid;
        struct hec_import_number stream = e->stream.known ? e->stream : e->tid;
        track->kind = HEC_TRACK_STREAM;
        track->pid = -1;
        track->device = small(device);
        track->context = e->context.known ? (uint32_t)e->context.value : 0;
        track->stream = stream.value;
        return track->device >= 0 && stream.known;
    }
    track->kind = e->kind == HEC_ACTIVITY_STEP ? HEC_TRACK_PROCESS : HEC_TRACK_THREAD;
    track->pid = small(e->pid);
    track->stream = e->kind == HEC_ACTIVITY_STEP ? 0 : e->tid.value;
    return track->pid >= 0 && (e->tid.known || e->kind == HEC_ACTIVITY_STEP);
}

static void fill(struct hec_import *import, const struct hec_import_event *e, enum hec_import_range range,
                 struct hec_activity *a) {
    struct hec_import_direction direction;
    switch (e->kind) {
    case HEC_ACTIVITY_KERNEL:
        a->name = kernel_id(import, e);
        if (e->collective[0])
            a->amount = hec_import_bus_bytes(e->collective, e->element, fmax(amount(e->elements_in), 0),
                                             fmax(amount(e->elements_out), 0), amount(e->ranks));
        break;
    case HEC_ACTIVITY_COPY:
    case HEC_ACTIVITY_MEMSET:
        direction = hec_import_direction(e->name, e->name_length);
        a->from = e->kind == HEC_ACTIVITY_COPY ? direction.from : 0;
        a->to = direction.to;
        a->flags = direction.peer ? HEC_ACTIVITY_PEER : 0;
        a->amount = amount(e->bytes);
        break;
    case HEC_ACTIVITY_SYNC:
        a->detail = e->sync_type ? e->sync_type : hec_import_sync_type(e->name, e->name_length);
        break;
    case HEC_ACTIVITY_STEP:
        a->detail = range == HEC_IMPORT_RANGE_PROFILER_STEP || e->step.known ? HEC_STEP_ANNOTATED : HEC_STEP_RANGE;
        a->amount = NAN;
        break;
    case HEC_ACTIVITY_API:
        a->detail = hec_import_api_class(e->name, e->name_length);
        a->name = hec_import_name(import, e->name, e->name_length);
        break;
    case HEC_ACTIVITY_PHASE:
        a->name = hec_import_name(import, hec_import_phase(range), strlen(hec_import_phase(range)));
        break;
    default:
        a->name = hec_import_name(import, e->name, e->name_length);
    }
    if (e->graph_node.known && e->graph_node.value > 0 && e->kind != HEC_ACTIVITY_API)
        a->flags |= HEC_ACTIVITY_IN_GRAPH;
}

/* The record of an event that is complete but for its end. 1: it has no place. */
static int make_record(struct hec_import *import, struct hec_import_file *file, struct hec_import_event *e,
                       struct hec_import_record *record, struct hec_why *why) {
    enum hec_import_range range = HEC_IMPORT_RANGE_OTHER;
    if (e->kind == HEC_ACTIVITY_RANGE || e->kind == HEC_ACTIVITY_OPERATOR) {
        range = hec_import_range_of(e->name, e->name_length);
        if (range == HEC_IMPORT_RANGE_PROFILER_STEP || range == HEC_IMPORT_RANGE_STEP)
            e->kind = HEC_ACTIVITY_STEP;
        else if (hec_import_phase(range))
            e->kind = HEC_ACTIVITY_PHASE;
    }
    *record = (struct hec_import_record){
        .activity = {.start_ns = e->start_ns.value, .end_ns = e->start_ns.value, .kind = (uint8_t)e->kind},
        .correlation = e->correlation.known && e->correlation.value > 0 ? (uint64_t)e->correlation.value : 0,
    };
    if (e->kind != HEC_ACTIVITY_SYNC) { /* that one goes where its call is */
        struct hec_import_track track;
        if (!track_of(e, &track))
            return 1;
        int64_t id = hec_import_tracks_id(&file->tracks, &track);
        if (id < 0)
            return hec_fail(why, (int)id, "%s has too many threads and streams", file->path);
        record->activity.track = (uint32_t)id;
        if (file->pid < 0) /* the first that names a process; a stream does not */
            file->pid = track.pid;
    }
    fill(import, e, range, &record->activity);
    return HEC_OK;
}

/* A collective of several ranks, by its number in its process group. */
static int note_meeting(struct hec_import *import, const struct hec_import_file *file, const struct hec_import_event *e,
                        int64_t end_ns, struct hec_why *why) {
    char key[sizeof e->communicator + 48];
    if (e->kind != HEC_ACTIVITY_KERNEL || !e->sequence.known || !hec_import_ends_together(e->collective))
        return HEC_OK;
    int length = snprintf(key, sizeof key, "%s %llx %lld", e->communicator, (unsigned long long)e->members,
                          (long long)e->sequence.value);
    return hec_import_meetings_add(&import->meetings, hec_hash(key, (size_t)length), (int)(file - import->files),
                                   end_ns, why);
}

static int finish(struct hec_import *import, struct hec_import_file *file, const struct hec_import_record *record,
                  struct hec_import_number size, struct hec_why *why) {
    int err = HEC_OK;
    if (record->activity.kind == HEC_ACTIVITY_API)
        err = hec_import_call(import, record, amount(size), why);
    return err < 0 ? err : hec_import_add(import, file, record, why);
}

/* B and E of one thread nest, regardless of the track of what they stand for. */
static int64_t thread_of(struct hec_import_file *file, const struct hec_import_event *e, struct hec_why *why) {
    struct hec_import_track thread = {
        .kind = HEC_TRACK_THREAD, .pid = small(e->pid), .device = -1, .stream = e->tid.value};
    if (thread.pid < 0 || !e->tid.known)
        return 0;
    int64_t id = hec_import_tracks_id(&file->tracks, &thread);
    return id < 0 ? hec_fail(why, (int)id, "%s has too many threads and streams", file->path) : id;
}

static int begin(struct hec_import *import, struct hec_import_file *file, const struct hec_import_event *e,
                 const struct hec_import_record *record, struct hec_import_begun *begun, struct hec_why *why) {
    int64_t thread = thread_of(file, e, why);
    if (thread <= 0) {
        import->stats.bad += thread == 0;
        return (int)thread;
    }
    uint32_t at = begun->free;
    if (at) {
        begun->free = begun->open[at - 1].below;
    } else {
        if (begun->count == BEGUN_MAX)
            return hec_fail(why, HEC_ERR_LIMIT, "%s: more than %d events are open at a time", file->path, BEGUN_MAX);
        if (!hec_list_room(begun->open, begun->count, begun->capacity, 64))
            return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
        at = (uint32_t)++begun->count;
    }
    struct hec_import_track *track = &file->tracks.tracks[thread];
    begun->open[at - 1] = (struct hec_import_open){*record, track->open};
    track->open = at;
    begun->live++;
    return HEC_OK;
}

/* E: ends what began last on the thread. */
static int end(struct hec_import *import, struct hec_import_file *file, const struct hec_import_event *e,
               struct hec_import_begun *begun, struct hec_why *why) {
    int64_t thread = thread_of(file, e, why);
    struct hec_import_track *track = thread > 0 ? &file->tracks.tracks[thread] : NULL;
    uint32_t at = track ? track->open : 0;
    if (!at || !e->start_ns.known) {
        import->stats.bad += thread >= 0;
        return thread < 0 ? (int)thread : HEC_OK;
    }
    struct hec_import_record record = begun->open[at - 1].record;
    track->open = begun->open[at - 1].below;
    begun->open[at - 1].below = begun->free;
    begun->free = at;
    begun->live--;
    record.activity.end_ns = e->start_ns.value;
    return finish(import, file, &record, (struct hec_import_number){0}, why);
}

static int metadata(struct hec_import_file *file, const struct hec_import_event *e, struct hec_why *why) {
    bool process = e->name_length == 12 && memcmp(e->name, "process_name", 12) == 0;
    bool thread = e->name_length == 11 && memcmp(e->name, "thread_name", 11) == 0 && e->tid.known;
    struct hec_import_track key = {.kind = process ? HEC_TRACK_PROCESS : HEC_TRACK_THREAD,
                                   .pid = small(e->pid),
                                   .device = -1,
                                   .stream = process ? 0 : e->tid.value};
    if ((!process && !thread) || key.pid < 0 || !e->label[0])
        return HEC_OK;
    int64_t id = hec_import_tracks_id(&file->tracks, &key);
    if (id < 0)
        return hec_fail(why, (int)id, "%s has too many threads and streams", file->path);
    struct hec_import_track *track = &file->tracks.tracks[id];
    hec_text_clean(track->name, sizeof track->name, e->label, strlen(e->label), true);
    return HEC_OK;
}

static void count_unused(struct hec_import_stats *stats, const char *category) {
    struct hec_import_unused *u = stats->unused;
    for (; u < stats->unused + HEC_IMPORT_UNUSED_MAX; u++)
        if (!u->count || strcmp(u->category, category) == 0) {
            if (!u->count++)
                hec_text_clean(u->category, sizeof u->category, category, strlen(category), true);
            return;
        }
}

int hec_import_event_keep(struct hec_import *import, struct hec_import_file *file, struct hec_import_event *e,
                          struct hec_import_begun *begun, struct hec_why *why) {
    if (e->phase == 'E')
        return end(import, file, e, begun, why);
    if (e->phase == 'X' && e->kind == HEC_IMPORT_NO_KIND && !e->categorised)
        hec_import_xla_event(file, e);
    if (e->phase == 'M' || e->kind == HEC_IMPORT_NO_KIND || (e->phase != 'X' && e->phase != 'B')) {
        import->stats.skipped++;
        if (e->category[0])
            count_unused(&import->stats, e->category);
        return e->phase == 'M' ? metadata(file, e, why) : HEC_OK;
    }
    struct hec_import_record record;
    bool complete = e->phase == 'X';
    if (!e->start_ns.known || (complete && (!e->duration_ns.known || e->duration_ns.value < 0))) {
        import->stats.bad++;
        return HEC_OK;
    }
    int err = make_record(import, file, e, &record, why);
    if (err < 0)
        return err;
    if (err > 0 || (!complete && record.activity.kind == HEC_ACTIVITY_SYNC)) {
        import->stats.bad++;
        return HEC_OK;
    }
    if (!complete)
        return begin(import, file, e, &record, begun, why);
    if (__builtin_add_overflow(record.activity.start_ns, e->duration_ns.value, &record.activity.end_ns)) {
        import->stats.bad++;
        return HEC_OK;
    }
    err = note_meeting(import, file, e, record.activity.end_ns, why);
    if (err == HEC_OK)
        err = hec_import_marks_add(&import->marks, e, &record, why);
    return err < 0 ? err : finish(import, file, &record, e->size, why);
}

int64_t hec_import_begun_count(const struct hec_import_begun *begun) {
    return (int64_t)begun->live;
}

void hec_import_begun_free(struct hec_import_begun *begun) {
    free(begun->open);
    *begun = (struct hec_import_begun){0};
}
