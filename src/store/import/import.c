#include "store/import/import.h"

#include "base/text.h"
#include "store/import/state.h"
#include "store/import/stream.h"
#include "store/import/words.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMPORT_STRAY_SHARE 10 /* one event in so many may lie elsewhere */

static bool near(const struct hec_import_span *span, int64_t start_ns, int64_t end_ns) {
    return start_ns <= span->last_ns + HEC_IMPORT_APART_NS && end_ns >= span->first_ns - HEC_IMPORT_APART_NS;
}

static void extend(struct hec_import_span *span, const struct hec_import_span *by) {
    span->first_ns = by->first_ns < span->first_ns ? by->first_ns : span->first_ns;
    span->last_ns = by->last_ns > span->last_ns ? by->last_ns : span->last_ns;
    span->count += by->count;
}

void hec_import_spans_add(struct hec_import_spans *spans, int64_t start_ns, int64_t end_ns) {
    const struct hec_import_span event = {start_ns, end_ns, 1};
    for (int i = 0; i < spans->count; i++)
        if (near(&spans->list[i], start_ns, end_ns)) {
            extend(&spans->list[i], &event);
            return;
        }
    if (spans->count == HEC_IMPORT_SPANS_MAX) {
        spans->elsewhere++;
        return;
    }
    spans->list[spans->count++] = event;
}

/* Spans that have grown towards each other become one. */
static void merge(struct hec_import_spans *spans) {
    for (int i = 0; i < spans->count; i++)
        for (int k = i + 1; k < spans->count; k++)
            if (near(&spans->list[i], spans->list[k].first_ns, spans->list[k].last_ns)) {
                extend(&spans->list[i], &spans->list[k]);
                spans->list[k] = spans->list[--spans->count];
                k = i; /* the grown one may reach others */
            }
}

bool hec_import_spans_main(struct hec_import_spans *spans, struct hec_import_span *span, int64_t *strays) {
    int64_t all = spans->elsewhere;
    memset(span, 0, sizeof *span);
    merge(spans);
    for (int i = 0; i < spans->count; i++) {
        all += spans->list[i].count;
        if (spans->list[i].count > span->count)
            *span = spans->list[i];
    }
    *strays = all - span->count;
    return *strays <= all / IMPORT_STRAY_SHARE;
}

/* Eight bytes at a time; only to find the place, the text is compared. */
static uint64_t hash_of(const char *text, size_t length) {
    uint64_t hash = length * UINT64_C(0x9e3779b97f4a7c15), word;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        hash = (hash ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, text, length);
    hash = (hash ^ word) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

static bool is_plain(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f)
            return false;
    return true;
}

/* The sink's id of a name: cut to HEC_IMPORT_NAME_MAX bytes, cleaned. */
static uint32_t import_names_id(struct hec_import_names *names, const struct hec_sink *sink, const char *text,
                                size_t length) {
    if (length > HEC_IMPORT_NAME_MAX)
        length = HEC_IMPORT_NAME_MAX;
    uint64_t hash = hash_of(text, length);
    struct hec_import_known_name *known = &names->known[hash & (HEC_IMPORT_NAMES - 1)];
    if (known->text && known->hash == hash && known->length == length && memcmp(known->text, text, length) == 0)
        return known->id;
    if (is_plain(text, length)) {
        memcpy(names->clean, text, length);
        names->clean[length] = '\0';
    } else {
        hec_text_clean(names->clean, sizeof names->clean, text, length, true);
    }
    uint32_t id = sink->trace_name(sink->context, names->clean);
    free(known->text);
    known->text = malloc(length + 1);
    if (known->text)
        memcpy(known->text, text, length);
    known->hash = hash;
    known->length = length;
    known->id = id;
    return id;
}

static void import_names_free(struct hec_import_names *names) {
    for (int i = 0; i < HEC_IMPORT_NAMES; i++)
        free(names->known[i].text);
}

/* Events of real traces take 6 to 200 bytes of their file each. Text that repeats is packed into next to nothing, and each event
 * has to be kept: beyond the first ones, more than one a byte is refused. */
