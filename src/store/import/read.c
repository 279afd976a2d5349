/* The second pass: what was kept of each file goes to the sink, as part of one run. */
#include "store/import/state.h"
#include "store/import/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH 1024

/* Times of Kineto are wall clock since it exists: 2015 to 2100. Anything else counts from a start of its own. */
#define WALL_FIRST_NS (INT64_C(1420070400) * 1000000000)
#define WALL_LAST_NS (INT64_C(4102444800) * 1000000000)

static bool rank_taken(const struct hec_import *import, int32_t rank) {
    for (int i = 0; i < import->file_count; i++)
        if (import->files[i].rank == rank)
            return true;
    return false;
}

/* Files that do not say their rank are different ranks all the same, unless there is only one. */
static void settle_ranks(struct hec_import *import) {
    int32_t next = 0;
    for (int i = 0; i < import->file_count && import->file_count > 1; i++) {
        if (import->files[i].rank >= 0)
            continue;
        while (rank_taken(import, next))
            next++;
        import->files[i].rank = next;
    }
}

/* Devices are numbered as they come: those of the first rank first, in whatever order its files were given. */
static int by_rank(const void *a, const void *b) {
    const struct hec_import_file *one = a, *other = b;
    if (one->rank != other->rank)
        return one->rank < other->rank ? -1 : 1;
    return (one->first_record > other->first_record) - (one->first_record < other->first_record);
}

static void put_fact(const struct hec_import *import, const char *key, const char *value) {
    import->sink->meta(import->sink->context, key, value);
}

static void put_facts(const struct hec_import *import) {
    char text[4096] = "";
    size_t length = 0;
    for (int i = 0; i < import->file_count && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? " " : "", import->files[i].path);
    put_fact(import, "command", text);
    put_fact(import, "imported",
             import->stats.kind == HEC_IMPORT_NSYS ? "nsys"
             : import->files[0].xla                ? "xla"
                                                   : "kineto");
    snprintf(text, sizeof text, "%lld", (long long)import->stats.end_ns);
    put_fact(import, "duration_ns", text);
    if (import->world_size > 0) {
        snprintf(text, sizeof text, "%d", (int)import->world_size);
        put_fact(import, "python.world_size", text);
    }
    int64_t origin = import->stats.origin_ns;
    bool wall = import->file_count > 0;
    for (int i = 0; i < import->file_count; i++)
        wall = wall && import->files[i].wall;
    struct tm tm;
    time_t seconds = (time_t)(origin / 1000000000);
    if (wall && origin >= WALL_FIRST_NS && origin < WALL_LAST_NS && gmtime_r(&seconds, &tm) &&
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm)) {
        snprintf(text + strlen(text), 8, ".%03dZ", (int)(origin / 1000000 % 1000));
        put_fact(import, "started", text);
    }
}

/* Of the lowest rank that shows it: the others do the same. */
static void put_gradients(const struct hec_import *import) {
    const struct hec_import_gradients *g = NULL;
    char text[96];
    for (int i = 0; i < import->file_count && !g; i++)
        g = import->files[i].gradients.steps ? &import->files[i].gradients : NULL;
    if (!g)
        return;
    snprintf(text, sizeof text, "%lld %lld %lld", (long long)g->syncs, (long long)g->passes, (long long)g->steps);
    put_fact(import, "python.gradient_syncs", text);
    snprintf(text, sizeof text, "%lld %lld", (long long)g->bytes, (long long)g->bucket_bytes);
    put_fact(import, "python.gradients", text);
}

static void put_note(const struct hec_import *import, const char *text) {
    import->sink->event(import->sink->context, HEC_EVENT_NOTE, HEC_DEVICE_NONE, 0, text);
}

/* What was left out, or taken for something else than stands there. */
static void put_notes(const struct hec_import *import) {
    const struct hec_import_stats *stats = &import->stats;
    const struct {
        int64_t count;
        const char *one, *more;
    } notes[] = {
        {stats->stray, "left out: 1 event more than a day from the others of the trace",
         "left out: %lld events more than a day from the others of the trace"},
        {stats->cut, "1 activity of a device lasted beyond what its stream ran next: it was cut to the start of that",
         "%lld activities of devices lasted beyond what their stream ran next: they were cut to the start of that"},
        {stats->clocks, "the clock of 1 file was set by its collectives, which end on all ranks at once",
         "the clocks of %lld files were set by their collectives, which end on all ranks at once"},
        {stats->repaired, "1 byte of the trace is not valid JSON: it was read as it was meant",
         "%lld bytes of the trace are not valid JSON: they were read as they were meant"},
    };
    char text[256];
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        if (notes[i].count == 0)
            continue;
        snprintf(text, sizeof text, notes[i].count == 1 ? notes[i].one : notes[i].more, (long long)notes[i].count);
        put_note(import, text);
    }
    if (stats->on_device)
        return;
    size_t length = (size_t)snprintf(text, sizeof text, "the trace holds no activity of a device: no kernel, no copy");
    for (int i = 0; i < HEC_IMPORT_UNUSED_MAX && stats->unused[i].count && length < sizeof text; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%lld of category %s",
                             i ? ", " : "; not used: ", (long long)stats->unused[i].count, stats->unused[i].category);
    put_note(import, text);
}

struct reading {
    struct hec_import *import;
    struct hec_import_file *file;
    struct hec_why *why;
    int64_t done;
    struct hec_activity batch[BATCH];
    size_t count;
};

/* Whether all that the file has on devices is of that one. */
static bool only_device(const struct hec_import_tracks *tracks, int number) {
    for (uint32_t i = 1; i < tracks->count; i++)
        if (tracks->tracks[i].kind == HEC_TRACK_STREAM && tracks->tracks[i].device != number)
            return false;
    return true;
}

