#include "store/import/clocks.h"

#include "base/list.h"
#include "store/import/state.h"

#include <stdlib.h>

#define MEETINGS_LEAST 3 /* in common, for a median: of fewer, one that ended otherwise would count */
#define NOTED_NS 100000  /* devices of one host are 16 to 41 us apart (docs/replay.md) */

int hec_import_meetings_add(struct hec_import_meetings *m, uint64_t key, int file, int64_t end_ns,
                            struct hec_why *why) {
    if (m->count == HEC_IMPORT_MEETINGS_MAX || end_ns >= HEC_IMPORT_TIME_MAX_NS)
        return HEC_OK;
    if (!hec_list_room(m->list, m->count, m->capacity, 1024))
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    m->list[m->count++] = (struct hec_import_meeting){key, end_ns, file};
    return HEC_OK;
}

static int by_key(const void *a, const void *b) {
    const struct hec_import_meeting *x = a, *y = b;
    return x->key != y->key     ? (x->key > y->key) - (x->key < y->key)
           : x->file != y->file ? x->file - y->file
                                : (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int by_file(const void *a, const void *b) {
    const struct hec_import_meeting *x = a, *y = b;
    return x->file != y->file ? x->file - y->file : (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* One of each file: a collective may be several kernels, of which the last ends it. */
static void keep_last(struct hec_import_meetings *m) {
    size_t kept = 0;
    if (m->count)
        qsort(m->list, m->count, sizeof *m->list, by_key);
    for (size_t i = 0; i < m->count; i++)
        if (i + 1 == m->count || m->list[i].key != m->list[i + 1].key || m->list[i].file != m->list[i + 1].file)
            m->list[kept++] = m->list[i];
    m->count = kept;
}

/* How far files that are not set are ahead, by each collective that they have with one that is. ahead: room for all; end_ns is how far. */
static size_t compare(const struct hec_import *import, const bool *set, struct hec_import_meeting *ahead) {
    const struct hec_import_meetings *m = &import->meetings;
    size_t count = 0;
    for (size_t i = 0, end; i < m->count; i = end) {
        const struct hec_import_meeting *with = NULL;
        for (end = i; end < m->count && m->list[end].key == m->list[i].key; end++)
            with = !with && set[m->list[end].file] ? &m->list[end] : with;
        for (size_t k = i; with && k < end; k++) {
            const struct hec_import_file *file = &import->files[m->list[k].file], *other = &import->files[with->file];
            if (!set[m->list[k].file] && file->rank != other->rank)
                ahead[count++] = (struct hec_import_meeting){
                    0, file->base_ns + m->list[k].end_ns - (other->base_ns + with->end_ns), m->list[k].file};
        }
    }
    return count;
}

static bool set_compared(struct hec_import *import, struct hec_import_meeting *ahead, size_t count, bool *set) {
    bool any = false;
    qsort(ahead, count, sizeof *ahead, by_file);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && ahead[end].file == ahead[i].file; end++)
            ;
        int64_t median = ahead[i + (end - i) / 2].end_ns;
        if (end - i < MEETINGS_LEAST || llabs(median) > HEC_IMPORT_APART_NS)
            continue;
        import->files[ahead[i].file].base_ns -= median;
        import->stats.clocks += llabs(median) > NOTED_NS;
        set[ahead[i].file] = any = true;
    }
    return any;
}

/* The lowest rank among those not set, whose clock counts as it is. */
static bool set_another(const struct hec_import *import, bool *set) {
    int first = -1;
    for (int i = 0; i < import->file_count; i++)
        if (!set[i] && (first < 0 || import->files[i].rank < import->files[first].rank))
            first = i;
    if (first >= 0)
        set[first] = true;
    return first >= 0;
}

static void find_origin(struct hec_import *import) {
    int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;
    for (int i = 0; i < import->file_count; i++) {
        const struct hec_import_file *file = &import->files[i];
        if (file->first_ns > file->last_ns)
            continue;
        from_ns = file->base_ns + file->first_ns < from_ns ? file->base_ns + file->first_ns : from_ns;
        to_ns = file->base_ns + file->last_ns > to_ns ? file->base_ns + file->last_ns : to_ns;
    }
    import->stats.origin_ns = from_ns;
    import->stats.end_ns = to_ns - from_ns;
}

void hec_import_clocks_set(struct hec_import *import) {
    struct hec_import_meetings *m = &import->meetings;
    bool *set = calloc((size_t)import->file_count + 1, sizeof *set);
    struct hec_import_meeting *ahead = malloc((m->count + 1) * sizeof *ahead);
    if (m->count && import->file_count > 1 && set && ahead) {
        keep_last(m);
        while (set_compared(import, ahead, compare(import, set, ahead), set) || set_another(import, set))
            ;
        find_origin(import);
    }
    free(set);
    free(ahead);
}
