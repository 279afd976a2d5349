/* Races, experiments and searches on trials that are made up: what is asked for in which order, what ends them, what they keep. */
#include "act/ab.h"
#include "act/race.h"
#include "act/search.h"
#include "base/clock.h"
#include "unit.h"

#include <stddef.h>

#define S HEC_NS_PER_S
#define TRIALS_MOST 64

/* ---- what stands for trials ---- */

static int64_t now_ns;
static int64_t fake_now(void) {
    return now_ns;
}
static const struct hec_clock_source fake_clock = {fake_now, fake_now};

struct fake {
    double seconds, joules, loss;
    int exit_status, asked, err;
    enum hec_stopped stopped;
    const char *tail;
    double units, steps; /* of its steady part */
    double gradient;     /* log of its norm by the usual; NAN: not known */
};
static struct fake planned[TRIALS_MOST]; /* of trial i; seconds 0: as the one before it */
static struct fake usual;
static const struct fake *at_hand;
static struct hec_session_options session;
static struct asked {
    char command;
    char levers[HEC_LEVERS_TEXT];
    int64_t limit_ns;
    const char *knobs;
} asked[TRIALS_MOST];
static int made;
static char one_session, one_watch;
static struct hec_why *given_why; /* where the trial at hand may say why */

struct hec_session_options *hec_trials_session(struct hec_trials *trials) {
    (void)trials;
    return &session;
}

bool hec_trial_failed(const struct hec_trial_end *end) {
    return end->exit_status != 0 && !end->stopped && !end->asked;
}

int hec_trials_run(struct hec_trials *trials, char **command, const struct hec_lever_set *levers,
                   int (*measure)(void *context, const struct hec_session *session,
                                  const struct hec_session_result *result, struct hec_why *why),
                   void *context, struct hec_trial_end *end, struct hec_why *why) {
    (void)trials;
    assert_true(made < TRIALS_MOST);
    struct asked *a = &asked[made];
    const struct fake *f = at_hand = planned[made].seconds > 0 ? &planned[made] : &usual;
    made++;
    *a = (struct asked){.command = command[0][0], .limit_ns = session.stop.after_ns, .knobs = session.knobs};
    if (levers)
        hec_lever_set_text(levers, a->levers);
    now_ns += (int64_t)(f->seconds * S);
    *end = (struct hec_trial_end){
        .exit_status = f->exit_status, .stopped = f->stopped, .asked = f->asked, .seconds = f->seconds};
    snprintf(end->tail, sizeof end->tail, "%s", f->tail ? f->tail : "");
    if (hec_trial_failed(end))
        end->failure = f->exit_status == 9 ? HEC_FAILURE_DEVICE_MEMORY : HEC_FAILURE_OTHER;
    if (f->err)
        return hec_fail(why, f->err, "not allowed here");
    const struct hec_session_result result = {.exit_status = f->exit_status, .stopped = f->stopped};
    given_why = why;
    return f->asked ? HEC_OK : measure(context, (struct hec_session *)&one_session, &result, why);
}

static int set_up(void **state) {
    (void)state;
    now_ns = 1000 * S;
    hec_clock_set_source(&fake_clock);
    made = 0;
    session = hec_session_defaults();
    memset(planned, 0, sizeof planned);
    usual = (struct fake){.seconds = 10, .joules = 1000, .units = 100, .steps = 20, .loss = NAN, .gradient = NAN};
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    hec_clock_set_source(NULL);
    return 0;
}
EACH_TEST(set_up, tear_down)

/* What a watch was told: b(egin), m(easure), a(fter), r(ounded), each with a number. */
static char told[2048];
static int stops_after, stops_after_round; /* trials; 0: never */
static void tell(const char *format, ...) {
    va_list list;
    size_t length = strlen(told);
    va_start(list, format);
    vsnprintf(told + length, sizeof told - length, format, list);
    va_end(list);
}

/* ---- a race ---- */

static char *commands[][2] = {{(char[]){"A"}, NULL}, {(char[]){"B"}, NULL}, {(char[]){"C"}, NULL}};
static struct hec_race_arm arms[3];
static bool out_of_race[3];
static struct hec_race race;
static struct hec_race_outcome raced;