/* The index in the run of a file's device; reported to the sink when it is new. */
static int device_index(struct reading *r, int number) {
    struct hec_import *import = r->import;
    for (int i = 0; i < import->device_count; i++)
        if (import->devices[i].rank == r->file->rank && import->devices[i].number == number)
            return i;
    if (import->device_count == HEC_DEVICE_MAX)
        return hec_fail(r->why, HEC_ERR_LIMIT, "%s: more than %d devices in all ranks together", r->file->path,
                        HEC_DEVICE_MAX);
    struct hec_device device;
    hec_import_device_unknown(&device);
    const struct hec_import_tracks *tracks = &r->file->tracks;
    /* ROCm numbers what a process sees in one place and all that there is in the other: where there is one, it is that one */
    bool only = tracks->device_count == 1 && only_device(tracks, number);
    for (int i = 0; i < tracks->device_count; i++)
        if (tracks->devices[i].index == number || only)
            device = tracks->devices[i];
    device.index = import->device_count;
    import->devices[import->device_count++] = (struct hec_import_device){r->file->rank, number};
    import->sink->device(import->sink->context, &device);
    return device.index;
}

/* The name that the file gives to a process, in any of its tracks. */
static const char *process_name(const struct hec_import_tracks *tracks, int32_t pid) {
    for (uint32_t i = 1; i < tracks->count; i++)
        if (tracks->tracks[i].kind == HEC_TRACK_PROCESS && tracks->tracks[i].pid == pid)
            return tracks->tracks[i].name;
    return "";
}

static int64_t track_id(struct reading *r, uint32_t local) {
    struct hec_import_track *track = &r->file->tracks.tracks[local];
    if (!local || track->sink_id)
        return local ? track->sink_id : 0;
    struct hec_track reported = {
        .kind = track->kind,
        .pid = track->pid >= 0     ? track->pid
               : r->file->pid >= 0 ? r->file->pid
                                   : 0,
        .rank = r->file->rank,
        .device = -1,
        .context = track->context,
        .stream = track->stream,
    };
    memcpy(reported.name, track->name, sizeof reported.name);
    if (track->kind == HEC_TRACK_PROCESS && !reported.name[0])
        snprintf(reported.name, sizeof reported.name, "%s", process_name(&r->file->tracks, reported.pid));
    if (track->kind == HEC_TRACK_STREAM) {
        reported.device = device_index(r, track->device);
        if (reported.device < 0)
            return reported.device;
    }
    return track->sink_id = r->import->sink->trace_track(r->import->sink->context, &reported);
}

static void flush(struct reading *r) {
    if (r->count)
        r->import->sink->trace_activities(r->import->sink->context, r->batch, r->count);
    r->count = 0;
}

static bool inside(const struct hec_import_file *file, int64_t start_ns, int64_t end_ns) {
    return start_ns >= file->first_ns && end_ns <= file->last_ns;
}

static int read_records(void *context, struct hec_import_record *records, size_t count) {
    struct reading *r = context;
    int64_t shift = r->file->base_ns - r->import->stats.origin_ns;
    for (size_t i = 0; i < count; i++) {
        if (records[i].activity.kind == HEC_IMPORT_NO_KIND ||
            !inside(r->file, records[i].activity.start_ns, records[i].activity.end_ns)) /* counted as stray */
            continue;
        struct hec_activity *a = &r->batch[r->count];
        *a = records[i].activity;
        bool launched = (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)) && a->launch_ns != HEC_TIME_UNKNOWN;
        if (launched && !inside(r->file, a->launch_ns, a->launch_end_ns)) {
            a->launch_ns = a->launch_end_ns = HEC_TIME_UNKNOWN;
            a->launch_track = 0;
            launched = false;
        }
        int64_t track = track_id(r, a->track), launch_track = track < 0 ? track : track_id(r, a->launch_track);
        if (launch_track < 0)
            return (int)launch_track;
        a->track = (uint32_t)track;
        a->launch_track = (uint32_t)launch_track;
        a->start_ns += shift;
        a->end_ns += shift;
        if (launched) {
            a->launch_ns += shift;
            a->launch_end_ns += shift;
        }
        if (++r->count == BATCH)
            flush(r);
    }
    /* also the moment at which the sink's owner may write out what it holds */
    r->done += (int64_t)count;
    return hec_import_report(r->import, r->file,
                             (double)r->done / (double)(r->file->last_record - r->file->first_record));
}

static void settle(struct hec_import *import) {
    if (import->settled)
        return;
    settle_ranks(import);
    hec_import_clocks_set(import);
    put_facts(import);
    put_notes(import);
    qsort(import->files, (size_t)import->file_count, sizeof *import->files, by_rank);
    put_gradients(import);
    import->settled = true;
}

const char *hec_import_path(struct hec_import *import, int at) {
    settle(import);
    return import->files[at].path;
}

int hec_import_read(struct hec_import *import, const char *path, struct hec_why *why) {
    struct hec_import_file *file = NULL;
    for (int i = 0; i < import->file_count && !file; i++)
        if (!import->files[i].read && strcmp(import->files[i].path, path) == 0)
            file = &import->files[i];
    if (!file)
        return hec_fail(why, HEC_ERR_USAGE, "%s was not scanned", path);
    settle(import);
    struct reading reading = {.import = import, .file = file, .why = why};
    int err = hec_import_spool_visit(&import->spool, file->first_record, file->last_record, false, read_records,
                                     &reading, why);
    if (err < 0)
        return err;
    flush(&reading);
    file->read = true;
    if (++import->files_read == import->file_count)
        put_fact(import, "complete", "1");
    return hec_import_report(import, file, 1);
}
