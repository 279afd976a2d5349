#include "store/join.h"

#include "base/list.h"
#include "store/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_ACTIVITIES 500000 /* the writer keeps two millions of them */

struct ids {
    uint32_t *to; /* by id of the run; malloc'ed */
    size_t count, capacity;
};

struct joining {
    const struct hec_join_run *runs;
    int count, at; /* the run that is being read */
    struct hec_writer *writer;
    const struct hec_sink *sink;
    struct hec_device devices[HEC_DEVICE_MAX]; /* of the joined run */
    int device_count;
    int seen_by[HEC_DEVICE_MAX];               /* the first run that has seen each */
    int to[HEC_JOIN_MAX][HEC_DEVICE_MAX];      /* index of a run's device in the joined one; -1: it has none */
    uint64_t uses[HEC_JOIN_MAX];               /* bits (1 << index there) of devices that a run's processes use */
    int reads[HEC_DEVICE_MAX];                 /* the run that has the readings of a joined device */
    struct ids names, tracks, kernels, frames; /* of the run that is being read */
    int64_t activities;
    int64_t end_ns;
    enum hec_metric metric;
    int32_t subject;
    struct hec_why *why;
};

static int64_t shifted(const struct joining *j, int64_t t_ns) {
    return t_ns == HEC_TIME_UNKNOWN ? t_ns : t_ns + j->runs[j->at].shift_ns;
}

/* Negative: not yet, or not known. */
static int64_t shifted_if_known(const struct joining *j, int64_t t_ns) {
    return t_ns < 0 ? t_ns : shifted(j, t_ns);
}

static int32_t pid_of(const struct joining *j, int32_t pid) {
    return pid > 0 && pid < HEC_JOIN_PIDS ? pid + j->at * HEC_JOIN_PIDS : pid;
}

static int device_of(const struct joining *j, int device) {
    return device >= 0 && device < HEC_DEVICE_MAX ? j->to[j->at][device] : -1;
}

/* ---- devices ---- */

static const char *host_of(const struct joining *j, int run) {
    const char *host = hec_reader_meta(j->runs[run].reader, "hostname");
    return host ? host : "";
}

/* The same UUID on the same host. Names that hec gather hides are those of others as well. */
static int same(const struct joining *j, const struct hec_device *device) {
    int at = 0;
    bool named = device->uuid[0] && strcmp(host_of(j, j->at), "host") != 0;
    while (at < j->device_count && !(named && strcmp(j->devices[at].uuid, device->uuid) == 0 &&
                                     strcmp(host_of(j, j->seen_by[at]), host_of(j, j->at)) == 0))
        at++;
    return at;
}

static bool taken(const struct joining *j, int index) {
    for (int i = 0; i < j->device_count; i++)
        if (j->devices[i].index == index)
            return true;
    return false;
}

/* Of its vendor's block, or of all, where it was imported. */
static int free_index(const struct joining *j, int index) {
    int first = index / HEC_VENDOR_DEVICES_MAX * HEC_VENDOR_DEVICES_MAX;
    for (int i = first; i < HEC_DEVICE_MAX; i++)
        if (!taken(j, i))
            return i;
    return -1;
}

static int find_device(void *context, const struct hec_device *device) {
    struct joining *j = context;
    int at = same(j, device);
    if (device->index < 0 || device->index >= HEC_DEVICE_MAX)
        return 0;
    if (at == j->device_count) {
        int index = taken(j, device->index) ? free_index(j, device->index) : device->index;
        if (index < 0 || at == HEC_DEVICE_MAX)
            return hec_fail(j->why, HEC_ERR_LIMIT, "more than %d devices in all runs together", HEC_DEVICE_MAX);
        j->devices[at] = *device;
        j->devices[at].index = index;
        j->reads[index] = j->seen_by[at] = j->at;
        j->device_count++;
    }
    int index = j->devices[at].index;
    j->to[j->at][device->index] = index;
    if (j->uses[j->at] >> device->index & 1 && j->reads[index] != j->at) {
        j->reads[index] = j->at;
        j->devices[at] = *device;
        j->devices[at].index = index;
    }
    return 0;
}

