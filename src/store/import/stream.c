#include "store/import/stream.h"

#include "base/list.h"

#include <stdlib.h>

struct span {
    int64_t start_ns, end_ns, place; /* place: in the order of the spool */
    uint32_t track;
    bool cut;
};

struct spans {
    struct span *list;
    size_t count, capacity;
    int64_t place, next; /* of the record that is visited; of the span that is given back */
};

static bool counts(const struct hec_import_record *record) {
    const struct hec_activity *a = &record->activity;
    return a->kind < HEC_ACTIVITY_KIND_COUNT && (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)) &&
           !(a->flags & HEC_ACTIVITY_IN_GRAPH);
}

/* The last end on each track so far, of files whose records come in the order of time. */
struct survey {
    int64_t *end_ns; /* by track id */
    size_t track_count;
    bool overlap;
};

static int survey(void *context, struct hec_import_record *records, size_t count) {
    struct survey *s = context;
    for (size_t i = 0; i < count && !s->overlap; i++) {
        const struct hec_activity *a = &records[i].activity;
        if (!counts(&records[i]))
            continue;
        if (a->track >= s->track_count) {
            size_t grown = 2 * (size_t)a->track + 64;
            int64_t *ends = realloc(s->end_ns, grown * sizeof *ends);
            if (!ends)
                return HEC_ERR_NOMEM;
            for (size_t k = s->track_count; k < grown; k++)
                ends[k] = INT64_MIN;
            s->end_ns = ends;
            s->track_count = grown;
        }
        s->overlap = a->end_ns < s->end_ns[a->track];
        s->end_ns[a->track] = a->end_ns;
    }
    return HEC_OK;
}

static int gather(void *context, struct hec_import_record *records, size_t count) {
    struct spans *s = context;
    for (size_t i = 0; i < count; i++, s->place++) {
        const struct hec_activity *a = &records[i].activity;
        if (!counts(&records[i]))
            continue;
        if (!hec_list_room(s->list, s->count, s->capacity, 4096))
            return HEC_ERR_NOMEM;
        s->list[s->count++] = (struct span){a->start_ns, a->end_ns, s->place, a->track, false};
    }
    return HEC_OK;
}

static int by_time(const void *one, const void *other) {
    const struct span *a = one, *b = other;
    if (a->track != b->track)
        return a->track < b->track ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

static int by_place(const void *one, const void *other) {
    const struct span *a = one, *b = other;
    return (a->place > b->place) - (a->place < b->place);
}

static int give_back(void *context, struct hec_import_record *records, size_t count) {
    struct spans *s = context;
    for (size_t i = 0; i < count; i++, s->place++) {
        if (s->next == (int64_t)s->count || s->list[s->next].place != s->place)
            continue;
        records[i].activity.end_ns = s->list[s->next++].end_ns;
    }
    return HEC_OK;
}

static int cut_spans(struct hec_import_spool *spool, int64_t first, int64_t last, int64_t *cut, struct spans *s,
                     struct hec_why *why) {
    int err = hec_import_spool_visit(spool, first, last, false, gather, s, why);
    if (err < 0)
        return err;
    qsort(s->list, s->count, sizeof *s->list, by_time);
    for (size_t i = 0; i + 1 < s->count; i++) {
        struct span *a = &s->list[i], *next = &s->list[i + 1];
        if (a->track != next->track || a->end_ns <= next->end_ns || a->start_ns == next->start_ns)
            continue;
        a->end_ns = next->start_ns;
        a->cut = true;
        ++*cut;
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->list[i].cut)
            s->list[kept++] = s->list[i];
    s->count = kept;
    qsort(s->list, s->count, sizeof *s->list, by_place);
    s->place = 0;
    return hec_import_spool_visit(spool, first, last, true, give_back, s, why);
}

int hec_import_streams_cut(struct hec_import_spool *spool, int64_t first, int64_t last, int64_t *cut,
                           struct hec_why *why) {
    struct survey found = {0};
    struct spans spans = {0};
    int err = hec_import_spool_visit(spool, first, last, false, survey, &found, why);
    free(found.end_ns);
    if (err == HEC_OK && found.overlap)
        err = cut_spans(spool, first, last, cut, &spans, why);
    free(spans.list);
    return err == HEC_ERR_NOMEM ? hec_fail(why, err, "out of memory") : err;
}
