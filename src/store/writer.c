#include "store/writer.h"

#include "base/clock.h"
#include "base/hash.h"
#include "store/commit.h"
#include "store/create.h"
#include "store/schema.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 8 MB in all while the disk is full. A GPU at default rates makes some 250 values a second: 12 kB as queued samples,
 * 0.7 kB as closed blocks; so 2 MB of samples outlast minutes without a flush, 4 MB of blocks an hour and more without
 * a disk. */
#define SAMPLES_BYTES (2 << 20)
#define RECORDS_BYTES (2 << 20)
#define BLOCKS_BYTES (4 << 20)
#define TEXT_BYTES 32768
#define KEY_BYTES 255
#define IDLE_FLUSHES 120 /* a series silent for about two minutes gives its memory back */

struct hec_writer {
    pthread_mutex_t lock; /* for incoming, refused and origin_ns; never held while SQLite works */
    struct hec_queue incoming;
    int64_t refused; /* values that make no sense (not finite, no such metric), facts that a reader would not take */
    uint64_t keys[2 * HEC_META_KEYS_MAX];      /* of the facts, for hec_keys_find */
    uint32_t key_bytes[2 * HEC_META_KEYS_MAX]; /* of key and value of each */
    int64_t meta_count, meta_bytes;
    int64_t origin_ns;
    struct hec_sink sink;
    /* of the thread that flushes */
    struct hec_queue records; /* everything but samples, until committed */
    struct hec_series_table series;
    struct hec_definitions definitions;
    struct hec_store_timeline *timeline;
    struct hec_commit commit;
    char *path;    /* NULL: in memory */
    int file_fd;   /* descriptor of the file, -1 in memory */
    bool reported; /* hec_writer_finish was called; what it returned last */
    bool whole;    /* it committed everything */
    int finished;
    int64_t failing_since_ns; /* 0: writing works */
    struct hec_why failure;
};

static void push(struct hec_writer *writer, int type, const void *head, size_t head_length, const void *tail,
                 size_t tail_length) {
    pthread_mutex_lock(&writer->lock);
    hec_queue_push(&writer->incoming, type, head, head_length, tail, tail_length);
    pthread_mutex_unlock(&writer->lock);
}

static void refuse(struct hec_writer *writer) {
    pthread_mutex_lock(&writer->lock);
    writer->refused++;
    pthread_mutex_unlock(&writer->lock);
}

/* The longest beginning of text, at most maximum bytes, that does not end inside a UTF-8 sequence. */
static size_t cut(const char *text, size_t maximum) {
    size_t length = strnlen(text, maximum + 1);
    if (length <= maximum)
        return length;
    length = maximum;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

static void push_text(struct hec_writer *writer, int type, const void *head, size_t head_length, const char *text,
                      size_t maximum) {
    size_t length = cut(text, maximum);
    char *copy = malloc(length + 1);
    if (!copy) {
        refuse(writer);
        return;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    push(writer, type, head, head_length, copy, length + 1);
    free(copy);
}

static void push_sample(struct hec_writer *writer, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value,
                        bool valid) {
    if ((unsigned)metric >= HEC_METRIC_COUNT) {
        refuse(writer);
        return;
    }
    struct hec_queued_sample sample = {t_ns, value, subject, (uint16_t)metric, valid};
    push(writer, HEC_QUEUED_SAMPLE, &sample, sizeof sample, NULL, 0);
}

static void sink_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    push_sample(context, metric, subject, t_ns, value, true);
}

static void sink_missing(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns) {
    push_sample(context, metric, subject, t_ns, 0, false);
}

static void sink_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    if ((unsigned)kind >= HEC_EVENT_COUNT || device >= HEC_DEVICE_MAX) {
        refuse(context);
        return;
    }
    struct hec_queued_event event = {t_ns, kind, device};
    push_text(context, HEC_QUEUED_EVENT, &event, sizeof event, text ? text : "", TEXT_BYTES);
}

