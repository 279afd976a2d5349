/* Activities before they are in a file: what a transaction takes, whatever becomes of it, and what a chain of blocks is made of. */
#include "store/timeline.h"
#include "unit.h"

static struct hec_store_timeline *timeline;
static struct hec_store_timeline_batch batch;
static struct hec_activity_limits limits;
static struct hec_packer *packer;
static struct hec_activity out[HEC_ACTIVITY_BLOCK];

static int begin(void **state) {
    (void)state;
    limits.tracks = 9;
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        limits.name[kind] = 1000;
    limits.name[HEC_ACTIVITY_MEMSET] = 5;
    packer = hec_packer_new();
    timeline = hec_store_timeline_new();
    return !packer || !timeline;
}
static int end(void **state) {
    (void)state;
    hec_packer_free(packer);
    hec_store_timeline_free(timeline);
    hec_store_timeline_free(NULL);
    return 0;
}
EACH_TEST(begin, end)

static struct hec_activity call(int64_t start_ns, int64_t end_ns) {
    return (struct hec_activity){
        .start_ns = start_ns, .end_ns = end_ns, .track = 1, .name = 3, .kind = HEC_ACTIVITY_API};
}

static void add(struct hec_activity a) {
    hec_store_timeline_add(timeline, &a, 1, &limits);
}

static void take(void) {
    assert_true(hec_store_timeline_take(timeline, &batch));
}

static void give_back(bool done) {
    static const struct hec_store_timeline_batch empty;
    hec_store_timeline_give_back(timeline, &batch, done);
    assert_memory_equal(&batch, &empty, sizeof batch);
}

static int64_t uncommitted(void) {
    return hec_store_timeline_uncommitted(timeline);
}

static int length(const struct hec_activity_block *block) {
    int count = 0;
    for (; block; block = block->next)
        count++;
    return count;
}

/* Its activities, in `out`. */
static void unpack(const struct hec_activity_block *b) {
    struct hec_activity_head head = {b->track, b->kind, b->t0_ns, b->n};
    assert_null(hec_packer_unpack(packer, b->bytes, b->length, &head, &limits, out));
}

TEST(open_blocks) {
    const struct hec_activity a[] = {
        {30, 35, 0, 0, 1.5, 1, 3, 0, HEC_ACTIVITY_API, .detail = 2},
        {10, 50, 0, 0, (double)NAN, 1, 4, 0, HEC_ACTIVITY_API, .device = 6},
        {30, 32, 0, 0, 2, 1, 3, 0, HEC_ACTIVITY_API, .from = 1, .to = 2},
        {7, 9, 5, 6, 64, 2, 5, 1, HEC_ACTIVITY_MEMSET, .flags = 1},
        {20, 21, 0, 0, 1, 2, 3, 0, HEC_ACTIVITY_API},
    };
    hec_store_timeline_add(timeline, a, 5, &limits);
    assert_int_equal(uncommitted(), 5);
    for (int round = 0; round < 2; round++) { /* the first is not written */
        take();
        assert_null(batch.closed);
        const struct hec_activity_block *b = batch.open;
        assert_int_equal(length(b), 3);
        assert_true(b->chain == 1 && b->track == 1 && b->kind == HEC_ACTIVITY_API && b->n == 3 && b->t0_ns == 10 &&
                    b->t1_ns == 50 && b->total_ns == 5 + 40 + 2 && b->amount == 3.5 && b->committed == 0 &&
                    b->serial == 0 && !b->has_row && !b->same_t0);
        unpack(b);
        assert_memory_equal(&out[0], &a[1], sizeof out[0]);
        assert_memory_equal(&out[1], &a[2], sizeof out[0]); /* of two that begin at once the one that ends first */
        assert_memory_equal(&out[2], &a[0], sizeof out[0]);
        b = b->next;
        assert_true(b->chain == 2 && b->track == 2 && b->kind == HEC_ACTIVITY_MEMSET && b->n == 1 && b->t0_ns == 7 &&
                    b->t1_ns == 9 && b->total_ns == 2 && b->amount == 64);
        unpack(b);
        assert_memory_equal(&out[0], &a[3], sizeof out[0]);
        b = b->next;
        assert_true(b->chain == 3 && b->track == 2 && b->kind == HEC_ACTIVITY_API && b->n == 1 && b->t0_ns == 20);
        static const struct hec_activity_total totals[] = {
            {HEC_ACTIVITY_MEMSET, 5, 1, 2}, {HEC_ACTIVITY_API, 3, 3, 5 + 2 + 1}, {HEC_ACTIVITY_API, 4, 1, 40}};
        assert_int_equal(batch.total_count, 3);
        assert_memory_equal(batch.totals, totals, sizeof totals);
        give_back(round == 1);
        assert_int_equal(uncommitted(), round ? 0 : 5);
    }
    take();
    assert_true(!batch.open && !batch.closed && !batch.totals && batch.total_count == 0);
    give_back(true);
    assert_int_equal(hec_store_timeline_lost(timeline, NULL), 0);
}