static void race_begin(void *context, const struct hec_race_outcome *o) {
    assert_ptr_equal(context, &one_watch);
    tell("b%d.%d.%d ", o->arm, o->round, o->trials);
}
static int race_measure(void *context, const struct hec_race_outcome *o, const struct hec_session *of,
                        const struct hec_session_result *result, struct hec_why *why) {
    assert_true(context == &one_watch && of == (void *)&one_session && result && why == given_why);
    tell("m%d ", o->arm);
    return HEC_OK;
}
static int race_after(void *context, const struct hec_race_outcome *o, struct hec_why *why) {
    assert_ptr_equal(context, &one_watch);
    tell("a%d.%d ", o->arm, o->trials);
    return o->trials == stops_after ? hec_fail(why, HEC_ERR_FAILED, "the disk is full") : HEC_OK;
}
static int race_rounded(void *context, const struct hec_race_outcome *o, struct hec_why *why) {
    assert_ptr_equal(context, &one_watch);
    tell("r%d.%d ", o->round, o->rounds);
    return o->rounds == stops_after_round ? hec_fail(why, HEC_ERR_FAILED, "the disk is full") : HEC_OK;
}

static int run_race(void) {
    static const struct hec_race_watch watch = {race_begin, race_measure, race_after, race_rounded, &one_watch};
    struct hec_why why = {""};
    told[0] = '\0';
    made = 0;
    return hec_race_run(NULL, &race, &watch, &raced, &why);
}

static void new_race(int count, int warm_up, int rounds) {
    stops_after = stops_after_round = 0;
    memset(out_of_race, 0, sizeof out_of_race);
    for (int i = 0; i < 3; i++)
        arms[i] = (struct hec_race_arm){.command = commands[i]};
    race = (struct hec_race){
        .arms = arms, .out = out_of_race, .count = count, .seed = 5, .warm_up = warm_up, .rounds = rounds};
}

TEST(a_race_tries_each_arm_once_a_round) {
    new_race(3, 1, 2);
    assert_int_equal(run_race(), HEC_OK);
    int order[3], at = 0;
    char expected[sizeof told] = "";
    for (int place = 0; place < 3; place++) {
        hec_sequential_order(race.seed, place, 3, order);
        for (int i = 0; i < 3; i++, at++) {
            assert_int_equal(asked[at].command, 'A' + order[i]);
            sprintf(expected + strlen(expected), "b%d.%d.%d m%d a%d.%d ", order[i], place - 1, at, order[i], order[i],
                    at + 1);
        }
        if (place)
            sprintf(expected + strlen(expected), "r%d.%d ", place - 1, place);
    }
    assert_string_equal(told, expected);
    assert_int_equal(raced.state, HEC_RACE_DONE);
    assert_int_equal(raced.trials, 9);
    assert_int_equal(raced.rounds, 2);
}

TEST(an_arm_that_fails_leaves_the_race) {
    new_race(2, 0, 3);
    planned[1] = (struct fake){.seconds = 3, .exit_status = 1};
    assert_int_equal(run_race(), HEC_OK);
    int left = asked[1].command - 'A';
    assert_int_equal(made, 4); /* both, then the other one twice */
    assert_true(out_of_race[left] && !out_of_race[!left]);
    assert_int_equal(asked[2].command, asked[3].command);
    assert_int_equal(raced.rounds, 3);
    char word[16];
    sprintf(word, "m%d ", left);
    assert_null(strstr(told, word)); /* nothing is read of one that failed */
    planned[0] = (struct fake){.seconds = 3, .exit_status = 1};
    new_race(2, 0, 3);
    assert_int_equal(run_race(), HEC_OK); /* none is left: no round more */
    assert_int_equal(made, 2);
    new_race(1, 0, 1); /* what was stopped with a status that is not 0 is measured all the same */
    planned[0] = (struct fake){.seconds = 3, .exit_status = 143, .stopped = HEC_STOPPED_STEPS};
    assert_int_equal(run_race(), HEC_OK);
    assert_string_equal(told, "b0.0.0 m0 a0.1 r0.1 ");
    assert_false(out_of_race[0]);
}

