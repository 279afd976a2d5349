#include "diagnose/replay/parts.h"
#include "diagnose/replay/replay.h"
#include "diagnose/states/state.h"

#include <math.h>
#include <string.h>

#define APPLY(name)                                                                                                    \
    static void name(const struct hec_schedule *s, const struct hec_schedule_call *c, double value,                    \
                     struct hec_replay_change *change)

#define SMALL_KIB 256  /* of a copy: what takes longer than its call at 25 GB/s is not small */
#define NEAR_CALLS 256 /* between the two halves of a round trip */
#define GO_MOST 256    /* calls that go, one after the other */
#define MAKE_MOST 8    /* launches that make one number */
/* Most of the code before a wait that goes with it: torch.cuda.synchronize() and item() take 8 to 15 us there, traced. */
#define WAIT_LEAD_NS 20000

/* ---- what goes with calls that an edit removes ---- */

/* A number that the program reads: a copy to the host of no more than a KiB. */
static bool reads_number(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_COPY && c->from == HEC_MEMORY_DEVICE && c->what <= 1 &&
           (c->to == HEC_MEMORY_PAGEABLE || c->to == HEC_MEMORY_PINNED || c->to == HEC_MEMORY_HOST);
}

static const struct hec_schedule_call *before_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->after == HEC_SCHEDULE_NONE ? NULL : &s->calls[c->after];
}

static const struct hec_schedule_call *next_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    const struct hec_schedule_call *end = s->calls + s->count, *next = c + 1;
    while (next < end && next->process != c->process)
        next++;
    return next < end ? next : NULL;
}

/* The copy that a wait belongs to, where it follows one; the call itself else. */
static const struct hec_schedule_call *copy_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_WAIT && c->after != HEC_SCHEDULE_NONE ? before_of(s, c) : c;
}

/* ---- the code around allocations ---- */

static int64_t brief_ns(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    int64_t ns = hec_call_code_ns(s, c);
    return ns > 0 && ns < HEC_STATE_BRIEF_NS ? ns : 0;
}

/* Factor on the program's own code before a call once allocations are gone: the brief pieces of code around them become one between two
 * launches, which takes no longer than is usual between two launches with nothing between them. 1: there is none, or it takes no longer. */
static double code_around_allocations(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    const struct hec_schedule_call *kept = c, *gone;
    if (hec_call_code_ns(s, c) >= HEC_STATE_BRIEF_NS)
        return 1;
    for (int n = 0; kept && n < GO_MOST && kept->kind == HEC_CALL_ALLOC; n++)
        kept = next_of(s, kept);
    if (!kept || kept->kind == HEC_CALL_ALLOC)
        return 1;
    int64_t around_ns = brief_ns(s, kept), usual_ns = s->usual[hec_call_shape(kept)].code_ns;
    gone = before_of(s, kept);
    if (!gone || gone->kind != HEC_CALL_ALLOC)
        return 1;
    for (int n = 0; gone && n < GO_MOST && gone->kind == HEC_CALL_ALLOC; n++) {
        around_ns += brief_ns(s, gone);
        gone = before_of(s, gone);
    }
    return around_ns > usual_ns ? (double)usual_ns / (double)around_ns : 1;
}

/* ---- numbers in a row ---- */

static bool makes(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_MEMSET ||
           (c->kind == HEC_CALL_KERNEL &&
            (c->kernel_class == HEC_KERNEL_CLASS_REDUCTION || c->kernel_class == HEC_KERNEL_CLASS_ELEMENTWISE));
}

/* Numbers in a row: between two that are read nothing is launched but what makes the second of them, sums and what is done element by
 * element. The second read, where the call is that, the wait for it, or one of those launches; NULL else. */
static const struct hec_schedule_call *read_in_row(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    const struct hec_schedule_call *read = copy_of(s, c), *back;
    bool sums = false;
    for (int n = 0; read && makes(read) && n < MAKE_MOST; n++)
        read = next_of(s, read);
    if (!read || !reads_number(read))
        return NULL;
    back = before_of(s, read);
    for (int n = 0; back && makes(back) && n < MAKE_MOST; n++) {
        sums = sums || (back->kind == HEC_CALL_KERNEL && back->kernel_class == HEC_KERNEL_CLASS_REDUCTION);
        back = before_of(s, back);
    }
    return sums && back && reads_number(copy_of(s, back)) ? read : NULL;
}

/* ---- the edits ---- */