/* What changes next is the row that the file has, from its beginning or not. */
TEST(rows_of_open_blocks) {
    static const struct {
        int64_t start_ns;
        bool done, has_row, same_t0;
        uint32_t committed;
    } cases[] = {{50, true, false, false, 0},
                 {60, true, true, true, 1},
                 {40, false, true, false, 2},
                 {70, true, true, false, 2},
                 {70, true, true, true, 4}};
    for (uint32_t i = 0; i < 5; i++) {
        add(call(cases[i].start_ns, cases[i].start_ns + 5));
        take();
        const struct hec_activity_block *b = batch.open;
        assert_int_equal(length(b), 1);
        assert_true(b->n == i + 1 && b->has_row == cases[i].has_row && b->same_t0 == cases[i].same_t0 &&
                    b->committed == cases[i].committed);
        assert_int_equal(batch.total_count, 1);
        assert_true(batch.totals[0].count == i + 1 && batch.totals[0].total_ns == 5 * (i + 1));
        give_back(cases[i].done);
        assert_int_equal(uncommitted(), cases[i].done ? 0 : 1);
    }
}

static void fill(int64_t from_ns, int count) {
    for (int i = 0; i < count; i++)
        add(call(from_ns + i, from_ns + i));
}

TEST(closed_blocks) {
    fill(0, 100);
    take();
    give_back(true);
    fill(100, HEC_ACTIVITY_BLOCK);
    assert_int_equal(uncommitted(), HEC_ACTIVITY_BLOCK);
    take();
    assert_true(length(batch.closed) == 1 && length(batch.open) == 1);
    assert_true(batch.closed->n == HEC_ACTIVITY_BLOCK && batch.closed->committed == 100 && batch.closed->serial == 0 &&
                batch.closed->t0_ns == 0 && batch.closed->t1_ns == HEC_ACTIVITY_BLOCK - 1 && batch.closed->chain == 1 &&
                batch.closed->has_row);
    assert_true(batch.open->n == 100 && batch.open->committed == 0 && batch.open->serial == 1 && batch.open->has_row &&
                !batch.open->same_t0 && batch.open->t0_ns == HEC_ACTIVITY_BLOCK);
    assert_int_equal(uncommitted(), 100);      /* what the batch has is with who takes it */
    fill(10000, HEC_ACTIVITY_BLOCK - 100 + 1); /* the open one is full meanwhile: the batch has a part of it */
    assert_int_equal(uncommitted(), HEC_ACTIVITY_BLOCK + 1);
    give_back(false);
    assert_int_equal(uncommitted(), HEC_ACTIVITY_BLOCK - 100 + HEC_ACTIVITY_BLOCK + 1);
    fill(20000, HEC_ACTIVITY_BLOCK);
    take();
    assert_int_equal(length(batch.closed), 3); /* oldest first, and each once */
    assert_true(batch.closed->t0_ns == 0 && batch.closed->next->t0_ns == HEC_ACTIVITY_BLOCK &&
                batch.closed->next->next->t0_ns == 13996);
    assert_true(batch.closed->next->serial == 1 && batch.closed->next->next->serial == 2 && batch.open->serial == 3);
    assert_true(batch.open->n == 1 && batch.open->has_row);
    fill(30000, HEC_ACTIVITY_BLOCK); /* closed while the others are written */
    give_back(true);
    assert_int_equal(uncommitted(), HEC_ACTIVITY_BLOCK + 1);
    take();
    assert_true(length(batch.closed) == 1 && batch.closed->serial == 3 && batch.open->serial == 4);
    give_back(true);
    assert_int_equal(uncommitted(), 0);
    take();
    assert_true(!batch.open && !batch.closed);
    give_back(false);
    fill(50000, HEC_ACTIVITY_BLOCK);
    take();
    assert_int_equal(length(batch.closed), 1);
    give_back(false);
    fill(60000, HEC_ACTIVITY_BLOCK);
    take();
    assert_int_equal(length(batch.closed), 2);
    give_back(true);
    assert_int_equal(hec_store_timeline_lost(timeline, NULL), 0);
}

