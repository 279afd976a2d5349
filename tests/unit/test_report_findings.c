/* Findings in the reports: the headline of each kind of run, what is shown of a finding, and what hec explain prints. */
#include "diagnose/findings.h"
#include "diagnose/rules/rule.h"
#include "diagnose/scale_out.h"
#include "report/explain.h"
#include "report/findings_words.h"
#include "report/report.h"
#include "unit/fake_run.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define UNKNOWN                                                                                                        \
    { NAN, NAN, NAN }

static struct fake_run run;
static struct hec_summary summary;
static struct hec_ledger_device ledger;
static struct hec_device_timeline timeline;
static struct hec_finding list[6];
static struct hec_buf out;
static struct hec_report_style style;

static int start(void **state) {
    struct hec_price price = hec_price_default();
    (void)state;
    fake_init(&run, 60);
    fake_worker(&run, 0, 620, 1000, 920, 450);
    fake_used(&run, 0, 4321);
    style = (struct hec_report_style){.utf8 = true};
    assert_int_equal(hec_summary_build(&run.input, &price, &summary, NULL), 0);
    hec_findings_free(&summary.findings); /* what the tests put there is theirs */
    hec_ledger_free(&summary.diagnosis.ledger);
    free(summary.timeline.devices);
    /* 60 s: 36 s of compute at 300 W, 24 s of data at 120 W */
    ledger = (struct hec_ledger_device){.device = 0, .window_ns = 60000000000, .joules = 13680, .discrepancy = 0};
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        ledger.rows[i].watts_low = ledger.rows[i].watts_high = ledger.rows[i].step_seconds = NAN;
    ledger.rows[HEC_STATE_COMPUTE] = (struct hec_ledger_row){
        .ns = 36000000000, .seconds = 36, .joules = 10800, .watts = 300, .watts_low = 290, .watts_high = 310};
    ledger.rows[HEC_STATE_DATA] = (struct hec_ledger_row){
        .ns = 24000000000, .seconds = 24, .joules = 2880, .watts = 120, .watts_low = 118, .watts_high = 122};
    timeline = (struct hec_device_timeline){
        .device = 0, .traced_s = 60, .window_s = 60, .busy_s = 36, .compute_s = 36, .idle_s = 24};
    memset(list, 0, sizeof list);
    return 0;
}

static void traced(void) {
    summary.diagnosis.ledger = (struct hec_ledger){.devices = &ledger, .device_count = 1};
    summary.timeline.devices = &timeline;
    summary.timeline.device_count = 1;
}

static int finish(void **state) {
    (void)state;
    summary.diagnosis.ledger = (struct hec_ledger){0};
    summary.timeline.devices = NULL;
    summary.timeline.device_count = 0;
    summary.findings = (struct hec_findings){0};
    hec_buf_free(&out);
    hec_summary_free(&summary);
    fake_free(&run);
    return 0;
}

static struct hec_finding *find(enum hec_cause cause, double best, const char *title) {
    struct hec_finding *f = &list[summary.findings.count++];
    summary.findings.list = list;
    *f = (struct hec_finding){
        .cause = cause, .devices = 1, .confidence = 0.9, .seconds = UNKNOWN, .joules = {best * 0.8, best, best * 1.2}};
    snprintf(f->title, sizeof f->title, "%s", title);
    hec_finding_evidence(f, "evidence of %s", hec_cause_name(cause));
    snprintf(f->lever, sizeof f->lever, "lever of %s", hec_cause_name(cause));
    return f;
}

static struct hec_finding *starved(void) {
    struct hec_finding *f = find(HEC_CAUSE_DATA, 0.2, "starved for data: 40 % of the steps' time");
    f->states = 1u << HEC_STATE_DATA;
    f->line_count = 1;
    f->lines[0] = (struct hec_finding_line){.line = 41, .share = 0.84};
    snprintf(f->lines[0].file, sizeof f->lines[0].file, "%s",
             "/a/very/long/way/to/the/folder/of/the/program/loader/images.py");
    snprintf(f->lines[0].function, sizeof f->lines[0].function, "%s", "Images.__getitem__");
    return f;
}

