#include "store/series.h"

#include "base/list.h"
#include "store/limits.h"

#include <stdlib.h>
#include <string.h>

/* The number of steps that begin at t or before. */
static size_t begun(const struct hec_overlap *o, int64_t t) {
    size_t low = 0, high = o->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->steps[middle].from <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Joins pairs of the earlier half: what comes is mostly late in time. */
static void join(struct hec_overlap *o) {
    size_t half = o->count / 4 * 2, to = 0;
    for (size_t i = 0; i < half; i += 2, to++) {
        int64_t next = o->steps[i + 1].amount;
        o->steps[to] = o->steps[i];
        if (next > o->steps[to].amount)
            o->steps[to].amount = next;
    }
    memmove(o->steps + to, o->steps + half, (o->count - half) * sizeof *o->steps);
    o->count -= half - to;
}

/* Room for two more steps. */
static bool reserve(struct hec_overlap *o) {
    if (o->count + 2 <= o->capacity)
        return true;
    if (o->capacity == HEC_OVERLAP_STEPS_MAX) {
        join(o);
        return true;
    }
    size_t capacity = o->capacity ? 2 * o->capacity : 16;
    struct hec_overlap_step *steps = realloc(o->steps, capacity * sizeof *steps);
    if (!steps)
        return false;
    o->steps = steps;
    o->capacity = capacity;
    return true;
}

/* The step that begins at t, which is made where there is none. */
static size_t split(struct hec_overlap *o, int64_t t) {
    size_t at = begun(o, t);
    if (at > 0 && o->steps[at - 1].from == t)
        return at - 1;
    memmove(o->steps + at + 1, o->steps + at, (o->count - at) * sizeof *o->steps);
    o->steps[at] = (struct hec_overlap_step){t, at > 0 ? o->steps[at - 1].amount : 0};
    o->count++;
    return at;
}

bool hec_overlap_add(struct hec_overlap *o, int64_t first, int64_t last, int64_t amount, int64_t most) {
    if (amount > most || !reserve(o))
        return false;
    size_t at = begun(o, first), end = begun(o, last);
    for (at = at > 0 ? at - 1 : 0; at < end; at++)
        if (o->steps[at].amount + amount > most)
            return false;
    at = split(o, first);
    end = split(o, last + 1);
    for (; at < end; at++)
        o->steps[at].amount += amount;
    return true;
}

void hec_overlap_free(struct hec_overlap *o) {
    free(o->steps);
    *o = (struct hec_overlap){NULL, 0, 0};
}

int hec_series_init(struct hec_series_table *table, size_t closed_max_bytes) {
    memset(table, 0, sizeof *table);
    table->closed_max_bytes = closed_max_bytes;
    table->hash_size = 1024;
    table->hash = calloc(table->hash_size, sizeof(struct hec_series *));
    return table->hash ? 0 : -1;
}

void hec_series_free(struct hec_series_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        free(table->all[i]->t_us);
        hec_overlap_free(&table->all[i]->overlap);
        free(table->all[i]);
    }
    while (table->closed_first) {
        struct hec_closed *closed = table->closed_first;
        table->closed_first = closed->next;
        free(closed);
    }
    free(table->all);
    free(table->hash);
    memset(table, 0, sizeof *table);
}

static size_t slot(const struct hec_series_table *table, enum hec_metric metric, int32_t subject) {
    uint64_t key = ((uint64_t)metric << 32 | (uint32_t)subject) * UINT64_C(0x9e3779b97f4a7c15); /* Fibonacci hashing */
    return (size_t)(key >> 40) & (table->hash_size - 1);
}

static void rehash(struct hec_series_table *table) {
    size_t size = table->hash_size * 4;
    struct hec_series **hash = calloc(size, sizeof(struct hec_series *));
    if (!hash)
        return; /* slower, not wrong */
    free(table->hash);
    table->hash = hash;
    table->hash_size = size;
    for (size_t i = 0; i < table->count; i++) {
        struct hec_series *series = table->all[i];
        size_t at = slot(table, series->metric, series->subject);
        series->next = hash[at];
        hash[at] = series;
    }
}

