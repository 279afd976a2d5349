#include "store/import/gradients.h"

#include "base/hash.h"
#include "base/list.h"
#include "store/import/event.h"
#include "store/import/words.h"

#include <stdlib.h>
#include <string.h>

#define GROUPS_MAX 16
#define ELEMENTS_MAX (INT64_C(1) << 38) /* so that a million of them add up */
#define SAME 0.99 /* a pass sends this much of what the largest does: else it sends something else than the gradients */

#define OTHERS_MOST 0.1 /* of what the gradients are: with more, the time of communication is not that of gradients */

enum what { FORWARD, BACKWARD, UPDATE, REDUCE, OTHER };

static bool begins(const struct hec_import_event *e, const char *word) {
    size_t length = strlen(word);
    return e->name_length >= length && memcmp(e->name, word, length) == 0;
}

static bool ends(const struct hec_import_event *e, const char *word) {
    size_t length = strlen(word);
    return e->name_length >= length && memcmp(e->name + e->name_length - length, word, length) == 0;
}

/* -1: it is nothing of these. An operator's name ends so also where autograd calls it: with the hooks behind it, which send. */
static int what_of(const struct hec_import_event *e) {
    switch (e->kind) {
    case HEC_ACTIVITY_KERNEL:
        return !e->collective[0] ? -1 : strncmp(e->collective, "allreduce", 9) == 0 ? REDUCE : OTHER;
    case HEC_ACTIVITY_RANGE:
    case HEC_ACTIVITY_OPERATOR:
        return begins(e, "DistributedDataParallel.forward") ? FORWARD
               : begins(e, "Optimizer.step#")               ? UPDATE
               : ends(e, "torch::autograd::AccumulateGrad") ? BACKWARD
                                                            : -1;
    default:
        return -1;
    }
}

int hec_import_marks_add(struct hec_import_marks *m, const struct hec_import_event *e,
                         const struct hec_import_record *record, struct hec_why *why) {
    int what = what_of(e);
    if (what < 0 || m->count == HEC_IMPORT_MARKS_MAX)
        return HEC_OK;
    if (!hec_list_room(m->list, m->count, m->capacity, 1024))
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    struct hec_import_mark *mark = &m->list[m->count++];
    *mark = (struct hec_import_mark){
        .start_ns = record->activity.start_ns, .end_ns = record->activity.end_ns, .what = (uint8_t)what};
    if (what < REDUCE)
        return HEC_OK;
    bool gathers = e->elements_out.known && e->elements_out.value > e->elements_in.value;
    struct hec_import_number sent = gathers ? e->elements_out : e->elements_in;
    mark->correlation = record->correlation;
    mark->group = hec_hash(e->communicator, strlen(e->communicator));
    if (sent.known && sent.value > 0 && sent.value < ELEMENTS_MAX)
        mark->bytes = sent.value * hec_import_element_bytes(e->element);
    return HEC_OK;
}

static int by_start(const void *a, const void *b) {
    const struct hec_import_mark *x = a, *y = b;
    return x->start_ns != y->start_ns ? (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns) : x->what - y->what;
}

/* What a collective was launched by says when: its kernel may run much later. Those of which it is not known go. */
static void find_launches(struct hec_import_marks *m, const struct hec_import_join *join) {
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct hec_import_mark mark = m->list[i];
        if (mark.what >= REDUCE) {
            const struct hec_import_call *call = hec_import_join_find(join, mark.correlation);
            if (!call || !call->called || !mark.bytes)
                continue;
            mark.start_ns = mark.end_ns = call->start_ns;
        }
        m->list[kept++] = mark;
    }
    m->count = kept;
    if (kept)
        qsort(m->list, m->count, sizeof *m->list, by_start);
}

/* A backward pass: from the first parameter whose gradient is there to the last one. */
struct pass {
    int64_t from_ns, to_ns;
    int64_t step;              /* so many steps of the optimizer are before it */
    int64_t bytes[GROUPS_MAX]; /* that all-reduces of each process group send while it lasts */
    int64_t bucket[GROUPS_MAX];
};

struct passes {
    struct pass *list;
    size_t count, capacity;
    int64_t steps;
    uint64_t groups[GROUPS_MAX];
    int group_count;
    bool forward[GROUPS_MAX]; /* also reduces while a model computes forward: it is no group for gradients alone */
    int64_t bytes;            /* of all collectives from the first pass to the last */
};

