/* A search inside one program, played: a program that carries orders out between two steps, and a device whose counter moves every
 * 0.1 s. */
#include "act/live.h"
#include "base/clock.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define CANDIDATES 12
#define ENDS_NS (600 * HEC_NS_PER_S)

struct world {
    int candidates;                              /* 0: four */
    double speed[CANDIDATES], watts[CANDIDATES]; /* factors of each candidate, on; 0: 1 */
    double noise;
    double wander; /* its watts wander by so much, over a minute or two, as the device's heat does */
    double slips;  /* its speed slips by so much for some seconds, now and then */
    unsigned seed;
    int ranks;       /* 0: one process */
    bool answers;    /* it carries orders out */
    uint32_t breaks; /* a set with one of these never comes to a step again */
    uint32_t wrong;  /* a set with one of these computes something else, which the program finds */
    uint32_t
        fails; /* a set with all of these fails, so many steps after it was put in, or when the next order has been given */
    int fails_after;
    double compiles_s; /* the first step after a switch to a set with candidate 0 */
    int64_t until_ns;  /* 0: for ever */
    double hiccups_s;  /* one step in 173 takes so long */
    bool trains;       /* calls of modules come before the optimizer's steps */
    bool counted;      /* there is a counter */
};

/* ---- what the program does ---- */

static struct hec_sink nowhere;
static char phase_name[64];
static uint32_t phases;
static int passed;

static uint32_t keep_name(void *context, const char *text) {
    (void)context;
    snprintf(phase_name, sizeof phase_name, "%s", text);
    return ++phases;
}
static void keep_activities(void *context, const struct hec_activity *activities, size_t count) {
    (void)context, (void)activities;
    passed += (int)count;
}
static void keep_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    (void)context, (void)metric, (void)subject, (void)t_ns, (void)value;
    passed++;
}

static enum hec_lever_risk text_of(void *context, uint32_t set, char *text) {
    (void)context;
    for (int c = 0; c < CANDIDATES; c++)
        if (set & 1u << c)
            sprintf(text + strlen(text), "%slever_%c", *text ? "," : "", 'a' + c);
    return set & 4 ? HEC_LEVER_RISK_NUMERICS : HEC_LEVER_RISK_ULP;
}

static int count_of(const struct world *w) {
    return w->candidates ? w->candidates : 4;
}

static double factor(double given) {
    return given > 0 ? given : 1;
}

static double noise_of(const struct world *w) {
    return exp(w->noise * (2.0 * rand() / RAND_MAX - 1)); // NOLINT(cert-msc30-c,cert-msc50-cpp): the same each time
}

/* Each of so many ranks answers an order. */
static void tell(const struct hec_sink *sink, int ranks, const char *what, uint64_t order, const char *more,
                 int64_t now) {
    char name[64];
    snprintf(name, sizeof name, "%s%llu%s", what, (unsigned long long)order, more);
    struct hec_activity phase = {
        .start_ns = now, .end_ns = now + MS, .kind = HEC_ACTIVITY_PHASE, .name = sink->trace_name(sink->context, name)};
    for (int rank = 0; rank == 0 || rank < ranks; rank++)
        sink->trace_activities(sink->context, &phase, 1);
}

