#include "diagnose/states/operations.h"

#include "base/error.h"
#include "base/list.h"
#include "diagnose/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MOST 256 /* programs have few in their loop; samples of others are left out */

enum kind { READS, FETCHES, PUTS, OPERATES, LAUNCHES, CALLS, CODES, KIND_COUNT };

static const enum hec_state divided[] = {HEC_STATE_HOST, HEC_STATE_LAUNCH, HEC_STATE_SYNC};
static const enum hec_cause owners_of[] = {HEC_CAUSE_HOST, HEC_CAUSE_LAUNCH, HEC_CAUSE_SYNC, HEC_CAUSE_COPY};
#define DIVIDED (sizeof divided / sizeof divided[0])
#define OWNERS (sizeof owners_of / sizeof owners_of[0])

struct line {
    int device;
    uint32_t file;
    int32_t line;
    bool compiles;
    double ns[DIVIDED][KIND_COUNT];
    double beside_ns[KIND_COUNT]; /* while the device computes */
};

struct hec_operations {
    struct hec_stacks *stacks;
    struct line *lines;
    size_t count, capacity, last;
    int64_t samples[HEC_DEVICE_MAX];
    bool divided[HEC_DEVICE_MAX];
};

struct hec_operations *hec_operations_begin(struct hec_stacks *stacks) {
    struct hec_operations *o = calloc(1, sizeof *o);
    if (o)
        o->stacks = stacks;
    return o;
}

void hec_operations_free(struct hec_operations *o) {
    if (!o)
        return;
    free(o->lines);
    free(o);
}

static bool is_line(const struct line *l, int device, const struct hec_frame *f) {
    return l->device == device && l->file == f->file && l->line == f->line;
}

/* *out NULL: there are too many. */
static int line_of(struct hec_operations *o, int device, const struct hec_frame *f, struct line **out) {
    *out = NULL;
    if (o->last < o->count && is_line(&o->lines[o->last], device, f)) {
        *out = &o->lines[o->last];
        return 0;
    }
    for (o->last = 0; o->last < o->count && !is_line(&o->lines[o->last], device, f); o->last++)
        ;
    if (o->last == LINES_MOST)
        return 0;
    if (o->last == o->count) {
        if (!hec_list_room(o->lines, o->count, o->capacity, 16))
            return HEC_ERR_NOMEM;
        o->lines[o->count++] = (struct line){.device = device, .file = f->file, .line = f->line};
    }
    *out = &o->lines[o->last];
    return 0;
}

static enum kind kind_of(enum hec_stack_meaning meaning, bool innermost) {
    switch (meaning) {
    case HEC_STACK_SYNC:
        return READS;
    case HEC_STACK_FETCH:
        return FETCHES;
    case HEC_STACK_PUT:
        return PUTS;
    case HEC_STACK_OPERATION:
        return OPERATES;
    case HEC_STACK_LAUNCH:
    case HEC_STACK_SHARDS:
        return LAUNCHES;
    case HEC_STACK_CODE:
        return innermost ? CALLS : CODES;
    default: /* compiles, loads, has nothing to do */
        return KIND_COUNT;
    }
}

int hec_operations_sample(struct hec_operations *o, int device, const struct hec_state_sample *sample, uint32_t frame,
                          bool steady) {
    enum hec_stack_meaning meaning = hec_stacks_meaning(o->stacks, sample->frame);
    enum kind kind = kind_of(meaning, frame == sample->frame);
    size_t state = 0;
    struct line *line;
    while (state < DIVIDED && divided[state] != (enum hec_state)sample->state)
        state++;
    bool counts = steady && state < DIVIDED && kind < KIND_COUNT;
    if (!frame || device < 0 || device >= HEC_DEVICE_MAX || !(counts || meaning == HEC_STACK_COMPILE))
        return 0;
    int err = line_of(o, device, &o->stacks->tables->frames[frame], &line);
    if (err || !line)
        return err;
    line->compiles |= meaning == HEC_STACK_COMPILE;
    if (counts) {
        line->ns[state][kind] += (double)sample->period_ns;
        o->samples[device]++;
    }
    return 0;
}

