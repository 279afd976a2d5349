/* A comparison: what must be alike, what moved, and what is said of it. Runs are made by hand. */
#include "report/compare/compare.h"
#include "report/compare/words.h"
#include "report_json.h"

static struct hec_summary runs[4];
static struct hec_device_diagnosis devices[4][2];
static struct hec_ledger_device ledger[4];
static struct hec_finding finding[4][2];
static struct hec_versus versus;
static char sentence[HEC_ANSWER_SENTENCE];

static void begin(int count_a, int count_b) {
    memset(runs, 0, sizeof runs);
    memset(ledger, 0, sizeof ledger);
    memset(&versus, 0, sizeof versus);
    for (int i = 0; i < 4; i++) {
        struct hec_summary *s = &runs[i];
        for (int k = 0; k < 2; k++)
            devices[i][k].readings =
                (struct hec_device_summary){.device = {.index = k, .name = "NVIDIA H200", .driver = "580.95"},
                                            .used = k == 0,
                                            .power_limit_w = 700};
        devices[i][0].ledger = &ledger[i];
        s->devices = devices[i];
        s->device_count = 2;
        s->complete = true;
        s->seconds = 10;
        s->joules = 1000;
        s->host.cores = s->host.cores_usable = 8;
        s->unit_count = 1;
        s->units[0] = (struct hec_unit_summary){.name = "sample", .count = 100};
        s->blocks = (struct hec_steady_blocks){.count = 20, .work = HEC_WORK_BY_STEP, .unit = "sample"};
        snprintf(s->command, sizeof s->command, "python train.py");
        snprintf(s->file, sizeof s->file, "%c.hec", 'a' + i);
        snprintf(s->cpu, sizeof s->cpu, "Xeon");
        for (int k = 0; k < HEC_STATE_COUNT; k++)
            ledger[i].rows[k] = (struct hec_ledger_row){.joules = NAN};
        ledger[i].joules = 1000;
        s->job.findings.list = finding[i];
    }
    versus.side[0] = (struct hec_side){runs, count_a};
    versus.side[1] = (struct hec_side){runs + count_a, count_b};
}

static void state(int at, enum hec_state which, double seconds, double joules) {
    ledger[at].rows[which] = (struct hec_ledger_row){.ns = 1, .seconds = seconds, .joules = joules};
}

static void quantity(enum hec_quantity which, double a, double b, double low, double high, enum hec_shown shown) {
    versus.quantity[which] =
        (struct hec_comparison){.a = a,
                                .b = b,
                                .difference = b - a,
                                .difference_low = a * (low - 1),
                                .difference_high = a * (high - 1),
                                .ratio = b / a,
                                .ratio_low = low,
                                .ratio_high = high,
                                .shown = shown,
                                .runs_a = versus.side[0].count,
                                .runs_b = versus.side[1].count,
                                .between_runs = versus.side[0].count > 1 || versus.side[1].count > 1};
}

static enum hec_verdict verdict(void) {
    struct hec_answer answer = hec_versus_answer(&versus);
    return hec_answer_verdict(&answer);
}

static void find(void) {
    hec_conditions_compare(versus.side, &versus.unlikes);
    hec_delta_find(versus.side, &versus.moved);
}

static void assert_says(const char *words) {
    struct hec_answer answer = hec_versus_answer(&versus);
    hec_answer_sentence(sentence, &answer);
    if (!strstr(sentence, words))
        fail_msg("\"%s\" does not say \"%s\"", sentence, words);
}

static bool noted(const char *words) {
    char notes[HEC_VERSUS_NOTES_MAX][HEC_VERSUS_NOTE];
    int count = hec_versus_notes(&versus, notes);
    for (int i = 0; i < count; i++)
        if (strstr(notes[i], words))
            return true;
    return false;
}

/* ---- what must be alike ---- */

static void assert_unlike(enum hec_condition what, const char *a, const char *b) {
    hec_conditions_compare(versus.side, &versus.unlikes);
    for (int i = 0; i < versus.unlikes.count; i++)
        if (versus.unlikes.list[i].what == what) {
            assert_string_equal(versus.unlikes.list[i].value[0], a);
            assert_string_equal(versus.unlikes.list[i].value[1], b);
            assert_int_equal(i < versus.unlikes.grave, hec_condition_must_agree(what));
            return;
        }
    fail_msg("%s is not told", hec_condition_name(what));
}

