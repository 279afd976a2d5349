#include "diagnose/states/source_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 4096 /* frames of one stack that are looked at: parents of a damaged file may go in circles */

/* SYNC without being in the call that waited: counts where there is nothing better. */
#define AFTER_SYNC HEC_STATE_COUNT

/* What a sample is blamed on: one (device, state, blamed frame). */
struct weight {
    int device;
    uint8_t state;
    uint32_t frame; /* blamed: the first with that place */
    int64_t ns, samples;
    int32_t pid; /* whose time is more than that of all others by lead_ns: the majority vote of Boyer and Moore */
    int64_t lead_ns;
};

struct hec_source_builder {
    const struct hec_timeline_tables *tables;
    uint32_t *blamed;     /* by frame: the one to blame for a stack that ends here; 0 not looked for yet */
    struct weight *slots; /* a hash table, a power of two; samples 0: free */
    size_t slot_count, used;
};

/* ---- whose code ---- */

int hec_source_rank(const char *file) {
    static const struct {
        const char *part;
        int rank;
    } parts[] = {
        {"-packages/torch/", 2},  {"-packages/torch.", 2},  {"-packages/functorch/", 2},
        {"-packages/hec/", 2},    {"site-packages/", 1},    {"dist-packages/", 1},
        {"/lib/python2.", 2},     {"/lib/python3", 2},      {"/lib64/python3", 2},
        {"/hec/_hooks/", 2},      {"<frozen ", 2},          {"importlib/", 2},
        {"torch/nn/modules/", 2}, {"torch/utils/data/", 2},
    };
    if (!file[0])
        return 2;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(file, parts[i].part))
            return parts[i].rank;
    return 0;
}

uint32_t hec_source_blame(struct hec_source_builder *b, uint32_t leaf) {
    uint32_t best = leaf;
    int best_rank = 3;
    if (leaf >= b->tables->frame_count || b->tables->frames[leaf].id != leaf)
        return 0;
    if (b->blamed[leaf])
        return b->blamed[leaf];
    uint32_t at = leaf;
    for (int depth = 0; at && at < b->tables->frame_count && best_rank > 0 && depth < DEPTH_MAX; depth++) {
        int rank = hec_source_rank(hec_timeline_name(b->tables, b->tables->frames[at].file));
        if (rank < best_rank) {
            best = at;
            best_rank = rank;
        }
        at = b->tables->frames[at].parent;
    }
    return b->blamed[leaf] = best;
}

/* ---- gathering ---- */

struct hec_source_builder *hec_source_begin(const struct hec_timeline_tables *tables) {
    struct hec_source_builder *b = calloc(1, sizeof *b);
    if (b && (b->blamed = calloc(tables->frame_count + 1, sizeof *b->blamed))) {
        b->tables = tables;
        return b;
    }
    free(b);
    return NULL;
}

void hec_source_abandon(struct hec_source_builder *b) {
    if (!b)
        return;
    free(b->blamed);
    free(b->slots);
    free(b);
}

static size_t slot_of(const struct hec_source_builder *b, const struct weight *slots, size_t count,
                      const struct weight *key) {
    const struct hec_frame *f = &b->tables->frames[key->frame];
    uint64_t hash = ((uint64_t)f->file << 32 | (uint32_t)f->line) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= ((uint64_t)f->function << 32 | (uint32_t)key->device << 8 | key->state) * UINT64_C(0xc2b2ae3d27d4eb4f);
    size_t at = (size_t)(hash >> 20) & (count - 1);
    for (;; at = (at + 1) & (count - 1)) {
        const struct hec_frame *other = &b->tables->frames[slots[at].frame];
        if (!slots[at].samples || (slots[at].device == key->device && slots[at].state == key->state &&
                                   other->file == f->file && other->line == f->line && other->function == f->function))
            return at;
    }
}

static int grow(struct hec_source_builder *b) {
    size_t count = b->slot_count ? 2 * b->slot_count : 64;
    struct weight *slots = calloc(count, sizeof *slots);
    if (!slots)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < b->slot_count; i++)
        if (b->slots[i].samples)
            slots[slot_of(b, slots, count, &b->slots[i])] = b->slots[i];
    free(b->slots);
    b->slots = slots;
    b->slot_count = count;
    return 0;
}

static void vote(struct weight *w, const struct hec_state_sample *sample) {
    w->lead_ns += sample->pid == w->pid ? sample->period_ns : -sample->period_ns;
    if (w->lead_ns < 0) {
        w->pid = sample->pid;
        w->lead_ns = -w->lead_ns;
    }
}

