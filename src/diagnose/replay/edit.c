#include "diagnose/replay/edit.h"

#include "diagnose/replay/parts.h"
#include "diagnose/state.h"

#include <math.h>
#include <string.h>

#define APPLY(name)                                                                                                    \
    static void name(const struct hec_schedule *s, const struct hec_schedule_call *c, double value,                    \
                     struct hec_replay_change *change)

static int64_t code_ns(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->after == HEC_SCHEDULE_NONE ? 0 : c->begin_ns - s->calls[c->after].end_ns - c->data_ns - c->checkpoint_ns;
}

static bool of_host(const struct hec_schedule_call *c, enum hec_memory_kind kind) {
    return c->kind == HEC_CALL_COPY && (c->from == kind || c->to == kind);
}

/* A number that the program reads: a copy to the host of no more than a KiB. */
static bool reads(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_COPY && c->from == HEC_MEMORY_DEVICE && c->what <= 1 &&
           (c->to == HEC_MEMORY_PAGEABLE || c->to == HEC_MEMORY_PINNED || c->to == HEC_MEMORY_HOST);
}

/* Which stay is drawn by their place, always the same way. What a read copies goes with the wait for it. */
APPLY(apply_WAITS) {
    double drawn = (double)((uint64_t)(c - s->calls) * UINT64_C(0x9e3779b97f4a7c15) >> 11) * 0x1p-53;
    if ((c->kind != HEC_CALL_WAIT && !reads(c)) || drawn < value)
        return;
    change->waits = false;
    change->call = 0;
    change->operation = 0;
}

APPLY(apply_DATA) {
    (void)s, (void)c;
    change->data *= value;
}

APPLY(apply_CHECKPOINT) {
    (void)s, (void)c;
    change->checkpoint *= value;
}

APPLY(apply_GRAPHS) {
    if (c->kind != HEC_CALL_KERNEL && c->kind != HEC_CALL_MEMSET)
        return;
    change->call *= value;
    if (code_ns(s, c) < HEC_STATE_BRIEF_NS)
        change->code *= value;
    change->graphed = true;
}

APPLY(apply_HOST) {
    if (code_ns(s, c) >= HEC_STATE_BRIEF_NS)
        change->code *= value;
}

APPLY(apply_ALLOC) {
    (void)s;
    if (c->kind != HEC_CALL_ALLOC)
        return;
    change->call *= value;
    change->waits = false;
}

/* Bytes over the rate, where that is less than what the copy took. */
APPLY(apply_PINNED) {
    (void)s;
    if (!of_host(c, HEC_MEMORY_PAGEABLE) || !hec_call_launched(c))
        return;
    double recorded_ns = (double)(c->finish_ns - c->start_ns), ns = 1024.0 * c->what / value;
    if (ns < recorded_ns)
        change->operation *= ns / recorded_ns;
    change->waits = false;
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
