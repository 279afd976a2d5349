/* A series in time order. Blocks come in the order of their first value. They may overlap, since values of several
 * threads come late now and then, so values wait until the next block begins after them. */
#include "store/limits.h"
#include "store/pack.h"
#include "store/reading.h"

#include "base/clock.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_VALUES 4096

struct waiting {
    int64_t *t_us, *value;
    uint8_t *valid;
    size_t count, capacity;
};

struct pass {
    struct hec_reader *reader;
    hec_chunk_visitor visit;
    void *context;
    struct waiting waiting;
};

static void waiting_free(struct waiting *w) {
    free(w->t_us);
    free(w->value);
    free(w->valid);
}

static int waiting_grow(struct waiting *w, size_t need) {
    if (need <= w->capacity)
        return HEC_OK;
    size_t capacity = w->capacity ? w->capacity : 1024;
    while (capacity < need)
        capacity *= 2;
    int64_t *t_us = realloc(w->t_us, capacity * sizeof *t_us);
    if (t_us)
        w->t_us = t_us;
    int64_t *value = realloc(w->value, capacity * sizeof *value);
    if (value)
        w->value = value;
    uint8_t *valid = realloc(w->valid, capacity);
    if (valid)
        w->valid = valid;
    if (!t_us || !value || !valid)
        return HEC_ERR_NOMEM;
    w->capacity = capacity;
    return HEC_OK;
}

/* Merge n values, in order, into those that wait, from the back. */
static void merge(struct waiting *w, const int64_t *t_us, const int64_t *value, const uint8_t *valid, size_t n) {
    size_t to = w->count + n, old = w->count;
    while (n > 0) {
        to--;
        if (old > 0 && w->t_us[old - 1] > t_us[n - 1]) {
            old--;
            w->t_us[to] = w->t_us[old];
            w->value[to] = w->value[old];
            w->valid[to] = w->valid[old];
        } else {
            n--;
            w->t_us[to] = t_us[n];
            w->value[to] = value[n];
            w->valid[to] = valid[n];
        }
    }
}

/* Hand over what waits and is not later than until_us. */
static int emit(struct pass *pass, int64_t until_us) {
    struct waiting *w = &pass->waiting;
    size_t end = 0;
    while (end < w->count && w->t_us[end] <= until_us) {
        w->t_us[end] *= HEC_NS_PER_US;
        end++;
    }
    if (end == 0)
        return HEC_OK;
    int stop = 0;
    for (size_t at = 0; at < end && stop == 0; at += CHUNK_VALUES) {
        size_t count = end - at < CHUNK_VALUES ? end - at : CHUNK_VALUES;
        stop = pass->visit(pass->context, w->t_us + at, w->value + at, w->valid + at, count);
    }
    w->count -= end;
    memmove(w->t_us, w->t_us + end, w->count * sizeof *w->t_us);
    memmove(w->value, w->value + end, w->count * sizeof *w->value);
    memmove(w->valid, w->valid + end, w->count);
    return stop;
}

static int add_block(struct pass *pass, sqlite3_stmt *s, int64_t *last_t0_us, struct hec_why *why) {
    struct hec_block head;
    const char *v, *r;
    const char *wrong = hec_reading_block(s, 0, &head, &v, &r) ? NULL : "a block holds something impossible";
    int64_t t_us[HEC_BLOCK_VALUES], value[HEC_BLOCK_VALUES];
    uint8_t valid[HEC_BLOCK_VALUES];
    if (!wrong)
        wrong = hec_unpack(&head, v, strlen(v), r, strlen(r), t_us, value, valid);
    if (!wrong && head.t0_us < *last_t0_us)
        wrong = "the blocks of a series are not in order";
    if (wrong) {
        hec_reading_leave_out(pass->reader, wrong);
        return HEC_OK;
    }
    *last_t0_us = head.t0_us;
    int err = emit(pass, head.t0_us);
    if (err)
        return err;
    size_t n = (size_t)head.n;
    if (pass->waiting.count + n > HEC_LIMITS_SERIES_VALUES)
        return hec_reading_corrupt(pass->reader, why, "too many blocks of a series overlap");
    if (waiting_grow(&pass->waiting, pass->waiting.count + n) != HEC_OK)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    merge(&pass->waiting, t_us, value, valid, n);
    pass->waiting.count += n;
    return HEC_OK;
}