static void sink_device(void *context, const struct hec_device *device) {
    push(context, HEC_RECORD_DEVICE, device, sizeof *device, NULL, 0);
}

static void sink_process(void *context, const struct hec_process *process) {
    push(context, HEC_RECORD_PROCESS, process, sizeof *process, NULL, 0);
}

static void sink_gpu_process(void *context, const struct hec_gpu_process *process) {
    push(context, HEC_RECORD_GPU_PROCESS, process, sizeof *process, NULL, 0);
}

static uint32_t sink_trace_name(void *context, const char *text) {
    struct hec_writer *writer = context;
    return hec_definitions_name(&writer->definitions, text, cut(text, TEXT_BYTES));
}

static uint32_t sink_trace_track(void *context, const struct hec_track *track) {
    struct hec_writer *writer = context;
    return hec_definitions_track(&writer->definitions, track);
}

static uint32_t sink_trace_kernel(void *context, const struct hec_kernel *kernel) {
    struct hec_writer *writer = context;
    return hec_definitions_kernel(&writer->definitions, kernel);
}

static uint32_t sink_trace_frame(void *context, const struct hec_frame *frame) {
    struct hec_writer *writer = context;
    return hec_definitions_frame(&writer->definitions, frame);
}

static void sink_trace_activities(void *context, const struct hec_activity *activities, size_t count) {
    struct hec_writer *writer = context;
    struct hec_activity_limits limits;
    hec_definitions_limits(&writer->definitions, &limits);
    hec_store_timeline_add(writer->timeline, activities, count, &limits);
}

static void sink_tracer(void *context, const struct hec_tracer *tracer) {
    push(context, HEC_RECORD_TRACER, tracer, sizeof *tracer, NULL, 0);
}

static void sink_units(void *context, const char *name, double count) {
    if (!(fabs(count) <= HEC_QUEUED_UNITS_MAX)) {
        refuse(context);
        return;
    }
    struct hec_queued_units units = {count};
    push_text(context, HEC_QUEUED_UNITS, &units, sizeof units, name, KEY_BYTES);
}

/* Counts a fact, which replaces one of the same key; false where there is no room for it. */
static bool count_meta(struct hec_writer *writer, const char *key, size_t key_length, size_t bytes) {
    pthread_mutex_lock(&writer->lock);
    uint64_t hash;
    size_t at = hec_keys_find(writer->keys, 2 * HEC_META_KEYS_MAX, key, key_length, &hash);
    int64_t count = writer->meta_count + (writer->keys[at] == 0);
    int64_t total = writer->meta_bytes - writer->key_bytes[at] + (int64_t)bytes;
    bool fits = count <= HEC_META_KEYS_MAX - HEC_META_KEYS_OWN && total <= HEC_META_BYTES_MAX - HEC_META_BYTES_OWN;
    if (fits) {
        writer->keys[at] = hash;
        writer->key_bytes[at] = (uint32_t)bytes;
        writer->meta_count = count;
        writer->meta_bytes = total;
    }
    writer->refused += !fits;
    pthread_mutex_unlock(&writer->lock);
    return fits;
}

static void push_meta(struct hec_writer *writer, const char *key, const char *value, bool own) {
    size_t key_length = cut(key, KEY_BYTES), value_length = cut(value, TEXT_BYTES);
    if (!own && !count_meta(writer, key, key_length, key_length + value_length))
        return;
    char *both = malloc(key_length + value_length + 2);
    if (!both) {
        refuse(writer);
        return;
    }
    memcpy(both, key, key_length);
    both[key_length] = '\0';
    memcpy(both + key_length + 1, value, value_length);
    both[key_length + 1 + value_length] = '\0';
    struct hec_queued_meta meta = {(uint32_t)key_length};
    push(writer, HEC_QUEUED_META, &meta, sizeof meta, both, key_length + value_length + 2);
    free(both);
}

static void sink_meta(void *context, const char *key, const char *value) {
    push_meta(context, key, value, false);
}