int hec_operations_beside(struct hec_operations *o, int device, const struct hec_state_sample *sample, uint32_t frame) {
    enum kind kind = kind_of(hec_stacks_meaning(o->stacks, sample->frame), frame == sample->frame);
    struct line *line;
    if (!frame || device < 0 || device >= HEC_DEVICE_MAX || kind == KIND_COUNT)
        return 0;
    int err = line_of(o, device, &o->stacks->tables->frames[frame], &line);
    if (!err && line)
        line->beside_ns[kind] += (double)sample->period_ns;
    return err;
}

/* ---- the answer ---- */

static double of_kind(const struct line *l, enum kind kind) {
    double ns = 0;
    for (size_t s = 0; s < DIVIDED; s++)
        ns += l->ns[s][kind];
    return ns;
}

static enum hec_cause cause_of(const struct line *l, enum kind kind) {
    double reads = of_kind(l, READS), copies = of_kind(l, FETCHES) + of_kind(l, PUTS);
    switch (kind) {
    case READS:
        return HEC_CAUSE_SYNC;
    case FETCHES:
    case PUTS:
        return HEC_CAUSE_COPY;
    case OPERATES:
        return reads > copies ? HEC_CAUSE_SYNC : copies > 0 ? HEC_CAUSE_COPY : HEC_CAUSE_LAUNCH;
    case LAUNCHES:
        return HEC_CAUSE_LAUNCH;
    case CALLS:
        return l->compiles ? HEC_CAUSE_LAUNCH : HEC_CAUSE_HOST;
    default:
        return HEC_CAUSE_HOST;
    }
}

struct shares {
    double all_ns, fetched_ns, operated_ns; /* operated: operations by themselves */
    double framed_ns, jax_ns;               /* in frames of JAX; with calls of what it compiled */
    double awaited_ns; /* in which a number is read while the device computes: it would compute all the same */
    double called_ns;  /* in calls of what it compiled, with those while the device computes */
    double coded_ns, coded_beside_ns; /* in the program's own code and copies, and of that while the device computes */
    double beside_ns;                 /* in all of it while the device computes */
    double sliced_ns;                 /* in operations that are for a number that is read */
    double ns[DIVIDED][HEC_CAUSE_COUNT];
};

static struct shares add_up(const struct hec_operations *o, int device) {
    struct shares out = {0};
    for (size_t i = 0; i < o->count; i++) {
        const struct line *l = &o->lines[i];
        if (l->device != device)
            continue;
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            enum hec_cause cause = cause_of(l, (enum kind)kind);
            double ns = of_kind(l, (enum kind)kind);
            for (size_t s = 0; s < DIVIDED; s++)
                out.ns[s][cause] += l->ns[s][kind];
            out.all_ns += ns;
            out.jax_ns += kind <= OPERATES || (kind == CALLS && l->compiles) ? ns : 0;
            out.framed_ns += kind <= OPERATES ? ns : 0;
            out.operated_ns += kind == OPERATES && cause == HEC_CAUSE_LAUNCH ? ns : 0;
            bool called = kind == CALLS && l->compiles, coded = cause == HEC_CAUSE_HOST || cause == HEC_CAUSE_COPY;
            out.awaited_ns += cause == HEC_CAUSE_SYNC ? l->beside_ns[kind] : 0;
            out.called_ns += called ? ns + l->beside_ns[kind] : 0;
            out.coded_ns += coded ? ns + l->beside_ns[kind] : 0;
            out.coded_beside_ns += cause == HEC_CAUSE_HOST ? l->beside_ns[kind] : 0;
            out.beside_ns += l->beside_ns[kind];
            out.sliced_ns += kind == OPERATES && cause == HEC_CAUSE_SYNC ? ns : 0;
        }
        out.fetched_ns += of_kind(l, FETCHES);
    }
    return out;
}

static void divide(const struct shares *by, struct hec_gap_facts *g) {
    double pool = 0, copies = 0;
    for (size_t s = 0; s < DIVIDED; s++)
        for (size_t c = 0; c < OWNERS; c++) {
            pool += g->owned_s[divided[s]][owners_of[c]];
            g->owned_s[divided[s]][owners_of[c]] = 0;
        }
    for (size_t s = 0; s < DIVIDED; s++) {
        for (size_t c = 0; c < OWNERS; c++)
            g->owned_s[divided[s]][owners_of[c]] = pool * by->ns[s][owners_of[c]] / by->all_ns;
        copies += g->owned_s[divided[s]][HEC_CAUSE_COPY];
    }
    /* The arguments of operations are small copies too: of what is copied by itself there are small ones where nothing is fetched. */
    g->small_s = by->fetched_ns > 0 ? 0 : fmin(g->small_s, copies);
    g->operations_s = pool * by->operated_ns / by->all_ns;
    g->late_s = 0; /* what launches beside a line's reading or copying goes with that */
}