/* What begins before a closed block's last start is of a chain of its own; what begins with it is not. */
TEST(late_ones) {
    fill(1000, HEC_ACTIVITY_BLOCK + 1);
    add(call(1000 + HEC_ACTIVITY_BLOCK - 1, 9000));
    add(call(1000 + HEC_ACTIVITY_BLOCK - 2, 9000));
    add(call(5, 6));
    add(call(8000, 9000));
    take();
    assert_int_equal(length(batch.open), 2);
    const struct hec_activity_block *b = batch.open;
    assert_true(b->chain == 1 && b->n == 3 && b->t0_ns == 1000 + HEC_ACTIVITY_BLOCK - 1);
    assert_true(b->next->chain == 2 && b->next->n == 2 && b->next->t0_ns == 5 && b->next->track == 1);
    unpack(b->next);
    assert_true(out[0].start_ns == 5 && out[1].start_ns == 1000 + HEC_ACTIVITY_BLOCK - 2);
    give_back(true);
}

/* Two minutes of silence, of a flush a second each, close a block; its row goes. */
TEST(silence) {
    add(call(1, 2));
    for (int i = 1; i <= 121; i++) {
        take();
        assert_int_equal(length(batch.closed), i == 120);
        assert_int_equal(length(batch.open), i == 1 || i == 120);
        if (i == 120) {
            assert_true(batch.closed->n == 1 && batch.closed->committed == 1 && batch.closed->serial == 0);
            assert_true(batch.open->n == 0 && batch.open->chain == 1 && batch.open->has_row && batch.open->serial == 1);
            assert_int_equal(batch.total_count, 0);
        }
        give_back(true);
        assert_int_equal(uncommitted(), 0);
    }
    add(call(3, 4)); /* anew, with no row */
    take();
    assert_true(batch.open->n == 1 && !batch.open->has_row && batch.open->serial == 1 && batch.open->committed == 0);
    give_back(true);
    for (int i = 2; i < 120; i++) { /* not silent: from the last one on */
        if (i == 60)
            add(call(5, 6));
        take();
        assert_null(batch.closed);
        give_back(true);
    }
}

TEST(what_makes_no_sense) {
    const int64_t most = HEC_ACTIVITY_TIME_MAX_NS;
    const struct {
        struct hec_activity a;
        bool kept;
    } cases[] = {
        {{-most, most, .track = 1, .kind = HEC_ACTIVITY_API}, true},
        {{-most - 1, 0, .track = 1, .kind = HEC_ACTIVITY_API}, false},
        {{0, most + 1, .track = 1, .kind = HEC_ACTIVITY_API}, false},
        {{most, most, .track = 9, .kind = HEC_ACTIVITY_API}, true},
        {{5, 4, .track = 1, .kind = HEC_ACTIVITY_API}, false},
        {{5, 5, .track = 0, .kind = HEC_ACTIVITY_API}, false},
        {{5, 5, .track = 10, .kind = HEC_ACTIVITY_API}, false},
        {{5, 5, .track = 1, .name = 1000, .kind = HEC_ACTIVITY_API}, true},
        {{5, 5, .track = 1, .name = 1001, .kind = HEC_ACTIVITY_API}, false},
        {{5, 5, .track = 1, .name = 5, .kind = HEC_ACTIVITY_MEMSET}, true},
        {{5, 5, .track = 1, .name = 6, .kind = HEC_ACTIVITY_MEMSET}, false},
        {{5, 5, .track = 1, .launch_track = 9, .kind = HEC_ACTIVITY_COPY}, true},
        {{5, 5, .track = 1, .launch_track = 10, .kind = HEC_ACTIVITY_COPY}, false},
        {{5, 5, .track = 1, .kind = HEC_ACTIVITY_KIND_COUNT - 1}, true},
        {{5, 5, .track = 1, .kind = HEC_ACTIVITY_KIND_COUNT}, false},
        {{5, 5, .track = 1, .amount = -(double)INFINITY, .kind = HEC_ACTIVITY_API}, false},
        {{5, 5, .track = 1, .amount = -1e300, .kind = HEC_ACTIVITY_API}, true},
    };
    int64_t kept = 0, lost = 0, beyond = -1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        add(cases[i].a);
        *(cases[i].kept ? &kept : &lost) += 1;
        if (hec_store_timeline_lost(timeline, &beyond) != lost || uncommitted() != kept)
            fail_msg("case %zu", i);
    }
    assert_int_equal(beyond, 0);
    struct hec_activity all[3] = {cases[0].a, cases[1].a, cases[0].a}; /* one of several */
    hec_store_timeline_add(timeline, all, 3, &limits);
    assert_int_equal(hec_store_timeline_lost(timeline, NULL), lost + 1);
    assert_int_equal(uncommitted(), kept + 2);
}