static bool of_host(const struct hec_schedule_call *c, enum hec_memory_kind kind) {
    return c->kind == HEC_CALL_COPY && (c->from == kind || c->to == kind);
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

/* Which reads and waits stay is drawn by their place, always the same way; a read and the wait for it go together. */
static bool stays(const struct hec_schedule *s, const struct hec_schedule_call *read, double share) {
    return (double)((uint64_t)(read - s->calls) * UINT64_C(0x9e3779b97f4a7c15) >> 11) * 0x1p-53 < share;
}

/* The wait for a copy of data goes with the copy, which is another cause (gaps.h): whoever reads fewer numbers still waits for it. */
static bool wait_goes(const struct hec_schedule *s, const struct hec_schedule_call *c, double value) {
    const struct hec_schedule_call *copy = copy_of(s, c);
    bool read = reads_number(copy),
         data = !read && (of_host(copy, HEC_MEMORY_PAGEABLE) || of_host(copy, HEC_MEMORY_PINNED));
    return (read || (c->kind == HEC_CALL_WAIT && !data)) && !stays(s, read ? copy : c, value);
}

/* The framework's part of a call that waits is ahead of it. */
static double without_lead(int64_t code_ns) {
    return code_ns > WAIT_LEAD_NS ? (double)(code_ns - WAIT_LEAD_NS) / (double)code_ns : 0;
}

/* What a read copies goes with the wait for it. Numbers in a row are computed in one go. */
APPLY(apply_WAITS) {
    const struct hec_schedule_call *read = read_in_row(s, c);
    int64_t code_ns = hec_call_code_ns(s, c);
    if (wait_goes(s, c, value)) {
        gone(change);
        change->code = code_ns < HEC_STATE_BRIEF_NS ? without_lead(code_ns) : change->code;
    }
    if (read && !stays(s, read, value) && code_ns < HEC_STATE_BRIEF_NS)
        change->code = change->call = 0;
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
        at_rate(c, HEC_LINK_PINNED_GB_PER_S, change);
}

APPLY(apply_GRAPHS) {
    if (c->kind != HEC_CALL_KERNEL && c->kind != HEC_CALL_MEMSET)
        return;
    change->call *= value;
    if (hec_call_code_ns(s, c) < HEC_STATE_BRIEF_NS)
        change->code *= value;
    change->graphed = value < 1;
}

APPLY(apply_HOST) {
    if (hec_call_code_ns(s, c) >= HEC_STATE_BRIEF_NS)
        change->code *= value;
}

APPLY(apply_ALLOC) {
    if (value < 1)
        change->code *= value + (1 - value) * code_around_allocations(s, c);
    if (c->kind != HEC_CALL_ALLOC)
        return;
    change->call *= value;
    change->waits = false;
}

APPLY(apply_PINNED) {
    if (!of_host(copy_of(s, c), HEC_MEMORY_PAGEABLE) || reads_number(copy_of(s, c)))
        return;
    at_rate(c, value, change);
    change->waits = false;
    change->call = 0;
}

static bool small(const struct hec_schedule_call *c) {
    return (of_host(c, HEC_MEMORY_PAGEABLE) || of_host(c, HEC_MEMORY_PINNED)) && c->what <= SMALL_KIB &&
           !reads_number(c);
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

/* Often by way of other memory: CuPy copies into an array, and back from a pinned buffer. */
static bool back_of(const struct hec_schedule_call *there, const struct hec_schedule_call *back) {
    return there->kind == HEC_CALL_COPY && back->kind == HEC_CALL_COPY && there->process == back->process &&
           there->from == HEC_MEMORY_DEVICE && back->to == HEC_MEMORY_DEVICE && hec_memory_of_host(there->to) &&
           hec_memory_of_host(back->from) && there->what == back->what && !reads_number(there);
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

/* What is fused is gone with its launch: the host has no more of it than the device. */
APPLY(apply_FUSE) {
    if (c->kind != HEC_CALL_KERNEL || c->kernel_class != HEC_KERNEL_CLASS_ELEMENTWISE)
        return;
    change->operation *= value;
    change->call *= value;
    if (hec_call_code_ns(s, c) < HEC_STATE_BRIEF_NS)
        change->code *= value;
}

/* Kernels that leave room take their time with more blocks as well, until the device is full; an optimizer's do not grow, nor does
 * communication, which is of gradients. */
static double grown(const struct hec_schedule *s, const struct hec_schedule_call *c, double times) {
    double fill = hec_schedule_kernel(s, c->what).fill;
    if (c->kernel_class == HEC_KERNEL_CLASS_OPTIMIZER || c->kernel_class == HEC_KERNEL_CLASS_COMM)
        return 1;
    return isfinite(fill) ? fmax(1, times * fill) / fmax(1, fill) : times;
}

APPLY(apply_BATCH) {
    change->data *= value;
    if (c->kind == HEC_CALL_COPY && !reads_number(c))
        change->operation *= value;
    if (c->kind == HEC_CALL_KERNEL)
        change->operation *= grown(s, c, value);
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

/* All that the host does by itself takes so much of its time. */
static void scale_host(const struct hec_schedule_call *c, double code, struct hec_replay_change *change) {
    change->code *= code;
    change->data *= code;
    change->checkpoint *= code;
    change->call *= c->kind == HEC_CALL_WAIT || c->end_ns - c->begin_ns >= HEC_LAUNCH_BLOCKED_NS ? 1 : code;
}

APPLY(apply_RANKS) {
    scale_host(c, value + (1 - value) * s->even[c->process].code, change);
    if (!(c->flags & HEC_CALL_COLLECTIVE))
        change->operation *= value + (1 - value) * s->even[c->process].operation;
}

APPLY(apply_LATE) {
    scale_host(c, value + (1 - value) * s->even[c->process].usual_code, change);
}

static bool communicates(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_KERNEL && c->kernel_class == HEC_KERNEL_CLASS_COMM;
}

/* Neither the devices nor their hosts have to do with it. */
static void collective_gone(const struct hec_schedule *s, const struct hec_schedule_call *c,
                            struct hec_replay_change *change) {
    change->operation = change->call = 0;
    change->beside = true;
    if (hec_call_code_ns(s, c) < HEC_STATE_BRIEF_NS)
        change->code = 0;
}

/* Of a step, which begins with the stretch, the last collectives stay. */
static bool last_of_step(const struct hec_schedule *s, const struct hec_schedule_call *c, double share) {
    double a_step = s->steps > 0 ? (double)s->group_count / (double)s->steps : 0;
    if (!(c->flags & HEC_CALL_COLLECTIVE) || a_step < 1)
        return stays(s, c, share);
    return fmod(c->what + 0.5, a_step) / a_step >= 1 - share;
}

APPLY(apply_SYNC_ONCE) {
    if (communicates(c) && !last_of_step(s, c, value))
        collective_gone(s, c, change);
}

/* Several go as one, the last of them, which has the bytes of all and one of their latencies. */
APPLY(apply_BUCKETS) {
    if (!communicates(c) || !(c->flags & HEC_CALL_COLLECTIVE))
        return;
    if (floor((c->what + 1) * value) == floor(c->what * value)) {
        collective_gone(s, c, change);
        return;
    }
    double bytes_part = fmax(0, 1 - (double)HEC_COLLECTIVE_LATENCY_NS / (double)s->groups[c->what].least_ns);
    change->operation *= 1 + (1 / value - 1) * bytes_part;
}

APPLY(apply_untraced) {
    (void)s;
    if (!(c->flags & HEC_CALL_GRAPH))
        return;
    change->call *= value;
    change->launch *= value;
}

struct hec_replay_edit hec_edit_untraced(const struct hec_schedule *schedule) {
    return (struct hec_replay_edit){apply_untraced, schedule->graph_left, 1};
}

static const struct {
    struct hec_edit_info info;
    void (*apply)(const struct hec_schedule *, const struct hec_schedule_call *, double, struct hec_replay_change *);
} edits[] = {
#define HEC_REPLAY_EDIT(id, name, cause, least, most, value)                                                           \
    [HEC_EDIT_##id] = {{name, HEC_CAUSE_##cause, least, most, value}, apply_##id},
#include "diagnose/replay/edits.def"
};

const struct hec_edit_info *hec_edit_info(enum hec_edit edit) {
    return &edits[edit].info;
}

enum hec_edit hec_edit_find(const char *name, size_t length) {
    int i = 0;
    while (i < HEC_EDIT_COUNT &&
           (strlen(edits[i].info.name) != length || strncmp(edits[i].info.name, name, length) != 0))
        i++;
    return (enum hec_edit)i;
}

struct hec_replay_edit hec_edit_with(enum hec_edit edit, double value) {
    double number = isfinite(value) ? value : edits[edit].info.value;
    return (struct hec_replay_edit){edits[edit].apply, number, edit == HEC_EDIT_BATCH ? number : 1};
}
