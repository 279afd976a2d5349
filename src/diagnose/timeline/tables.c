#include "diagnose/timeline/tables.h"

#include <stdlib.h>
#include <string.h>

#define SPARSE 65536 /* ids may run ahead of their number by this */

/* Room for an id in a list; what is between stays zero. Returns the list, NULL when there is no memory; *count does not
 * reach the id when that is nonsense. */
static void *reserve(void *list, size_t size, size_t *count, uint32_t id) {
    size_t wanted = (size_t)id + 1, have = 64, need = 64; /* powers of two, so that growing costs linear time in all */
    bool nonsense = id == 0 || id > *count * 2 + SPARSE;
    if (list && (nonsense || id < *count))
        return list;
    while (have < *count)
        have *= 2;
    while (need < wanted && !nonsense)
        need *= 2;
    if (need > have || !list) {
        void *grown = realloc(list, need * size);
        if (!grown)
            return NULL;
        list = grown;
    }
    if (!nonsense) {
        memset((char *)list + *count * size, 0, (wanted - *count) * size);
        *count = wanted;
    }
    return list;
}

static int take_name(void *to, uint32_t id, const char *text) {
    struct hec_timeline_tables *t = to;
    char **list = reserve(t->names, sizeof *list, &t->name_count, id), *copy;
    if (!list)
        return HEC_ERR_NOMEM;
    t->names = list;
    if (!id || id >= t->name_count)
        return 0;
    if (!(copy = strdup(text ? text : "")))
        return HEC_ERR_NOMEM;
    free(list[id]);
    list[id] = copy;
    return 0;
}

/* take_NAME: a definition to its place. */
#define TAKE(name, list)                                                                                               \
    static int take_##name(void *to, const struct hec_##name *definition) {                                            \
        struct hec_timeline_tables *t = to;                                                                            \
        struct hec_##name *room = reserve(t->list, sizeof *room, &t->name##_count, definition->id);                    \
        if (!room)                                                                                                     \
            return HEC_ERR_NOMEM;                                                                                      \
        t->list = room;                                                                                                \
        if (definition->id && definition->id < t->name##_count)                                                        \
            room[definition->id] = *definition;                                                                        \
        return 0;                                                                                                      \
    }
TAKE(track, tracks)
TAKE(kernel, kernels)
TAKE(frame, frames)

static int take_tracer(void *to, const struct hec_tracer *tracer) {
    struct hec_timeline_tables *t = to;
    if (t->tracer_count >= HEC_TRACE_PROCESSES_MAX)
        return 0;
    struct hec_tracer *grown = realloc(t->tracers, (t->tracer_count + 1) * sizeof *grown);
    if (!grown)
        return HEC_ERR_NOMEM;
    t->tracers = grown;
    t->tracers[t->tracer_count++] = *tracer;
    return 0;
}

/* Many kernels (one a launch configuration) have one name, and to classify it takes microseconds. */
static int classify(struct hec_timeline_tables *t) {
    enum { UNKNOWN = UINT8_MAX };
    uint8_t *by_name = malloc(t->name_count + 1);
    t->classes = malloc(t->kernel_count + 1);
    if (by_name && t->classes) {
        memset(by_name, UNKNOWN, t->name_count + 1);
        for (uint32_t i = 0; i < t->kernel_count; i++) {
            uint32_t name = t->kernels[i].name < t->name_count ? t->kernels[i].name : 0;
            if (by_name[name] == UNKNOWN)
                by_name[name] = (uint8_t)hec_kernel_class_of(hec_timeline_name(t, name));
            t->classes[i] = by_name[name];
        }
    }
    int err = by_name && t->classes ? 0 : HEC_ERR_NOMEM;
    free(by_name);
    return err;
}

static int by_process(const void *a, const void *b) {
    const struct hec_track *one = *(struct hec_track *const *)a, *other = *(struct hec_track *const *)b;
    return one->pid != other->pid     ? (one->pid > other->pid) - (one->pid < other->pid)
           : one->rank != other->rank ? (one->rank > other->rank) - (one->rank < other->rank)
                                      : (one > other) - (one < other);
}

static int of_process(const void *pid, const void *track) {
    int32_t one = *(const int32_t *)pid, other = (*(struct hec_track *const *)track)->pid;
    return (one > other) - (one < other);
}

/* Who samples a thread from outside does not know the rank of its process: its track has that of the others. */
static void give_ranks(struct hec_timeline_tables *t, struct hec_track **ranked, size_t count) {
    qsort(ranked, count, sizeof *ranked, by_process);
    for (size_t i = 0; i < t->track_count && count > 0; i++) {
        struct hec_track *track = &t->tracks[i], **of = NULL;
        if (track->id && track->rank < 0)
            of = bsearch(&track->pid, ranked, count, sizeof *ranked, of_process);
        track->rank = of ? (*of)->rank : track->rank;
    }
}

/* Ranks of an import may have the same pid, each in its own container or on its own host, and everything about a process is found
 * by its pid. The first rank keeps it; the others get pids that no process has. */