static void print(void) {
    int count = 0, width = 0;
    hec_buf_free(&out);
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_terminal(&summary, &style, &out), 0);
    if (getenv("SHOW"))
        print_message("%s\n", hec_buf_text(&out));
    for (const char *c = hec_buf_text(&out); *c; c++) {
        if (*c == '\n')
            width = 0, count++;
        else if (((unsigned char)*c & 0xc0) != 0x80 && ++width > (style.columns ? style.columns : 80))
            fail_msg("a line is too wide:\n%s", hec_buf_text(&out));
        assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
    }
    if (style.brief)
        assert_true(count <= 12);
}

static void says(const char *words) {
    if (!strstr(hec_buf_text(&out), words))
        fail_msg("\"%s\" is missing in:\n%s", words, hec_buf_text(&out));
}

static void says_not(const char *words) {
    if (strstr(hec_buf_text(&out), words))
        fail_msg("\"%s\" is in:\n%s", words, hec_buf_text(&out));
}

static void headline(const char *expected) {
    char text[512];
    hec_headline(text, sizeof text, &summary);
    assert_string_equal(text, expected);
}

static void test_headlines(void **state) {
    (void)state;
    traced();
    headline("no cause stands out: the H200 was busy 60 % of 60.0 s");
    struct hec_finding *f = starved();
    headline(
        "starved for data: the H200 idled 40 % of 60.0 s, 2.9 kJ of 13.7 kJ; fixing it would save about 20 % of the "
        "joules (16 to 24)");
    f->estimated = true;
    ledger.joules = ledger.rows[HEC_STATE_DATA].joules = NAN;
    headline(
        "starved for data: the H200 idled 40 % of 60.0 s; fixing it would save about 20 % of the joules (16 to 24, "
        "estimated)");
    f->seconds = (struct hec_saving){0.1, 0.3, 0.35};
    f->joules = (struct hec_saving)UNKNOWN;
    headline("starved for data: the H200 idled 40 % of 60.0 s; fixing it would save about 30 % of the time (10 to 35)");
    f->states |= 1u << HEC_STATE_COMPUTE; /* no idling: the finding's own words */
    headline("starved for data: 40 % of the steps' time; fixing it would save about 30 % of the time (10 to 35)");
    f->joules = (struct hec_saving){0.01, 0.03, 0.04}; /* worth it by the time, at few watts */
    headline("starved for data: 40 % of the steps' time; fixing it would save about 30 % of the time (10 to 35)");
    f->seconds.best = 0.049; /* not worth acting on */
    headline("no cause stands out: the H200 was busy 60 % of 60.0 s");
    find(HEC_CAUSE_NONE, 0, "healthy");
    list[0] = list[1];
    headline("healthy: evidence of none; nothing that HEC knows would save 5 % of the joules or more");
}

/* A V100's tensor cores take fp16 alone: the rule's snippets, which say bf16 and TF32, do not fit it. */
static void test_a_snippet_of_its_own(void **state) {
    (void)state;
    traced();
    find(HEC_CAUSE_PRECISION, 0.3, "fp32 without tensor cores")->code = "with its.own():\n";
    print();
    says("with its.own():");
    says_not("bfloat16");
    snprintf(summary.command, sizeof summary.command, "./solver"); /* CUDA */
    print();
    says_not("with its.own():");
    says_not("CUBLAS");
    list[0].code = NULL;
    print();
    says("CUBLAS_TF32_TENSOR_OP_MATH");
    snprintf(summary.imported, sizeof summary.imported, "kineto"); /* PyTorch's profiler */
    print();
    says("bfloat16");
}

