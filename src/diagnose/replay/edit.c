#include "diagnose/replay/edit.h"

#include "diagnose/replay/parts.h"
#include "diagnose/state.h"

#include <math.h>
#include <string.h>

#define APPLY(name)                                                                                                    \
    static void name(const struct hec_schedule *s, const struct hec_schedule_call *c, double value,                    \
                     struct hec_replay_change *change)

#define PINNED_GB_PER_S 50
#define SMALL_KIB 256  /* of a copy: what takes longer than its call at 25 GB/s is not small */
#define NEAR_CALLS 256 /* between the two halves of a round trip */

static bool of_host(const struct hec_schedule_call *c, enum hec_memory_kind kind) {
    return c->kind == HEC_CALL_COPY && (c->from == kind || c->to == kind);
}

/* A number that the program reads: a copy to the host of no more than a KiB. */
static bool reads(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_COPY && c->from == HEC_MEMORY_DEVICE && c->what <= 1 &&
           (c->to == HEC_MEMORY_PAGEABLE || c->to == HEC_MEMORY_PINNED || c->to == HEC_MEMORY_HOST);
}

/* As fast as the link is, where that is less than what it took. */
static void at_rate(const struct hec_schedule_call *c, double gb_per_s, struct hec_replay_change *change) {
    double recorded_ns = (double)(c->finish_ns - c->start_ns), ns = 1024.0 * c->what / gb_per_s;
    if (hec_call_launched(c) && ns < recorded_ns)
        change->operation *= ns / recorded_ns;
}

static void gone(struct hec_replay_change *change) {
    change->call = 0;
    change->waits = false;
    change->operation = 0;
}

/* ---- what a call takes with it ---- */

#define TOGETHER 256 /* calls that go, one after the other */
#define CHAIN 8      /* launches from one number that is read to the next */

typedef bool gone_with(const struct hec_schedule_call *c);

static bool waits_or_reads(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_WAIT || reads(c);
}

static bool allocates(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_ALLOC;
}

static const struct hec_schedule_call *next_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    const struct hec_schedule_call *end = s->calls + s->count, *next = c + 1;
    while (next < end && next->process != c->process)
        next++;
    return next < end ? next : NULL;
}

static const struct hec_schedule_call *before_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->after == HEC_SCHEDULE_NONE ? NULL : &s->calls[c->after];
}

static int64_t brief_ns(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    int64_t ns = hec_call_code_ns(s, c);
    return ns > 0 && ns < HEC_STATE_BRIEF_NS ? ns : 0;
}

/* The code around calls that go becomes that between two launches, which is what is usual where nothing lies between them. */
static double code_left(const struct hec_schedule *s, const struct hec_schedule_call *c, gone_with *goes) {
    const struct hec_schedule_call *kept = c, *back;
    int64_t around_ns = 0;
    int n = 0;
    while (kept && goes(kept) && n++ < TOGETHER)
        kept = next_of(s, kept);
    back = kept ? before_of(s, kept) : NULL;
    if (!back || !goes(back) || goes(kept))
        return 1;
    around_ns = brief_ns(s, kept);
    for (n = 0; back && goes(back) && n < TOGETHER; n++) {
        around_ns += brief_ns(s, back);
        back = before_of(s, back);
    }
    int64_t usual_ns = s->usual[hec_call_shape(kept)].code_ns;
    return around_ns > usual_ns ? (double)usual_ns / (double)around_ns : 1;
}

static void shorten(const struct hec_schedule *s, const struct hec_schedule_call *c, gone_with *goes, double stays,
                    struct hec_replay_change *change) {
    if (hec_call_code_ns(s, c) < HEC_STATE_BRIEF_NS)
        change->code *= stays + (1 - stays) * code_left(s, c, goes);
    const struct hec_schedule_call *before = before_of(s, c);
    int64_t own_ns = c->end_ns - c->begin_ns, usual_ns = s->usual[hec_call_shape(c)].call_ns;
    if (before && goes(before) && !goes(c) && hec_call_launched(c) && !(c->flags & HEC_CALL_WAITED) &&
        own_ns > usual_ns && own_ns < HEC_CALL_LONG_NS)
        change->call *= stays + (1 - stays) * (double)usual_ns / (double)own_ns;
}

/* What makes a number of others. */
static bool makes_number(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_MEMSET ||
           (c->kind == HEC_CALL_KERNEL &&
            (c->kernel_class == HEC_KERNEL_CLASS_REDUCTION || c->kernel_class == HEC_KERNEL_CLASS_ELEMENTWISE));
}

/* Between two numbers that are read, with nothing but what makes the second. */
static bool in_chain(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    const struct hec_schedule_call *to = c, *from = c;
    int n = 0;
    bool reduces = false;
    if (c->kind == HEC_CALL_WAIT) /* of a read */
        to = from = before_of(s, c);
    if (to && reads(to))
        from = before_of(s, to);
    for (; to && makes_number(to) && n < CHAIN; n++, to = next_of(s, to))
        reduces = reduces || to->kernel_class == HEC_KERNEL_CLASS_REDUCTION;
    if (!to || !reads(to))
        return false;
    for (n = 0; from && makes_number(from) && n < CHAIN; n++, from = before_of(s, from))
        reduces = reduces || from->kernel_class == HEC_KERNEL_CLASS_REDUCTION;
    return reduces && from && waits_or_reads(from);
}