TEST(test_texts_alike) {
    const struct {
        char *text; /* in one of the runs */
        const char *with;
        enum hec_condition what;
        const char *a, *b;
    } cases[] = {
        {devices[1][0].readings.device.name, "NVIDIA H100", HEC_CONDITION_DEVICE, "NVIDIA H200", "NVIDIA H100"},
        {devices[0][0].readings.device.driver, "", HEC_CONDITION_DRIVER, "unknown", "580.95"},
        {runs[1].cpu, "EPYC", HEC_CONDITION_CPU, "Xeon", "EPYC"},
        {runs[1].simulated, "h200", HEC_CONDITION_MEASURED, "on a real machine", "simulated (h200)"},
        {runs[0].imported, "kineto", HEC_CONDITION_MEASURED, "imported (kineto)", "on a real machine"},
        {runs[0].python, "3.11.2", HEC_CONDITION_PYTHON, "3.11.2", "unknown"},
        {runs[1].kernel, "Linux 6.1.0", HEC_CONDITION_KERNEL, "unknown", "Linux 6.1.0"},
        {runs[1].blocks.unit, "token", HEC_CONDITION_UNIT, "sample", "token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(1, 1);
        strcpy(cases[i].text, cases[i].with);
        assert_unlike(cases[i].what, cases[i].a, cases[i].b);
    }
    assert_string_equal(hec_side_unit(versus.side), ""); /* of the last */
}

TEST(test_alike) {
    begin(2, 2);
    runs[1].seconds = 11;
    hec_conditions_compare(versus.side, &versus.unlikes);
    assert_int_equal(versus.unlikes.count, 0);
    begin(1, 1);
    devices[1][1].readings.used = true;
    assert_unlike(HEC_CONDITION_DEVICE, "NVIDIA H200", "2 x NVIDIA H200");
    begin(1, 1);
    devices[1][0].readings.power_limit_w = 500.2;
    assert_unlike(HEC_CONDITION_POWER_LIMIT, "700 W", "500 W");
    devices[1][0].readings.power_limit_w = 699.8; /* a mean of readings */
    hec_conditions_compare(versus.side, &versus.unlikes);
    assert_int_equal(versus.unlikes.count, 0);
    begin(1, 1);
    runs[1].blocks.work = HEC_WORK_EVENLY;
    assert_unlike(HEC_CONDITION_STEPS, "known", "none known");
    begin(1, 1);
    runs[1].exit_code = 1;
    assert_unlike(HEC_CONDITION_OUTCOME, "exit code 0", "exit code 1");
    runs[0].exit_code = 1; /* both of them failed: that is alike, and no good */
    assert_unlike(HEC_CONDITION_OUTCOME, "exit code 1", "exit code 1");
    runs[0].complete = runs[1].complete = false;
    runs[1].in_progress = true;
    assert_unlike(HEC_CONDITION_OUTCOME, "cut off", "still in progress");
    begin(2, 1); /* within a side; listed, and no reason to refuse */
    strcpy(runs[1].command, "python other.py");
    runs[2].events[0] = (struct hec_event_summary){.kind = HEC_EVENT_KNOB, .text = "batch=64"};
    runs[2].event_count = 1;
    assert_unlike(HEC_CONDITION_COMMAND, "python train.py; python other.py", "python train.py");
    assert_unlike(HEC_CONDITION_KNOBS, "none", "batch=64");
    assert_int_equal(versus.unlikes.grave, 0);
}

/* ---- what moved ---- */

TEST(test_moved) {
    begin(1, 1);
    runs[1].units[0].count = 200; /* twice the work: figures are per sample */
    state(0, HEC_STATE_DATA, 4, 400);
    state(1, HEC_STATE_DATA, 2, 200);
    state(0, HEC_STATE_COMPUTE, 5, 500);
    state(1, HEC_STATE_COMPUTE, 10, 1000);
    state(1, HEC_STATE_COPY, 0.1, 12);
    hec_delta_find(versus.side, &versus.moved);
    assert_true(versus.moved.per_unit);
    assert_int_equal(versus.moved.state_count, 3);
    const struct hec_delta_state *first = &versus.moved.state[0], *second = &versus.moved.state[1];
    assert_int_equal(first->state, HEC_STATE_DATA);
    assert_true(fabs(first->seconds[0] - 0.04) < 1e-12 && fabs(first->seconds[1] - 0.01) < 1e-12);
    assert_true(fabs(first->joules[0] - 4) < 1e-12 && fabs(first->joules[1] - 1) < 1e-12);
    assert_int_equal(second->state, HEC_STATE_COPY); /* it was not there in A */
    assert_true(second->joules[0] == 0 && fabs(second->joules[1] - 0.06) < 1e-12);
    assert_true(fabs(versus.moved.sum.joules[1] - 6.06) < 1e-12);
    ledger[1].joules = ledger[1].rows[HEC_STATE_COMPUTE].joules = NAN; /* of one side: of neither */
    hec_delta_find(versus.side, &versus.moved);
    assert_true(isnan(versus.moved.state[0].joules[0]) && isnan(versus.moved.sum.joules[1]));
    strcpy(runs[1].blocks.unit, "token");
    hec_delta_find(versus.side, &versus.moved);
    assert_false(versus.moved.per_unit);
    devices[1][0].ledger = NULL; /* used, and no ledger of it */
    hec_delta_find(versus.side, &versus.moved);
    assert_int_equal(versus.moved.state_count, 0);
}

static void found(int at, enum hec_cause cause, double saving) {
    struct hec_finding *f = &finding[at][runs[at].job.findings.count++];
    *f = (struct hec_finding){.cause = cause, .actionable = true, .joules = {0, saving, 1}, .seconds = {0, 0.5, 1}};
}

TEST(test_findings) {
    char words[192];
    begin(2, 1);
    found(0, HEC_CAUSE_SYNC, 0.2);
    found(1, HEC_CAUSE_SYNC, 0.1);
    found(0, HEC_CAUSE_DATA, 0.4);
    found(2, HEC_CAUSE_SYNC, 0.15);
    found(2, HEC_CAUSE_COPY, NAN);
    hec_delta_find(versus.side, &versus.moved);
    assert_int_equal(versus.moved.cause_count, 3);
    assert_string_equal(hec_delta_fate(&versus.moved.cause[0]), "went");
    assert_int_equal(versus.moved.cause[0].cause, HEC_CAUSE_DATA);
    hec_delta_words(words, &versus, &versus.moved.cause[0]);
    assert_non_null(strstr(words, "40 % of A, in 1 of 2 runs of A"));
    assert_string_equal(hec_delta_fate(&versus.moved.cause[1]), "came");
    assert_int_equal(versus.moved.cause[1].cause, HEC_CAUSE_COPY);
    assert_string_equal(hec_delta_fate(&versus.moved.cause[2]), "stayed");
    assert_true(versus.moved.cause[2].runs[0] == 2 && versus.moved.cause[2].runs[1] == 1);
}

/* ---- the sentence ---- */

/* What is said of A and B is said the other way round of B and A. */
TEST(test_sentence_and_swapped) {
    for (int swap = 0; swap < 2; swap++) {
        begin(1, 1);
        find();
        if (swap) {
            quantity(HEC_QUANTITY_JOULES_PER_UNIT, 7.7, 10, 1 / 0.79, 1 / 0.75, HEC_SHOWN_WORSE);
            quantity(HEC_QUANTITY_UNITS_PER_SECOND, 130, 100, 1 / 1.33, 1 / 1.28, HEC_SHOWN_WORSE);
            assert_int_equal(verdict(), HEC_VERDICT_LOST);
            assert_says("lost in these two runs: B took 30 % more joules per sample than A (27 to 33), and was 23 % "
                        "slower (22 to 25)");
        } else {
            quantity(HEC_QUANTITY_JOULES_PER_UNIT, 10, 7.7, 0.75, 0.79, HEC_SHOWN_BETTER);
            quantity(HEC_QUANTITY_UNITS_PER_SECOND, 100, 130, 1.28, 1.33, HEC_SHOWN_BETTER);
            assert_int_equal(verdict(), HEC_VERDICT_SAVED);
            assert_says("saved in these two runs: B took 23 % fewer joules per sample than A (21 to 25), and was 30 % "
                        "faster (28 to 33)");
        }
        assert_true(noted("one run a side: the interval holds what steps of these runs vary by"));
    }
    begin(2, 2); /* of the programs, not of two runs */
    find();
    quantity(HEC_QUANTITY_JOULES_PER_UNIT, 10, 7.7, 0.75, 0.79, HEC_SHOWN_BETTER);
    quantity(HEC_QUANTITY_UNITS_PER_SECOND, 100, 130, 1.28, 1.33, HEC_SHOWN_BETTER);
    assert_says("saved: B takes 23 % fewer joules per sample than A (21 to 25), and is 30 % faster (28 to 33)");
}

TEST(test_not_shown) {
    begin(1, 1);
    find();
    quantity(HEC_QUANTITY_JOULES_PER_UNIT, 10, 9.9, 0.96, 1.02, HEC_SHOWN_NOT);
    quantity(HEC_QUANTITY_UNITS_PER_SECOND, 100, 350, 3.3, 3.7, HEC_SHOWN_BETTER);
    assert_int_equal(verdict(), HEC_VERDICT_NOT_SHOWN);
    assert_says("not shown: B takes between 4 % fewer and 2 % more joules per sample than A, and is 3.5 times as fast "
                "(3.3 to 3.7)");
    /* without steps one run a side shows nothing, whatever its blocks of time say */
    for (int i = 0; i < 2; i++)
        runs[i].blocks.work = HEC_WORK_EVENLY;
    quantity(HEC_QUANTITY_JOULES_PER_UNIT, 10, 5, 0.49, 0.51, HEC_SHOWN_BETTER);
    assert_int_equal(verdict(), HEC_VERDICT_NOT_SHOWN);
    assert_says("not shown: one run a side does not tell by how much runs vary; B took 50 % fewer joules per sample");
    /* and runs that are too short for an interval show nothing either */
    begin(1, 1);
    find();
    quantity(HEC_QUANTITY_JOULES_PER_UNIT, 10, 5, NAN, NAN, HEC_SHOWN_NOT);
    quantity(HEC_QUANTITY_UNITS_PER_SECOND, 100, 100, NAN, NAN, HEC_SHOWN_NOT);
    assert_says("not shown: the runs are too short");
    /* several runs do: of whole runs too, where they did equal work */
    begin(2, 2);
    find();
    quantity(HEC_QUANTITY_JOULES, 10, 5, 0.4, 0.6, HEC_SHOWN_BETTER);
    assert_int_equal(hec_versus_answer(&versus).quantity[HEC_QUANTITY_JOULES].shown, HEC_SHOWN_BETTER);
    runs[3].units[0].count = 50;
    assert_int_equal(hec_versus_answer(&versus).quantity[HEC_QUANTITY_JOULES].shown, HEC_SHOWN_NOT);
    assert_true(noted("did not do equal work"));
}

static void unknown_joules(void) {
    quantity(HEC_QUANTITY_JOULES_PER_UNIT, NAN, NAN, NAN, NAN, HEC_SHOWN_UNKNOWN);
    quantity(HEC_QUANTITY_JOULES, NAN, NAN, NAN, NAN, HEC_SHOWN_UNKNOWN);
}

/* Time is compared, and joules are said to be unknown, and why. */
TEST(test_time_alone) {
    begin(1, 1);
    runs[0].energy_unavailable = HEC_BECAUSE(IMPORTED);
    find();
    unknown_joules();
    quantity(HEC_QUANTITY_UNITS_PER_SECOND, 100, 80, 0.79, 0.81, HEC_SHOWN_WORSE);
    assert_int_equal(verdict(), HEC_VERDICT_SLOWER);
    assert_says("slower in these two runs: B was 20 % slower than A (19 to 21); joules are not known");
    assert_true(noted("no joules of A: imported"));
    /* seconds of a run: less is faster, and the work is assumed */
    begin(2, 2);
    for (int i = 0; i < 4; i++)
        runs[i].blocks = (struct hec_steady_blocks){.count = 20};
    find();
    unknown_joules();
    quantity(HEC_QUANTITY_UNITS_PER_SECOND, NAN, NAN, NAN, NAN, HEC_SHOWN_UNKNOWN);
    quantity(HEC_QUANTITY_SECONDS, 10, 5, 0.4, 0.6, HEC_SHOWN_BETTER);
    assert_int_equal(verdict(), HEC_VERDICT_FASTER);
    assert_says("faster: B is 2.0 times as fast as A (1.7 to 2.5), if both did the same work");
}

/* ---- the reports ---- */

/* Text from outside is neither markup nor an escape, and lines fit. */
TEST(test_pages) {
    begin(1, 1);
    strcpy(runs[1].command, "python a|b.py *\033[31m");
    state(0, HEC_STATE_DATA, 4, 400);
    state(1, HEC_STATE_DATA, 2, 200);
    found(0, HEC_CAUSE_DATA, 0.4);
    find();
    for (int i = 0; i < HEC_QUANTITY_COUNT; i++)
        quantity(i, 10, 7.7, 0.75, 0.79, i == HEC_QUANTITY_WATTS ? HEC_SHOWN_CHANGED : HEC_SHOWN_BETTER);
    assert_int_equal(hec_versus_markdown(&versus, page()), 0);
    assert_ptr_equal(strstr(hec_buf_text(&out), "**saved in these two runs: B took 23 %"), hec_buf_text(&out));
    SAYS("python a\\|b.py \\*");
    SAYS_NOT("\033");
    assert_int_equal(hec_versus_terminal(&versus, &(struct hec_report_style){.utf8 = true}, page()), 0);
    SAYS("went       starved for data");
    lines(80);
}

TEST(test_json) {
    begin(1, 1);
    strcpy(runs[1].cpu, "EPYC");
    state(0, HEC_STATE_DATA, 4, 400);
    state(1, HEC_STATE_DATA, 2, 200);
    found(0, HEC_CAUSE_DATA, 0.4);
    find();
    quantity(HEC_QUANTITY_JOULES_PER_UNIT, 10, 7.7, 0.75, 0.79, HEC_SHOWN_BETTER);
    assert_int_equal(hec_versus_json(&versus, page()), 0);
    parse();
    assert_text_at("verdict", "saved");
    assert_int_equal(json_array_size(value_at("quantities")), HEC_QUANTITY_COUNT);
    assert_true(json_is_true(value_at("differs.0.must_be_alike")));
    assert_schema(hec_versus_schema, "compare", "comparison", true);
}