/* A pass is of a forward call of the wrapped model; one of several models has several, and no gradients between them. A step has passes. */
static int find_passes(const struct hec_import_marks *m, struct passes *p) {
    bool called = false, open = false;
    size_t at_step = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct hec_import_mark *mark = &m->list[i];
        if (mark->what == FORWARD) {
            called = true;
            open = false;
        } else if (mark->what == UPDATE) {
            called = open = false;
            p->steps += p->count > at_step;
            at_step = p->count;
        } else if (mark->what == BACKWARD && called) {
            if (!open && !hec_list_room(p->list, p->count, p->capacity, 64))
                return HEC_ERR_NOMEM;
            if (!open)
                p->list[p->count++] = (struct pass){.from_ns = mark->start_ns, .to_ns = mark->end_ns, .step = p->steps};
            struct pass *last = &p->list[p->count - 1];
            last->to_ns = mark->end_ns > last->to_ns ? mark->end_ns : last->to_ns;
            open = true;
        }
    }
    return HEC_OK;
}

/* -1: there are too many. */
static int group_of(struct passes *p, uint64_t group) {
    int g = 0;
    while (g < p->group_count && p->groups[g] != group)
        g++;
    if (g == GROUPS_MAX)
        return -1;
    p->group_count += g == p->group_count;
    p->groups[g] = group;
    return g;
}

static void add_reduces(const struct hec_import_marks *m, struct passes *p) {
    int64_t forward_to_ns = INT64_MIN;
    size_t at = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct hec_import_mark *mark = &m->list[i];
        if (mark->what == FORWARD && mark->end_ns > forward_to_ns)
            forward_to_ns = mark->end_ns;
        if (p->count && mark->start_ns >= p->list[0].from_ns && mark->start_ns <= p->list[p->count - 1].to_ns)
            p->bytes += mark->bytes;
        int g = mark->what == REDUCE ? group_of(p, mark->group) : -1;
        if (g < 0)
            continue;
        p->forward[g] |= mark->start_ns < forward_to_ns;
        while (at < p->count && p->list[at].to_ns < mark->start_ns)
            at++;
        if (at == p->count || mark->start_ns < p->list[at].from_ns)
            continue;
        struct pass *pass = &p->list[at];
        pass->bytes[g] += mark->bytes;
        pass->bucket[g] = mark->bytes > pass->bucket[g] ? mark->bytes : pass->bucket[g];
    }
}

/* The process group that sends nearly all; -1: none. */
static int of_gradients(const struct passes *p) {
    int64_t most = 0;
    int best = -1;
    for (int g = 0; g < p->group_count; g++) {
        int64_t sum = 0;
        for (size_t i = 0; i < p->count; i++)
            sum += p->list[i].bytes[g];
        if (sum <= most || p->forward[g])
            continue;
        most = sum;
        best = g;
    }
    return (double)p->bytes <= (1 + OTHERS_MOST) * (double)most ? best : -1;
}

struct step {
    int64_t passes, syncs;
};

/* The steps that the trace shows as a whole: not the one in which it ends, and that in which it begins only where that has as many passes
 * as the next. Gradients of each are synchronised once at least, or not all is seen. */
static void count(const struct passes *p, int g, struct step *steps, struct hec_import_gradients *out) {
    int64_t most = 0;
    for (size_t i = 0; i < p->count; i++)
        most = p->list[i].bytes[g] > most ? p->list[i].bytes[g] : most;
    for (size_t i = 0; i < p->count; i++) {
        const struct pass *pass = &p->list[i];
        steps[pass->step].passes++;
        steps[pass->step].syncs += (double)pass->bytes[g] >= SAME * (double)most;
        out->bucket_bytes = pass->bucket[g] > out->bucket_bytes ? pass->bucket[g] : out->bucket_bytes;
    }
    out->bytes = most;
    for (int64_t s = steps[0].passes == steps[1].passes ? 0 : 1; s < p->steps; s++) {
        out->steps++;
        out->passes += steps[s].passes;
        out->syncs += steps[s].syncs;
        if (!steps[s].syncs) {
            *out = (struct hec_import_gradients){0};
            return;
        }
    }
    if (!out->steps)
        *out = (struct hec_import_gradients){0};
}

int hec_import_gradients_find(struct hec_import *import, struct hec_import_gradients *out, struct hec_why *why) {
    struct hec_import_marks *m = &import->marks;
    struct passes p = {0};
    bool all = m->count < HEC_IMPORT_MARKS_MAX;
    *out = (struct hec_import_gradients){0};
    find_launches(m, &import->join);
    int err = all ? find_passes(m, &p) : HEC_OK;
    struct step *steps = calloc((size_t)p.steps + 2, sizeof *steps);
    if (!err && !steps)
        err = HEC_ERR_NOMEM;
    if (!err && p.count) {
        add_reduces(m, &p);
        int g = of_gradients(&p);
        if (g >= 0 && p.steps > 1)
            count(&p, g, steps, out);
    }
    m->count = 0;
    free(p.list);
    free(steps);
    return err ? hec_fail(why, err, "out of memory") : HEC_OK;
}
