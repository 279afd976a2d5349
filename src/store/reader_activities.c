/* Activities in ascending start over all tracks. Blocks come in the order of their first start and are unpacked when
 * the pass gets there; those that overlap are merged. */
#include "base/list.h"
#include "store/limits.h"
#include "store/reader_ahead.h"
#include "store/reading.h"

#include <stdlib.h>
#include <string.h>

struct run { /* of a block */
    struct hec_activity *activities;
    size_t at, count;              /* of those in memory */
    size_t done;                   /* those before them */
    struct hec_activity_head head; /* head.n: all of the block */
    void *packed;                  /* NULL: it is in memory */
    size_t packed_length;
    int64_t bytes;        /* what it takes */
    int64_t packed_bytes; /* what it counts, however it waits */
};
_Static_assert(sizeof(struct run) <= HEC_LIMITS_RUN_BYTES, "what a block counts");

struct pass {
    struct hec_reader *reader;
    sqlite3_stmt *statement;
    struct hec_packer *packer;
    struct hec_activity *block; /* one, unpacked */
    struct run **heap;          /* by the start of the next activity */
    size_t open, capacity;
    int64_t waiting_bytes; /* what is in the heap takes, */
    int64_t packed_bytes;  /* and counts */
    int64_t activities;    /* so far */
    struct run *spare;     /* one that is done with */
    struct hec_ahead *ahead;
    struct hec_activity *chunk;
    size_t waiting; /* in the chunk */
    bool stopped;   /* no more is wanted */
};

static void run_free(struct run *run) {
    if (run) {
        free(run->activities);
        free(run->packed);
    }
    free(run);
}

/* Ties are broken by what the activities are, so that equal files give equal passes. */
static bool before(const struct run *a, const struct run *b) {
    const struct hec_activity *x = &a->activities[a->at], *y = &b->activities[b->at];
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns;
    if (x->track != y->track)
        return x->track < y->track;
    return x->kind < y->kind;
}

static void sift_down(struct pass *pass) {
    size_t at = 0;
    for (;;) {
        size_t least = at, child = 2 * at + 1;
        if (child < pass->open && before(pass->heap[child], pass->heap[least]))
            least = child;
        if (child + 1 < pass->open && before(pass->heap[child + 1], pass->heap[least]))
            least = child + 1;
        if (least == at)
            return;
        struct run *run = pass->heap[at];
        pass->heap[at] = pass->heap[least];
        pass->heap[least] = run;
        at = least;
    }
}

