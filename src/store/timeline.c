#include "store/timeline.h"

#include "store/limits.h"
#include "store/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Closed blocks that wait: some 2 million kernels, a quarter of a minute of the fastest program without a disk. */
#define CLOSED_BYTES (16 << 20)
#define OPEN_FIRST 16    /* activities of a chain to begin with; then twice as many */
#define IDLE_FLUSHES 120 /* a chain silent for about two minutes gives its memory back */

/* The activities of one kind on one track. Those that come after a block with later ones was closed are a chain of
 * their own, so that blocks overlap no more than they must. */
struct chain {
    uint32_t number, track;
    uint8_t kind;
    bool late, unsorted;
    bool dirty;         /* changed since the last commit */
    bool has_row;       /* the file has a row for the open block, or for what was open */
    int64_t row_t0_ns;  /* of that row */
    uint32_t committed; /* activities of the open block that are in the row */
    uint32_t serial;    /* of the open block */
    uint32_t idle;      /* flushes since the last activity */
    uint32_t n, capacity;
    int64_t closed_ns; /* no block closed so far has a later start */
    struct hec_activity *open;
    struct chain *next; /* of the same hash */
};

struct sums {
    int64_t count, total_ns;
    bool dirty;
};

struct hec_store_timeline {
    pthread_mutex_t lock;
    struct chain **chains;
    uint32_t chain_count, chain_capacity;
    struct chain *slots[16384];
    struct chain *last; /* the one used last */
    size_t open_bytes, closed_bytes;
    uint32_t hand; /* the chain that gave its memory to another one last */
    struct hec_activity_block *closed_first, **closed_end;
    struct hec_packer *packer;
    struct {
        struct sums *of; /* by name */
        uint32_t size;
        bool dirty;
    } totals[HEC_ACTIVITY_KIND_COUNT];
    struct hec_overlap overlap; /* of closed blocks */
    int64_t closed, packed;     /* activities in closed blocks, and the bytes of these */
    int64_t lost, beyond;       /* beyond: those that a reader would not take */
};

struct hec_store_timeline *hec_store_timeline_new(void) {
    struct hec_store_timeline *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    pthread_mutex_init(&t->lock, NULL);
    t->closed_end = &t->closed_first;
    t->packer = hec_packer_new();
    if (!t->packer) {
        hec_store_timeline_free(t);
        return NULL;
    }
    return t;
}

static void free_blocks(struct hec_activity_block *block) {
    while (block) {
        struct hec_activity_block *next = block->next;
        free(block);
        block = next;
    }
}

void hec_store_timeline_free(struct hec_store_timeline *t) {
    if (!t)
        return;
    for (uint32_t i = 0; i < t->chain_count; i++) {
        free(t->chains[i]->open);
        free(t->chains[i]);
    }
    free(t->chains);
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        free(t->totals[kind].of);
    free_blocks(t->closed_first);
    hec_overlap_free(&t->overlap);
    hec_packer_free(t->packer);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static struct chain *find(struct hec_store_timeline *t, uint32_t track, unsigned kind, bool late) {
    if (t->last && t->last->track == track && t->last->kind == kind && t->last->late == late)
        return t->last;
    uint64_t key = ((uint64_t)track << 5 | kind << 1 | late) * UINT64_C(0x9e3779b97f4a7c15); /* Fibonacci hashing */
    struct chain **slot = &t->slots[key >> 50];
    for (struct chain *chain = *slot; chain; chain = chain->next)
        if (chain->track == track && chain->kind == kind && chain->late == late)
            return t->last = chain;
    if (t->chain_count == t->chain_capacity) {
        uint32_t capacity = t->chain_capacity ? 2 * t->chain_capacity : 64;
        struct chain **chains =
            t->chain_count < HEC_LIMITS_CHAINS ? realloc(t->chains, capacity * sizeof(struct chain *)) : NULL;
        if (!chains)
            return NULL;
        t->chains = chains;
        t->chain_capacity = capacity;
    }
    struct chain *chain = calloc(1, sizeof *chain);
    if (!chain)
        return NULL;
    chain->track = track;
    chain->kind = (uint8_t)kind;
    chain->late = late;
    chain->closed_ns = INT64_MIN;
    chain->next = *slot;
    *slot = chain;
    t->chains[t->chain_count++] = chain;
    chain->number = t->chain_count;
    return t->last = chain;
}

/* In order of start; where that is the same, in an order that does not depend on how they came. */
static int in_order(const void *a, const void *b) {
    const struct hec_activity *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return memcmp(a, b, sizeof *x); /* a total order, regardless of what the bytes of an amount mean */
}

/* The open block, packed. NULL: no memory. */
static struct hec_activity_block *pack(struct hec_store_timeline *t, struct chain *chain) {
    if (chain->unsorted)
        qsort(chain->open, chain->n, sizeof *chain->open, in_order);
    chain->unsorted = false;
    const unsigned char *bytes;
    size_t length = hec_packer_pack(t->packer, chain->open, chain->n, &bytes);
    struct hec_activity_block *block = malloc(sizeof *block + length);
    if (!block)
        return NULL;
    *block = (struct hec_activity_block){.chain = chain->number,
                                         .track = chain->track,
                                         .kind = (enum hec_activity_kind)chain->kind,
                                         .n = chain->n,
                                         .t0_ns = chain->open[0].start_ns,
                                         .t1_ns = INT64_MIN,
                                         .committed = chain->committed,
                                         .serial = chain->serial,
                                         .has_row = chain->has_row,
                                         .same_t0 = chain->row_t0_ns == chain->open[0].start_ns,
                                         .length = length};
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct hec_activity *a = &chain->open[i];
        block->t1_ns = a->end_ns > block->t1_ns ? a->end_ns : block->t1_ns;
        if (__builtin_add_overflow(block->total_ns, a->end_ns - a->start_ns, &block->total_ns))
            block->total_ns = INT64_MAX;
        if (!isnan(a->amount))
            block->amount += a->amount;
    }
    memcpy(block->bytes, bytes, length);
    return block;
}