TEST(a_race_ends_when_asked_spent_or_broken) {
    new_race(2, 0, 4);
    planned[2] = (struct fake){.seconds = 1, .asked = 2};
    assert_int_equal(run_race(), HEC_OK);
    assert_int_equal(raced.state, HEC_RACE_INTERRUPTED);
    assert_int_equal(raced.trials, 2);
    assert_int_equal(made, 3);
    planned[2] = (struct fake){.seconds = 1, .err = HEC_ERR_FAILED};
    new_race(2, 0, 4);
    assert_int_equal(run_race(), HEC_ERR_FAILED);
    assert_int_equal(made, 3);
    assert_int_equal(raced.rounds, 1);
    planned[2].seconds = 0;
    new_race(2, 0, 4);
    stops_after = 3;
    assert_int_equal(run_race(), HEC_ERR_FAILED);
    assert_int_equal(made, 3);
    new_race(2, 1, 4);
    stops_after_round = 2;
    assert_int_equal(run_race(), HEC_ERR_FAILED);
    assert_int_equal(made, 6); /* a round to warm up, and two */
    assert_int_equal(raced.round, 1);
    new_race(2, 0, 4);
    race.budget_ns = 30 * S; /* none begins at 30 s or later */
    assert_int_equal(run_race(), HEC_OK);
    assert_int_equal(raced.state, HEC_RACE_SPENT);
    assert_int_equal(made, 3);
    race.budget_ns = 31 * S;
    assert_int_equal(run_race(), HEC_OK);
    assert_int_equal(made, 4);
}

/* How long a trial may take: as was asked, else by the longest that ended well, a minute at least and an hour before any has. */
TEST(a_trial_that_takes_too_long_hangs) {
    static const struct {
        double asked_s, session_s, longest_s; /* 0: not */
        double limit_s;
        bool hangs; /* if it is ended then */
    } row[] = {{0, 0, 0, 3600, true},    {0, 0, 10, 400, true},   {0, 0, 1, 60, true},     {0, 0, 1.5, 60, true},
               {0, 0, 1.6, 64, true},    {5, 0, 0, 5, true},      {5, 0, 10, 5, true},     {0, 20, 10, 20, false},
               {0, 400, 10, 400, false}, {0, 401, 10, 400, true}, {0, 9999, 0, 3600, true}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        int last = row[i].longest_s > 0;
        new_race(1, 0, last + 2);
        race.patience_ns = (int64_t)(row[i].asked_s * S);
        session.stop.after_ns = (int64_t)(row[i].session_s * S);
        memset(planned, 0, sizeof planned);
        planned[0] = (struct fake){.seconds = row[i].longest_s};
        planned[last] = (struct fake){.seconds = 1, .exit_status = 137, .stopped = HEC_STOPPED_TIME};
        assert_int_equal(run_race(), HEC_OK);
        assert_int_equal(asked[last].limit_ns, (int64_t)(row[i].limit_s * S));
        assert_int_equal(out_of_race[0], row[i].hangs);
        assert_int_equal(made, row[i].hangs ? last + 1 : last + 2);
        assert_int_equal(session.stop.after_ns, (int64_t)(row[i].session_s * S)); /* as it was */
    }
    new_race(1, 0, 1);
    session.stop.after_ns = 0;
    planned[0] = (struct fake){.seconds = 1, .stopped = HEC_STOPPED_STEPS};
    assert_int_equal(run_race(), HEC_OK);
    assert_false(out_of_race[0]);
}

TEST(the_longest_that_ended_well_sets_the_patience) {
    new_race(1, 0, 4);
    planned[0] = (struct fake){.seconds = 30};
    planned[1] = (struct fake){.seconds = 7};
    assert_int_equal(run_race(), HEC_OK);
    assert_int_equal(asked[2].limit_ns, 1200 * S);
    new_race(2, 0, 2);
    planned[0] = (struct fake){.seconds = 30, .exit_status = 1};
    assert_int_equal(run_race(), HEC_OK);
    assert_int_equal(asked[2].limit_ns, 280 * S);
}