/* Calling what was compiled, and the program's own code, would go on while the device computes, had the program not waited for that: so
 * much of them as it reads while the device computes. Calls do not tell that either, as JAX waits in none. A call whose arguments are
 * there launches by itself; one whose arguments are still to come gives that to a thread of JAX, and is soon back. So without reading a
 * step takes the longest of the device's work, those launches, and the program's own code: where arrays are fetched that wait goes on. */
static double awaited(const struct shares *by, bool jax) {
    double read_ns = 0;
    for (size_t s = 0; s < DIVIDED; s++)
        read_ns += by->ns[s][HEC_CAUSE_SYNC];
    double then_ns = fmax(fmax(by->beside_ns, by->called_ns), by->coded_ns + HEC_JIT_CALL_AHEAD * by->called_ns);
    bool ahead = jax && by->called_ns > 0 && !(by->fetched_ns > 0) && read_ns > 0;
    return fmax(by->awaited_ns, ahead ? by->all_ns + by->beside_ns - read_ns - then_ns : 0);
}

/* What the device computes while the program's own code runs lies beside the operations for a number that is read, had that code not
 * run: the step is shorter by so much of it as well. */
static double covered(const struct shares *by) {
    return by->fetched_ns > 0 ? 0 : fmin(by->coded_beside_ns, by->sliced_ns);
}

static void add_awaited(const struct shares *by, bool jax, struct hec_gap_facts *g) {
    double pool = 0, own = 0, ns = awaited(by, jax);
    for (size_t s = 0; s < DIVIDED; s++) {
        for (size_t c = 0; c < OWNERS; c++)
            pool += g->owned_s[divided[s]][owners_of[c]];
        own += g->owned_s[divided[s]][HEC_CAUSE_HOST] + g->owned_s[divided[s]][HEC_CAUSE_LAUNCH];
    }
    if (ns > 0)
        g->awaited_s = fmax(g->awaited_s, fmin(own, pool * ns / by->all_ns));
    g->covered_s = jax ? pool * covered(by) / by->all_ns : 0;
}

void hec_operations_divide(struct hec_operations *o, struct hec_gaps *gaps) {
    for (int i = 0; i < gaps->count; i++) {
        int device = gaps->list[i].device;
        if (device < 0 || device >= HEC_DEVICE_MAX || o->samples[device] < HEC_OPERATIONS_SAMPLES)
            continue;
        struct shares by = add_up(o, device);
        o->divided[device] = by.framed_ns > 0 && by.jax_ns >= HEC_OPERATIONS_LEAST * by.all_ns;
        if (o->divided[device])
            divide(&by, &gaps->list[i]);
        add_awaited(&by, o->divided[device], &gaps->list[i]);
    }
}

uint32_t hec_operations_owners(const struct hec_operations *o, int device, const char *file, int32_t line) {
    double ns[HEC_CAUSE_COUNT] = {0}, whole = 0;
    uint32_t owners = 0;
    if (!o || device < 0 || device >= HEC_DEVICE_MAX || !o->divided[device])
        return 0;
    for (size_t i = 0; i < o->count; i++) {
        const struct line *l = &o->lines[i];
        bool same =
            l->device == device && l->line == line && strcmp(hec_timeline_name(o->stacks->tables, l->file), file) == 0;
        for (int kind = 0; same && kind < KIND_COUNT; kind++) {
            ns[cause_of(l, (enum kind)kind)] += of_kind(l, (enum kind)kind);
            whole += of_kind(l, (enum kind)kind);
        }
    }
    for (size_t c = 0; c < OWNERS && whole > 0; c++)
        owners |= ns[owners_of[c]] >= HEC_OPERATIONS_OWNS * whole ? 1u << owners_of[c] : 0;
    return owners;
}