int hec_source_sample(struct hec_source_builder *b, int device, const struct hec_state_sample *sample) {
    bool after = sample->state == HEC_STATE_SYNC && !sample->waiting;
    struct weight key = {
        .device = device, .state = after ? AFTER_SYNC : sample->state, .frame = hec_source_blame(b, sample->frame)};
    if (!key.frame || sample->state >= HEC_STATE_COUNT || sample->period_ns <= 0)
        return 0;
    if (2 * b->used >= b->slot_count && grow(b) != 0)
        return HEC_ERR_NOMEM;
    struct weight *w = &b->slots[slot_of(b, b->slots, b->slot_count, &key)];
    if (!w->samples) {
        *w = key;
        b->used++;
    }
    w->ns += sample->period_ns;
    w->samples++;
    vote(w, sample);
    return 0;
}

/* ---- the result ---- */

/* By device and state; then the heaviest; then by frame, so that the order is always the same. */
static int in_order(const void *a, const void *b) {
    const struct weight *one = a, *other = b;
    if (one->device != other->device)
        return one->device < other->device ? -1 : 1;
    if (one->state != other->state)
        return one->state < other->state ? -1 : 1;
    if (one->ns != other->ns)
        return one->ns > other->ns ? -1 : 1;
    return (one->frame > other->frame) - (one->frame < other->frame);
}

static const struct hec_ledger_row *row_of(const struct hec_ledger *ledger, int device, uint8_t state) {
    for (int i = 0; ledger && i < ledger->device_count; i++)
        if (ledger->devices[i].device == device)
            return &ledger->devices[i].rows[state];
    return NULL;
}

void hec_source_name(const struct hec_timeline_tables *tables, uint32_t blamed, struct hec_source_line *out) {
    const struct hec_frame *f = &tables->frames[blamed];
    out->line = f->line;
    snprintf(out->file, sizeof out->file, "%s", hec_timeline_name(tables, f->file));
    snprintf(out->function, sizeof out->function, "%s", hec_timeline_name(tables, f->function));
}

static void line_of(const struct hec_source_builder *b, const struct weight *w, double total_ns,
                    const struct hec_ledger *ledger, struct hec_source_line *out) {
    const struct hec_ledger_row *row = row_of(ledger, w->device, w->state);
    double share = (double)w->ns / total_ns;
    *out = (struct hec_source_line){
        .device = w->device,
        .state = (enum hec_state)w->state,
        .samples = w->samples,
        .pid = w->pid,
        .lead = (double)w->lead_ns / (double)w->ns,
        .share = share,
        .seconds = row ? share * row->seconds : NAN,
        .joules = row ? share * row->joules : NAN,
    };
    hec_source_name(b->tables, w->frame, out);
}

/* Drops AFTER_SYNC on devices that have SYNC, and makes it SYNC on others. Returns how many slots are used, at the front. */
static size_t settle(struct hec_source_builder *b) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < b->slot_count; i++)
        if (b->slots[i].samples)
            b->slots[n++] = b->slots[i];
    if (n)
        qsort(b->slots, n, sizeof *b->slots, in_order);
    int better = 0; /* the device that has SYNC, plus 1: its SYNC comes before its AFTER_SYNC */
    for (size_t i = 0; i < n; i++) {
        struct weight w = b->slots[i];
        if (w.state == HEC_STATE_SYNC)
            better = w.device + 1;
        if (w.state == AFTER_SYNC && better == w.device + 1)
            continue;
        w.state = w.state == AFTER_SYNC ? (uint8_t)HEC_STATE_SYNC : w.state;
        b->slots[kept++] = w;
    }
    if (kept)
        qsort(b->slots, kept, sizeof *b->slots, in_order);
    return kept;
}

int hec_source_end(struct hec_source_builder *b, const struct hec_ledger *ledger, int most,
                   struct hec_source_lines *out) {
    size_t n = settle(b);
    memset(out, 0, sizeof *out);
    out->lines = malloc((b->used + 1) * sizeof *out->lines);
    for (size_t i = 0, j; i < n && out->lines; i = j) {
        double total_ns = 0;
        for (j = i; j < n && b->slots[j].device == b->slots[i].device && b->slots[j].state == b->slots[i].state; j++)
            total_ns += (double)b->slots[j].ns;
        for (size_t k = i; k < j && k - i < (size_t)(most > 0 ? most : 0); k++)
            line_of(b, &b->slots[k], total_ns, ledger, &out->lines[out->count++]);
    }
    hec_source_abandon(b);
    return out->lines ? 0 : HEC_ERR_NOMEM;
}

void hec_source_lines_free(struct hec_source_lines *lines) {
    free(lines->lines);
    memset(lines, 0, sizeof *lines);
}