/* The table of a search in it; NULL: none began. The caller frees the search. */
static const struct hec_search_trial *play(const struct world *w, struct hec_live_search **live, int *count) {
    struct hec_live_plan plan = {
        .search = {.candidates = count_of(w), .slowdown_most = 0.05, .saving_least = 0.02, .part = 1},
        .devices = w->counted ? 1 : 0,
        .compilers = w->compiles_s > 0 ? 1 : 0,
        .ranks = w->ranks,
        .block_s = 2,
        .until_ns = w->until_ns ? w->until_ns : INT64_MAX,
        .text = text_of};
    struct hec_why why = {""};
    char folder[] = "/tmp/live-XXXXXX";
    assert_int_equal(hec_live_search_begin(&plan, live, &why), HEC_OK);
    assert_non_null(mkdtemp(folder));
    struct hec_orders *orders = hec_live_search_orders(*live);
    assert_int_equal(hec_orders_open(folder, orders, &why), HEC_OK);
    nowhere = (struct hec_sink){.trace_name = keep_name, .trace_activities = keep_activities, .sample = keep_sample};
    const struct hec_sink *sink = hec_live_search_through(*live, &nowhere);
    srand(w->seed + 1);
    double period_s = 60 + 60.0 * rand() / RAND_MAX; // NOLINT(cert-msc30-c,cert-msc50-cpp)
    int64_t slips_until = 0;
    int64_t now = HEC_NS_PER_S, sampled = now;
    double joules = 5, shown = 5, on_speed = 1, on_watts = 1;
    uint64_t done = 0, failing = 0;
    int fails_at = 0;
    uint32_t set = 0;
    bool fresh = false;
    for (int step = 0; now < ENDS_NS && !atomic_load(hec_live_search_enough(*live)); step++) {
        double took_s = 0.02 / on_speed * noise_of(w);
        if (w->slips > 0 && now > slips_until && rand() % 1000 == 0) // NOLINT(cert-msc30-c,cert-msc50-cpp)
            slips_until = now + 3 * HEC_NS_PER_S;
        took_s *= now < slips_until ? 1 + w->slips : 1;
        took_s += fresh && set & 1 ? w->compiles_s : 0;
        took_s += step % 173 == 99 ? w->hiccups_s : 0;
        took_s = set & w->breaks ? 1e9 : took_s;
        fresh = false;
        for (int64_t end = now + (int64_t)(took_s * 1e9); sampled + 20 * MS <= end && sampled < ENDS_NS;
             sampled += 20 * MS) {
            joules += 300 * on_watts * (1 + w->wander * sin(2 * M_PI * (double)sampled / 1e9 / period_s)) * 0.02;
            shown = sampled / MS % 100 < 20 ? joules : shown; /* read every 20 ms, it moves every 100 */
            if (w->counted)
                sink->sample(sink->context, HEC_GPU_ENERGY, 0, sampled, (int64_t)(shown * 1e3));
        }
        now += (int64_t)fmin(took_s * 1e9, (double)ENDS_NS);
        struct hec_activity a = {.end_ns = now, .kind = HEC_ACTIVITY_STEP, .detail = HEC_STEP_MODULE, .amount = 32};
        if (w->trains)
            a.detail = HEC_STEP_OPTIMIZER;
        if (step < 5)
            a.detail = HEC_STEP_MODULE;
        for (int rank = 0; rank == 0 || rank < w->ranks; rank++)
            sink->trace_activities(sink->context, &a, 1);
        uint64_t number, from, said[2] = {0, (uint64_t)step};
        memcpy(&number, orders->page, sizeof number);
        memcpy(&from, orders->page + HEC_ORDERS_FROM, sizeof from);
        said[0] = number;
        if (failing && (step >= fails_at || number != failing)) {
            tell(sink, 1, HEC_ORDERS_FAILED, failing, "", now);
            failing = 0;
            continue;
        }
        if (!w->answers || number == done)
            continue;
        for (int rank = 0; rank < w->ranks; rank++)
            memcpy(orders->page + HEC_ORDERS_RANKS + rank * HEC_ORDERS_RANK_SIZE, said, sizeof said);
        if (w->ranks > 1 && (!from || (uint64_t)step < from))
            continue;
        uint32_t wanted = 0, changes;
        for (int c = 0; c < CANDIDATES; c++) {
            char word[16];
            snprintf(word, sizeof word, "lever_%c", 'a' + c);
            wanted |= strstr((const char *)orders->page + HEC_ORDERS_WANTED, word) ? 1u << c : 0;
        }
        memcpy(&changes, orders->page + HEC_ORDERS_CHANGES, sizeof changes);
        assert_int_equal(changes, wanted & 4 ? HEC_LEVER_RISK_NUMERICS : HEC_LEVER_RISK_ULP);
        done = number;
        set = wanted & w->wrong ? 0 : wanted;
        bool wrong = wanted & w->wrong;
        tell(sink, w->ranks, wrong ? HEC_ORDERS_WRONG : HEC_ORDERS_ANSWER, number, wrong ? "/gradients/0.25" : "", now);
        failing = w->fails && (set & w->fails) == w->fails ? number : 0;
        fails_at = step + w->fails_after;
        fresh = true;
        on_speed = on_watts = 1;
        for (int c = 0; c < CANDIDATES; c++) {
            on_speed *= set & 1u << c ? factor(w->speed[c]) : 1;
            on_watts *= set & 1u << c ? factor(w->watts[c]) : 1;
        }
    }
    hec_orders_close(orders);
    rmdir(folder);
    return hec_live_search_rows(*live, count);
}