TEST(arms_have_their_knobs) {
    static const char *const of_session = "all", *const of_arm = "own";
    struct hec_lever_set levers = {0};
    assert_int_equal(hec_lever_set_add(&levers, "threads=3", NULL), HEC_OK);
    new_race(2, 0, 1);
    session.knobs = of_session;
    arms[1].knobs = of_arm;
    arms[1].levers = &levers;
    assert_int_equal(run_race(), HEC_OK);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(asked[i].knobs, asked[i].command == 'B' ? of_arm : of_session);
        assert_string_equal(asked[i].levers, asked[i].command == 'B' ? "threads=3" : "");
    }
    assert_ptr_equal(session.knobs, of_session);
}

/* ---- an experiment ---- */

static struct hec_ab ab;
static struct hec_ab_outcome tried;
static int64_t steps_made;
static double cheaper; /* B's joules by A's */

static void fill(struct hec_experiment_trial *trial, double factor) {
    trial->steady = (struct hec_trial_block){.seconds = at_hand->seconds / 2,
                                             .joules = at_hand->joules / 2 * factor,
                                             .units = at_hand->units,
                                             .steps = at_hand->steps};
    trial->run = (struct hec_trial_block){
        .seconds = at_hand->seconds, .joules = at_hand->joules * factor, .units = NAN, .steps = NAN};
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++)
        trial->loss[i] = at_hand->loss * (1 - 0.02 * i) + 1e-5 * (made % 3);
    trial->gradients.all = trial->gradients.first = at_hand->gradient + 1e-5 * (made % 3);
}

static void ab_begin(void *context, const struct hec_ab_outcome *o) {
    assert_ptr_equal(context, &one_watch);
    tell("b%d.%d ", o->side, o->pair);
}
static int ab_measure(void *context, const struct hec_ab_outcome *o, const struct hec_session *of,
                      const struct hec_session_result *result, struct hec_experiment_trial *trial, int64_t *steps,
                      struct hec_why *why) {
    assert_true(context == &one_watch && of == (void *)&one_session && result && why == given_why);
    assert_int_equal(trial->pair, o->pair);
    assert_int_equal(trial->side, o->side);
    assert_true(isnan(trial->loss[0]) && isnan(trial->loss[HEC_EXPERIMENT_BINS - 1]));
    assert_true(isnan(trial->steady.joules) && isnan(trial->run.seconds));
    assert_true(isnan(trial->gradients.all) && isnan(trial->gradients.first));
    tell("m ");
    fill(trial, (o->side ? cheaper : 1) * (1 + 0.0001 * (made % 5)));
    *steps = steps_made++;
    return HEC_OK;
}
static int ab_after(void *context, const struct hec_ab_outcome *o, struct hec_why *why) {
    assert_ptr_equal(context, &one_watch);
    tell("a%zu.%d ", o->count, o->result.pairs);
    return stops_after && o->count == (size_t)stops_after ? hec_fail(why, HEC_ERR_FAILED, "the disk is full") : HEC_OK;
}

static int run_ab(void) {
    static const struct hec_ab_watch watch = {ab_begin, ab_measure, ab_after, &one_watch};
    struct hec_why why = {""};
    told[0] = '\0';
    made = 0;
    steps_made = 77;
    return hec_ab_run(NULL, &ab, &watch, &tried, &why);
}

static void new_ab(bool both, int warm_up, int pairs) {
    stops_after = 0;
    cheaper = 0.8;
    ab = (struct hec_ab){
        .command = {commands[0], both ? commands[1] : NULL}, .plan = {.seed = 3, .pairs = pairs}, .warm_up = warm_up};
}

