/* When calls are not recorded: programs as rows. */
#include "tracer/tracer.h"
#include "unit.h"

#define MS HEC_NS_PER_MS
#define S HEC_NS_PER_S
#define TICK_NS (50 * MS)

struct player {
    struct hec_rest rest;
    int64_t now_ns;
    double calls; /* that were recorded */
};

/* As the tracer's thread asks. How long it rested, ns. */
static int64_t play(struct player *p, int64_t ns, double calls_per_s) {
    int64_t rested = 0;
    for (int64_t end = p->now_ns + ns; p->now_ns < end;) {
        p->now_ns += TICK_NS;
        if (p->rest.since_ns == 0)
            p->calls += calls_per_s * (double)TICK_NS / 1e9;
        else
            rested += TICK_NS;
        bool wanted = hec_rest_wanted(&p->rest, p->now_ns, (uint64_t)p->calls);
        p->rest.since_ns = !wanted ? 0 : p->rest.since_ns ? p->rest.since_ns : p->now_ns;
    }
    return rested;
}

TEST(test_few_calls_are_all_recorded) {
    struct player p = {.now_ns = 1000 * S};
    assert_int_equal(play(&p, 600 * S, 15000), 0);
    assert_int_equal(play(&p, 600 * S, 0), 0);
}

TEST(test_many_calls_are_recorded_half_of_the_time) {
    struct player p = {.now_ns = 1000 * S};
    assert_int_equal(play(&p, 60 * S, 0), 0); /* the time counts from the first call */
    assert_int_equal(play(&p, 10 * S, 70000), 0);
    int64_t rested = play(&p, 400 * S, 70000);
    assert_true(rested >= 196 * S && rested <= 204 * S);
    /* two of each four, so of any eight at least two and at most six */
    for (int i = 0; i < 50; i++) {
        rested = play(&p, 8 * S, 70000);
        assert_true(rested >= 2 * S && rested <= 6 * S);
    }
    /* and when it does not call so often any more, all are */
    play(&p, 12 * S, 1000);
    assert_int_equal(play(&p, 100 * S, 1000), 0);
}

/* A program with a beat of four seconds is not seen at the same half of it for ever. */
TEST(test_halves_are_drawn) {
    struct player p = {.now_ns = 1000 * S};
    int first = 0;
    play(&p, 12 * S, 70000);
    for (int i = 0; i < 100; i++) {
        first += play(&p, 2 * S, 70000) > S;
        play(&p, 2 * S, 70000);
    }
    assert_true(first > 30 && first < 70);
}

/* Ranks of one machine, whatever they began with. */
TEST(test_processes_rest_together) {
    struct player one = {.now_ns = 1000 * S}, other = {.now_ns = 1007 * S};
    play(&one, 30 * S, 70000);
    play(&other, 23 * S, 30000);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(play(&one, TICK_NS, 70000), play(&other, TICK_NS, 30000));
}

TEST(test_rests_have_an_end) {
    struct player p = {.now_ns = 1000 * S};
    play(&p, 60 * S, 70000);
    assert_true(p.rest.halves > 5);
    p.rest.halves = 16384;
    play(&p, 8 * S, 70000);
    assert_int_equal(play(&p, 60 * S, 70000), 0);
}