/* What the search came to; unless it is spent, all was tried. */
static uint32_t best_of(const struct world *w, const struct hec_search_trial *rows, int count, bool spent) {
    struct hec_search_plan plan = {.candidates = count_of(w), .slowdown_most = 0.05, .saving_least = 0.02, .part = 1};
    struct hec_search_step end = hec_search_next(&plan, rows, count, spent);
    assert_true(end.done);
    return end.set;
}

/* Of blocks: all of part 1, the base first and after every two others, each set twice. */
TEST(a_search_finds_what_pays_together) {
    static const struct world w = {.speed = {1.5, 1.2, 1, 0.8},
                                   .watts = {1.1, 1, 1, 1},
                                   .noise = 0.02,
                                   .answers = true,
                                   .trains = true,
                                   .counted = true};
    struct hec_live_search *live;
    int count, base = 0;
    const struct hec_search_trial *rows = play(&w, &live, &count);
    assert_int_equal(best_of(&w, rows, count, false), 3);
    assert_int_equal(rows[0].set, 0);
    for (int i = 0; i < count; i++) {
        double speed = 32 / 0.02, watts = 300;
        for (int c = 0; c < CANDIDATES; c++) {
            speed *= rows[i].set & 1u << c ? factor(w.speed[c]) : 1;
            watts *= rows[i].set & 1u << c ? factor(w.watts[c]) : 1;
        }
        assert_int_equal(rows[i].part, 1);
        assert_int_equal(rows[i].fate, HEC_SEARCH_RAN);
        assert_near(rows[i].speed / speed, 1, 0.01);
        assert_near(rows[i].cost * speed / watts, 1, 0.02);
        base += rows[i].set == 0;
    }
    assert_true(base >= count / 3 && count < 40);
    assert_true(passed > 1000);
    hec_live_search_free(live);
}

/* Code that is compiled, and a step that takes long now and then, are no block's. */
TEST(blocks_leave_out_what_is_no_step) {
    static const struct world w = {.speed = {1.5, 1, 1, 1},
                                   .watts = {1, 1, 1, 1},
                                   .noise = 0.02,
                                   .answers = true,
                                   .compiles_s = 30,
                                   .hiccups_s = 1,
                                   .trains = true,
                                   .counted = true};
    struct hec_live_search *live;
    int count;
    const struct hec_search_trial *rows = play(&w, &live, &count);
    assert_int_equal(best_of(&w, rows, count, false), 1);
    for (int i = 0; i < count; i++)
        assert_near(rows[i].speed / (rows[i].set & 1 ? 1.5 : 1) / (32 / 0.02), 1, 0.02);
    hec_live_search_free(live);
}

/* No set is begun whose compiler would not come to its end in time, as the first did not; sets that are compiled are gone on with. None is
 * begun at all where the time is short, and what needs none is tried. */
TEST(no_compiler_is_begun_too_late) {
    struct world w = {.speed = {1.5, 1.2, 1, 1}, .noise = 0.02, .answers = true, .trains = true, .counted = true};
    for (int late = 0; late < 3; late++) {
        w.compiles_s = late ? 40 : 20;
        w.until_ns = hec_clock_mono_ns() + (late < 2 ? 30 : 20) * HEC_NS_PER_S; /* the world's seconds take none */
        struct hec_live_search *live;
        int count, more = 0;
        const struct hec_search_trial *rows = play(&w, &live, &count);
        for (int i = 0; i < count; i++)
            more += (rows[i].set & 1) && (rows[i].set != 1 || late == 2);
        assert_int_equal(more > 0, !late);
        assert_int_equal(best_of(&w, rows, count, late), late == 2 ? 2 : late ? 1 : 3);
        hec_live_search_free(live);
    }
}