TEST(pairs_come_in_the_order_that_is_drawn) {
    struct hec_lever_set levers = {0};
    assert_int_equal(hec_lever_set_add(&levers, "threads=3", NULL), HEC_OK);
    new_ab(true, 2, 6);
    ab.levers = &levers;
    assert_int_equal(run_ab(), HEC_OK);
    assert_int_equal(tried.state, HEC_AB_DONE);
    assert_int_equal(made, 16);
    assert_int_equal(tried.count, 16);
    for (int i = 0; i < made; i++) {
        int pair = i < 4 ? -1 : (i - 4) / 2, first = i < 4 ? 0 : hec_sequential_b_first(3, pair);
        int side = i % 2 ? !first : first;
        assert_int_equal(asked[i].command, side ? 'B' : 'A');
        assert_string_equal(asked[i].levers, side ? "threads=3" : "");
        assert_int_equal(tried.trials[i].pair, pair);
        assert_int_equal(tried.trials[i].side, side);
    }
    assert_int_equal(tried.result.pairs, 6);
    assert_near(tried.result.quantity[HEC_QUANTITY_JOULES_PER_UNIT].ratio, 0.8, 0.01);
    assert_int_equal(tried.plan.loss_steps, 77); /* of the first trial */
    hec_ab_free(&tried);
    assert_null(tried.trials);
    assert_int_equal(tried.count, 0);
    new_ab(true, 0, 0); /* until something is shown */
    ab.plan.loss_steps = 5;
    assert_int_equal(run_ab(), HEC_OK);
    assert_true(tried.result.done && tried.result.pairs >= 2 && tried.count == 2 * (size_t)tried.result.pairs);
    assert_int_equal(tried.plan.loss_steps, 5);
    hec_ab_free(&tried);
}

TEST(one_side_alone) {
    new_ab(false, 1, 2);
    assert_int_equal(run_ab(), HEC_OK);
    assert_string_equal(told, "b0.-1 m a1.0 b0.0 m a2.0 b0.1 m a3.0 ");
    hec_ab_free(&tried);
}

TEST(an_experiment_ends_when_asked_failed_or_broken) {
    static const struct {
        struct fake third;
        int stops_after, err;
        enum hec_ab_state state;
        size_t kept;
    } row[] = {{{.seconds = 1, .exit_status = 1}, 0, HEC_OK, HEC_AB_FAILED, 2},
               {{.seconds = 1, .exit_status = 130, .asked = 2}, 0, HEC_OK, HEC_AB_INTERRUPTED, 2},
               {{.seconds = 1, .err = HEC_ERR_FAILED}, 0, HEC_ERR_FAILED, HEC_AB_DONE, 2},
               {{.seconds = 0}, 3, HEC_ERR_FAILED, HEC_AB_DONE, 3}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int single = 0; single < 2; single++) {
            new_ab(!single, 0, 5);
            planned[2] = row[i].third;
            stops_after = row[i].stops_after;
            assert_int_equal(run_ab(), row[i].err);
            assert_int_equal(made, 3);
            assert_int_equal(tried.state, row[i].state);
            assert_int_equal(tried.count, row[i].kept);
            hec_ab_free(&tried);
        }
    new_ab(false, 0, 1); /* what was ended after its steps is measured, whatever it left with */
    planned[0] = (struct fake){.seconds = 1, .exit_status = 143, .stopped = HEC_STOPPED_STEPS};
    assert_int_equal(run_ab(), HEC_OK);
    assert_string_equal(told, "b0.0 m a1.0 ");
    hec_ab_free(&tried);
}

/* ---- a search ---- */

static struct hec_search search;
static struct hec_search_outcome found;
static struct hec_trial_end search_end;
static struct hec_search_seen sees;       /* of sets with levers */
static double factor_of[HEC_SEARCH_MOST]; /* cost by lever */