static int part_ranks(struct hec_timeline_tables *t) {
    struct hec_track **list = malloc((t->track_count + 1) * sizeof(struct hec_track *));
    size_t count = 0;
    int32_t last = 0, pid = 0, own = 0, rank = -1;
    if (!list)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < t->track_count; i++) {
        last = t->tracks[i].pid > last ? t->tracks[i].pid : last;
        if (t->tracks[i].id && t->tracks[i].rank >= 0)
            list[count++] = &t->tracks[i];
    }
    qsort(list, count, sizeof *list, by_process);
    for (size_t i = 0; i < count; i++) {
        struct hec_track *track = list[i];
        bool another = i > 0 && track->pid == pid && track->rank != rank;
        if (i == 0 || track->pid != pid)
            own = track->pid;
        else if (another && last < INT32_MAX)
            own = ++last;
        pid = track->pid;
        rank = track->rank;
        if (track->kind == HEC_TRACK_THREAD && track->stream == pid) /* the main thread */
            track->stream = own;
        track->pid = own;
    }
    give_ranks(t, list, count);
    free(list);
    return 0;
}

int hec_timeline_tables_load(const struct hec_timeline_input *input, struct hec_timeline_tables *tables,
                             struct hec_why *why) {
    int err = 0;
    memset(tables, 0, sizeof *tables);
    if ((input->names && (err = hec_table_absent(input->names(input->context, take_name, tables, why))) != 0) ||
        (input->tracks && (err = hec_table_absent(input->tracks(input->context, take_track, tables, why))) != 0) ||
        (input->kernels && (err = hec_table_absent(input->kernels(input->context, take_kernel, tables, why))) != 0) ||
        (input->frames && (err = hec_table_absent(input->frames(input->context, take_frame, tables, why))) != 0) ||
        (input->tracers && (err = hec_table_absent(input->tracers(input->context, take_tracer, tables, why))) != 0) ||
        (err = part_ranks(tables)) != 0 || (err = classify(tables)) != 0)
        hec_timeline_tables_free(tables);
    return err;
}

void hec_timeline_tables_free(struct hec_timeline_tables *tables) {
    for (size_t i = 0; i < tables->name_count; i++)
        free(tables->names[i]);
    free(tables->names);
    free(tables->tracks);
    free(tables->kernels);
    free(tables->classes);
    free(tables->frames);
    free(tables->tracers);
    memset(tables, 0, sizeof *tables);
}

const char *hec_timeline_name(const struct hec_timeline_tables *tables, uint32_t id) {
    return id < tables->name_count && tables->names[id] ? tables->names[id] : "";
}

const struct hec_track *hec_timeline_track(const struct hec_timeline_tables *tables, uint32_t id) {
    return id < tables->track_count && tables->tracks[id].id == id && id ? &tables->tracks[id] : NULL;
}

enum hec_kernel_class hec_timeline_kernel_class(const struct hec_timeline_tables *tables, uint32_t kernel) {
    return kernel < tables->kernel_count ? (enum hec_kernel_class)tables->classes[kernel] : HEC_KERNEL_CLASS_OTHER;
}

uint32_t hec_timeline_kernel_name(const struct hec_timeline_tables *tables, uint32_t kernel) {
    return kernel && kernel < tables->kernel_count ? tables->kernels[kernel].name : 0;
}

static int ascending(const void *a, const void *b) {
    int one = *(const int *)a, other = *(const int *)b;
    return (one > other) - (one < other);
}

int hec_timeline_devices(const struct hec_timeline_tables *tables, int **devices, size_t *count) {
    int *list = malloc((tables->track_count + 1) * sizeof *list);
    size_t n = 0;
    *devices = list;
    *count = 0;
    if (!list)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < tables->track_count; i++)
        if (tables->tracks[i].id && tables->tracks[i].kind == HEC_TRACK_STREAM)
            list[n++] = tables->tracks[i].device;
    qsort(list, n, sizeof *list, ascending);
    for (size_t i = 0; i < n; i++)
        if (!i || list[i] != list[i - 1])
            list[(*count)++] = list[i];
    return 0;
}

int hec_timeline_pids(const struct hec_timeline_tables *tables, int device, struct hec_pids *out) {
    out->count = 0;
    out->list = malloc((tables->track_count + 1) * sizeof *out->list);
    if (!out->list)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < tables->track_count; i++) {
        const struct hec_track *track = &tables->tracks[i];
        if (track->id && track->kind == HEC_TRACK_STREAM && (track->device == device || device == HEC_DEVICE_NONE))
            out->list[out->count++] = track->pid;
    }
    qsort(out->list, out->count, sizeof *out->list, ascending);
    return 0;
}

bool hec_pids_have(const void *pids, int32_t pid) {
    const struct hec_pids *in = pids;
    int key = pid;
    return in->count && bsearch(&key, in->list, in->count, sizeof *in->list, ascending) != NULL;
}