/* Nothing helps: no noise is taken for a saving, and the search ends by itself. */
TEST(nothing_is_found_where_there_is_nothing) {
    for (int i = 0; i < 3; i++) {
        struct world w = {.speed = {1, 1, 1, 1},
                          .watts = {1, 1, 1, 1},
                          .noise = 0.02 * (i + 1),
                          .answers = true,
                          .trains = i > 0,
                          .counted = i < 2};
        struct hec_live_search *live;
        int count;
        const struct hec_search_trial *rows = play(&w, &live, &count);
        assert_int_equal(best_of(&w, rows, count, false), 0);
        assert_true(atomic_load(hec_live_search_enough(live)) && count >= 4 + 2);
        hec_live_search_free(live);
    }
}

/* Twelve levers that change nothing, on devices that wander and slip: of two hundred searches none finds anything. Where five of twelve
 * help, these are found. Each search takes 44 blocks of two seconds at most. */
TEST(a_search_of_twelve) {
    int found = 0, most = 0;
    for (unsigned seed = 0; seed < 200; seed++) {
        struct world w = {.candidates = 12,
                          .noise = 0.01 + 0.04 * (seed % 5) / 4,
                          .wander = 0.03 * (seed % 3) / 2,
                          .slips = 0.05 * (seed % 2),
                          .seed = seed,
                          .answers = true,
                          .trains = true,
                          .counted = true};
        struct hec_live_search *live;
        int count;
        const struct hec_search_trial *rows = play(&w, &live, &count);
        bool any = best_of(&w, rows, count, false) != 0;
        found += any;
        most = count > most ? count : most;
        hec_live_search_free(live);
    }
    assert_int_equal(found, 0);
    assert_true(most >= 12 + 6 && most < 45);
    for (unsigned seed = 0; seed < 100; seed++) {
        struct world w = {.candidates = 12,
                          .speed = {1, 1.5, 1, 0.9, 1.05, 1, 1, 1.3, 1, 1.1, 1, 0.97},
                          .watts = {1, 1.1, 1, 1, 1, 1, 1, 1, 1, 1, 0.95, 1},
                          .noise = 0.02,
                          .wander = 0.01,
                          .seed = seed,
                          .answers = true,
                          .trains = true,
                          .counted = true};
        struct hec_live_search *live;
        int count;
        const struct hec_search_trial *rows = play(&w, &live, &count);
        assert_int_equal(best_of(&w, rows, count, false), 1u << 1 | 1u << 4 | 1u << 7 | 1u << 9 | 1u << 10);
        assert_true(count >= 12 + 6 && count < 45);
        hec_live_search_free(live);
    }
}

/* A set under which no step ends has failed after a while, and its lever is not asked again. */
TEST(what_never_ends_has_failed) {
    static const struct world w = {.speed = {1, 1.3, 1, 1},
                                   .watts = {1, 1, 1, 1},
                                   .noise = 0.02,
                                   .answers = true,
                                   .breaks = 4,
                                   .trains = true,
                                   .counted = true};
    struct hec_live_search *live;
    int count, failed = 0;
    const struct hec_search_trial *rows = play(&w, &live, &count);
    assert_int_equal(best_of(&w, rows, count, true), 2);
    for (int i = 0; i < count; i++) {
        failed += rows[i].fate == HEC_SEARCH_FAILED;
        assert_int_equal(rows[i].fate == HEC_SEARCH_FAILED, (rows[i].set & 4) != 0);
    }
    assert_int_equal(failed, 1);
    hec_live_search_free(live);
}

/* A lever that works, and fails beside another: what was measured before stands; the program says so a while after the set is on, or when
 * the next order was given already. */
