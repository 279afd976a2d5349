#include "diagnose/timeline/periodic.h"

#include "base/list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP_LENGTH_TOLERANCE 0.5 /* a step with half as many kernels more is a step and something else */

/* Elements of the sequence: kernels by name, then what else keeps the device busy, then copies from and to the host. */
enum element { ELEMENT_GRAPH, ELEMENT_MEMSET, ELEMENT_COPY, ELEMENT_FROM_HOST, ELEMENT_TO_HOST, ELEMENT_COUNT };

static uint32_t element_of(const struct hec_timeline_tables *tables, const struct hec_activity *a) {
    uint32_t base = (uint32_t)tables->name_count + 1;
    switch (a->kind) {
    case HEC_ACTIVITY_KERNEL: {
        uint32_t name = hec_timeline_kernel_name(tables, a->name);
        return name && name < tables->name_count ? name : base - 1;
    }
    case HEC_ACTIVITY_GRAPH:
        return base + ELEMENT_GRAPH;
    case HEC_ACTIVITY_MEMSET:
        return base + ELEMENT_MEMSET;
    default:
        return base + (hec_memory_of_host(a->from) ? ELEMENT_FROM_HOST
                       : hec_memory_of_host(a->to) ? ELEMENT_TO_HOST
                                                   : ELEMENT_COPY);
    }
}

int hec_periodic_add(struct hec_periodic *stream, const struct hec_timeline_tables *tables,
                     const struct hec_activity *a, int64_t busy_ns) {
    if (!hec_list_room(stream->list, stream->count, stream->capacity, 1024))
        return HEC_ERR_NOMEM;
    stream->list[stream->count++] = (struct hec_periodic_entry){a->start_ns, busy_ns, element_of(tables, a)};
    return 0;
}

/* Something may be missing between two instants. */
static bool broken(struct hec_intervals *traced, int64_t from_ns, int64_t to_ns) {
    return hec_intervals_within(traced, from_ns, to_ns) < to_ns - from_ns;
}

static int learn(const struct hec_periodic *stream, uint32_t base, struct hec_intervals *traced,
                 struct hec_period *out) {
    uint32_t *ids = malloc(HEC_PERIODIC_LEARNT * sizeof *ids);
    size_t count = 0, from = stream->count > HEC_PERIODIC_LEARNT ? (stream->count - HEC_PERIODIC_LEARNT) / 2 : 0;
    for (size_t i = from; ids && i < stream->count && count + 2 <= HEC_PERIODIC_LEARNT; i++) {
        const struct hec_periodic_entry *e = &stream->list[i];
        if (count && broken(traced, e[-1].start_ns, e->start_ns))
            ids[count++] = 0;
        ids[count++] = e->element;
    }
    int err = ids ? hec_period_find(ids, count, base + ELEMENT_COUNT, base + ELEMENT_FROM_HOST, out) : HEC_ERR_NOMEM;
    free(ids);
    return err;
}

int hec_periodic_steps(const struct hec_periodic *stream, const struct hec_timeline_tables *tables,
                       struct hec_intervals *traced, struct hec_step_list *steps, double *confidence,
                       double *busy_share) {
    struct hec_period period = {0};
    const struct hec_periodic_entry *open = NULL;
    double busy_ns = 0, all_ns = 0;
    int err = learn(stream, (uint32_t)tables->name_count + 1, traced, &period);
    *confidence = *busy_share = NAN;
    for (size_t i = 0; i < stream->count && period.anchor && !err; i++) {
        const struct hec_periodic_entry *e = &stream->list[i];
        if (e->element != period.anchor)
            continue;
        double apart = open ? fabs((double)(e - open) - period.length) : INFINITY;
        if (open && e->start_ns > open->start_ns && apart <= STEP_LENGTH_TOLERANCE * period.length &&
            !broken(traced, open->start_ns, e->start_ns)) {
            err = hec_step_list_add(steps, open->start_ns, e->start_ns, NAN);
            busy_ns += (double)(e->busy_ns - open->busy_ns);
            all_ns += (double)(e->start_ns - open->start_ns);
        }
        open = e;
    }
    *confidence = period.anchor ? period.confidence : NAN;
    if (all_ns > 0)
        *busy_share = busy_ns / all_ns;
    return err;
}