static int find_use(void *context, const struct hec_track *track) {
    struct joining *j = context;
    if (track->kind == HEC_TRACK_STREAM && track->device >= 0 && track->device < HEC_DEVICE_MAX)
        j->uses[j->at] |= UINT64_C(1) << track->device;
    return 0;
}

/* ---- what is no timeline ---- */

static int put_chunk(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t count) {
    struct joining *j = context;
    for (size_t i = 0; i < count; i++)
        if (valid[i])
            j->sink->sample(j->sink->context, j->metric, j->subject, shifted(j, t_ns[i]), value[i]);
        else
            j->sink->missing(j->sink->context, j->metric, j->subject, shifted(j, t_ns[i]));
    return 0;
}

/* False: another run has it. */
static bool subject_of(struct joining *j, int32_t subject) {
    switch (hec_metric_info(j->metric)->subject) {
    case HEC_SUBJECT_DEVICE:
        j->subject = device_of(j, subject);
        return j->subject >= 0 && j->reads[j->subject] == j->at;
    case HEC_SUBJECT_PROCESS:
        j->subject = pid_of(j, subject);
        return true;
    default: /* of the host: that of the first run */
        j->subject = subject;
        return j->at == 0;
    }
}

static int put_series(struct joining *j) {
    struct hec_reader *reader = j->runs[j->at].reader;
    int err = 0;
    for (int m = 0; m < HEC_METRIC_COUNT && err >= 0; m++) {
        int32_t *subjects = NULL;
        j->metric = (enum hec_metric)m;
        int count = hec_reader_subjects(reader, j->metric, &subjects, j->why);
        err = count == HEC_ERR_NOTFOUND ? 0 : count;
        for (int i = 0; i < count && err >= 0; i++)
            if (subject_of(j, subjects[i]))
                err = hec_reader_series(reader, j->metric, subjects[i], put_chunk, j, j->why);
        free(subjects);
        if (err >= 0)
            err = hec_writer_flush(j->writer, j->why);
    }
    return err;
}

static int put_process(void *context, const struct hec_process *process) {
    struct joining *j = context;
    struct hec_process own = *process;
    own.pid = pid_of(j, own.pid);
    own.parent = pid_of(j, own.parent);
    own.start_ns = shifted(j, own.start_ns);
    own.end_ns = shifted_if_known(j, own.end_ns);
    j->sink->process(j->sink->context, &own);
    return 0;
}

static int put_gpu_process(void *context, const struct hec_gpu_process *process) {
    struct joining *j = context;
    struct hec_gpu_process own = *process;
    own.device = device_of(j, own.device);
    own.pid = pid_of(j, own.pid);
    own.first_ns = shifted(j, own.first_ns);
    own.last_ns = shifted(j, own.last_ns);
    if (own.device >= 0)
        j->sink->gpu_process(j->sink->context, &own);
    return 0;
}

static int put_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    struct joining *j = context;
    j->sink->event(j->sink->context, kind, device_of(j, device), shifted(j, t_ns), text);
    return 0;
}

static int put_unit(void *context, const char *name, double count) {
    struct joining *j = context;
    j->sink->units(j->sink->context, name, count);
    return 0;
}

/* Ranks of all, by their new process ids and with their host, and the sizes of what they train; all else of the first. */
static int put_fact(void *context, const char *key, const char *value) {
    struct joining *j = context;
    size_t prefix = strlen(HEC_RANK_FACT);
    const char *host = hec_reader_meta(j->runs[j->at].reader, "hostname");
    bool ends = strcmp(key, "duration_ns") == 0 || strcmp(key, "complete") == 0 || strncmp(key, "store_", 6) == 0;
    if (strncmp(key, HEC_RANK_FACT, prefix) == 0) {
        char own[64];
        bool named = strchr(value, ' ') && host && host[0] && !strchr(host, ' ');
        snprintf(own, sizeof own, HEC_RANK_FACT "%d", (int)pid_of(j, (int32_t)strtol(key + prefix, NULL, 10)));
        hec_sink_meta(j->sink, own, "%s%s%s", value, named ? " " : "", named ? host : "");
    } else if (strncmp(key, HEC_SIZES_FACT, strlen(HEC_SIZES_FACT)) == 0) {
        char own[64], *what;
        long pid = strtol(key + strlen(HEC_SIZES_FACT), &what, 10);
        snprintf(own, sizeof own, HEC_SIZES_FACT "%d%.40s", (int)pid_of(j, (int32_t)pid), what);
        j->sink->meta(j->sink->context, own, value);
    } else if (j->at == 0 && !ends && strcmp(key, "hostname") != 0) {
        j->sink->meta(j->sink->context, key, value);
    }
    return 0;
}