static void search_begin(void *context, const struct hec_lever_set *set, int trials) {
    assert_ptr_equal(context, &one_watch);
    char text[HEC_LEVERS_TEXT];
    hec_lever_set_text(set, text);
    tell("b%d:%s ", trials, text);
}
static int search_measure(void *context, const struct hec_session *of, const struct hec_session_result *result,
                          struct hec_experiment_trial *trial, struct hec_search_seen *seen, struct hec_why *why) {
    assert_true(context == &one_watch && of == (void *)&one_session && result && why == given_why);
    assert_int_equal(trial->pair, -1);
    assert_true(isnan(trial->loss[0]) && isnan(trial->steady.joules) && isnan(trial->run.joules));
    assert_true(isnan(trial->loss[HEC_EXPERIMENT_BINS - 1]) && isnan(trial->gradients.all));
    double factor = 1;
    for (int i = 0; i < search.candidates.count; i++)
        if (strstr(asked[made - 1].levers, search.candidates.list[i].use.row->name))
            factor *= factor_of[i];
    if (result->exit_status && !result->stopped)
        return HEC_ERR_NOTFOUND; /* is no failure of the search */
    fill(trial, factor);
    trial->stopped = result->stopped != HEC_STOPPED_NOT;
    if (asked[made - 1].levers[0])
        *seen = sees;
    return HEC_OK;
}
static void search_after(void *context, const struct hec_lever_set *set, const struct hec_searched *trial) {
    assert_ptr_equal(context, &one_watch);
    char text[HEC_LEVERS_TEXT];
    hec_lever_set_text(set, text);
    tell("a%x:%s ", trial->set, text);
}

static int run_search(void) {
    static const struct hec_search_watch watch = {
        .begin = search_begin, .measure = search_measure, .after = search_after, .context = &one_watch};
    struct hec_why why = {""};
    told[0] = '\0';
    made = 0;
    return hec_search_run(NULL, &search, &watch, &found, &search_end, &why);
}

static void new_search(const char *levers) {
    struct hec_lever_set set = {0};
    assert_int_equal(hec_lever_set_add(&set, levers, NULL), HEC_OK);
    search =
        (struct hec_search){.command = commands[0], .slowdown_most = 0.05, .saving_least = 0.02, .until_ns = INT64_MAX};
    sees = (struct hec_search_seen){.text = ""};
    factor_of[0] = factor_of[1] = 0.8;
    hec_candidates_of(&set, &search.candidates);
    assert_int_equal(search.candidates.count, set.count);
}

TEST(a_search_climbs) {
    new_search("threads=3,huge_pages");
    assert_int_equal(run_search(), HEC_OK);
    assert_string_equal(told, "b0: a0: b1:threads=3 a1:threads=3 b2:threads=3,huge_pages a3:threads=3,huge_pages ");
    assert_int_equal(found.best, 3);
    assert_int_equal(found.count, 3);
    assert_false(found.spent);
    static const double joules[] = {1000, 800, 640};
    for (int i = 0; i < 3; i++) {
        assert_near(found.trials[i].trial.cost, joules[i] / 2 / 100, 1e-9); /* by unit */
        assert_near(found.trials[i].trial.speed, 20, 1e-9);
        assert_false(found.trials[i].timed);
    }
    assert_near(found.joules, 2440, 1e-6);
    assert_near(found.seconds, 30, 1e-9);
    struct hec_search_trial *table = hec_search_table(&found);
    assert_int_equal(table[2].set, 3);
    free(table);
    hec_search_free(&found);
    assert_null(found.trials);
}