static void sift_up(struct pass *pass, size_t at) {
    for (; at > 0 && before(pass->heap[at], pass->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        struct run *run = pass->heap[at];
        pass->heap[at] = pass->heap[(at - 1) / 2];
        pass->heap[(at - 1) / 2] = run;
    }
}

static void hand_over(struct pass *pass) {
    if (pass->waiting)
        hec_ahead_put(pass->ahead, pass->waiting);
    pass->waiting = 0;
    pass->chunk = hec_ahead_room(pass->ahead);
    pass->stopped = !pass->chunk;
}

static void drop_first(struct pass *pass) {
    struct run *done = pass->heap[0];
    pass->waiting_bytes -= done->bytes;
    pass->packed_bytes -= done->packed_bytes;
    pass->heap[0] = pass->heap[--pass->open];
    sift_down(pass);
    if (pass->spare || done->packed)
        run_free(done);
    else
        pass->spare = done;
}

/* The next piece of a block that waits packed; false: there is none. It has been unpacked before, so it is sound. */
static bool next_piece(struct pass *pass, struct run *run) {
    run->done += run->count;
    size_t left = run->head.n - run->done;
    if (!run->packed || left == 0 ||
        hec_packer_unpack(pass->packer, run->packed, run->packed_length, &run->head, &pass->reader->limits,
                          pass->block))
        return false;
    run->count = left < run->count ? left : run->count;
    run->at = 0;
    memcpy(run->activities, pass->block + run->done, run->count * sizeof *run->activities);
    return true;
}

/* Where the first run stops being the first: another one begins, or until_ns. At least one activity further. */
static size_t end_of_turn(const struct pass *pass, int64_t until_ns) {
    const struct run *run = pass->heap[0], *next = NULL;
    if (pass->open > 1)
        next = pass->heap[1];
    if (pass->open > 2 && before(pass->heap[2], next))
        next = pass->heap[2];
    int64_t other_ns = next ? next->activities[next->at].start_ns : INT64_MAX;
    int64_t limit_ns = other_ns < until_ns ? other_ns : until_ns;
    size_t end = run->at + 1;
    while (end < run->count && run->activities[end].start_ns < limit_ns)
        end++;
    return end;
}

/* Merge what starts before until_ns: nothing earlier can come any more. */
static void emit(struct pass *pass, int64_t until_ns) {
    while (pass->open > 0 && !pass->stopped) {
        struct run *run = pass->heap[0];
        if (run->activities[run->at].start_ns >= until_ns)
            break;
        size_t end = end_of_turn(pass, until_ns), count = end - run->at;
        if (count > HEC_AHEAD_CHUNK - pass->waiting)
            count = HEC_AHEAD_CHUNK - pass->waiting;
        memcpy(pass->chunk + pass->waiting, run->activities + run->at, count * sizeof *pass->chunk);
        pass->waiting += count;
        run->at += count;
        if (run->at == run->count && !next_piece(pass, run))
            drop_first(pass);
        else
            sift_down(pass);
        if (pass->waiting == HEC_AHEAD_CHUNK)
            hand_over(pass);
    }
}

/* A run with room for `count` activities: the spare one grows. */
static struct run *make_run(struct pass *pass, size_t count) {
    struct run *run = pass->spare;
    pass->spare = NULL;
    if (!run && !(run = calloc(1, sizeof *run)))
        return NULL;
    struct hec_activity *activities = realloc(run->activities, count * sizeof *activities);
    if (!activities) {
        run_free(run);
        return NULL;
    }
    *run = (struct run){.activities = activities, .count = count};
    return run;
}

static const char damaged[] = "a block of activities holds something impossible";

const char *hec_reading_activity_head(const struct hec_reader *reader, sqlite3_stmt *s,
                                      struct hec_activity_head *head) {
    int64_t track, n;
    const char *name;
    if (!hec_reading_int(s, 0, 1, reader->limits.tracks, &track) || !hec_reading_text(s, 1, 32, &name) ||
        !hec_reading_int(s, 2, -HEC_RECORD_TIME_MAX_NS, HEC_RECORD_TIME_MAX_NS, &head->t0_ns) ||
        !hec_reading_int(s, 3, 1, HEC_ACTIVITY_BLOCK, &n) || sqlite3_column_type(s, 4) != SQLITE_BLOB)
        return damaged;
    head->track = (uint32_t)track;
    head->n = (size_t)n;
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        if (strcmp(hec_activity_kind_name((enum hec_activity_kind)kind), name) == 0) {
            head->kind = (enum hec_activity_kind)kind;
            return NULL;
        }
    return damaged;
}

const char *hec_reading_activities(const struct hec_reader *reader, sqlite3_stmt *s,
                                   const struct hec_activity_head *head, struct hec_packer *packer,
                                   struct hec_activity *activities) {
    const void *bytes = sqlite3_column_blob(s, 4);
    return bytes
               ? hec_packer_unpack(packer, bytes, (size_t)sqlite3_column_bytes(s, 4), head, &reader->limits, activities)
               : damaged;
}

static bool keep_packed(struct run *run, sqlite3_stmt *s) {
    run->packed_length = (size_t)sqlite3_column_bytes(s, 4);
    run->packed = malloc(run->packed_length);
    if (run->packed)
        memcpy(run->packed, sqlite3_column_blob(s, 4), run->packed_length);
    return run->packed;
}

static int add_block(struct pass *pass, int64_t *last_t0_ns, struct hec_why *why) {
    struct hec_activity_head head;
    const char *wrong = hec_reading_activity_head(pass->reader, pass->statement, &head);
    if (!wrong && head.t0_ns < *last_t0_ns)
        wrong = "the blocks of activities are not in order";
    if (wrong) {
        hec_reading_leave_out(pass->reader, wrong);
        return HEC_OK;
    }
    pass->activities += (int64_t)head.n;
    if (pass->activities > HEC_LIMITS_ACTIVITIES_FREE && pass->activities > pass->reader->file_bytes)
        return hec_fail(why, HEC_ERR_LIMIT, "%s holds more activities than a run recorded in so few bytes",
                        pass->reader->path);
    *last_t0_ns = head.t0_ns;
    emit(pass, head.t0_ns);
    bool packed = pass->waiting_bytes > HEC_LIMITS_UNPACKED_BYTES && head.n > HEC_LIMITS_PIECE;
    bool room = pass->open < pass->capacity || hec_list_grow(&pass->heap, sizeof(struct run *), &pass->capacity, 64);
    struct run *run = room ? make_run(pass, packed ? HEC_LIMITS_PIECE : head.n) : NULL;
    if (!run || (packed && !keep_packed(run, pass->statement))) {
        run_free(run);
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    }
    wrong = hec_reading_activities(pass->reader, pass->statement, &head, pass->packer,
                                   packed ? pass->block : run->activities);
    if (wrong) {
        run_free(run);
        hec_reading_leave_out(pass->reader, wrong);
        return HEC_OK;
    }
    if (packed)
        memcpy(run->activities, pass->block, HEC_LIMITS_PIECE * sizeof *run->activities);
    run->head = head;
    run->bytes = (int64_t)(sizeof *run + run->packed_length + run->count * sizeof *run->activities);
    run->packed_bytes = hec_limits_block_bytes(head.n, (size_t)sqlite3_column_bytes(pass->statement, 4));
    pass->heap[pass->open] = run;
    sift_up(pass, pass->open++);
    pass->waiting_bytes += run->bytes;
    pass->packed_bytes += run->packed_bytes;
    return pass->packed_bytes > HEC_LIMITS_OVERLAP_BYTES
               ? hec_reading_corrupt(pass->reader, why, "too many blocks of activities overlap")
               : HEC_OK;
}

static int prepare(struct pass *pass, uint32_t kinds, struct hec_why *why) {
    /* kind is in the index: what is not wanted is not even looked up */
    char sql[512] =
        "SELECT track, kind, t0_ns, n, data FROM activity_block INDEXED BY activity_in_order WHERE kind IN (";
    bool any = false;
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++) {
        if (!(kinds & HEC_ACTIVITY_BIT(kind)))
            continue;
        strcat(strcat(strcat(sql, any ? ",'" : "'"), hec_activity_kind_name((enum hec_activity_kind)kind)), "'");
        any = true;
    }
    strcat(sql, ") ORDER BY t0_ns");
    return hec_reading_prepare(pass->reader, sql, &pass->statement, why);
}

