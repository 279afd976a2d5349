/* What the writer takes, the reader reads, whatever comes: the limits of both, 64 times smaller here (tests/CMakeLists.txt).
 * Floods lose what is too much, counted; programs lose nothing. */
#include "store_activities.h"

#include "store/limits.h"
#include "store/series.h"

_Static_assert(HEC_LIMITS_SHIFT > 0, "small limits");

/* ---- the step function ---- */

/* The highest sum at any instant, counted one by one; where steps had to be joined, the answer may be too high. */
TEST(coverage) {
    enum { TIMES = 1000, MOST = 200 };
    for (int round = 0; round < 6; round++) {
        struct hec_overlap overlap = {0};
        int64_t sums[TIMES] = {0};
        int refused = 0;
        for (int i = 0; i < 1500; i++) {
            int64_t first = (int64_t)store_random(TIMES), amount = 1 + (int64_t)store_random(30), highest = 0;
            int64_t last = first + (int64_t)store_random(round % 2 ? 40 : (uint64_t)(TIMES - first));
            last = last < TIMES ? last : TIMES - 1;
            for (int64_t t = first; t <= last; t++)
                highest = sums[t] > highest ? sums[t] : highest;
            bool fits = hec_overlap_add(&overlap, first, last, amount, MOST);
            assert_true(fits == (highest + amount <= MOST));
            for (int64_t t = first; t <= last && fits; t++)
                sums[t] += amount;
            refused += !fits;
        }
        assert_true(refused > 100);
        hec_overlap_free(&overlap);
    }
}

/* Far more steps than are kept: the latest stay exact, what was there before is never forgotten. */
TEST(coverage_is_bounded) {
    struct hec_overlap overlap = {0};
    for (int64_t i = 0; i < 5 * HEC_OVERLAP_STEPS_MAX; i++) /* one after the other, and one beside them */
        assert_true(hec_overlap_add(&overlap, i * 10, i * 10 + 5, 3, 5));
    assert_true(overlap.capacity <= HEC_OVERLAP_STEPS_MAX && overlap.count <= overlap.capacity);
    for (uint64_t i = 0; i < 2000; i++) {
        int64_t at = 10 * (int64_t)store_random(5 * HEC_OVERLAP_STEPS_MAX);
        assert_false(hec_overlap_add(&overlap, at + 2, at + 3, 3, 5));
    }
    assert_true(hec_overlap_add(&overlap, INT64_MIN, -1, 5, 5));
    assert_true(hec_overlap_add(&overlap, 50 * HEC_OVERLAP_STEPS_MAX, INT64_MAX - 1, 5, 5));
    hec_overlap_free(&overlap);
}

/* ---- files ---- */

static int take_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)device, (void)t_ns;
    if (kind == HEC_EVENT_STORE_FAILED)
        snprintf(context, 256, "%s", text);
    return 0;
}

/* Everything is read, lost and read are what was given, and the file says how much was left out. */
static void check(struct hec_writer *writer, const char *path, size_t given, bool much) {
    struct hec_why why = {""};
    int64_t lost = -1;
    size_t count = 0;
    char text[256] = "", expected[64];
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
    struct hec_reader *reader = store_open(path);
    if (hec_reader_activities(reader, HEC_ACTIVITY_ALL, store_count, &count, &why) != HEC_OK)
        fail_msg("%s", why.text);
    assert_null(hec_reader_left_out(reader));
    assert_int_equal(count + (size_t)lost, given);
    assert_true(much ? lost > (int64_t)given / 8 && lost < (int64_t)given : lost == 0);
    assert_int_equal(hec_reader_events(reader, take_event, text, &why), 0);
    snprintf(expected, sizeof expected, "left out: %lld activities", (long long)lost);
    assert_true(lost ? strncmp(text, expected, strlen(expected)) == 0 : !text[0]);
    hec_reader_close(reader);
}

struct flood {
    const char *name;
    int tracks;
    int activities;
    int64_t apart_ns, jitter_ns; /* of the starts */
    bool alike, much;
};

static void flood(const struct flood *f) {
    STORE_BEGIN("flood.hec", 0);
    for (uint32_t i = 1; i <= (uint32_t)f->tracks; i++) {
        struct hec_track track = {.kind = HEC_TRACK_THREAD, .pid = 100, .rank = -1, .device = -1, .stream = i};
        assert_int_equal(s->trace_track(s->context, &track), i);
    }
    for (int i = 0; i < f->activities; i++) {
        struct hec_activity a = {.kind = HEC_ACTIVITY_API, .track = 1 + (uint32_t)(i % f->tracks)};
        a.start_ns = a.end_ns = i * f->apart_ns + (f->jitter_ns ? (int64_t)store_random((uint64_t)f->jitter_ns) : 0);
        if (!f->alike) {
            a.end_ns += (int64_t)store_random(1 << 20);
            a.amount = (double)store_random(1 << 20);
        }
        s->trace_activities(s->context, &a, 1);
        if (i % 8192 == 8191 && hec_writer_flush(writer, &why) != HEC_OK)
            fail_msg("%s", why.text);
    }
    check(writer, path, (size_t)f->activities, f->much);
}

TEST(floods) {
    static const struct flood cases[] = {
        {"at past times", 1, 350 << 10, 0, 1000000000, false, true},
        {"at one time", 1, 350 << 10, 0, 0, false, true},
        {"on many tracks", 1000, 40 << 10, 0, 0, false, true},
        {"all alike", 3, 150 << 10, 1000, 0, true, true},
        {"a program of threads", 20, 150 << 10, 1000, 0, false, false},
        {"of which some come late", 20, 150 << 10, 1000, 3000000, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("%s\n", cases[i].name);
        flood(&cases[i]);
    }
}

static int count_values(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t count) {
    (void)t_ns, (void)value, (void)valid;
    *(int64_t *)context += (int64_t)count;
    return 0;
}

/* A series whose values come in runs from the beginning again and again, as of a process with one ring after the other. */
TEST(series) {
    for (int rounds = 2; rounds <= 40; rounds += 38) {
        STORE_BEGIN("series.hec", 0);
        int64_t lost = -1, count = 0;
        for (int i = 0; i < rounds * 1000; i++) {
            s->sample(s->context, HEC_STEP_UNITS, 77, i % 1000 * INT64_C(20000000) + i * 1000, i % 7);
            if (i % 700 == 0)
                assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
        }
        assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
        assert_true(rounds == 2 ? lost == 0 : lost > 10000);
        struct hec_reader *reader = store_open(path);
        if (hec_reader_series(reader, HEC_STEP_UNITS, 77, count_values, &count, &why) != HEC_OK)
            fail_msg("%s", why.text);
        assert_int_equal(count + lost, rounds * 1000);
        hec_reader_close(reader);
    }
}