/* ---- the timeline ---- */

static int remember(struct ids *ids, uint32_t id, uint32_t to) {
    while (ids->count <= id) {
        if (!hec_list_room(ids->to, ids->count, ids->capacity, 1024))
            return HEC_ERR_NOMEM;
        ids->to[ids->count++] = 0;
    }
    ids->to[id] = to;
    return 0;
}

static uint32_t id_of(const struct ids *ids, uint32_t id) {
    return id < ids->count ? ids->to[id] : 0;
}

static int put_name(void *context, uint32_t id, const char *text) {
    struct joining *j = context;
    return remember(&j->names, id, j->sink->trace_name(j->sink->context, text));
}

static int put_track(void *context, const struct hec_track *track) {
    struct joining *j = context;
    struct hec_track own = *track;
    own.pid = pid_of(j, own.pid);
    own.device = own.kind == HEC_TRACK_STREAM ? device_of(j, own.device) : own.device;
    return remember(&j->tracks, track->id, j->sink->trace_track(j->sink->context, &own));
}

static int put_kernel(void *context, const struct hec_kernel *kernel) {
    struct joining *j = context;
    struct hec_kernel own = *kernel;
    own.name = id_of(&j->names, own.name);
    return remember(&j->kernels, kernel->id, j->sink->trace_kernel(j->sink->context, &own));
}

static int put_frame(void *context, const struct hec_frame *frame) {
    struct joining *j = context;
    struct hec_frame own = *frame;
    own.parent = id_of(&j->frames, own.parent);
    own.file = id_of(&j->names, own.file);
    own.function = id_of(&j->names, own.function);
    return remember(&j->frames, frame->id, j->sink->trace_frame(j->sink->context, &own));
}

static int put_tracer(void *context, const struct hec_tracer *tracer) {
    struct joining *j = context;
    struct hec_tracer own = *tracer;
    own.pid = pid_of(j, own.pid);
    own.first_ns = shifted_if_known(j, own.first_ns);
    own.last_ns = shifted_if_known(j, own.last_ns);
    j->sink->tracer(j->sink->context, &own);
    return 0;
}

static int put_activities(void *context, const struct hec_activity *activities, size_t count) {
    struct joining *j = context;
    for (size_t i = 0; i < count; i++) {
        struct hec_activity own = activities[i];
        int device = own.device ? device_of(j, own.device - 1) : -1;
        own.start_ns = shifted(j, own.start_ns);
        own.end_ns = shifted(j, own.end_ns);
        own.launch_ns = shifted(j, own.launch_ns);
        own.launch_end_ns = shifted(j, own.launch_end_ns);
        own.track = id_of(&j->tracks, own.track);
        own.launch_track = id_of(&j->tracks, own.launch_track);
        own.name = id_of(own.kind == HEC_ACTIVITY_KERNEL  ? &j->kernels
                         : own.kind == HEC_ACTIVITY_STACK ? &j->frames
                                                          : &j->names,
                         own.name);
        own.device = (uint8_t)(device + 1);
        j->sink->trace_activities(j->sink->context, &own, 1);
    }
    j->activities += (int64_t)count;
    if (j->activities < FLUSH_ACTIVITIES)
        return 0;
    j->activities = 0;
    return hec_writer_flush(j->writer, j->why);
}

/* ---- the whole ---- */

static int found(int err) {
    return err == HEC_ERR_NOTFOUND || err > 0 ? 0 : err;
}