static struct hec_series *find(struct hec_series_table *table, enum hec_metric metric, int32_t subject) {
    size_t at = slot(table, metric, subject);
    for (struct hec_series *series = table->hash[at]; series; series = series->next)
        if (series->metric == metric && series->subject == subject)
            return series;
    if (table->count == HEC_LIMITS_SERIES)
        return NULL;
    if (table->count == table->all_capacity &&
        !hec_list_grow(&table->all, sizeof(struct hec_series *), &table->all_capacity, 128))
        return NULL;
    struct hec_series *series = calloc(1, sizeof *series);
    if (!series)
        return NULL;
    series->metric = metric;
    series->subject = subject;
    /* The slack of an energy reading belongs to the reading of the very same time. */
    enum hec_metric_kind kind = hec_metric_info(metric)->kind;
    series->closed_us = INT64_MIN;
    series->exact = kind == HEC_METRIC_COUNTER || kind == HEC_METRIC_DELTA || metric == HEC_GPU_ENERGY_SLACK;
    series->next = table->hash[at];
    table->hash[at] = series;
    table->all[table->count++] = series;
    series->id = (int64_t)table->count;
    if (table->count > table->hash_size)
        rehash(table);
    return series;
}

static bool grow(struct hec_series *series) {
    if (series->n < series->capacity)
        return true;
    int capacity = series->capacity ? series->capacity * 2 : 16; /* 16, 32 ... 512 */
    int64_t *t_us = malloc((size_t)capacity * (2 * sizeof(int64_t) + 1));
    if (!t_us)
        return false;
    int64_t *v = t_us + capacity;
    uint8_t *valid = (uint8_t *)(v + capacity);
    if (series->n > 0) {
        memcpy(t_us, series->t_us, (size_t)series->n * sizeof *t_us);
        memcpy(v, series->v, (size_t)series->n * sizeof *v);
        memcpy(valid, series->valid, (size_t)series->n);
    }
    free(series->t_us);
    series->t_us = t_us;
    series->v = v;
    series->valid = valid;
    series->capacity = capacity;
    return true;
}

static void drop_oldest(struct hec_series_table *table) {
    struct hec_closed *closed = table->closed_first;
    table->closed_first = closed->next;
    if (!table->closed_first)
        table->closed_last = NULL;
    table->closed_bytes -= sizeof *closed + (size_t)closed->n * (size_t)(closed->v_width + closed->r_width);
    table->lost += closed->n - closed->committed;
    if (closed->holds_row)
        closed->series->promote = true;
    free(closed);
}

static void reset(struct hec_series *series) {
    series->n = 0;
    series->any = false;
    series->committed = 0;
    series->holds_row = series->moved = false;
    series->r_width = 0;
    series->dirty = true;
}

/* Whether a reader takes one more block. Of those that begin after all before, one is in the way at a time, and so is the
 * open one. */
static bool is_read(struct hec_series *series, const struct hec_block *block) {
    if (block->t0_us <= series->closed_us && !hec_overlap_add(&series->overlap, block->t0_us, block->t1_us, block->n,
                                                              HEC_LIMITS_SERIES_VALUES - 2 * HEC_BLOCK_VALUES))
        return false;
    series->closed_us = block->t1_us > series->closed_us ? block->t1_us : series->closed_us;
    return true;
}