#define EVENTS_FREE (INT64_C(4) << 20)
/* Correlation ids of one file: 200 MB. What comes with more of them stands alone. */
#define JOINED_MAX 5592000 /* less than two thirds of 2^23: there the table doubles */

int hec_import_new(const struct hec_sink *sink, hec_import_progress progress, void *context, struct hec_import **out,
                   struct hec_why *why) {
    struct hec_import *import = calloc(1, sizeof *import);
    if (!import)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    import->sink = sink;
    import->progress = progress;
    import->progress_context = context;
    hec_import_spool_init(&import->spool);
    *out = import;
    return HEC_OK;
}

const struct hec_import_stats *hec_import_stats(const struct hec_import *import) {
    return &import->stats;
}

void hec_import_free(struct hec_import *import) {
    if (!import)
        return;
    for (int i = 0; i < import->file_count; i++) {
        free(import->files[i].path);
        hec_import_tracks_free(&import->files[i].tracks);
    }
    free(import->files);
    hec_import_join_free(&import->join);
    hec_import_join_free(&import->sizes);
    hec_import_spool_free(&import->spool);
    free(import->meetings.list);
    free(import->marks.list);
    import_names_free(&import->names);
    free(import);
}

int hec_import_report(struct hec_import *import, const struct hec_import_file *file, double share) {
    return import->progress ? import->progress(import->progress_context, file->path, share) : HEC_OK;
}

uint32_t hec_import_name(struct hec_import *import, const char *text, size_t length) {
    return import_names_id(&import->names, import->sink, text, length);
}

static bool on_device(int kind) {
    return kind < HEC_ACTIVITY_KIND_COUNT && (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(kind));
}

/* The place of a record's correlation id; NULL: there is no room for more of them. */
static int place_of(struct hec_import_join *join, uint64_t correlation, struct hec_import_call **out,
                    struct hec_why *why) {
    *out = NULL;
    if (join->used >= JOINED_MAX && !hec_import_join_find(join, correlation))
        return HEC_OK;
    *out = hec_import_join_at(join, correlation);
    return *out ? HEC_OK : hec_fail(why, HEC_ERR_NOMEM, "out of memory");
}

int hec_import_add(struct hec_import *import, struct hec_import_file *file, const struct hec_import_record *record,
                   struct hec_why *why) {
    const struct hec_activity *a = &record->activity;
    if (a->start_ns <= 0 || a->end_ns < a->start_ns || a->end_ns >= HEC_IMPORT_TIME_MAX_NS) {
        import->stats.bad++;
        return HEC_OK;
    }
    if (a->end_ns - a->start_ns > HEC_IMPORT_APART_NS) {
        import->stats.stray++;
        return HEC_OK;
    }
    if (on_device(a->kind) && record->correlation) {
        struct hec_import_call *call;
        int err = place_of(&import->join, record->correlation, &call, why);
        if (err < 0)
            return err;
        if (call)
            call->caused = true;
    }
    hec_import_spans_add(&file->spans, a->start_ns, a->end_ns);
    import->stats.kept++;
    import->stats.on_device += on_device(a->kind);
    if (import->stats.kept > EVENTS_FREE && import->stats.kept > import->file_bytes)
        return hec_fail(why, HEC_ERR_LIMIT, "%s holds more events than a trace recorded in so few bytes", file->path);
    return hec_import_spool_add(&import->spool, record, why);
}

int hec_import_call(struct hec_import *import, const struct hec_import_record *record, double bytes,
                    struct hec_why *why) {
    const struct hec_activity *a = &record->activity;
    if (!record->correlation || a->start_ns <= 0 || a->end_ns < a->start_ns || a->end_ns >= HEC_IMPORT_TIME_MAX_NS)
        return HEC_OK;
    struct hec_import_call *call, *size;
    int err = place_of(&import->join, record->correlation, &call, why);
    if (err < 0 || !call)
        return err;
    if (call->called && call->start_ns <= a->start_ns) /* the runtime's call, and the driver's inside of it */
        return HEC_OK;
    int64_t duration_ns = a->end_ns - a->start_ns;
    call->start_ns = a->start_ns;
    call->duration_ns = (uint64_t)(duration_ns < HEC_IMPORT_CALL_NS_MAX ? duration_ns : HEC_IMPORT_CALL_NS_MAX);
    call->track = a->track;
    call->called = true;
    call->graph = a->detail == HEC_API_GRAPH;
    if (isnan(bytes))
        return HEC_OK;
    err = place_of(&import->sizes, record->correlation, &size, why);
    if (size)
        size->start_ns = (int64_t)bytes;
    return err;
}