/* A launch that makes no sense is unknown; where only its end makes none, that is. Other kinds have none. */
TEST(launches) {
    const int64_t most = HEC_ACTIVITY_TIME_MAX_NS, no = HEC_TIME_UNKNOWN;
    const struct {
        enum hec_activity_kind kind;
        int64_t launch, end, expected, expected_end;
        uint32_t track;
    } cases[] = {
        {HEC_ACTIVITY_KERNEL, 3, 4, 3, 4, 2},
        {HEC_ACTIVITY_COPY, 3, 3, 3, 3, 2},
        {HEC_ACTIVITY_MEMSET, 3, 2, 3, no, 2},
        {HEC_ACTIVITY_GRAPH, 3, no, 3, no, 2},
        {HEC_ACTIVITY_KERNEL, no, 4, no, no, 0},
        {HEC_ACTIVITY_KERNEL, most + 1, most + 2, no, no, 0},
        {HEC_ACTIVITY_KERNEL, most, most, most, most, 2},
        {HEC_ACTIVITY_KERNEL, -most, most, -most, most, 2},
        {HEC_ACTIVITY_KERNEL, -most - 1, 4, no, no, 0},
        {HEC_ACTIVITY_KERNEL, 3, most + 1, 3, no, 2},
        {HEC_ACTIVITY_API, 3, 4, 0, 0, 0},
        {HEC_ACTIVITY_SYNC, no, no, 0, 0, 0},
    };
    limits.tracks = sizeof cases / sizeof cases[0];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_activity a = {5, 6, cases[i].launch, cases[i].end, 0, 1 + (uint32_t)i, 1, 2, (uint8_t)cases[i].kind};
        memset(a.reserved, 7, sizeof a.reserved);
        add(a);
        take();
        unpack(batch.open);
        struct hec_activity expected = a;
        memset(expected.reserved, 0, sizeof expected.reserved);
        expected.launch_ns = cases[i].expected;
        expected.launch_end_ns = cases[i].expected_end;
        expected.launch_track = cases[i].track;
        assert_memory_equal(&out[0], &expected, sizeof expected);
        give_back(true);
    }
}

/* Sums end at the largest number, and each name has its own. */
TEST(totals) {
    const int64_t most = HEC_ACTIVITY_TIME_MAX_NS;
    struct hec_activity a = call(-most, most);
    for (int i = 0; i < 9; i++) /* each of 2^60 */
        add(a);
    static const uint32_t names[] = {0, 63, 64, 127, 128, 900, 1000, 2};
    for (uint32_t i = 0; i < 8; i++) {
        a = call(0, i + 1);
        a.name = names[i];
        a.kind = HEC_ACTIVITY_RANGE;
        add(a);
    }
    take();
    assert_int_equal(batch.total_count, 9);
    assert_true(batch.totals[0].kind == HEC_ACTIVITY_API && batch.totals[0].name == 3 && batch.totals[0].count == 9 &&
                batch.totals[0].total_ns == INT64_MAX);
    static const int sorted[] = {0, 7, 1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 8; i++) {
        const struct hec_activity_total *t = &batch.totals[1 + i];
        assert_true(t->kind == HEC_ACTIVITY_RANGE && t->name == names[sorted[i]] && t->count == 1 &&
                    t->total_ns == sorted[i] + 1);
    }
    const struct hec_activity_block *b = batch.open;
    assert_true(b->total_ns == INT64_MAX && b->next->total_ns == 36 && b->next->t1_ns == 8);
    give_back(true);
    a.name = 64; /* only what changed */
    add(a);
    take();
    assert_true(batch.total_count == 1 && batch.totals[0].name == 64 && batch.totals[0].count == 2 &&
                batch.totals[0].total_ns == 3 + 8);
    give_back(true);
}