static void close_block(struct hec_series_table *table, struct hec_series *series) {
    struct hec_block *block = &table->scratch;
    hec_pack(series->t_us, series->v, series->valid, series->n, series->exact, block);
    if (!is_read(series, block)) { /* with what the file has of it */
        table->lost += series->n;
        table->beyond += series->n;
        reset(series);
        return;
    }
    size_t v_bytes = (size_t)block->n * (size_t)block->v_width, r_bytes = (size_t)block->n * (size_t)block->r_width;
    struct hec_closed *closed = malloc(sizeof *closed + v_bytes + r_bytes);
    if (!closed) {
        table->lost += series->n - series->committed;
        series->promote = series->promote || series->holds_row;
        reset(series);
        return;
    }
    *closed = (struct hec_closed){.series = series,
                                  .committed = series->committed,
                                  .holds_row = series->holds_row,
                                  .t0_us = block->t0_us,
                                  .t1_us = block->t1_us,
                                  .v_base = block->v_base,
                                  .r_base = block->r_base,
                                  .n = block->n,
                                  .v_width = block->v_width,
                                  .r_width = block->r_width};
    memcpy(closed->text, block->v, v_bytes);
    memcpy(closed->text + v_bytes, block->r, r_bytes);
    if (table->closed_last)
        table->closed_last->next = closed;
    else
        table->closed_first = closed;
    table->closed_last = closed;
    table->closed_bytes += sizeof *closed + v_bytes + r_bytes;
    reset(series);
    while (table->closed_first && table->closed_bytes > table->closed_max_bytes)
        drop_oldest(table);
}

void hec_series_close(struct hec_series_table *table, struct hec_series *series) {
    if (series->n > 0)
        close_block(table, series);
    free(series->t_us);
    series->t_us = NULL;
    series->capacity = 0;
}

/* Whether one more value belongs into the next block: this one is full, or its numbers would get too wide. */
static bool must_close(const struct hec_series *series, int64_t t_us, int64_t low, int64_t high) {
    if (series->n == 0)
        return false;
    int64_t first = t_us < series->t_us[0] ? t_us : series->t_us[0];
    int64_t last = series->t_us[series->n - 1] > t_us ? series->t_us[series->n - 1] : t_us;
    int64_t range;
    if (series->n == HEC_BLOCK_VALUES || last - first > HEC_BLOCK_RANGE || __builtin_sub_overflow(high, low, &range) ||
        range > HEC_BLOCK_RANGE)
        return true;
    return (series->n + 1) * (hec_pack_width(range) + series->r_width) > HEC_BLOCK_TEXT_BYTES;
}

void hec_series_add(struct hec_series_table *table, enum hec_metric metric, int32_t subject, int64_t t_us,
                    int64_t value, bool valid) {
    struct hec_series *series = find(table, metric, subject);
    if (!series || t_us < -HEC_BLOCK_TIME_MAX_US || t_us > HEC_BLOCK_TIME_MAX_US) {
        table->lost++;
        return;
    }
    int64_t low = series->low, high = series->high;
    if (valid) {
        low = series->any && low < value ? low : value;
        high = series->any && high > value ? high : value;
    }
    if (must_close(series, t_us, series->any || valid ? low : 0, series->any || valid ? high : 0)) {
        close_block(table, series);
        low = high = value;
    }
    if (!grow(series)) {
        table->lost++;
        return;
    }
    int at = series->n++;
    for (; at > 0 && series->t_us[at - 1] > t_us; at--) {
        series->t_us[at] = series->t_us[at - 1];
        series->v[at] = series->v[at - 1];
        series->valid[at] = series->valid[at - 1];
    }
    if (at == 0)
        series->moved = true;
    series->t_us[at] = t_us;
    series->v[at] = valid ? value : 0;
    series->valid[at] = valid;
    if (valid) {
        series->low = low;
        series->high = high;
        series->any = true;
    }
    series->dirty = true;
    series->idle = 0;
}

void hec_series_committed(struct hec_series_table *table) {
    while (table->closed_first) {
        struct hec_closed *closed = table->closed_first;
        table->closed_first = closed->next;
        free(closed);
    }
    table->closed_last = NULL;
    table->closed_bytes = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct hec_series *series = table->all[i];
        series->stored = true;
        series->promote = false;
        if (!series->dirty)
            continue;
        series->dirty = false;
        series->has_row = series->holds_row = series->n > 0;
        series->moved = false;
        series->committed = series->n;
    }
}

int64_t hec_series_uncommitted(const struct hec_series_table *table) {
    int64_t values = 0;
    for (const struct hec_closed *closed = table->closed_first; closed; closed = closed->next)
        values += closed->n - closed->committed;
    for (size_t i = 0; i < table->count; i++)
        values += table->all[i]->n - table->all[i]->committed;
    return values;
}