static void destroy(struct hec_writer *writer) {
    hec_queue_clear(&writer->incoming);
    hec_queue_clear(&writer->records);
    hec_series_free(&writer->series);
    hec_store_timeline_free(writer->timeline);
    hec_definitions_free(&writer->definitions);
    pthread_mutex_destroy(&writer->lock);
    if (writer->file_fd >= 0)
        close(writer->file_fd); /* after SQLite: hec_live_hold */
    free(writer->path);
    free(writer);
}

/* NULL: no memory. */
static struct hec_writer *new_writer(int64_t origin_ns) {
    struct hec_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    pthread_mutex_init(&writer->lock, NULL);
    hec_queue_init(&writer->incoming, SAMPLES_BYTES);
    hec_queue_init(&writer->records, RECORDS_BYTES);
    writer->origin_ns = origin_ns;
    writer->file_fd = -1;
    writer->sink = (struct hec_sink){
        .context = writer,
        .sample = sink_sample,
        .missing = sink_missing,
        .event = sink_event,
        .device = sink_device,
        .process = sink_process,
        .gpu_process = sink_gpu_process,
        .units = sink_units,
        .meta = sink_meta,
        .trace_name = sink_trace_name,
        .trace_track = sink_trace_track,
        .trace_kernel = sink_trace_kernel,
        .trace_frame = sink_trace_frame,
        .trace_activities = sink_trace_activities,
        .tracer = sink_tracer,
    };
    hec_definitions_init(&writer->definitions);
    writer->timeline = hec_store_timeline_new();
    if (!writer->timeline || hec_series_init(&writer->series, BLOCKS_BYTES) != 0) {
        destroy(writer);
        return NULL;
    }
    return writer;
}

static int create_file(struct hec_writer *writer, const char *path, bool overwrite, struct hec_why *why) {
    /* SQLite takes some names for something else than a path (":memory:"): none of them has a slash. */
    if (asprintf(&writer->path, "%s%s", path[0] == '/' ? "" : "./", path) < 0) {
        writer->path = NULL;
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    }
    int err = hec_create_file(writer->path, overwrite, &writer->file_fd, why);
    if (err == HEC_OK && (err = hec_commit_open(&writer->commit, writer->path, why)) != HEC_OK)
        hec_create_remove(writer->path);
    return err;
}

int hec_writer_create(const char *path, bool overwrite, int64_t origin_ns, struct hec_writer **out,
                      struct hec_why *why) {
    struct hec_writer *writer = new_writer(origin_ns);
    *out = NULL;
    if (!writer)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    int err = create_file(writer, path, overwrite, why);
    if (err)
        destroy(writer);
    else
        *out = writer;
    return err;
}

static int create_in_memory(struct hec_writer *writer, struct hec_why *why) {
    struct hec_image empty;
    int err = hec_schema_image(&empty.bytes, &empty.length, why);
    if (err)
        return err;
    hec_schema_mark(&empty, false);
    err = hec_commit_open_memory(&writer->commit, &empty, why);
    free(empty.bytes);
    return err;
}

int hec_writer_create_in_memory(int64_t origin_ns, struct hec_writer **out, struct hec_why *why) {
    struct hec_writer *writer = new_writer(origin_ns);
    *out = NULL;
    if (!writer)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    int err = create_in_memory(writer, why);
    if (err)
        destroy(writer);
    else
        *out = writer;
    return err;
}

void hec_writer_set_origin(struct hec_writer *writer, int64_t origin_ns) {
    pthread_mutex_lock(&writer->lock);
    writer->origin_ns = origin_ns;
    pthread_mutex_unlock(&writer->lock);
}

const struct hec_sink *hec_writer_sink(struct hec_writer *writer) {
    return &writer->sink;
}

