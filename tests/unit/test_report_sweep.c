/* A sweep in words: what is recommended and why not, on a page, in Markdown and as JSON. */
#include "report/sweep/sweep.h"
#include "report_json.h"

#define SETTINGS 6

static char *command[] = {"python3", "train.py", "--batch", "{batch}", "--note", "a | b\n\033[31mred", NULL};
static char *values[] = {"32", "64", "128", "256", "512", "1024"};
static struct hec_sweep_trial trials[64];
static struct hec_sweep_report sweep;

static void add(int arm, int round, enum hec_sweep_end end, double speed, double joules) {
    struct hec_sweep_trial *t = &trials[sweep.trial_count++];
    double off = round ? 1.002 : 0.998;
    *t = (struct hec_sweep_trial){.arm = arm,
                                  .round = round,
                                  .end = end,
                                  .exit_status = end == HEC_SWEEP_FAILED ? 3 : 0,
                                  .stopped = true,
                                  .step_p50 = 0.02,
                                  .step_p99 = 0.03 * off,
                                  .steps_seen = 150,
                                  .memory_bytes = 8e9 + 1e10 * arm,
                                  .memory_total = 80e9,
                                  .devices = 1};
    t->steady = (struct hec_trial_block){10 * off, joules * speed * 10, speed * 10, 150};
    t->run = (struct hec_trial_block){12, joules * speed * 10 + 100, speed * 11, 160};
}

/* Saturates at 256; 1024 does not fit. */
static void begin(int rounds) {
    static const double speed[] = {300, 590, 1150, 2000, 2010}, joules[] = {1, 0.6, 0.4, 0.300, 0.301};
    sweep = (struct hec_sweep_report){.plan = {.parameters = 1, .arms = SETTINGS, .max_slowdown = NAN, .max_p99 = NAN},
                                      .rounds = rounds,
                                      .trials = trials,
                                      .seed = UINT64_MAX};
    sweep.parameter[0] = (struct hec_sweep_parameter){"batch", values, SETTINGS, false};
    sweep.plan.parameter[0].count = SETTINGS;
    sweep.plan.parameter[0].ordered = true;
    for (int i = 0; i < SETTINGS; i++)
        sweep.plan.parameter[0].value[i] = atof(values[i]);
    strcpy(sweep.conditions.unit, "sample");
    for (char **word = command; *word; word++)
        hec_receipt_add_word(&sweep.conditions, &sweep.conditions.command[0], *word);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < SETTINGS - 1; i++)
            add(i, round, HEC_SWEEP_RAN, speed[i], joules[i]);
    add(SETTINGS - 1, 0, HEC_SWEEP_DEVICE_MEMORY, NAN, NAN);
    sweep.tail[SETTINGS - 1] = strdup("CUDA out of memory\n");
}

static void judge(void) {
    hec_sweep_judge(&sweep.plan, trials, sweep.trial_count, &sweep.result);
}

static void end(void) {
    for (int i = 0; i < HEC_SWEEP_ARMS_MOST; i++)
        free(sweep.tail[i]);
    hec_receipt_free(&sweep.conditions);
}

static int terminal(const struct hec_sweep_report *r, struct hec_buf *to) {
    const struct hec_report_style style = {.columns = 80};
    return hec_sweep_terminal(r, &style, to);
}

static void print(int (*make)(const struct hec_sweep_report *, struct hec_buf *)) {
    assert_int_equal(make(&sweep, page()), 0);
    SAYS_NOT("\033");
}

/* Lines are joined: where they break is the page's matter. */
static void assert_says(int (*make)(const struct hec_sweep_report *, struct hec_buf *), const char *sentence) {
    print(make);
    char *to = out.data;
    for (const char *from = out.data; *from; from++)
        if ((*from != ' ' && *from != '\n') || (to > out.data && to[-1] != ' '))
            *to++ = *from == '\n' ? ' ' : *from;
    *to = '\0';
    SAYS(sentence);
}

TEST(test_advice) {
    begin(2);
    judge();
    assert_says(terminal, "batch=256: 70.0 % less energy a sample than batch=32");
    assert_says(terminal, "batch=512 is not shown to take over 2 % more");
    assert_says(terminal, "batch: 1024 out of device memory");
    assert_says(terminal, "the most units/s at 512; from 256 on it is shown to be within 5 % of that");
    assert_says(hec_sweep_markdown, "**batch=256: 70.0 % less energy a sample than batch=32");
    assert_says(hec_sweep_markdown, "a \\| b");
    sweep.result.kept = true;
    sweep.result.recommended = 0;
    assert_says(terminal, "batch=32, the first setting: no other is shown to take less energy a sample");
    end();
}

TEST(test_nothing) {
    begin(2);
    sweep.plan.max_p99 = 0.02;
    judge();
    assert_says(terminal, "nothing: 5 of 6 settings: p99 of a step over 20.0 ms");
    sweep.plan.max_p99 = 0.03;
    judge();
    assert_says(terminal, "p99 of a step not shown to be within 30.0 ms; more rounds may show it");
    end();
    begin(0);
    for (int i = 0; i < SETTINGS; i++)
        add(i, 0, HEC_SWEEP_FAILED, NAN, NAN);
    judge();
    assert_says(terminal, "nothing: 5 of 6 settings: failed: exit status 3");
    end();
}

TEST(test_notes) {
    begin(1);
    strcpy(sweep.conditions.unit, "step");
    sweep.state = HEC_SWEEP_SPENT;
    judge();
    assert_says(terminal, "for its budget was spent");
    assert_says(terminal, "do not contain what trials differ by");
    assert_says(terminal, "settings that change what a step does are not comparable");
    assert_says(terminal, "how far others are below is not known");
    end();
}

/* Names and values as long as they may be, and what a terminal must not see. */
TEST(test_page) {
    static char rather_long[] = "a value that is rather long, and then some more of it, up to two hundred bytes of it, "
                                "which nobody would ever write but somebody's script, that is what scripts are for";
    static char *strange[] = {"\033[2Jx", "a|b", "*", "ö", rather_long, "6"};
    begin(2);
    sweep.parameter[0] = (struct hec_sweep_parameter){"a-parameter-with-a-long-name-of-31", strange, SETTINGS, true};
    sweep.plan.parameter[0].ordered = false;
    judge();
    print(terminal);
    lines(80);
    print(hec_sweep_markdown);
    SAYS("a\\|b");
    end();
}

TEST(test_json) {
    begin(2);
    judge();
    print(hec_sweep_json);
    parse();
    assert_int_equal(json_integer_value(value_at("result.recommended")), 3);
    assert_int_equal(json_array_size(value_at("trials")), 11);
    assert_text_at("plan.seed", "18446744073709551615");
    assert_schema(hec_sweep_schema, "sweep", "sweep", false);
    end();
}