/* What a figure is of: units, else steps, else the whole; joules, else time. */
TEST(figures_are_of_what_is_known) {
    static const struct {
        double joules, units, steps;
        bool stopped;
        double cost, speed;
        bool timed;
    } row[] = {
        {1000, 100, 20, false, 5, 20, false},      {1000, NAN, 20, false, 25, 4, false},
        {1000, NAN, NAN, false, 1000, 0.1, false}, {1000, 0, 20, false, 1000, 0.1, false},
        {NAN, 100, 20, false, 0.05, 20, true},     {NAN, NAN, NAN, false, 10, 0.1, true},
        {1000, 1, NAN, false, 500, 0.2, false},    {1000, 0.25, NAN, false, 2000, 0.05, false},
        {1000, NAN, NAN, true, NAN, NAN, true}, /* of one that was ended early the whole says nothing: nothing is compared with it */
        {1000, 100, 20, true, 5, 20, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        new_search("threads=3");
        planned[0] = (struct fake){.seconds = 10,
                                   .joules = row[i].joules,
                                   .units = row[i].units,
                                   .steps = row[i].steps,
                                   .stopped = row[i].stopped ? HEC_STOPPED_STEPS : HEC_STOPPED_NOT,
                                   .loss = NAN};
        bool none = isnan(row[i].cost);
        assert_int_equal(run_search(), none ? HEC_ERR_IO : HEC_OK);
        assert_int_equal(found.count, none ? 1 : 2);
        const struct hec_search_trial *t = &found.trials[0].trial;
        assert_int_equal(t->fate, none ? HEC_SEARCH_FAILED : HEC_SEARCH_RAN);
        assert_true(none ? isnan(t->cost) && isnan(t->speed)
                         : fabs(t->cost - row[i].cost) < 1e-9 && fabs(t->speed - row[i].speed) < 1e-9);
        assert_int_equal(found.trials[0].timed, row[i].timed);
        hec_search_free(&found);
    }
}

/* What becomes of a trial with a lever, and what is said of it. */
TEST(fates_of_trials) {
    static const struct {
        struct fake second;
        struct hec_search_seen sees;
        int64_t steps; /* that the session is limited to */
        enum hec_search_fate fate;
        enum hec_reason_id why;
        const char *text;
        bool slow;
    } row[] = {
        {{.seconds = 10, .joules = 900, .units = 100, .loss = NAN}, {.text = "on"}, 0, HEC_SEARCH_RAN, 0, "on", false},
        {{.seconds = 10, .joules = 900, .units = 100, .loss = NAN},
         {.idle = true, .text = "it had it"},
         0,
         HEC_SEARCH_IDLE,
         0,
         "it had it",
         false},
        {{.seconds = 10, .joules = 900, .units = 100, .loss = NAN},
         {.failed = true, .text = "no"},
         0,
         HEC_SEARCH_FAILED,
         0,
         "no",
         false},
        {{.seconds = 10, .joules = 900, .units = 100, .loss = INFINITY},
         {.text = ""},
         0,
         HEC_SEARCH_FAILED,
         HEC_REASON_TRIAL_NOT_FINITE,
         "",
         false},
        {{.seconds = 10, .units = 100, .stopped = HEC_STOPPED_TIME, .loss = NAN},
         {.text = "on"},
         50,
         HEC_SEARCH_FAILED,
         HEC_REASON_TRIAL_SLOW,
         "on",
         true},
        {{.seconds = 10, .joules = 900, .units = 100, .stopped = HEC_STOPPED_TIME, .loss = NAN},
         {.text = ""},
         0,
         HEC_SEARCH_RAN,
         0,
         "",
         false},
        {{.seconds = 10, .exit_status = 1, .tail = "first\nlast words\n\n"},
         {.text = ""},
         0,
         HEC_SEARCH_FAILED,
         HEC_REASON_TRIAL_FAILED,
         "last words",
         false},
        {{.seconds = 10, .exit_status = 9, .tail = "out of memory"},
         {.text = ""},
         0,
         HEC_SEARCH_FAILED,
         HEC_REASON_TRIAL_DEVICE_MEMORY,
         "out of memory",
         false},
        {{.seconds = 10, .exit_status = 1, .tail = "\n"},
         {.text = ""},
         0,
         HEC_SEARCH_FAILED,
         HEC_REASON_TRIAL_FAILED,
         "",
         false},
        {{.seconds = 10, .err = HEC_ERR_UNSUPPORTED}, {.text = ""}, 0, HEC_SEARCH_IDLE, 0, "not allowed here", false},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        new_search("threads=3");
        session.stop.steps = row[i].steps;
        sees = row[i].sees;
        planned[1] = row[i].second;
        assert_int_equal(run_search(), HEC_OK);
        assert_int_equal(found.count, 2);
        const struct hec_searched *t = &found.trials[1];
        assert_int_equal(t->set, 1);
        assert_int_equal(t->trial.set, 1);
        assert_int_equal(t->trial.fate, row[i].fate);
        if (row[i].why)
            assert_int_equal(t->why.id, row[i].why);
        assert_string_equal(t->why.text, row[i].text);
        assert_int_equal(t->slow, row[i].slow);
        assert_int_equal(found.best, row[i].fate == HEC_SEARCH_RAN);
        /* one whose energy is not known is charged at the power of the base, one that did not run at nothing */
        double joules = row[i].second.err ? 0 : row[i].second.exit_status ? 1000 : 0.8 * row[i].second.joules;
        assert_near(found.joules, 1000 + joules, 1e-6);
        assert_near(found.seconds, 20, 1e-9);
        hec_search_free(&found);
    }
}

TEST(a_search_ends_when_asked_spent_or_broken) {
    new_search("threads=3,huge_pages");
    planned[0] = (struct fake){.seconds = 10, .exit_status = 1, .tail = "no such file"};
    assert_int_equal(run_search(), HEC_ERR_IO); /* the command fails as it is */
    assert_int_equal(made, 1);
    assert_string_equal(found.trials[0].why.text, "no such file");
    hec_search_free(&found);
    planned[0] = (struct fake){.seconds = 10, .err = HEC_ERR_UNSUPPORTED}; /* and without levers nothing is left out */
    assert_int_equal(run_search(), HEC_ERR_UNSUPPORTED);
    hec_search_free(&found);
    planned[0].seconds = 0;
    planned[1] = (struct fake){.seconds = 10, .err = HEC_ERR_FAILED};
    assert_int_equal(run_search(), HEC_ERR_FAILED);
    assert_int_equal(made, 2);
    hec_search_free(&found);
    planned[1].seconds = 0;
    planned[2] = (struct fake){.seconds = 4, .asked = 2};
    assert_int_equal(run_search(), HEC_OK);
    assert_int_equal(found.asked, 2);
    assert_int_equal(found.count, 2); /* one that was cut short says nothing */
    assert_int_equal(found.best, 1);
    hec_search_free(&found);
    planned[2].seconds = 0;
    search.until_ns = now_ns + 20 * S; /* two of 10 s end in time */
    assert_int_equal(run_search(), HEC_OK);
    assert_true(found.spent);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.best, 1);
    hec_search_free(&found);
    search.until_ns = now_ns + 20 * S - 1;
    assert_int_equal(run_search(), HEC_OK);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.best, 0);
    hec_search_free(&found);
}