/* Whether a reader takes it: times come from programs, and from clocks that are not ours. */
static bool fits(const struct hec_queue_item *item, int64_t origin_ns) {
    int64_t t_ns;
    if (item->type < HEC_RECORD_COUNT)
        return hec_record_fits(&hec_records[item->type], item->data, origin_ns);
    if (item->type == HEC_QUEUED_EVENT)
        return !__builtin_sub_overflow(((const struct hec_queued_event *)item->data)->t_ns, origin_ns, &t_ns) &&
               t_ns >= -HEC_RECORD_TIME_MAX_NS && t_ns <= HEC_RECORD_TIME_MAX_NS;
    return true;
}

/* Samples into their open blocks, everything else to what waits for the commit. */
static void sort_in(struct hec_writer *writer, const struct hec_queue *taken, int64_t origin_ns) {
    struct hec_queue_cursor cursor;
    struct hec_queue_item item;
    hec_queue_begin(taken, &cursor);
    while (hec_queue_next(&cursor, &item)) {
        if (item.type != HEC_QUEUED_SAMPLE && !fits(&item, origin_ns)) {
            refuse(writer);
            continue;
        }
        if (item.type != HEC_QUEUED_SAMPLE) {
            hec_queue_push(&writer->records, item.type, item.data, item.length, NULL, 0);
            continue;
        }
        const struct hec_queued_sample *sample = item.data;
        int64_t t_ns;
        if (__builtin_sub_overflow(sample->t_ns, origin_ns, &t_ns)) {
            writer->series.lost++;
            continue;
        }
        /* down to a whole microsecond, before zero too */
        int64_t t_us = t_ns / HEC_NS_PER_US - (t_ns % HEC_NS_PER_US < 0);
        hec_series_add(&writer->series, (enum hec_metric)sample->metric, sample->subject, t_us, sample->value,
                       sample->valid);
    }
}

static void close_idle(struct hec_series_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        struct hec_series *series = table->all[i];
        if (series->capacity > 0 && ++series->idle > IDLE_FLUSHES)
            hec_series_close(table, series);
    }
}

static void report_recovery(struct hec_writer *writer) {
    char text[700];
    snprintf(text, sizeof text, "%s; writing failed for %.1f s", writer->failure.text,
             (double)(hec_clock_mono_ns() - writer->failing_since_ns) / (double)HEC_NS_PER_S);
    sink_event(writer, HEC_EVENT_STORE_FAILED, HEC_DEVICE_NONE, writer->failing_since_ns, text);
    writer->failing_since_ns = 0;
}

static void report_beyond(struct hec_writer *writer) {
    int64_t activities;
    hec_store_timeline_lost(writer->timeline, &activities);
    if (activities == 0 && writer->series.beyond == 0)
        return;
    char text[160];
    snprintf(text, sizeof text,
             "left out: %lld activities and %lld readings, more than a run file holds at one time, or of one kind",
             (long long)activities, (long long)writer->series.beyond);
    sink_event(writer, HEC_EVENT_STORE_FAILED, HEC_DEVICE_NONE, hec_clock_mono_ns(), text);
}

/* Definitions are taken after activities, so that nothing refers to what is not there. */
static int commit(struct hec_writer *writer, int64_t origin_ns, struct hec_why *why) {
    struct hec_store_timeline_batch timeline;
    struct hec_definition_batch definitions;
    if (!hec_store_timeline_take(writer->timeline, &timeline))
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    int err = HEC_OK;
    if (hec_definitions_take(&writer->definitions, &definitions)) {
        struct hec_commit_batch batch = {&writer->series, &writer->records, &definitions, &timeline, origin_ns};
        err = hec_commit_all(&writer->commit, &batch, why);
        hec_definitions_give_back(&writer->definitions, &definitions, err == HEC_OK);
    } else {
        err = hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    }
    hec_store_timeline_give_back(writer->timeline, &timeline, err == HEC_OK);
    return err;
}