/* What limits the findings is said, in the report and in the JSON, and a job that crashed is not called healthy. */
static void test_caveats(void **state) {
    (void)state;
    char text[HEC_CAVEATS_MAX][160];
    struct hec_ledger_device steady = {.device = 0, .basis = HEC_LEDGER_CALLS, .window_ns = 50000000000};
    steady.rows[HEC_STATE_COMPUTE].ns = 45000000000;
    traced();
    find(HEC_CAUSE_NONE, 0, "healthy: busy");
    hec_ledger_free(&summary.diagnosis.steady);
    summary.diagnosis.steady = (struct hec_ledger){&steady, 1};
    assert_int_equal(hec_caveats(&summary, text), 0);
    summary.exit_code = 1;
    hec_scale_out_decide(&summary, &summary.findings);
    headline("the command failed: exit code 1");
    print();
    says("note       the command failed (exit code 1)");
    says_not("Scale out?");
    style.brief = true;
    print();
    says_not("healthy");
    style.brief = false;
    summary.exit_code = 0;
    steady.window_ns = ledger.window_ns; /* no steady part */
    assert_int_equal(hec_caveats(&summary, text), 1);
    assert_non_null(strstr(text[0], "the program reports no steps"));
    struct hec_device_result few = {.steps = {.count = 5}}, *kept = summary.diagnosis.results;
    summary.diagnosis.results = &few;
    snprintf(summary.imported, sizeof summary.imported, "kineto");
    print();
    says("note       only 5 steps: set-up and loop are not separated");
    says("a profiler slows the host");
    hec_buf_free(&out);
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_json(&summary, 1, &out), 0);
    json_t *report = json_loads(hec_buf_text(&out), 0, NULL);
    assert_int_equal(json_array_size(json_object_get(report, "caveats")), 2);
    json_decref(report);
    summary.diagnosis.results = kept;
    summary.diagnosis.steady = (struct hec_ledger){0};
}

static void test_without_a_trace(void **state) {
    (void)state;
    summary.devices[0].verdict.kind = HEC_VERDICT_WAITING;
    summary.devices[0].verdict.confidence = 0.7;
    headline("mostly idle: waits for the host (without a trace, confidence 0.70)");
    print();
    says("found      mostly idle: waits for the host");
    says("hec run --trace auto -- python train.py");
    says("verdict  mostly idle");
}

static void test_a_finding_whole(void **state) {
    (void)state;
    traced();
    starved();
    find(HEC_CAUSE_LAUNCH, 0.1, "launch-bound: 9 % of the steps' time");
    find(HEC_CAUSE_NONE, 0, "healthy: busy");
    find(HEC_CAUSE_SYNC, 0.01, "stalled by synchronisation: 1 % of the steps' time");
    find(HEC_CAUSE_COPY, 0.005, "stalled by copies: 1 % of the steps' time");
    print();
    says("Findings  1  starved for data: 40 % of the steps' time (confidence 0.90)");
    says("  saves      20 % of the joules (16 to 24), about 7.1 kJ");
    says("  because    - evidence of data");
    says("images.py:41 Images.__getitem__ (84 %)");
    says("  lever      lever of data");
    says("          2  launch-bound");
    says("          3  stalled by synchronisation: 1 % of the steps' time");
    says_not("evidence of sync"); /* not worth acting on: its title only */
    says_not("healthy");
    says_not("stalled by copies");
    says("and 1 more");
    says("hec explain data");
    says_not("verdict"); /* of telemetry */
    says_not("--trace auto");
    says_not("nan");
    style.all = true;
    print();
    says("evidence of sync");
    says("evidence of copy");
    says_not("and 1 more");
}

static void on_what_watts_rest(const char *how) {
    snprintf(summary.diagnosis.results[0].watts.how, sizeof summary.diagnosis.results[0].watts.how, "%s", how);
    print();
}

/* A line under the ledger, but for watts that were measured. */
static void test_on_what_watts_rest(void **state) {
    (void)state;
    traced();
    on_what_watts_rest("estimated: its steps are too alike");
    says("\n             watts estimated: its steps are too alike\n");
    on_what_watts_rest("rough: too few readings");
    says("\n             watts rough: too few readings\n");
    on_what_watts_rest("measured: power samples tell");
    says("120 W");
    says_not("measured");
    on_what_watts_rest("");
    says("120 W");
    says_not("\n             watts");
}

static void test_at_the_end_of_run(void **state) {
    (void)state;
    traced();
    starved();
    find(HEC_CAUSE_LAUNCH, 0.1, "launch-bound: 9 % of the steps' time");
    style.brief = true;
    print();
    says("found      starved for data: the H200 idled 40 %");
    says("images.py:41 Images.__getitem__ (84 %)");
    says("lever      lever of data");
    says_not("launch");
}

static void test_dollars_where_they_count(void **state) {
    (void)state;
    traced();
    starved()->seconds = (struct hec_saving){0.3, 0.4, 0.5};
    print();
    says_not("kJ, $");
    summary.price.dollars_per_gpu_hour = 3;
    print(); /* 0.4 of a minute of 3 $ an hour */
    says("about 7.1 kJ, $0.020");
}