/* The id of a series, 0 when there is none. */
static int find_series(struct hec_reader *reader, enum hec_metric metric, int32_t subject, int64_t *id,
                       struct hec_why *why) {
    *id = 0;
    sqlite3_stmt *s;
    int err = hec_reading_prepare(reader, "SELECT id, unit FROM series WHERE metric=? AND subject=?", &s, why);
    if (err)
        return err;
    const struct hec_metric_info *info = hec_metric_info(metric);
    sqlite3_bind_text(s, 1, info->name, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, subject);
    err = hec_reading_step(reader, s, why);
    if (err == 1) {
        const char *unit;
        err = HEC_OK;
        if (!hec_reading_int(s, 0, 1, INT64_MAX, id) || !hec_reading_text(s, 1, 64, &unit) ||
            strcmp(unit, info->unit) != 0) {
            hec_reading_leave_out(reader, "a series has an impossible id or not the unit of its metric");
            *id = 0;
        }
    }
    sqlite3_finalize(s);
    return err;
}

int hec_reader_series(struct hec_reader *reader, enum hec_metric metric, int32_t subject, hec_chunk_visitor visit,
                      void *context, struct hec_why *why) {
    int64_t id;
    int err = find_series(reader, metric, subject, &id, why);
    if (err || id == 0)
        return err;
    sqlite3_stmt *s;
    err = hec_reading_prepare(reader,
                              "SELECT t0_us, t1_us, n, v_base, v_width, v, r_base, r_width, r FROM block "
                              "INDEXED BY block_in_order WHERE series=? ORDER BY t0_us",
                              &s, why);
    if (err)
        return err;
    sqlite3_bind_int64(s, 1, id);
    struct pass pass = {.reader = reader, .visit = visit, .context = context};
    int64_t last_t0_us = INT64_MIN;
    while ((err = hec_reading_step(reader, s, why)) == 1)
        if ((err = add_block(&pass, s, &last_t0_us, why)) != 0)
            break;
    sqlite3_finalize(s);
    if (err == HEC_OK)
        err = emit(&pass, INT64_MAX);
    waiting_free(&pass.waiting);
    return err;
}

int hec_reader_subjects(struct hec_reader *reader, enum hec_metric metric, int32_t **subjects, struct hec_why *why) {
    *subjects = NULL;
    sqlite3_stmt *s;
    int err = hec_reading_prepare(reader, "SELECT subject FROM series WHERE metric=? ORDER BY subject", &s, why);
    if (err)
        return err;
    sqlite3_bind_text(s, 1, hec_metric_info(metric)->name, -1, SQLITE_STATIC);
    int count = 0;
    while ((err = hec_reading_step(reader, s, why)) == 1) {
        int64_t subject;
        if (!hec_reading_int(s, 0, INT_MIN, INT_MAX, &subject)) {
            hec_reading_leave_out(reader, "the table series holds something impossible");
            continue;
        }
        if (count == HEC_LIMITS_SERIES) {
            err = hec_reading_corrupt(reader, why, "the table series has too many rows");
            break;
        }
        if ((count & (count - 1)) == 0) { /* 0, 1, 2, 4 ...: full */
            int32_t *more = realloc(*subjects, (count ? (size_t)count * 2 : 1) * sizeof *more);
            if (!more) {
                err = hec_fail(why, HEC_ERR_NOMEM, "out of memory");
                break;
            }
            *subjects = more;
        }
        (*subjects)[count++] = (int32_t)subject;
    }
    sqlite3_finalize(s);
    if (err < 0) {
        free(*subjects);
        *subjects = NULL;
        return err;
    }
    return count;
}