/* In a thread of its own, from the first block on. */
static int each_block(void *context, struct hec_ahead *ahead, struct hec_why *why) {
    struct pass *pass = context;
    int64_t last_t0_ns = -HEC_RECORD_TIME_MAX_NS;
    int err = 1;
    pass->ahead = ahead;
    hand_over(pass);
    while (!pass->stopped && err == 1 && (err = add_block(pass, &last_t0_ns, why)) == 0)
        err = hec_reading_step(pass->reader, pass->statement, why);
    if (pass->stopped || err)
        return pass->stopped ? 0 : err;
    emit(pass, INT64_MAX);
    if (pass->waiting)
        hand_over(pass);
    return 0;
}

/* What a pass needs is made where there is something to pass over. */
static int merge_blocks(struct pass *pass, const struct hec_activity_visitor *visitors, size_t count,
                        struct hec_why *why) {
    pass->packer = hec_packer_new();
    pass->block = malloc(HEC_ACTIVITY_BLOCK * sizeof *pass->block);
    if (!pass->packer || !pass->block)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    pass->reader->in_use = true;
    int err = hec_ahead_run(each_block, pass, visitors, count, why);
    pass->reader->in_use = false;
    return err;
}

int hec_reader_activities_beside(struct hec_reader *reader, uint32_t kinds, const struct hec_activity_visitor *visitors,
                                 size_t count, struct hec_why *why) {
    int err = hec_reading_limits(reader, why);
    struct pass pass = {.reader = reader};
    if (!err)
        err = prepare(&pass, kinds, why);
    if (!err && (err = hec_reading_step(reader, pass.statement, why)) == 1)
        err = merge_blocks(&pass, visitors, count, why);
    for (size_t i = 0; i < pass.open; i++)
        run_free(pass.heap[i]);
    run_free(pass.spare);
    free(pass.heap);
    free(pass.block);
    hec_packer_free(pass.packer);
    sqlite3_finalize(pass.statement);
    return err;
}

int hec_reader_activities(struct hec_reader *reader, uint32_t kinds,
                          int (*visit)(void *context, const struct hec_activity *activities, size_t count),
                          void *context, struct hec_why *why) {
    const struct hec_activity_visitor visitor = {context, visit};
    return hec_reader_activities_beside(reader, kinds, &visitor, 1, why);
}
