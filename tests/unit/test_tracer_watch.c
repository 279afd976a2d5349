/* Whether mode auto attaches: programs as rows, and the account of what CUPTI keeps. */
#include "tracer/tracer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS HEC_NS_PER_MS
#define S HEC_NS_PER_S

/* One part of a program's life. */
struct part {
    int ms;
    double launches, graphs, copies; /* a second */
    double waited;                   /* share */
};

struct player {
    struct hec_watch watch;
    struct hec_launches now;
    double launches, graphs, copies, waited_ns;
    struct hec_watch_judgement last; /* that decided something */
    int64_t at_ns;
    int decisions;
};

/* Ticks as the tracer's thread has them; ends when it attaches. */
static void play(struct player *p, const struct part *part, uint32_t budget_ppm) {
    int64_t tick = 50 * MS, end = p->now.t_ns + part->ms * MS;
    while (p->now.t_ns < end && p->last.verdict != HEC_WATCH_ATTACH) {
        double s = (double)tick * 1e-9;
        p->now.t_ns += tick;
        p->now.launches = (uint64_t)(p->launches += part->launches * s);
        p->now.graphs = (uint64_t)(p->graphs += part->graphs * s);
        p->now.copies = (uint64_t)(p->copies += part->copies * s);
        p->now.waited_ns = (int64_t)(p->waited_ns += part->waited * (double)tick);
        hec_watch_sample(&p->watch, &p->now);
        struct hec_watch_judgement judgement = hec_watch_judge(&p->watch, budget_ppm, p->now.t_ns);
        if (judgement.verdict == HEC_WATCH_UNDECIDED)
            continue;
        p->last = judgement;
        p->at_ns = p->now.t_ns;
        p->decisions++;
    }
}

static const struct {
    const char *what;
    struct part parts[4];
    uint32_t budget_ppm;
    enum hec_watch_verdict verdict;
    int from_ms, to_ms; /* when it was given last */
} rows[] = {
    {"launch-bound", {{900, 200000, 0, 0, 0}}, 10000, HEC_WATCH_OUT, 500, 600},
    {"launch-bound, a budget for it", {{900, 200000, 0, 0, 0}}, 200000, HEC_WATCH_ATTACH, 500, 600},
    {"a launch in 100 us", {{900, 10000, 0, 0, 0}}, 10000, HEC_WATCH_ATTACH, 500, 600},
    {"a launch in 50 us: 1.3 %", {{900, 20000, 0, 0, 0.05}}, 10000, HEC_WATCH_OUT, 500, 600},
    {"the same, but the device sets the pace", {{900, 20000, 0, 0, 0.2}}, 10000, HEC_WATCH_ATTACH, 500, 600},
    {"costs more than what is waited", {{900, 400000, 0, 0, 0.15}}, 10000, HEC_WATCH_OUT, 500, 600},
    {"nothing is launched", {{60000, 0, 0, 0, 0}}, 10000, HEC_WATCH_UNDECIDED, 0, 0},
    {"a late start", {{30000, 0, 0, 0, 0}, {900, 200000, 0, 0, 0}}, 10000, HEC_WATCH_OUT, 30500, 30600},
    {"weights are copied first", {{4000, 10, 0, 300, 0}, {900, 200000, 0, 0, 0}}, 10000, HEC_WATCH_OUT, 4000, 4100},
    {"only copies", {{20000, 0, 0, 300, 0}}, 10000, HEC_WATCH_ATTACH, 10000, 10200},
    {"few launches", {{20000, 1, 0, 0, 0}}, 10000, HEC_WATCH_ATTACH, 11000, 11200},
    {"ends before", {{450, 200000, 0, 0, 0}}, 10000, HEC_WATCH_UNDECIDED, 0, 0},
    {"graphs, 100 a second", {{2000, 0, 100, 0, 0}}, 10000, HEC_WATCH_ATTACH, 1000, 1200},
    {"graphs, one after the other", {{900, 0, 5000, 0, 0}}, 10000, HEC_WATCH_OUT, 500, 600},
    /* the worst quarter of a second counts */
    {"a burst", {{300, 1000, 0, 0, 0}, {250, 60000, 0, 0, 0}, {200, 1000, 0, 0, 0}}, 10000, HEC_WATCH_OUT, 500, 600},
    {"it becomes quiet", {{900, 200000, 0, 0, 0}, {16000, 5000, 0, 0, 0}}, 10000, HEC_WATCH_ATTACH, 10500, 10700},
    {"it stays", {{20900, 200000, 0, 0, 0}}, 10000, HEC_WATCH_OUT, 20500, 20900},
    {"it waits later", {{900, 200000, 0, 0, 0}, {16000, 100000, 0, 0, 0.5}}, 10000, HEC_WATCH_ATTACH, 5500, 5800},
    /* a pause says nothing of how it goes on */
    {"it pauses", {{900, 200000, 0, 0, 0}, {60000, 0, 0, 0, 0}}, 10000, HEC_WATCH_OUT, 500, 5800},
};

static void test_decisions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct player player = {.now.t_ns = 1000 * S};
        for (size_t part = 0; part < 4 && rows[i].parts[part].ms; part++)
            play(&player, &rows[i].parts[part], rows[i].budget_ppm);
        int64_t ms = player.decisions ? (player.at_ns - 1000 * S) / MS : 0;
        if (player.last.verdict != rows[i].verdict || ms < rows[i].from_ms || ms > rows[i].to_ms)
            fail_msg("%s: verdict %d after %d ms (%.0f a second, %.2f %%, waited %.2f)", rows[i].what,
                     (int)player.last.verdict, (int)ms, player.last.launches_per_s, player.last.share * 100,
                     player.last.waited);
    }
}

static void test_sentence(void **state) {
    (void)state;
    struct player player = {.now.t_ns = 1000 * S};
    char text[256], one[8];
    play(&player, &(struct part){900, 210000, 0, 0, 0}, 10000);
    hec_watch_sentence(&player.last, 10000, text, sizeof text);
    assert_string_equal(text, "210000 launches a second: tracing would slow the program by about 14 %, more than the "
                              "budget of 1 %; --budget or --trace=full shows its kernels");
    player.last = (struct hec_watch_judgement){.launches_per_s = 17654321, .share = 0.0213};
    hec_watch_sentence(&player.last, 5000, text, sizeof text);
    assert_non_null(strstr(text, "17700000 launches"));
    assert_non_null(strstr(text, "2.1 %, more than the budget of 0.5 %;"));
    hec_watch_sentence(&player.last, 5000, one, sizeof one);
}

static void test_kept(void **state) {
    (void)state;
    const uint64_t mb = 1 << 20;
    assert_true(hec_kept_may_open(0, 0));
    assert_true(hec_kept_may_open(63 * mb, 0));
    assert_false(hec_kept_may_open(64 * mb, 0));
    assert_false(hec_kept_may_open(64 * mb, 60 * S));
    assert_true(hec_kept_may_open(64 * mb, 3600 * S));
    assert_true(hec_kept_limit(0) == 64 * mb);
    assert_true(hec_kept_limit(3600 * S) == 96 * mb);
    assert_true(hec_kept_limit(24 * 3600 * S) == (64 + 24 * 32) * mb);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decisions), cmocka_unit_test(test_sentence),
                                       cmocka_unit_test(test_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