#define PERIODS_MIN 4        /* fewer repetitions are a coincidence */
#define LENGTH_MIN 2         /* one kernel over and over has no period */
#define LENGTH_TOLERANCE 0.1 /* steps differ: another branch, another number of chunks */
#define EXPLAINED_MIN 0.9
#define CANDIDATES_MAX 32 /* of different length, the longest first */
#define CONFIDENCE_MAX 0.95
#define NESTED_TRUST 0.7

struct candidate {
    uint32_t id;
    uint32_t length; /* median distance */
    int64_t periods;
    double explained, matched, host; /* host: share of periods with a copy from or to the host */
};

struct finder {
    const uint32_t *ids;
    size_t count;
    uint32_t id_count, host_from;
    uint32_t *first; /* positions of id i: position[first[i]] .. position[first[i + 1] - 1] */
    uint32_t *position;
    uint32_t *segment;   /* number of breaks before each position */
    uint32_t *distances; /* scratch, as long as position */
    int32_t *counts;     /* scratch, by id */
    size_t elements, segments;
};

static int prepare(struct finder *f) {
    f->first = calloc((size_t)f->id_count + 2, sizeof *f->first);
    f->counts = calloc((size_t)f->id_count + 1, sizeof *f->counts);
    f->position = malloc((f->count + 1) * sizeof *f->position);
    f->segment = malloc((f->count + 1) * sizeof *f->segment);
    f->distances = malloc((f->count + 1) * sizeof *f->distances);
    if (!f->first || !f->counts || !f->position || !f->segment || !f->distances)
        return HEC_ERR_NOMEM;
    uint32_t breaks = 0;
    for (size_t i = 0; i < f->count; i++) {
        breaks += f->ids[i] == 0;
        f->segment[i] = breaks;
        if (f->ids[i] && f->ids[i] < f->id_count) {
            f->first[f->ids[i] + 2]++;
            f->elements++;
        }
    }
    f->segments = breaks + 1;
    for (uint32_t i = 2; i <= f->id_count + 1; i++)
        f->first[i] += f->first[i - 1];
    for (size_t i = 0; i < f->count; i++)
        if (f->ids[i] && f->ids[i] < f->id_count)
            f->position[f->first[f->ids[i] + 1]++] = (uint32_t)i;
    return 0;
}