int hec_writer_flush(struct hec_writer *writer, struct hec_why *why) {
    struct hec_queue taken;
    hec_queue_init(&taken, SAMPLES_BYTES);
    pthread_mutex_lock(&writer->lock);
    hec_queue_move(&taken, &writer->incoming);
    int64_t origin_ns = writer->origin_ns;
    pthread_mutex_unlock(&writer->lock);
    sort_in(writer, &taken, origin_ns);
    hec_queue_clear(&taken);
    close_idle(&writer->series);

    struct hec_why failure;
    int err = commit(writer, origin_ns, &failure);
    if (err) {
        if (writer->failing_since_ns == 0) {
            writer->failing_since_ns = hec_clock_mono_ns();
            writer->failure = failure;
        }
        return hec_fail(why, err, "%s", failure.text);
    }
    hec_series_committed(&writer->series);
    hec_queue_clear(&writer->records);
    if (writer->failing_since_ns != 0)
        report_recovery(writer);
    return HEC_OK;
}

/* Values lost for good so far. */
static int64_t count_lost(struct hec_writer *writer) {
    pthread_mutex_lock(&writer->lock);
    int64_t lost = writer->refused + writer->incoming.dropped;
    pthread_mutex_unlock(&writer->lock);
    return lost + writer->records.dropped + writer->series.lost + hec_store_timeline_lost(writer->timeline, NULL) +
           hec_definitions_refused(&writer->definitions);
}

static bool is_there(const struct hec_writer *writer) {
    return hec_create_is_there(writer->path, writer->file_fd);
}

/* A file that is not whole is folded as far as that goes; one that is no more at its path is left alone. */
static void close_file(struct hec_writer *writer) {
    if (writer->path && !is_there(writer))
        hec_commit_leave(&writer->commit);
    else if (writer->path && writer->finished != HEC_OK)
        hec_commit_fold(&writer->commit, NULL);
    hec_commit_close(&writer->commit);
}

int hec_writer_finish(struct hec_writer *writer, struct hec_why *why) {
    hec_commit_last(&writer->commit);
    int err = hec_writer_flush(writer, why); /* may report a recovery, so there are two */
    if (err == HEC_OK) {
        char text[32];
        report_beyond(writer);
        snprintf(text, sizeof text, "%lld", (long long)count_lost(writer));
        push_meta(writer, "store_lost", text, true);
        snprintf(text, sizeof text, "%lld", (long long)hec_store_timeline_lost(writer->timeline, NULL));
        push_meta(writer, "store_activities_lost", text, true);
        push_meta(writer, "store_closed", "1", true);
        err = hec_writer_flush(writer, why);
    }
    writer->whole = err == HEC_OK && (!writer->path || is_there(writer));
    if (err == HEC_OK && writer->path)
        err = writer->whole ? hec_commit_fold(&writer->commit, why)
                            : hec_fail(why, HEC_ERR_NOTFOUND,
                                       "the file or its folder was removed, renamed or replaced during the run");
    writer->reported = true;
    writer->finished = err;
    return err;
}

bool hec_writer_is_whole(const struct hec_writer *writer) {
    return writer->whole;
}

int hec_writer_to_memory(struct hec_writer *writer, struct hec_why *why) {
    struct hec_image image;
    struct hec_commit memory;
    int err = hec_commit_image(&writer->commit, &image, why);
    if (err == HEC_OK)
        err = hec_commit_open_memory(&memory, &image, why);
    free(image.bytes);
    if (err)
        return err;
    close_file(writer);
    writer->commit = memory;
    free(writer->path);
    writer->path = NULL;
    close(writer->file_fd);
    writer->file_fd = -1;
    return HEC_OK;
}

int hec_writer_image(struct hec_writer *writer, struct hec_image *image, struct hec_why *why) {
    return hec_commit_image(&writer->commit, image, why);
}

int hec_writer_close(struct hec_writer *writer, int64_t *lost, struct hec_why *why) {
    int err = writer->reported ? writer->finished : hec_writer_finish(writer, why);
    if (lost)
        *lost =
            count_lost(writer) + (err ? hec_series_uncommitted(&writer->series) + hec_queue_count(&writer->records) +
                                            hec_store_timeline_uncommitted(writer->timeline)
                                      : 0);
    close_file(writer);
    destroy(writer);
    return err;
}