static int put_run(struct joining *j) {
    struct hec_reader *r = j->runs[j->at].reader;
    const char *duration = hec_reader_meta(r, "duration_ns");
    int64_t end_ns = shifted(j, duration ? strtoll(duration, NULL, 10) : 0);
    int err = hec_reader_metas(r, put_fact, j);
    j->end_ns = end_ns > j->end_ns ? end_ns : j->end_ns;
    j->names.count = j->tracks.count = j->kernels.count = j->frames.count = 0;
    if (err < 0 || (err = found(hec_reader_processes(r, put_process, j, j->why))) < 0 ||
        (err = found(hec_reader_gpu_processes(r, put_gpu_process, j, j->why))) < 0 ||
        (err = found(hec_reader_events(r, put_event, j, j->why))) < 0 ||
        (err = found(hec_reader_units(r, put_unit, j, j->why))) < 0 || (err = put_series(j)) < 0 ||
        (err = found(hec_reader_trace_names(r, put_name, j, j->why))) < 0 ||
        (err = found(hec_reader_tracks(r, put_track, j, j->why))) < 0 ||
        (err = found(hec_reader_kernels(r, put_kernel, j, j->why))) < 0 ||
        (err = found(hec_reader_frames(r, put_frame, j, j->why))) < 0 ||
        (err = found(hec_reader_tracers(r, put_tracer, j, j->why))) < 0)
        return err;
    return found(hec_reader_activities(r, HEC_ACTIVITY_ALL, put_activities, j, j->why));
}

static int find_devices(struct joining *j) {
    int err = 0;
    memset(j->to, -1, sizeof j->to);
    for (j->at = 0; j->at < j->count && err >= 0; j->at++) {
        err = found(hec_reader_tracks(j->runs[j->at].reader, find_use, j, j->why));
        if (err >= 0)
            err = found(hec_reader_devices(j->runs[j->at].reader, find_device, j, j->why));
    }
    for (int i = 0; i < j->device_count && err >= 0; i++)
        j->sink->device(j->sink->context, &j->devices[i]);
    return err;
}

/* Whether it is one of the list, whose names have ", " between them. */
static bool listed(const char *list, const char *host) {
    size_t length = strlen(host);
    for (const char *at = list; (at = strstr(at, host)); at++)
        if ((at == list || at[-1] == ' ') && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

static void put_facts(struct joining *j, const char *const *facts) {
    char hosts[HEC_JOIN_MAX * 68] = ""; /* of HOST_NAME_MAX each */
    bool complete = true;
    for (int i = 0; i < j->count; i++) {
        const char *host = hec_reader_meta(j->runs[i].reader, "hostname");
        size_t length = strlen(hosts);
        complete = complete && hec_reader_meta(j->runs[i].reader, "complete");
        if (host && host[0] && !listed(hosts, host))
            snprintf(hosts + length, sizeof hosts - length, "%s%s", length ? ", " : "", host);
    }
    j->sink->meta(j->sink->context, "hostname", hosts);
    hec_sink_meta(j->sink, "duration_ns", "%lld", (long long)j->end_ns);
    if (complete)
        hec_sink_meta(j->sink, "complete", "1");
    for (; facts && facts[0]; facts += 2)
        j->sink->meta(j->sink->context, facts[0], facts[1]);
}

int hec_store_join(const struct hec_join_run *runs, int count, const char *const *facts, const char *path,
                   struct hec_why *why) {
    int64_t lost = 0;
    struct joining *j = calloc(1, sizeof *j);
    int err = j && count <= HEC_JOIN_MAX ? 0 : j ? HEC_ERR_LIMIT : HEC_ERR_NOMEM;
    if (!err)
        err = hec_writer_create(path, false, 0, &j->writer, why);
    if (err < 0) {
        free(j);
        return err;
    }
    j->runs = runs;
    j->count = count;
    j->why = why;
    j->sink = hec_writer_sink(j->writer);
    err = find_devices(j);
    for (j->at = 0; j->at < count && err >= 0; j->at++)
        err = put_run(j);
    if (err >= 0)
        put_facts(j, facts);
    int closed = hec_writer_close(j->writer, &lost, err < 0 ? NULL : why);
    free(j->names.to);
    free(j->tracks.to);
    free(j->kernels.to);
    free(j->frames.to);
    free(j);
    if (err >= 0 && closed >= 0 && lost > 0)
        return hec_fail(why, HEC_ERR_LIMIT, "%lld values of the runs did not fit together", (long long)lost);
    return err < 0 ? err : closed;
}