/* Which stay is drawn by their place, always the same way. What a read copies goes with the wait for it. */
APPLY(apply_WAITS) {
    double drawn = (double)((uint64_t)(c - s->calls) * UINT64_C(0x9e3779b97f4a7c15) >> 11) * 0x1p-53;
    if (in_chain(s, c) && hec_call_code_ns(s, c) < HEC_STATE_BRIEF_NS) {
        change->code *= value;
        change->call *= value;
    } else
        shorten(s, c, waits_or_reads, value, change);
    if (waits_or_reads(c) && drawn >= value)
        gone(change);
}

APPLY(apply_DATA) {
    (void)s, (void)c;
    change->data *= value;
}

APPLY(apply_CHECKPOINT) {
    (void)s;
    change->checkpoint *= value;
    if (!(c->flags & HEC_CALL_IN_CHECKPOINT))
        return;
    change->call *= value;
    change->waits = false;
    if (c->kind == HEC_CALL_COPY)
        at_rate(c, PINNED_GB_PER_S, change);
}

APPLY(apply_GRAPHS) {
    if (c->kind != HEC_CALL_KERNEL && c->kind != HEC_CALL_MEMSET)
        return;
    change->call *= value;
    if (hec_call_code_ns(s, c) < HEC_STATE_BRIEF_NS)
        change->code *= value;
    change->graphed = true;
}

APPLY(apply_HOST) {
    if (hec_call_code_ns(s, c) >= HEC_STATE_BRIEF_NS)
        change->code *= value;
}

APPLY(apply_ALLOC) {
    if (value < 1)
        shorten(s, c, allocates, value, change);
    if (!allocates(c))
        return;
    change->call *= value;
    change->waits = false;
}

/* The wait that a blocking copy is followed by; c itself else. */
static const struct hec_schedule_call *copy_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_WAIT && c->after != HEC_SCHEDULE_NONE ? &s->calls[c->after] : c;
}

APPLY(apply_PINNED) {
    if (!of_host(copy_of(s, c), HEC_MEMORY_PAGEABLE) || reads(copy_of(s, c)))
        return;
    at_rate(c, value, change);
    change->waits = false;
    change->call = 0;
}

static bool small(const struct hec_schedule_call *c) {
    return (of_host(c, HEC_MEMORY_PAGEABLE) || of_host(c, HEC_MEMORY_PINNED)) && c->what <= SMALL_KIB && !reads(c);
}

APPLY(apply_BATCHED) {
    if (!small(copy_of(s, c)))
        return;
    at_rate(c, value, change);
    change->waits = false;
    change->call = 0;
    if (hec_call_code_ns(s, c) < HEC_STATE_BRIEF_NS)
        change->code = 0;
}

static bool back_of(const struct hec_schedule_call *there, const struct hec_schedule_call *back) {
    return there->kind == HEC_CALL_COPY && back->kind == HEC_CALL_COPY && there->process == back->process &&
           there->from == HEC_MEMORY_DEVICE && back->to == HEC_MEMORY_DEVICE && there->to == back->from &&
           there->what == back->what && !reads(there);
}

static bool in_round_trip(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    const struct hec_schedule_call *end = s->calls + s->count;
    for (int i = 1; c->kind == HEC_CALL_COPY && i <= NEAR_CALLS; i++)
        if ((c->to == HEC_MEMORY_DEVICE && c - s->calls >= i && back_of(c - i, c)) ||
            (c->from == HEC_MEMORY_DEVICE && end - c > i && back_of(c, c + i)))
            return true;
    return false;
}

APPLY(apply_ROUND_TRIPS) {
    (void)value;
    if (in_round_trip(s, copy_of(s, c)))
        gone(change);
}

APPLY(apply_BESIDE) {
    (void)s, (void)value;
    if (of_host(c, HEC_MEMORY_PINNED))
        change->beside = true;
}

APPLY(apply_COMPUTE) {
    (void)s;
    if (c->kind == HEC_CALL_KERNEL && c->kernel_class != HEC_KERNEL_CLASS_COMM)
        change->operation *= value;
}

APPLY(apply_PRODUCTS) {
    (void)s;
    if (c->kind == HEC_CALL_KERNEL &&
        (c->kernel_class == HEC_KERNEL_CLASS_GEMM || c->kernel_class == HEC_KERNEL_CLASS_CONV))
        change->operation *= value;
}

APPLY(apply_LAYOUT) {
    (void)s;
    if (c->kind == HEC_CALL_KERNEL && c->kernel_class == HEC_KERNEL_CLASS_LAYOUT)
        change->operation *= value;
}

APPLY(apply_COMM) {
    (void)s, (void)value;
    if (c->kind == HEC_CALL_KERNEL && c->kernel_class == HEC_KERNEL_CLASS_COMM)
        change->beside = true;
}

static const struct {
    struct hec_edit_info info;
    void (*apply)(const struct hec_schedule *, const struct hec_schedule_call *, double, struct hec_replay_change *);
} edits[] = {
#define HEC_REPLAY_EDIT(id, name, cause, least, most, value, number, asks)                                             \
    [HEC_EDIT_##id] = {{name, HEC_CAUSE_##cause, least, most, value, number, asks}, apply_##id},
#include "diagnose/replay/edits.def"
#undef HEC_REPLAY_EDIT
};

const struct hec_edit_info *hec_edit_info(enum hec_edit edit) {
    return &edits[edit].info;
}

enum hec_edit hec_edit_find(const char *name, size_t length) {
    int i = 0;
    while (i < HEC_EDIT_COUNT && (strlen(edits[i].info.name) != length || strncmp(edits[i].info.name, name, length)))
        i++;
    return (enum hec_edit)i;
}

struct hec_replay_edit hec_edit_with(enum hec_edit edit, double value) {
    return (struct hec_replay_edit){edits[edit].apply, isfinite(value) ? value : edits[edit].info.value};
}