static void test_hostile_text(void **state) {
    (void)state;
    traced();
    struct hec_finding *f = starved();
    snprintf(f->title, sizeof f->title, "\033[2Jstarved\n");
    snprintf(f->evidence[0], sizeof f->evidence[0], "\033]0;x\007\r");
    snprintf(f->lines[0].file, sizeof f->lines[0].file, "%s", "\033[31m\xff/\n.py");
    snprintf(f->lines[0].function, sizeof f->lines[0].function, "%s", "f\xc3\x28\t");
    style.columns = 60;
    print();
    says_not("\033");
    style.brief = true;
    style.columns = 80;
    print();
    says_not("\033");
}

static void test_places(void **state) {
    char text[128];
    const char *file = "/home/somebody/project/loader/images.py";
    (void)state;
    assert_string_equal(hec_place_words(text, sizeof text, file, 41, "fetch", 60),
                        "/home/somebody/project/loader/images.py:41 fetch");
    assert_string_equal(hec_place_words(text, sizeof text, file, 41, "fetch", 40),
                        ".../project/loader/images.py:41 fetch");
    assert_string_equal(hec_place_words(text, sizeof text, file, 0, "", 20), ".../loader/images.py");
    assert_string_equal(hec_place_words(text, sizeof text, "a.py", 7, "train.<locals>.step.<locals>.f", 40),
                        "a.py:7 train.step.f");
    assert_string_equal(hec_place_words(text, sizeof text, "", 0, "", 20), "?");
    for (int room = 16; room < 60; room++)
        assert_true((int)strlen(hec_place_words(text, sizeof text, file, 123456, "Images.__getitem__", room)) <= room);
    for (int room = 16; room < 60; room++)
        assert_true((int)strlen(hec_place_words(text, sizeof text, "a_file_whose_name_never_ends.py", 1, "f", room)) <=
                    room);
}

static void test_scale_out_and_latency(void **state) {
    (void)state;
    traced();
    summary.findings.scale_out =
        (struct hec_scale_out){.verdict = HEC_SCALE_OUT, .utilisation = 0.9, .why = "all is well"};
    summary.findings.latency = (struct hec_latency){
        .valid = true, .total_s = 0.01, .compute_s = 0.004, .batching_s = 0.003, .transport_s = 0, .host_s = 0.003};
    print();
    says("Scale out?   yes: all is well");
    says("Latency      10.0 ms a call: compute 4.00 ms (40 %), batching 3.00 ms (30 %),");
    says_not("transport");
}

/* Every cause has a rule. */
static void test_explain(void **state) {
    json_error_t error;
    (void)state;
    for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++) {
        const struct hec_rule *rule = hec_rule_of((enum hec_cause)cause);
        if (!rule)
            fail_msg("%s has no rule", hec_cause_name((enum hec_cause)cause));
        hec_buf_free(&out);
        hec_buf_init(&out, 1 << 20);
        assert_int_equal(hec_report_explain((enum hec_cause)cause, false, &style, &out), 0);
        says(hec_cause_title((enum hec_cause)cause));
        says("signs");
        says("answer");
    }
    hec_buf_clear(&out);
    assert_int_equal(hec_report_explain(HEC_CAUSE_COUNT, true, &style, &out), 0);
    json_t *root = json_loads(hec_buf_text(&out), 0, &error);
    assert_int_equal(json_array_size(json_object_get(root, "causes")), HEC_CAUSE_COUNT);
    json_decref(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_headlines, start, finish),
        cmocka_unit_test_setup_teardown(test_caveats, start, finish),
        cmocka_unit_test_setup_teardown(test_a_snippet_of_its_own, start, finish),
        cmocka_unit_test_setup_teardown(test_without_a_trace, start, finish),
        cmocka_unit_test_setup_teardown(test_a_finding_whole, start, finish),
        cmocka_unit_test_setup_teardown(test_on_what_watts_rest, start, finish),
        cmocka_unit_test_setup_teardown(test_at_the_end_of_run, start, finish),
        cmocka_unit_test_setup_teardown(test_dollars_where_they_count, start, finish),
        cmocka_unit_test_setup_teardown(test_hostile_text, start, finish),
        cmocka_unit_test_setup_teardown(test_places, start, finish),
        cmocka_unit_test_setup_teardown(test_scale_out_and_latency, start, finish),
        cmocka_unit_test_setup_teardown(test_explain, start, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