/* After a file was scanned: what a call caused learns of it, and the call itself need not be kept then. */
struct joining {
    const struct hec_import_join *join, *sizes;
    uint32_t main_track; /* where nothing names the thread */
};

static int join_records(void *context, struct hec_import_record *records, size_t count) {
    const struct joining *joining = context;
    for (size_t i = 0; i < count; i++) {
        struct hec_activity *a = &records[i].activity;
        const struct hec_import_call *call = hec_import_join_find(joining->join, records[i].correlation);
        bool called = call && call->called;
        if (a->kind == HEC_ACTIVITY_API && call && call->caused) {
            a->kind = HEC_IMPORT_NO_KIND;
        } else if (a->kind == HEC_ACTIVITY_SYNC) {
            if (!a->track)
                a->track = called ? (uint32_t)call->track : joining->main_track;
        } else if (on_device(a->kind)) {
            a->launch_ns = called ? call->start_ns : HEC_TIME_UNKNOWN;
            a->launch_end_ns = called ? call->start_ns + (int64_t)call->duration_ns : HEC_TIME_UNKNOWN;
            a->launch_track = called ? call->track : 0;
            if (called && call->graph && a->kind != HEC_ACTIVITY_GRAPH)
                a->flags |= HEC_ACTIVITY_IN_GRAPH;
            const struct hec_import_call *size = NULL;
            if (a->kind == HEC_ACTIVITY_COPY && isnan(a->amount))
                size = hec_import_join_find(joining->sizes, records[i].correlation);
            if (size)
                a->amount = (double)size->start_ns;
        }
    }
    return HEC_OK;
}