TEST(a_lever_that_fails_beside_another) {
    for (int late = 0; late < 2; late++) {
        struct world w = {.speed = {1.5, 1.2, 1, 0.8},
                          .watts = {1, 1, 1, 1},
                          .noise = 0.01,
                          .answers = true,
                          .fails = 6,
                          .fails_after = late ? 1000000 : 30,
                          .trains = true,
                          .counted = true};
        struct hec_live_search *live;
        int count, failed = 0;
        const struct hec_search_trial *rows = play(&w, &live, &count);
        assert_int_equal(best_of(&w, rows, count, true), 3);
        assert_true(hec_live_search_says_failed(live));
        for (int i = 0; i < count; i++) {
            assert_int_equal(rows[i].fate == HEC_SEARCH_FAILED, (rows[i].set & 6) == 6);
            assert_true(rows[i].fate != HEC_SEARCH_FAILED || isnan(rows[i].cost));
            failed += rows[i].fate == HEC_SEARCH_FAILED;
        }
        assert_true(failed > 0);
        hec_live_search_free(live);
    }
}

/* What the program finds to compute something else is out at once, however fast it is. */
TEST(what_computes_something_else_is_out) {
    static const struct world w = {.speed = {1, 1.3, 2, 1},
                                   .watts = {1, 1, 1, 1},
                                   .noise = 0.02,
                                   .answers = true,
                                   .wrong = 4,
                                   .trains = true,
                                   .counted = true};
    struct hec_live_search *live;
    int count, failed = 0;
    const struct hec_search_trial *rows = play(&w, &live, &count);
    assert_int_equal(best_of(&w, rows, count, false), 2);
    for (int i = 0; i < count; i++) {
        struct hec_live_block block = hec_live_search_block(live, i);
        struct hec_orders_answer wrong = block.wrong;
        assert_true(rows[i].fate == HEC_SEARCH_FAILED
                        ? isnan(block.switching_s) && isnan(block.settling_s) && isnan(block.seconds)
                        : block.switching_s > 0 && block.switching_s < 1 && block.settling_s > 0 && block.seconds >= 2);
        assert_int_equal(rows[i].fate == HEC_SEARCH_FAILED, (rows[i].set & 4) != 0);
        assert_int_equal(wrong.order != 0, (rows[i].set & 4) != 0);
        assert_true(!wrong.order || (wrong.gradients && wrong.difference == 0.25));
        failed += wrong.order != 0;
    }
    assert_int_equal(failed, 1);
    hec_live_search_free(live);
}

/* The ranks of a job switch together: a block begins when the last of them has, and is of what all of them did. */
TEST(ranks_are_one_program) {
    static const struct world w = {
        .speed = {1, 1.5, 1.2}, .noise = 0.02, .ranks = 4, .answers = true, .trains = true, .counted = true};
    struct hec_live_search *live;
    int count;
    const struct hec_search_trial *rows = play(&w, &live, &count);
    assert_int_equal(best_of(&w, rows, count, false), 6);
    for (int i = 0; i < count; i++)
        assert_near(rows[i].speed / (rows[i].set & 2 ? 1.5 : 1) / (rows[i].set & 4 ? 1.2 : 1) / (4 * 32 / 0.02), 1,
                    0.02);
    hec_live_search_free(live);
}

TEST(ranks_agree) {
    char folder[] = "/tmp/live-XXXXXX";
    struct hec_orders orders;
    struct hec_why why = {""};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(hec_orders_open(folder, &orders, &why), HEC_OK);
    uint64_t *from = (uint64_t *)(void *)(orders.page + HEC_ORDERS_FROM),
             *ranks = (uint64_t *)(void *)(orders.page + HEC_ORDERS_RANKS);
    assert_int_equal(hec_orders_give(&orders, "tf32", 3), HEC_OK);
    hec_orders_agree(&orders, 3);
    assert_int_equal(*from, 0);
    for (int i = 0; i < 3; i++) {
        ranks[2 * i + 1] = 100 - (uint64_t)i;
        hec_orders_agree(&orders, 3);
        assert_int_equal(*from, 0);
        ranks[2 * i] = 1;
    }
    hec_orders_agree(&orders, HEC_ORDERS_RANKS_MOST + 1);
    assert_int_equal(*from, 0);
    hec_orders_agree(&orders, 3);
    assert_int_equal(*from, 102);
    ranks[1] = 200; /* it stays what it was told to be */
    hec_orders_agree(&orders, 3);
    assert_int_equal(*from, 102);
    assert_int_equal(hec_orders_give(&orders, "", 0), HEC_OK); /* the next one has to be read by all */
    hec_orders_agree(&orders, 3);
    assert_int_equal(*from, 0);
    hec_orders_close(&orders);
    hec_orders_agree(&orders, 3);
    assert_int_equal(rmdir(folder), 0);
}