/* A set whose losses or gradients are those of other work is out, however little it takes: known from two trials of the base on. */
TEST(a_search_asks_the_quality_gate) {
    static const struct {
        double loss, gradient, margin;
        enum hec_reason_id why;
        double number; /* of the reason's last one */
    } row[] = {{2, 0, 0, HEC_REASON_NONE, 0},
               {9, 0, 0, HEC_REASON_TRIAL_LOSSES, 6.47}, /* of what the base's losses fall by */
               {2.1, 0, 0.3, HEC_REASON_NONE, 0},
               {2, -0.69314718055994531, 0, HEC_REASON_TRIAL_GRADIENTS, 0.5},
               {2, -30, 0, HEC_REASON_TRIAL_NO_GRADIENT, NAN}};
    usual.loss = 2;
    usual.gradient = 1.5;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        new_search("threads=3,huge_pages,channels_last,fused_optimizer,cudnn_benchmark");
        search.loss_steps = 32;
        search.margin = row[i].margin;
        for (int lever = 0; lever < 4; lever++)
            factor_of[lever] = 1;
        factor_of[4] = 0.5;
        planned[6] = usual; /* the last, after the base has come again */
        planned[6].loss = row[i].loss;
        planned[6].gradient += row[i].gradient;
        assert_int_equal(run_search(), HEC_OK);
        const struct hec_searched *last = &found.trials[6];
        assert_int_equal(found.trials[5].set, 0);
        assert_int_equal(last->set, 16);
        assert_int_equal(last->trial.fate, row[i].why ? HEC_SEARCH_FAILED : HEC_SEARCH_RAN);
        assert_int_equal(last->why.id, row[i].why);
        if (row[i].why == HEC_REASON_TRIAL_LOSSES)
            assert_near(last->why.TRIAL_LOSSES.share, row[i].number, 0.01);
        if (row[i].why == HEC_REASON_TRIAL_GRADIENTS)
            assert_near(last->why.TRIAL_GRADIENTS.times, row[i].number, 0.001);
        if (row[i].why == HEC_REASON_TRIAL_GRADIENTS)
            assert_near(last->why.TRIAL_GRADIENTS.part, 0, 0);
        hec_search_free(&found);
    }
}