/* HEC_ERR_CORRUPT where the file is of no kind that can be imported. */
static int find_kind(const char *path, enum hec_import_kind *kind, struct stat *status, struct hec_why *why) {
    static const char *const reports[] = {".nsys-rep", ".qdrep", ".qdstrm"};
    char magic[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
    if (fstat(fd, status) != 0)
        status->st_ino = 0; /* no file is known by it */
    ssize_t got = read(fd, magic, sizeof magic);
    close(fd);
    *kind =
        got == (ssize_t)sizeof magic && memcmp(magic, "SQLite format 3", 16) == 0 ? HEC_IMPORT_NSYS : HEC_IMPORT_KINETO;
    for (size_t i = 0; i < sizeof reports / sizeof reports[0] && *kind == HEC_IMPORT_KINETO; i++) {
        size_t length = strlen(path), suffix = strlen(reports[i]);
        if (length > suffix && strcmp(path + length - suffix, reports[i]) == 0)
            return hec_fail(why, HEC_ERR_CORRUPT,
                            "%s is a report of Nsight Systems: export it first (nsys export --type sqlite %s)", path,
                            path);
    }
    return HEC_OK;
}

/* A file that is read twice would double its ranks. */
static bool given_before(const struct hec_import *import, const struct stat *status) {
    for (int i = 0; i < import->file_count; i++)
        if (status->st_ino && import->files[i].device_number == status->st_dev &&
            import->files[i].inode == status->st_ino)
            return true;
    return false;
}

static struct hec_import_file *add_file(struct hec_import *import, const char *path) {
    struct hec_import_file *files = realloc(import->files, (size_t)(import->file_count + 1) * sizeof *files);
    if (!files)
        return NULL;
    import->files = files;
    struct hec_import_file *file = &files[import->file_count];
    *file = (struct hec_import_file){
        .rank = -1, .pid = -1, .first_ns = INT64_MAX, .last_ns = INT64_MIN, .path = strdup(path)};
    if (!file->path)
        return NULL;
    import->file_count++;
    return file;
}

static int join_file(struct hec_import *import, struct hec_import_file *file, struct hec_why *why) {
    struct hec_import_track main_thread = {
        .kind = HEC_TRACK_THREAD, .pid = file->pid, .device = -1, .stream = file->pid < 0 ? 0 : file->pid};
    int64_t track = hec_import_tracks_id(&file->tracks, &main_thread);
    if (track < 0)
        return hec_fail(why, (int)track, "%s has too many threads and streams", file->path);
    struct joining joining = {&import->join, &import->sizes, (uint32_t)track};
    return hec_import_spool_visit(&import->spool, file->first_record, file->last_record, true, join_records, &joining,
                                  why);
}

static double days(int64_t ns) {
    return (double)ns / (double)HEC_IMPORT_APART_NS;
}

/* When the file was recorded; what lies elsewhere is left out. */
static int settle_time(struct hec_import *import, struct hec_import_file *file, struct hec_why *why) {
    struct hec_import_stats *stats = &import->stats;
    struct hec_import_span span;
    int64_t strays;
    if (!hec_import_spans_main(&file->spans, &span, &strays))
        return hec_fail(why, HEC_ERR_CORRUPT, "%s: of its events %lld lie more than a day from the others", file->path,
                        (long long)strays);
    if (!span.count)
        return HEC_OK;
    file->first_ns = span.first_ns;
    file->last_ns = span.last_ns;
    stats->kept -= strays;
    stats->stray += strays;
    int64_t first = file->base_ns + file->first_ns, last = file->base_ns + file->last_ns;
    int64_t end = stats->origin_ns + stats->end_ns;
    bool empty = stats->origin_ns == 0;
    int64_t apart = empty ? 0 : first > end ? first - end : stats->origin_ns - last;
    if (apart > HEC_IMPORT_APART_NS)
        return hec_fail(why, HEC_ERR_USAGE,
                        "%s was recorded %.0f days %s the files before it: they are of several runs", file->path,
                        days(apart), first > end ? "after" : "before");
    stats->end_ns = empty || last > end ? last : end;
    stats->origin_ns = empty || first < stats->origin_ns ? first : stats->origin_ns;
    stats->end_ns -= stats->origin_ns;
    return HEC_OK;
}

int hec_import_scan(struct hec_import *import, const char *path, struct hec_why *why) {
    enum hec_import_kind kind = HEC_IMPORT_UNKNOWN;
    struct stat status = {0};
    int err = find_kind(path, &kind, &status, why);
    if (err < 0)
        return err;
    if (given_before(import, &status))
        return hec_fail(why, HEC_ERR_USAGE, "%s is given twice", path);
    import->file_bytes += status.st_size;
    if (import->stats.kind != HEC_IMPORT_UNKNOWN && import->stats.kind != kind)
        return hec_fail(why, HEC_ERR_USAGE, "%s is of another kind than the files before it: their clocks differ",
                        path);
    struct hec_import_file *file = add_file(import, path);
    if (!file)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    file->device_number = status.st_dev;
    file->inode = status.st_ino;
    file->first_record = hec_import_spool_count(&import->spool);
    err = kind == HEC_IMPORT_NSYS ? hec_import_nsys(import, file, why) : hec_import_kineto(import, file, why);
    file->last_record = hec_import_spool_count(&import->spool);
    if (err == HEC_OK)
        err = settle_time(import, file, why);
    if (err == HEC_OK)
        err = join_file(import, file, why);
    if (err == HEC_OK)
        err = hec_import_gradients_find(import, &file->gradients, why);
    if (err == HEC_OK)
        err = hec_import_streams_cut(&import->spool, file->first_record, file->last_record, &import->stats.cut, why);
    hec_import_join_free(&import->join);
    hec_import_join_free(&import->sizes);
    if (err < 0)
        return err;
    import->stats.kind = kind;
    import->stats.ranks++;
    return hec_import_report(import, file, 1);
}