/* A program that carries no order out: nothing is known, and after some seconds of steps it is waited for no longer. */
TEST(nobody_answers) {
    static const struct world w = {
        .speed = {2, 1, 1, 1}, .watts = {1, 1, 1, 1}, .noise = 0.02, .trains = true, .counted = true};
    struct hec_live_search *live;
    int count;
    passed = 0;
    play(&w, &live, &count);
    assert_int_equal(count, 0);
    assert_true(passed > 100 && passed < 1000); /* steps and samples of some seconds */
    assert_true(atomic_load(hec_live_search_enough(live)));
    hec_live_search_free(live);
}

TEST(orders) {
    static const struct {
        const char *phase;
        struct hec_orders_answer says;
    } cases[] = {{"switch/1", {1, .wrong = false}},
                 {"switch/18446744073709551615", {UINT64_MAX, .wrong = false}},
                 {"wrong/7/gradients/0.25", {7, .wrong = true, .gradients = true, .difference = 0.25}},
                 {"wrong/7/outputs/1e-06", {7, .wrong = true, .difference = 1e-6}},
                 {"wrong/7/outputs/inf", {7, .wrong = true, .difference = INFINITY}},
                 {"failed/7", {7, .failed = true}},
                 {"failed/7/outputs/0.1", {0}},
                 {"failed/", {0}},
                 {"wrong/7", {0}},
                 {"wrong/7/outputs/", {0}},
                 {"wrong/7/outputs/nan", {0}},
                 {"wrong/7/outputs/-1", {0}},
                 {"wrong/7/outputs/1x", {0}},
                 {"wrong/7/losses/1", {0}},
                 {"wrong//outputs/1", {0}},
                 {"switch/18446744073709551616", {0}},
                 {"switch/7/outputs/1", {0}},
                 {"switch/0", {0}},
                 {"switch/", {0}},
                 {"switch/-1", {0}},
                 {"switch/ 1", {0}},
                 {"switch/1x", {0}},
                 {"Switch/1", {0}},
                 {"", {0}}};
    char folder[] = "/tmp/live-XXXXXX", path[PATH_MAX], longest[HEC_ORDERS_WANTED_MAX + 1];
    struct hec_orders orders, second;
    struct hec_why why = {""};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_orders_answer says = hec_orders_answer(cases[i].phase);
        assert_int_equal(says.order, cases[i].says.order);
        assert_int_equal(says.wrong, cases[i].says.wrong);
        assert_int_equal(says.gradients, cases[i].says.gradients);
        assert_true(says.difference == cases[i].says.difference);
    }
    assert_non_null(mkdtemp(folder));
    assert_int_equal(hec_orders_open(folder, &orders, &why), HEC_OK);
    assert_true(hec_orders_open(folder, &second, &why) < 0 && strstr(why.text, "cannot make"));
    memset(longest, 'x', sizeof longest);
    longest[HEC_ORDERS_WANTED_MAX] = '\0';
    assert_int_equal(hec_orders_give(&orders, longest, 0), HEC_ERR_LIMIT);
    longest[HEC_ORDERS_WANTED_MAX - 1] = '\0';
    assert_int_equal(hec_orders_give(&orders, longest, 0), HEC_OK);
    assert_int_equal(hec_orders_give(&orders, "tf32", HEC_LEVER_RISK_NUMERICS), HEC_OK);
    assert_int_equal(*(uint64_t *)(void *)orders.page, 2);
    assert_int_equal(*(uint32_t *)(void *)(orders.page + HEC_ORDERS_CHANGES), HEC_LEVER_RISK_NUMERICS);
    assert_string_equal((char *)orders.page + HEC_ORDERS_WANTED, "tf32");
    snprintf(path, sizeof path, "%s", orders.path);
    hec_orders_close(&orders);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(hec_orders_give(&orders, "tf32", HEC_LEVER_RISK_NUMERICS),
                     HEC_ERR_LIMIT); /* there is no page any more */
    hec_orders_close(&orders);
    assert_int_equal(rmdir(folder), 0);
}