/* Whether a reader takes this block after all those before, and what is open. */
static bool is_read(struct hec_store_timeline *t, const struct hec_activity_block *block, int64_t last_ns) {
    int64_t closed = t->closed + block->n, packed = t->packed + (int64_t)block->length;
    int64_t most = packed > HEC_LIMITS_ACTIVITIES_FREE ? packed : HEC_LIMITS_ACTIVITIES_FREE;
    if (closed + (int64_t)(HEC_LIMITS_OPEN_BYTES / sizeof(struct hec_activity)) > most ||
        !hec_overlap_add(&t->overlap, block->t0_ns, last_ns, hec_limits_block_bytes(block->n, block->length),
                         HEC_LIMITS_CLOSED_OVERLAP_BYTES))
        return false;
    t->closed = closed;
    t->packed = packed;
    return true;
}

/* false: there is no room for one more closed block, so it stays open */
static bool close_block(struct hec_store_timeline *t, struct chain *chain) {
    if (chain->n == 0)
        return true;
    struct hec_activity_block *block = t->closed_bytes < CLOSED_BYTES ? pack(t, chain) : NULL;
    if (!block)
        return false;
    int64_t last_ns = chain->open[chain->n - 1].start_ns;
    if (is_read(t, block, last_ns)) {
        *t->closed_end = block;
        t->closed_end = &block->next;
        t->closed_bytes += sizeof *block + block->length;
        chain->closed_ns = last_ns > chain->closed_ns ? last_ns : chain->closed_ns;
    } else {
        t->lost += chain->n;
        t->beyond += chain->n;
        free(block);
    }
    chain->n = chain->committed = 0;
    chain->serial++;
    chain->dirty = true;
    return true;
}

static void give_memory_back(struct hec_store_timeline *t, struct chain *chain) {
    if (!close_block(t, chain))
        return;
    t->open_bytes -= chain->capacity * sizeof *chain->open;
    free(chain->open);
    chain->open = NULL;
    chain->capacity = 0;
}

static void close_idle(struct hec_store_timeline *t) {
    for (uint32_t i = 0; i < t->chain_count; i++)
        if (t->chains[i]->capacity > 0 && t->chains[i]->idle >= IDLE_FLUSHES)
            give_memory_back(t, t->chains[i]);
}

/* Make others give memory back, in turn, for a chain that has none. */
static void take_memory(struct hec_store_timeline *t, size_t bytes) {
    for (uint32_t i = 0; i < t->chain_count && t->open_bytes + bytes > HEC_LIMITS_OPEN_BYTES; i++) {
        t->hand = (t->hand + 1) % t->chain_count;
        if (t->chains[t->hand]->capacity > 0)
            give_memory_back(t, t->chains[t->hand]);
    }
}

