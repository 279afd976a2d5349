/* The thread that unpacks activities ahead: order, ends, errors, and what may be asked meanwhile. */
#include "store_activities.h"

#include "store/reader_ahead.h"

/* Gives numbered activities: `chunks` full chunks and one of 3, then `err`. */
struct source {
    int64_t chunks, next;
    int err;
    bool refused; /* was told that no more is wanted */
};

static int give(void *context, struct hec_ahead *ahead, struct hec_why *why) {
    struct source *s = context;
    for (int64_t c = 0; c <= s->chunks; c++) {
        struct hec_activity *room = hec_ahead_room(ahead);
        size_t count = c < s->chunks ? HEC_AHEAD_CHUNK : 3;
        s->refused = !room;
        if (!room)
            return 0;
        for (size_t i = 0; i < count; i++)
            room[i] = (struct hec_activity){.start_ns = s->next++};
        hec_ahead_put(ahead, count);
    }
    return s->err ? hec_fail(why, s->err, "the end") : 0;
}

struct seen {
    int64_t next, stop_at;
    bool in_order;
};

static int see(void *context, const struct hec_activity *a, size_t count) {
    struct seen *seen = context;
    for (size_t i = 0; i < count; i++)
        seen->in_order &= a[i].start_ns == seen->next++;
    return seen->stop_at && seen->next >= seen->stop_at ? 42 : 0;
}

static const int64_t lengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 33, 200};
#define LENGTHS (sizeof lengths / sizeof lengths[0])

TEST(all_in_order) {
    for (size_t i = 0; i < LENGTHS; i++) {
        struct source source = {.chunks = lengths[i]};
        struct seen seen = {.in_order = true};
        assert_int_equal(hec_ahead_run(give, &source, &(struct hec_activity_visitor){&seen, see}, 1, NULL), 0);
        assert_int_equal(seen.next, lengths[i] * HEC_AHEAD_CHUNK + 3);
        assert_true(seen.in_order && !source.refused);
    }
}

TEST(an_error_comes_after_what_was_good) {
    for (size_t i = 0; i < LENGTHS; i++) {
        struct source source = {.chunks = lengths[i], .err = HEC_ERR_CORRUPT};
        struct seen seen = {.in_order = true};
        struct hec_why why = {""};
        assert_int_equal(hec_ahead_run(give, &source, &(struct hec_activity_visitor){&seen, see}, 1, &why),
                         HEC_ERR_CORRUPT);
        assert_int_equal(seen.next, lengths[i] * HEC_AHEAD_CHUNK + 3);
        assert_string_equal(why.text, "the end");
    }
}

TEST(a_visitor_stops_it) {
    for (int64_t at = 1; at <= 40; at++) {
        struct source source = {.chunks = 1000, .err = HEC_ERR_CORRUPT};
        struct seen seen = {.in_order = true, .stop_at = at * HEC_AHEAD_CHUNK};
        assert_int_equal(hec_ahead_run(give, &source, &(struct hec_activity_visitor){&seen, see}, 1, NULL), 42);
        assert_int_equal(seen.next, at * HEC_AHEAD_CHUNK);
        assert_true(source.refused && source.next < (at + 40) * HEC_AHEAD_CHUNK);
    }
}

#define VISITORS 3

TEST(each_visitor_sees_all) {
    for (size_t i = 0; i < LENGTHS; i++) {
        struct source source = {.chunks = lengths[i]};
        struct seen seen[VISITORS] = {{.in_order = true}, {.in_order = true}, {.in_order = true}};
        const struct hec_activity_visitor visitors[VISITORS] = {{&seen[0], see}, {&seen[1], see}, {&seen[2], see}};
        assert_int_equal(hec_ahead_run(give, &source, visitors, VISITORS, NULL), 0);
        for (int v = 0; v < VISITORS; v++) {
            assert_int_equal(seen[v].next, lengths[i] * HEC_AHEAD_CHUNK + 3);
            assert_true(seen[v].in_order);
        }
        assert_false(source.refused);
    }
}

TEST(the_visitor_that_stops_stops_all) {
    for (int which = 0; which < VISITORS; which++)
        for (int64_t at = 1; at <= 40; at += 13) {
            struct source source = {.chunks = 1000, .err = HEC_ERR_CORRUPT};
            struct seen seen[VISITORS] = {{.in_order = true}, {.in_order = true}, {.in_order = true}};
            const struct hec_activity_visitor visitors[VISITORS] = {{&seen[0], see}, {&seen[1], see}, {&seen[2], see}};
            seen[which].stop_at = at * HEC_AHEAD_CHUNK;
            assert_int_equal(hec_ahead_run(give, &source, visitors, VISITORS, NULL), 42);
            assert_int_equal(seen[which].next, at * HEC_AHEAD_CHUNK);
            for (int v = 0; v < VISITORS; v++)
                assert_true(seen[v].in_order && seen[v].next < (at + 40) * HEC_AHEAD_CHUNK);
            assert_true(source.refused);
        }
}

static int ask_more(void *context, const struct hec_activity *activities, size_t count) {
    (void)activities, (void)count;
    struct store_list list = {0};
    struct hec_why why = {""};
    int err = hec_reader_activities(context, HEC_ACTIVITY_ALL, store_list_collect, &list, &why);
    assert_int_equal(err, HEC_ERR_BUSY);
    assert_non_null(strstr(why.text, "is being read"));
    assert_int_equal(list.count, 0);
    return 0;
}

TEST(the_reader_answers_one_at_a_time) {
    STORE_BEGIN("busy.hec", 0);
    store_define(s);
    struct hec_activity activity = store_random_activity(0, 1000);
    s->trace_activities(s->context, &activity, 1);
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, ask_more, reader, NULL), 0);
    struct store_list list = {0};
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, store_list_collect, &list, NULL), 0);
    assert_int_equal(list.count, 1);
    store_list_free(&list);
    hec_reader_close(reader);
}