static int ascending(const void *a, const void *b) {
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

static bool about(uint32_t length, uint32_t usual) {
    double apart = length > usual ? length - usual : usual - length;
    return apart <= LENGTH_TOLERANCE * usual;
}

/* Is this id regular enough to be an anchor? */
static bool consider(const struct finder *f, uint32_t id, struct candidate *out) {
    const uint32_t *at = &f->position[f->first[id]];
    size_t n = f->first[id + 1] - f->first[id], found = 0, with = n > 0;
    double sum = 0, regular = 0;
    int64_t periods = 0;
    if (n <= PERIODS_MIN)
        return false;
    for (size_t i = 1; i < n; i++) {
        if (f->segment[at[i]] != f->segment[at[i - 1]]) {
            with++;
            continue;
        }
        f->distances[found++] = at[i] - at[i - 1];
        sum += at[i] - at[i - 1];
    }
    if (found < PERIODS_MIN)
        return false;
    qsort(f->distances, found, sizeof *f->distances, ascending);
    uint32_t length = f->distances[found / 2];
    for (size_t i = 0; i < found; i++)
        if (about(f->distances[i], length)) {
            regular += f->distances[i];
            periods++;
        }
    /* What lies before the first and after the last run in a segment may be parts of periods, but no more than that. */
    double ends = (2 * (double)with + (double)(f->segments - with)) * length;
    double left = (double)f->elements - sum - ends;
    *out = (struct candidate){
        .id = id, .length = length, .periods = periods, .explained = regular / (sum + (left > 0 ? left : 0))};
    return length >= LENGTH_MIN && periods >= PERIODS_MIN && out->explained >= EXPLAINED_MIN;
}

/* Longest first; of one length the best explained, then the first id. */
static int by_length(const void *a, const void *b) {
    const struct candidate *one = a, *other = b;
    if (one->length != other->length)
        return one->length > other->length ? -1 : 1;
    if (one->explained != other->explained)
        return one->explained > other->explained ? -1 : 1;
    return (one->id > other->id) - (one->id < other->id);
}

/* Adds sign for every element of a period; says whether there is a host copy in it. */
static bool tally(const struct finder *f, uint32_t from, uint32_t to, int sign) {
    bool host = false;
    for (uint32_t i = from; i < to; i++) {
        f->counts[f->ids[i] < f->id_count ? f->ids[i] : 0] += sign;
        host |= f->ids[i] >= f->host_from;
    }
    return host;
}

/* Size of the difference that two tallies left; takes it away. */
static int64_t difference(const struct finder *f, uint32_t from, uint32_t to) {
    int64_t apart = 0;
    for (uint32_t i = from; i < to; i++) {
        int32_t *count = &f->counts[f->ids[i] < f->id_count ? f->ids[i] : 0];
        apart += *count < 0 ? -*count : *count;
        *count = 0;
    }
    return apart;
}

static void verify(const struct finder *f, struct candidate *c) {
    const uint32_t *at = &f->position[f->first[c->id]];
    size_t n = f->first[c->id + 1] - f->first[c->id];
    int64_t pairs = 0, same = 0, with_host = 0;
    for (size_t i = 2; i < n; i++) {
        uint32_t a = at[i - 2], b = at[i - 1], d = at[i];
        if (f->segment[a] != f->segment[d] || !about(b - a, c->length) || !about(d - b, c->length))
            continue;
        with_host += tally(f, a, b, 1);
        tally(f, b, d, -1);
        same += (double)difference(f, a, d) <= LENGTH_TOLERANCE * (d - a);
        pairs++;
    }
    c->matched = pairs ? (double)same / (double)pairs : 0;
    c->host = pairs ? (double)with_host / (double)pairs : 0;
}

/* Candidates of different lengths, verified; returns their number. */
static size_t shortlist(const struct finder *f, struct candidate *all, size_t count, struct candidate *out) {
    size_t n = 0;
    uint32_t tried = 0; /* length of the last group of which one was verified */
    for (size_t i = 0; i < count && n < CANDIDATES_MAX; i++) {
        if (tried && (double)all[i].length > 0.98 * tried)
            continue;
        tried = all[i].length;
        out[n] = all[i];
        verify(f, &out[n]);
        n += out[n].matched >= EXPLAINED_MIN;
    }
    return n;
}

static void choose(const struct candidate *list, size_t n, struct hec_period *out) {
    size_t chosen = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].host >= EXPLAINED_MIN)
            chosen = i; /* the shortest of them comes last */
    const struct candidate *c = &list[chosen];
    *out = (struct hec_period){
        .anchor = c->id,
        .length = c->length,
        .explained = c->explained,
        .matched = c->matched,
        .periods = c->periods,
        .nested = n > 1,
    };
    double n_trust = (double)c->periods / ((double)c->periods + 2);
    double confidence = c->explained * c->matched * n_trust * (out->nested ? NESTED_TRUST : 1);
    out->confidence = confidence < CONFIDENCE_MAX ? confidence : CONFIDENCE_MAX;
}

int hec_period_find(const uint32_t *ids, size_t count, uint32_t id_count, uint32_t host_from, struct hec_period *out) {
    struct finder f = {.ids = ids, .count = count, .id_count = id_count, .host_from = host_from};
    struct candidate best[CANDIDATES_MAX], *all = NULL;
    size_t found = 0, n;
    memset(out, 0, sizeof *out);
    int err = count < UINT32_MAX ? prepare(&f) : HEC_ERR_NOMEM;
    if (!err && !(all = malloc(((size_t)id_count + 1) * sizeof *all)))
        err = HEC_ERR_NOMEM;
    for (uint32_t id = 1; id < id_count && !err; id++)
        found += consider(&f, id, &all[found]);
    if (found && !err) {
        qsort(all, found, sizeof *all, by_length);
        n = shortlist(&f, all, found, best);
        if (n)
            choose(best, n, out);
    }
    free(all);
    free(f.first);
    free(f.counts);
    free(f.position);
    free(f.segment);
    free(f.distances);
    return err;
}