/* Room for one more activity in the open block, which may be closed for that. */
static bool make_room(struct hec_store_timeline *t, struct chain *chain) {
    if (chain->n < chain->capacity)
        return true;
    if (chain->n == HEC_ACTIVITY_BLOCK)
        return close_block(t, chain);
    uint32_t capacity = chain->capacity ? 2 * chain->capacity : OPEN_FIRST;
    size_t more = (capacity - chain->capacity) * sizeof *chain->open;
    if (chain->capacity == 0)
        take_memory(t, more);
    struct hec_activity *open =
        t->open_bytes + more > HEC_LIMITS_OPEN_BYTES ? NULL : realloc(chain->open, capacity * sizeof *open);
    if (!open) /* a block that is closed early does, too */
        return chain->n > 0 && close_block(t, chain);
    t->open_bytes += more;
    chain->open = open;
    chain->capacity = capacity;
    return true;
}

static bool within(int64_t t_ns) {
    return t_ns >= -HEC_ACTIVITY_TIME_MAX_NS && t_ns <= HEC_ACTIVITY_TIME_MAX_NS;
}

static bool makes_sense(const struct hec_activity *a, const struct hec_activity_limits *limits) {
    return a->kind < HEC_ACTIVITY_KIND_COUNT && a->track >= 1 && a->track <= limits->tracks &&
           a->name <= limits->name[a->kind] && a->launch_track <= limits->tracks && within(a->start_ns) &&
           within(a->end_ns) && a->start_ns <= a->end_ns && !isinf(a->amount);
}

static void put(struct chain *chain, const struct hec_activity *activity) {
    struct hec_activity *a = &chain->open[chain->n];
    *a = *activity;
    memset(a->reserved, 0, sizeof a->reserved);
    if (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)) {
        if (!within(a->launch_ns))
            a->launch_ns = HEC_TIME_UNKNOWN;
        if (a->launch_ns == HEC_TIME_UNKNOWN)
            a->launch_track = 0;
        if (a->launch_ns == HEC_TIME_UNKNOWN || !within(a->launch_end_ns) || a->launch_end_ns < a->launch_ns)
            a->launch_end_ns = HEC_TIME_UNKNOWN;
    } else {
        a->launch_ns = a->launch_end_ns = 0;
        a->launch_track = 0;
    }
    if (chain->n > 0 && a->start_ns < a[-1].start_ns)
        chain->unsorted = true;
    chain->n++;
    chain->dirty = true;
    chain->idle = 0;
}

static bool make_total(struct hec_store_timeline *t, const struct hec_activity *a) {
    if (a->name < t->totals[a->kind].size)
        return true;
    uint32_t size = t->totals[a->kind].size ? 2 * t->totals[a->kind].size : 64;
    size = size > a->name ? size : a->name + 64;
    struct sums *of = realloc(t->totals[a->kind].of, size * sizeof *of);
    if (!of)
        return false;
    memset(of + t->totals[a->kind].size, 0, (size - t->totals[a->kind].size) * sizeof *of);
    t->totals[a->kind].of = of;
    t->totals[a->kind].size = size;
    return true;
}

static void add_total(struct hec_store_timeline *t, const struct hec_activity *a) {
    struct sums *sums = &t->totals[a->kind].of[a->name];
    sums->count++;
    if (__builtin_add_overflow(sums->total_ns, a->end_ns - a->start_ns, &sums->total_ns))
        sums->total_ns = INT64_MAX;
    sums->dirty = t->totals[a->kind].dirty = true;
}

static bool append(struct hec_store_timeline *t, const struct hec_activity *a,
                   const struct hec_activity_limits *limits) {
    if (!makes_sense(a, limits) || !make_total(t, a))
        return false;
    struct chain *chain = find(t, a->track, a->kind, false);
    if (chain && a->start_ns < chain->closed_ns)
        chain = find(t, a->track, a->kind, true);
    if (!chain || !make_room(t, chain))
        return false;
    put(chain, a);
    add_total(t, a);
    return true;
}

void hec_store_timeline_add(struct hec_store_timeline *t, const struct hec_activity *activities, size_t count,
                            const struct hec_activity_limits *limits) {
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < count; i++)
        if (!append(t, &activities[i], limits))
            t->lost++;
    pthread_mutex_unlock(&t->lock);
}

/* Says that the row of the chain is to go. */
static struct hec_activity_block *no_block(const struct chain *chain) {
    struct hec_activity_block *block = malloc(sizeof *block);
    if (block)
        *block = (struct hec_activity_block){.chain = chain->number, .serial = chain->serial, .has_row = true};
    return block;
}

static bool take_open(struct hec_store_timeline *t, struct hec_store_timeline_batch *batch) {
    struct hec_activity_block **end = &batch->open;
    for (uint32_t i = 0; i < t->chain_count; i++) {
        struct chain *chain = t->chains[i];
        if (!chain->dirty)
            continue;
        if (chain->n > 0 || chain->has_row) {
            *end = chain->n > 0 ? pack(t, chain) : no_block(chain);
            if (!*end)
                return false;
            end = &(*end)->next;
        }
        chain->dirty = false;
    }
    return true;
}

static bool take_totals(struct hec_store_timeline *t, struct hec_store_timeline_batch *batch) {
    size_t room = 0;
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        for (uint32_t name = 0; t->totals[kind].dirty && name < t->totals[kind].size; name++)
            room += t->totals[kind].of[name].dirty;
    batch->totals = room ? malloc(room * sizeof *batch->totals) : NULL;
    if (!batch->totals)
        return room == 0;
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++) {
        for (uint32_t name = 0; t->totals[kind].dirty && name < t->totals[kind].size; name++) {
            struct sums *sums = &t->totals[kind].of[name];
            if (sums->dirty)
                batch->totals[batch->total_count++] =
                    (struct hec_activity_total){(enum hec_activity_kind)kind, name, sums->count, sums->total_ns};
            sums->dirty = false;
        }
        t->totals[kind].dirty = false;
    }
    return true;
}

bool hec_store_timeline_take(struct hec_store_timeline *t, struct hec_store_timeline_batch *batch) {
    memset(batch, 0, sizeof *batch);
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < t->chain_count; i++)
        t->chains[i]->idle++;
    close_idle(t);
    batch->closed = t->closed_first;
    t->closed_first = NULL;
    t->closed_end = &t->closed_first;
    bool good = take_open(t, batch) && take_totals(t, batch);
    pthread_mutex_unlock(&t->lock);
    if (!good)
        hec_store_timeline_give_back(t, batch, false);
    return good;
}

static void committed(struct hec_store_timeline *t, struct hec_store_timeline_batch *batch) {
    for (const struct hec_activity_block *block = batch->closed; block; block = block->next)
        t->closed_bytes -= sizeof *block + block->length;
    for (const struct hec_activity_block *block = batch->open; block; block = block->next) {
        struct chain *chain = t->chains[block->chain - 1];
        chain->has_row = block->n > 0;
        chain->row_t0_ns = block->t0_ns;
        if (chain->serial == block->serial)
            chain->committed = block->n;
    }
    free_blocks(batch->closed);
}

/* What could not be written waits, before what has come since. */
static void put_back(struct hec_store_timeline *t, struct hec_store_timeline_batch *batch) {
    for (const struct hec_activity_block *block = batch->open; block; block = block->next)
        t->chains[block->chain - 1]->dirty = true;
    for (size_t i = 0; i < batch->total_count; i++) {
        t->totals[batch->totals[i].kind].of[batch->totals[i].name].dirty = true;
        t->totals[batch->totals[i].kind].dirty = true;
    }
    struct hec_activity_block **end = &batch->closed;
    while (*end)
        end = &(*end)->next;
    *end = t->closed_first;
    if (!t->closed_first)
        t->closed_end = end;
    t->closed_first = batch->closed;
    if (!t->closed_first)
        t->closed_end = &t->closed_first;
}

void hec_store_timeline_give_back(struct hec_store_timeline *t, struct hec_store_timeline_batch *batch, bool done) {
    pthread_mutex_lock(&t->lock);
    if (done)
        committed(t, batch);
    else
        put_back(t, batch);
    pthread_mutex_unlock(&t->lock);
    free_blocks(batch->open);
    free(batch->totals);
    memset(batch, 0, sizeof *batch);
}

int64_t hec_store_timeline_lost(struct hec_store_timeline *t, int64_t *beyond) {
    pthread_mutex_lock(&t->lock);
    int64_t lost = t->lost;
    if (beyond)
        *beyond = t->beyond;
    pthread_mutex_unlock(&t->lock);
    return lost;
}

int64_t hec_store_timeline_uncommitted(struct hec_store_timeline *t) {
    pthread_mutex_lock(&t->lock);
    int64_t count = 0;
    for (const struct hec_activity_block *block = t->closed_first; block; block = block->next)
        count += block->n - block->committed;
    for (uint32_t i = 0; i < t->chain_count; i++)
        count += t->chains[i]->n - t->chains[i]->committed;
    pthread_mutex_unlock(&t->lock);
    return count;
}
