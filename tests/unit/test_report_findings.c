/* Findings in the reports: the headline of each kind of run, what is shown of a finding, and what hec explain prints. */
#include "diagnose/rules/facts.h"
#include "diagnose/rules/findings.h"
#include "diagnose/rules/verdicts.h"
#include "report/words/explain.h"
#include "report/words/facts.h"
#include "rule_world.h"
#include "report/words/findings.h"
#include "report/run/report.h"
#include "recorded_run.h"
#include "report_json.h"

#include <dirent.h>

#define UNKNOWN                                                                                                        \
    { NAN, NAN, NAN }

static struct fake_dossier of;
static struct hec_finding list[6];
static struct hec_report_style style;

static int start(void **state) {
    (void)state;
    run_begin_with(60, 620, 1000, 920, 450);
    style = (struct hec_report_style){.utf8 = true};
    summarise();
    hec_findings_free(&summary.job.findings); /* what the tests put there is theirs */
    fake_dossier(&of, 0);
    struct hec_ledger_device *ledger = &of.ledger;
    /* 60 s: 36 s of compute at 300 W, 24 s of data at 120 W */
    *ledger = (struct hec_ledger_device){.device = 0, .window_ns = 60000000000, .joules = 13680, .discrepancy = 0};
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        ledger->rows[i].watts_low = ledger->rows[i].watts_high = ledger->rows[i].step_seconds = NAN;
    ledger->rows[HEC_STATE_COMPUTE] = (struct hec_ledger_row){
        .ns = 36000000000, .seconds = 36, .joules = 10800, .watts = 300, .watts_low = 290, .watts_high = 310};
    ledger->rows[HEC_STATE_DATA] = (struct hec_ledger_row){
        .ns = 24000000000, .seconds = 24, .joules = 2880, .watts = 120, .watts_low = 118, .watts_high = 122};
    of.timeline = (struct hec_device_timeline){
        .device = 0, .traced_s = 60, .window_s = 60, .busy_s = 36, .compute_s = 36, .idle_s = 24};
    memset(list, 0, sizeof list);
    return 0;
}

static void traced(void) {
    summary.devices[0].ledger = &of.ledger;
    summary.devices[0].timeline = &of.timeline;
    summary.devices[0].watts = &of.watts;
}

static int start_traced(void **state) {
    start(state);
    traced();
    return 0;
}

static int finish(void **state) {
    (void)state;
    fake_dossier_untraced(&summary.devices[0]); /* it is no dossier's own */
    summary.job.findings = (struct hec_findings){0};
    return 0;
}

/* Its evidence is the cause's number. */
static struct hec_finding *find(enum hec_cause cause, double best, double share) {
    struct hec_finding *f = &list[summary.job.findings.count++];
    summary.job.findings.list = list;
    *f = (struct hec_finding){.cause = cause,
                              .devices = 1,
                              .confidence = 0.9,
                              .actionable = cause != HEC_CAUSE_NONE && best >= HEC_FINDING_WORTH,
                              .title = cause == HEC_CAUSE_NONE ? HEC_FACT(HEALTHY, share)
                                                               : HEC_FACT(WAIT_SHARE, share, true),
                              .lever = {.id = hec_rule_of(cause)->lever},
                              .seconds = UNKNOWN,
                              .joules = {best * 0.8, best, best * 1.2},
                              .saved_s = NAN,
                              .saved_j = best * summary.devices[0].readings.energy.joules};
    hec_finding_add(f, HEC_FACT(LOADS, cause));
    return f;
}

static struct hec_finding *starved(void) {
    struct hec_finding *f = find(HEC_CAUSE_DATA, 0.2, 0.4);
    f->states = 1u << HEC_STATE_DATA;
    f->line_count = 1;
    f->lines[0] = (struct hec_finding_line){.line = 41, .share = 0.84};
    snprintf(f->lines[0].file, sizeof f->lines[0].file, "%s",
             "/a/very/long/way/to/the/folder/of/the/program/loader/images.py");
    snprintf(f->lines[0].function, sizeof f->lines[0].function, "%s", "Images.__getitem__");
    return f;
}

static void print(void) {
    assert_int_equal(hec_report_terminal(&summary, &style, page()), 0);
    int count = lines(style.columns ? style.columns : 80);
    assert_true(!style.brief || count <= 15);
}

static void headline(const char *expected) {
    char text[512];
    hec_headline(text, sizeof text, &summary);
    assert_string_equal(text, expected);
}

TEST(test_headlines) {
    headline("no cause stands out: the H200 was busy 60 % of 60.0 s");
    struct hec_finding *f = starved();
    headline(
        "starved for data: the H200 idled 40 % of 60.0 s, 2.9 kJ of 13.7 kJ; fixing it would save about 20 % of the "
        "joules (16 to 24)");
    f->estimated = true;
    of.ledger.joules = of.ledger.rows[HEC_STATE_DATA].joules = NAN;
    headline(
        "starved for data: the H200 idled 40 % of 60.0 s; fixing it would save about 20 % of the joules (16 to 24, "
        "estimated)");
    f->seconds = (struct hec_saving){0.1, 0.3, 0.35};
    f->joules = (struct hec_saving)UNKNOWN;
    headline("starved for data: the H200 idled 40 % of 60.0 s; fixing it would save about 30 % of the time (10 to 35), "
             "the run about 1.4 times as fast (1.1 to 1.5)");
    f->states |= 1u << HEC_STATE_COMPUTE; /* no idling: the finding's own words */
    headline("starved for data: 40 % of the steps' time; fixing it would save about 30 % of the time (10 to 35), "
             "the run about 1.4 times as fast (1.1 to 1.5)");
    f->joules = (struct hec_saving){0.01, 0.03, 0.04}; /* worth it by the time, at few watts */
    headline("starved for data: 40 % of the steps' time; fixing it would save about 30 % of the time (10 to 35), "
             "the run about 1.4 times as fast (1.1 to 1.5)");
    f->actionable = false;
    headline("no cause stands out: the H200 was busy 60 % of 60.0 s");
    struct hec_finding starving = *f;
    *f = (struct hec_finding){.cause = HEC_CAUSE_QUIET,
                              .devices = 1,
                              .states = 1u << HEC_STATE_DATA, /* where seconds are */
                              .confidence = 0.8,
                              .seconds = UNKNOWN,
                              .joules = UNKNOWN};
    headline("no work to do: the H200 idled 40 % of 60.0 s");
    *f = starving;
    find(HEC_CAUSE_NONE, 0, 0.9);
    list[0] = list[1];
    headline("healthy: code is loaded 21 times after set-up; HEC found nothing that would save 5 % of the joules "
             "or more");
    list[1] = starving;
    list[1].actionable = false;
    list[1].hint = true; /* too unsure for a headline, and not nothing */
    list[1].confidence = 0.25;
    headline("healthy: code is loaded 21 times after set-up; HEC is sure of nothing that would save 5 % of the joules "
             "or more");
    print();
    SAYS("  then       not sure: starved for data: 40 % of the steps' time; it would");
}

#define FACT_ID(id, name, unit, more) #id,
#define LEVER_ID(id, edit, name, parameters) #id,

/* One file after the other. */
static void read_rules(struct hec_buf *into) {
    char path[512] = HEC_SOURCE_DIR "/src/diagnose/rules";
    DIR *listing = opendir(path);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing));) {
        char block[4096];
        size_t length = strlen(entry->d_name), got;
        if (length < 3 || strcmp(entry->d_name + length - 2, ".c") != 0)
            continue;
        snprintf(path, sizeof path, "%s/src/diagnose/rules/%s", HEC_SOURCE_DIR, entry->d_name);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        while ((got = fread(block, 1, sizeof block, file)) > 0)
            assert_int_equal(hec_buf_add(into, block, got), 0);
        fclose(file);
    }
    closedir(listing);
}

static int words_in(const char *names) {
    int count = names[0] != '\0';
    for (; *names; names++)
        count += *names == ' ';
    return count;
}

static void is_said(const char *what, const char *words, struct hec_buf *rules, const char *token) {
    if (!words[0] || strpbrk(words, "{}[]?"))
        fail_msg("%s has no words: \"%s\"", what, words);
    if (!strstr(hec_buf_text(rules), token))
        fail_msg("%s: no rule has %s", what, token);
}

/* Each fact and each lever has words that need no more numbers than its row names, and a rule that says it (or the lever is its
 * cause's). */
TEST(test_every_fact_has_words) {
    static const char *const facts[] = {
#define HEC_EVIDENCE FACT_ID
#include "diagnose/evidence.def"
    };
    static const char *const levers[] = {
#define HEC_LEVER LEVER_ID
#include "diagnose/lever.def"
    };
    const struct hec_reason why = HEC_BECAUSE(USED_TRACED);
    struct hec_buf rules;
    char words[HEC_FACT_SIZE], token[96];
    hec_buf_init(&rules, 1 << 20);
    read_rules(&rules);
    for (int id = 0; id < HEC_EVIDENCE_COUNT; id++) {
        struct hec_finding f = {.cause = HEC_CAUSE_DATA};
        struct hec_evidence e = {.what = id, .device = -1, .name = "name", .file = "file", .why = &why};
        for (int i = 0; i < HEC_FINDING_NUMBERS; i++)
            e.value[i] = i <= words_in(hec_evidence_more(id)) ? 1.5 + i : NAN;
        snprintf(token, sizeof token, "HEC_FACT(%s,", facts[id]);
        is_said(facts[id], hec_evidence_words(words, &f, &e), &rules, token);
        for (int other = 0; other < id; other++)
            assert_string_not_equal(hec_evidence_name(id), hec_evidence_name(other));
    }
    for (int id = 0; id < HEC_LEVER_COUNT; id++) {
        struct hec_finding f = {.lever.id = id};
        for (int i = 0; i < HEC_FINDING_NUMBERS; i++)
            f.lever.value[i] = i < words_in(hec_lever_parameters(id)) ? 1 + i : NAN;
        bool standard = false;
        for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++)
            standard |= (int)hec_rule_of(cause)->lever == id;
        snprintf(token, sizeof token, "HEC_ANSWER(%s", levers[id]);
        is_said(levers[id], hec_lever_words(words, &f), &rules, standard ? "" : token);
    }
    hec_buf_free(&rules);
}

/* A replay that knows no joules says none: those of the step are its rule's. */
TEST(test_words_of_a_step) {
    char words[HEC_SAVES_WORDS];
    struct hec_finding f = {.replayed = true, .step_seconds = {0.1, 0.2, 0.3}, .step_joules = {0.4, 0.5, 0.6}};
    assert_string_equal(hec_step_saving_words(words, &f),
                        "20 % of its time (10 to 30), 50 % of its joules (40 to 60), by replay");
    f.joules_ruled = true;
    assert_string_equal(hec_step_saving_words(words, &f), "20 % of its time (10 to 30), by replay");
}

/* What answers a finding is said in words of the program's framework, or of none: each answer, in each of them. */
TEST(test_levers_are_of_the_framework) {
    static const char *const own[HEC_FRAMEWORK_COUNT][16] = {
        [HEC_FRAMEWORK_PYTORCH] = {"torch", "TORCH", "DataLoader", "non_blocking", "DistributedDataParallel", "no_sync",
                                   "bucket_cap", "fully_shard", "autocast", "channels_last", "cudnn.", "foreach",
                                   ".contiguous", "fused="},
        [HEC_FRAMEWORK_JAX] = {"jax", "JAX", "XLA", "Orbax"},
        [HEC_FRAMEWORK_CUPY] = {"cupy", "CuPy", "CUPY"},
    };
    char words[HEC_FACT_SIZE];
    for (int framework = HEC_FRAMEWORK_PYTORCH; framework < HEC_FRAMEWORK_COUNT; framework++)
        for (int id = 0; id < HEC_LEVER_COUNT; id++) {
            struct hec_finding f = {.lever = {.id = id, .value = {2, 2, 2, 2, 2, 2}}, .framework = framework};
            hec_lever_words(words, &f);
            assert_true(words[0] && !strchr(words, '{'));
            for (int other = 0; other < HEC_FRAMEWORK_COUNT; other++)
                for (int i = 0; i < 16 && own[other][i]; i++)
                    if (other != framework && framework != HEC_FRAMEWORK_PYTORCH && strstr(words, own[other][i]))
                        fail_msg("%s, %s: %s", hec_framework_name(framework), hec_lever_name(id), words);
        }
}

/* Numbers into words: factors, digits, choices, and what is left out where it is unknown. */
TEST(test_words) {
    char words[HEC_FACT_SIZE];
    struct hec_finding f = {
        .cause = HEC_CAUSE_LAUNCH, .per = HEC_PER_SECOND, .lever = HEC_ANSWER(LOADER_WORKERS, 1, 2)};
    const struct {
        struct hec_evidence fact;
        const char *words;
    } cases[] = {
        {HEC_FACT(WAIT_SHARE, 0.416, false), "launch-bound: 42 % of the run"},
        {HEC_FACT(WAIT, 0.0123456, 1), "the device waits 12.35 ms a second of 1000 ms for the next launch"},
        {HEC_FACT(LAUNCHES, 98765, 4.567e-6), "9.876e+04 launches a second, 4.57 us of the device each"},
        {HEC_FACT(TRANSFERS, 2.5e9, NAN, 1), "PCIe 2.5 GB/s from the device"},
        {HEC_FACT(TRANSFERS, 2.5e9, 0.04, 0), "PCIe 2.5 GB/s to the device, 4 % of the link"},
        {HEC_FACT(HOST_CORES, 0.5, 1), "the program uses 0.5 of the 1 core that it may use"},
        {HEC_FACT(HOST_CORES, 0.5, 16), "the program uses 0.5 of the 16 cores that it may use"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(hec_evidence_words(words, &f, &cases[i].fact), cases[i].words);
    struct hec_evidence other = cases[0].fact;
    other.device = 3;
    assert_string_equal(hec_evidence_words(words, &f, &other), "GPU 3: launch-bound: 42 % of the run");
    char name[2 * HEC_FACT_SIZE];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    struct hec_evidence kernel = HEC_FACT(KERNEL, 0.002, 7);
    kernel.name = name;
    assert_int_equal(strlen(hec_evidence_words(words, &f, &kernel)), 100 + strlen(": 7 calls of 2000 us"));
    assert_non_null(strstr(hec_lever_words(words, &f), "1 loader worker in all would keep up, and 2 cores are idle"));
}

/* What a rule found is in the JSON as it is. */
TEST(test_json_has_the_numbers) {
    struct hec_finding *f = starved();
    struct hec_evidence held = HEC_FACT(HELD_BY_LINE, 5.25, 41);
    held.file = "/a/b.py";
    hec_finding_add_of(f, "step", held);
    hec_finding_add(f, HEC_FACT(TRANSFERS, 2e9, NAN, 1));
    hec_finding_add(f, HEC_FACT(WAIT, 0.2, 0.5));
    f->evidence[3].device = 1;
    f->lever = HEC_ANSWER(LOADER_WORKERS, 4, 14);
    assert_int_equal(hec_report_json(&summary, 1, page()), 0);
    parse();
    json_t *expected = json_pack(
        "[{s:s,s:f,s:s,s:{},s:n,s:n,s:s},{s:s,s:f,s:s,s:{s:f},s:s,s:n,s:s},{s:s,s:f,s:s,s:{s:n,s:f},s:n,s:n,s:s},"
        "{s:s,s:f,s:s,s:{s:f},s:n,s:i,s:s}]",
        "what", "code_loads", "value", 0.0, "unit", "1", "more", "name", "device", "text",
        "code is loaded 0 times after set-up", "what", "held_by_line", "value", 5.25, "unit", "s", "more", "line", 41.0,
        "name", "step", "device", "text", "b.py:41 in step holds the device up for 5.25 s of it", "what", "transfers",
        "value", 2e9, "unit", "B/s", "more", "share_of_link", "to_host", 1.0, "name", "device", "text",
        "PCIe 2 GB/s from the device", "what", "wait", "value", 0.2, "unit", "s/step", "more", "whole", 0.5, "name",
        "device", 1, "text", "GPU 1: the device waits 200 ms a step of 500 ms for the loader");
    assert_true(expected && json_equal(value_at("findings.0.evidence"), expected));
    json_decref(expected);
    assert_text_at("findings.0.lever_id", "loader_workers");
    expected = json_pack("{s:f,s:f}", "num_workers", 4.0, "idle_cores", 14.0);
    assert_true(json_equal(value_at("findings.0.lever_parameters"), expected));
    assert_true(json_is_true(value_at("findings.0.actionable")));
    json_decref(expected);
}

static bool pastes(const char *part) {
    const char *code = hec_finding_code(&summary, &list[0]);
    return part ? code && strstr(code, part) : !code;
}

/* A snippet is of a cause, a framework and what was seen; where none fits there is none. */
TEST(test_snippets) {
    static const struct {
        enum hec_cause cause;
        enum hec_lever_id lever;
        enum hec_step_source steps;
        const char *framework, *code; /* NULL: none */
    } cases[] = {
        {HEC_CAUSE_PRECISION, HEC_LEVER_PAD_SIZES, HEC_STEP_OPTIMIZER, "", "// 8 * 8"},
        {HEC_CAUSE_PRECISION, HEC_LEVER_TENSOR_CORES, HEC_STEP_OPTIMIZER, "", "torch.autocast"},
        {HEC_CAUSE_PRECISION, HEC_LEVER_TENSOR_CORES, HEC_STEP_MODULE, "", "allow_tf32"},
        {HEC_CAUSE_PRECISION, HEC_LEVER_TENSOR_CORES, HEC_STEP_MARKED, "", "set_float32_matmul_precision"},
        {HEC_CAUSE_PRECISION, HEC_LEVER_TENSOR_CORES, HEC_STEP_MARKED, "jax", "jax_default_matmul_precision"},
        {HEC_CAUSE_PRECISION, HEC_LEVER_FP16, HEC_STEP_MODULE, "", "model.half()"},
        {HEC_CAUSE_HOST, HEC_LEVER_MOVE_CODE, HEC_STEP_OPTIMIZER, "jax", NULL},
        {HEC_CAUSE_LAUNCH, HEC_LEVER_JIT, HEC_STEP_NONE, "jax", "jax.jit(step)"},
        {HEC_CAUSE_LAUNCH, HEC_LEVER_JIT, HEC_STEP_OPTIMIZER, "jax", "jax.lax.scan"},
        {HEC_CAUSE_LAUNCH, HEC_LEVER_LAUNCH_LESS, HEC_STEP_NONE, "jax", NULL},
        {HEC_CAUSE_LAUNCH, HEC_LEVER_LAUNCH_LESS, HEC_STEP_NONE, "cupy", "cupy.fuse"},
        {HEC_CAUSE_LAUNCH, HEC_LEVER_LAUNCH_LESS, HEC_STEP_NONE, "numba", NULL},
        {HEC_CAUSE_MEMORY, HEC_LEVER_FUSE, HEC_STEP_NONE, "cupy", "cupy.fuse"},
        {HEC_CAUSE_MEMORY, HEC_LEVER_FUSE, HEC_STEP_NONE, "jax", "jax.jit"},
        {HEC_CAUSE_COPY, HEC_LEVER_PIN_MEMORY, HEC_STEP_NONE, "cupy", "empty_pinned"},
        {HEC_CAUSE_COPY, HEC_LEVER_JOIN_COPIES, HEC_STEP_NONE, "cupy", "numpy.stack"},
        {HEC_CAUSE_COPY, HEC_LEVER_JOIN_COPIES, HEC_STEP_NONE, "jax", NULL},
        {HEC_CAUSE_PRECISION, HEC_LEVER_TENSOR_CORES, HEC_STEP_NONE, "cupy", "CUPY_TF32"},
        {HEC_CAUSE_HOST, HEC_LEVER_MOVE_CODE, HEC_STEP_OPTIMIZER, "", NULL},
        {HEC_CAUSE_LAUNCH, HEC_LEVER_LAUNCH_LESS, HEC_STEP_MODULE, "", "reduce-overhead"},
        {HEC_CAUSE_MEMORY, HEC_LEVER_FUSED_ATTENTION, HEC_STEP_MODULE, "", "scaled_dot_product_attention"},
        {HEC_CAUSE_MEMORY, HEC_LEVER_TRACE_KERNELS, HEC_STEP_MODULE, "", NULL},
        {HEC_CAUSE_BATCH, HEC_LEVER_LARGER_BATCH, HEC_STEP_MODULE, "", NULL},
        {HEC_CAUSE_COPY, HEC_LEVER_JOIN_COPIES, HEC_STEP_OPTIMIZER, "", "torch.stack"},
        {HEC_CAUSE_COPY, HEC_LEVER_STAY_ON_DEVICE, HEC_STEP_OPTIMIZER, "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        summary.job.findings.count = 0;
        find(cases[i].cause, 0.3, 0.5)->lever.id = cases[i].lever;
        summary.steps.source = cases[i].steps;
        snprintf(summary.framework, sizeof summary.framework, "%s", cases[i].framework);
        snprintf(summary.pytorch, sizeof summary.pytorch, "%s", cases[i].framework[0] ? "" : "2.6.0");
        if (!pastes(cases[i].code))
            fail_msg("%s of %s: %s", hec_lever_name(cases[i].lever), hec_cause_name(cases[i].cause),
                     hec_finding_code(&summary, &list[0]));
    }
    summary.pytorch[0] = '\0';
    for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++) /* no other framework's, whatever was found */
        for (int id = 0; id < HEC_LEVER_COUNT; id++)
            for (size_t i = 0; i < 3; i++) {
                static const char *const others[] = {"jax", "cupy", "numba"};
                summary.job.findings.count = 0;
                find((enum hec_cause)cause, 0.3, 0.5)->lever.id = (enum hec_lever_id)id;
                snprintf(summary.framework, sizeof summary.framework, "%s", others[i]);
                const char *code = hec_finding_code(&summary, &list[0]);
                assert_true(!code || (!strstr(code, "torch") && (i == 0 || !strstr(code, "jax")) &&
                                      (i == 1 || !strstr(code, "cupy"))));
            }
    summary.framework[0] = '\0'; /* Python, and no framework that HEC knows */
    summary.job.findings.count = 0;
    find(HEC_CAUSE_LAUNCH, 0.3, 0.5)->lever.id = HEC_LEVER_LAUNCH_LESS;
    assert_true(pastes(NULL));
}

/* A V100's tensor cores take fp16 alone: snippets that say bf16 and TF32 do not fit it. */
TEST(test_a_snippet_of_its_own) {
    find(HEC_CAUSE_PRECISION, 0.3, 0.5)->lever.id = HEC_LEVER_FP16;
    summary.steps.source = HEC_STEP_OPTIMIZER;
    snprintf(summary.pytorch, sizeof summary.pytorch, "2.6.0");
    print();
    SAYS("scaler.scale(loss).backward()");
    SAYS_NOT("bfloat16");
    summary.pytorch[0] = '\0';
    snprintf(summary.command, sizeof summary.command, "./solver"); /* CUDA */
    print();
    SAYS_NOT("scaler.scale", "CUBLAS");
    list[0].lever.id = HEC_LEVER_TENSOR_CORES;
    print();
    SAYS("CUBLAS_TF32_TENSOR_OP_MATH");
    snprintf(summary.imported, sizeof summary.imported, "kineto"); /* PyTorch's profiler */
    print();
    SAYS("with torch.autocast(\"cuda\", dtype=torch.bfloat16):");
}

/* What limits the findings is said, in the report and in the JSON, and a job that crashed is not called healthy. */
TEST_WITH(test_caveats, start, finish) {
    char text[HEC_CAVEATS_MAX][160];
    struct hec_ledger_device steady = {.device = 0, .basis = HEC_LEDGER_CALLS, .window_ns = 50000000000};
    steady.rows[HEC_STATE_COMPUTE].ns = 45000000000;
    traced();
    find(HEC_CAUSE_NONE, 0, 0.9);
    summary.devices[0].steady = &steady;
    assert_int_equal(hec_caveats(&summary, text), 0);
    summary.exit_code = 1;
    hec_scale_out_decide(&summary, &summary.job.findings);
    headline("the command failed: exit code 1");
    print();
    SAYS("note       the command failed (exit code 1)");
    SAYS_NOT("Scale out?");
    style.brief = true;
    print();
    SAYS_NOT("healthy");
    style.brief = false;
    summary.exit_code = 0;
    steady.window_ns = of.ledger.window_ns; /* no steady part */
    assert_int_equal(hec_caveats(&summary, text), 1);
    assert_non_null(strstr(text[0], "the program reports no steps"));
    summary.devices[0].steps.count = 5;
    snprintf(summary.imported, sizeof summary.imported, "kineto");
    print();
    SAYS("note       only 5 steps: set-up and loop are not separated", "a profiler slows the host");
    assert_int_equal(hec_report_json(&summary, 1, page()), 0);
    parse();
    assert_int_equal(json_array_size(value_at("caveats")), 2);
}

/* Python without hooks: what they would have told is missing, or came late. */
TEST_WITH(test_python_without_hooks, start_traced, finish) {
    char text[HEC_CAVEATS_MAX][160];
    int others = hec_caveats(&summary, text);
    summary.hooks_out = 1;
    assert_int_equal(hec_caveats(&summary, text), others + 1);
    assert_non_null(strstr(text[0], "and host may be data"));
    summary.events[summary.event_count++] = (struct hec_event_summary){
        .kind = HEC_EVENT_HOOKS_OUT, .device = HEC_DEVICE_NONE, .text = "process 7 is a python -I"};
    style.brief = true;
    print();
    SAYS("trust      process 7 is a python -I");
    style.brief = false;
    snprintf(summary.python, sizeof summary.python, "3.11.2");
    assert_int_equal(hec_caveats(&summary, text), others); /* others are hooked */
    summary.hooks_late = 1;
    assert_int_equal(hec_caveats(&summary, text), others + 1);
    assert_non_null(strstr(text[0], "saw nothing before"));
    assert_true(strlen(text[0]) < 159);
}

/* A loss that is no number is said before what was found, whatever else there is to say. */
TEST_WITH(test_loss_is_no_number, start, finish) {
    static const struct {
        struct hec_step_summary steps;
        const char *words;
    } cases[] = {
        {{.nonfinite = 160, .nonfinite_step = 41, .finite_step = 40, .nonfinite_last = NAN},
         "the loss is nan since step 41 of 200: what follows may train nothing"},
        {{.nonfinite = 9, .nonfinite_step = 41, .finite_step = 30, .nonfinite_last = -INFINITY},
         "the loss is infinite since step 41 of 200 (finite at step 30): what follows may train nothing"},
        {{.nonfinite = 1, .nonfinite_step = 7, .finite_step = 6, .nonfinite_last = 0.5},
         "the loss was nan or infinite 1 time, the latest from step 7 of 200 on"},
        {{.nonfinite = 3, .nonfinite_ns = 2500000000, .nonfinite_last = NAN},
         "the loss is nan since 2.50 s after the start: what follows may train nothing"},
    };
    traced();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[HEC_CAVEATS_MAX][160], expected[256];
        summary.steps = cases[i].steps;
        summary.steps.count = 200;
        assert_true(hec_caveats(&summary, text) > 0);
        assert_string_equal(text[0], cases[i].words);
        style.columns = 200;
        for (int brief = 0; brief < 2; brief++) {
            style.brief = brief;
            print();
            snprintf(expected, sizeof expected, "note       %s\n", cases[i].words);
            const char *at = strstr(hec_buf_text(&out), expected), *found = strstr(hec_buf_text(&out), "found ");
            assert_true(at && (!found || at < found));
        }
        assert_int_equal(hec_report_markdown(&summary, page()), 0);
        snprintf(expected, sizeof expected, "\n- **note**: %.40s", cases[i].words);
        SAYS(expected);
        assert_int_equal(hec_report_json(&summary, 1, page()), 0);
        parse();
        assert_string_equal(json_string_value(json_array_get(value_at("caveats"), 0)), cases[i].words);
    }
}

TEST_WITH(test_without_a_trace, start, finish) {
    headline("no cause stands out: the engine of the H200 was active 100 % of the time in use, without a trace");
    find(HEC_CAUSE_HOST, 0.2, 0.4)->title = HEC_FACT(ENGINE_IDLE, 0.4);
    headline(
        "probably starved: the engine is idle 40 % of the time in use (without a trace, confidence 0.90); fixing it "
        "would save about 20 % of the joules (16 to 24)");
    print();
    SAYS("found      probably starved: the engine is idle 40 %", "hec run --trace auto -- python train.py");
    summary.job.findings.count = 0;
    summary.devices[0].readings.activity.has_gpm = false;
    print();
    SAYS("note       without hardware counters");
    summary.devices[0].readings.activity.engine = NAN;
    headline("no cause stands out: nothing says what the H200 did");
    summary.job.findings.unseen = HEC_FACT(UNSEEN_FP32, 0.98, 0, 0.68, 0.1);
    headline(
        "no cause stands out: busy 98 % of the time in use, FP32 pipes 68 %, tensor pipes 0 %, and its kernels were not "
        "recorded: --trace full shows whether its products miss the tensor cores");
    summary.job.findings.unseen = HEC_FACT(UNSEEN, 0.98, NAN, NAN, NAN);
    headline(
        "no cause stands out: busy 98 % of the time in use, and its kernels were not recorded: --trace full shows what "
        "they do");
}

/* Beside others: what is said of the device is said of the command, or of all of them. */
TEST_WITH(test_shared, start, finish) {
    struct hec_device_summary *readings = &summary.devices[0].readings;
    char text[HEC_CAVEATS_MAX][160];
    readings->others = HEC_OTHERS_BUSY;
    readings->others_engine = 0.97;
    readings->others_seen = 0.23;
    headline("no cause stands out: nothing says what the H200 did");
    traced();
    of.ledger.rows[HEC_STATE_COMPUTE].seconds = 12;
    of.ledger.rows[HEC_STATE_UNKNOWN] = (struct hec_ledger_row){.ns = 24000000000, .seconds = 24, .joules = NAN};
    headline("no cause stands out: the H200 was busy with the command's work 20 % of 60.0 s; data took 40 %");
    struct hec_finding *f = starved();
    f->seconds = (struct hec_saving){0.1, 0.3, 0.35};
    f->joules = (struct hec_saving)UNKNOWN;
    hec_finding_add(f, HEC_FACT(SHARED, 2, true));
    headline(
        "starved for data: the H200 had no work from the command 40 % of 60.0 s; fixing it would save about 30 % of "
        "the time (10 to 35), the run about 1.4 times as fast (1.1 to 1.5)");
    assert_int_equal(hec_caveats(&summary, text), 1);
    assert_string_equal(text[0], "others were at work on the H200: its joules, watts and counters are of all of them");
    style.columns = 200;
    print();
    SAYS(
        "shared with a process that the driver does not list, at work: while CUPTI looked the engine was active 97 % of",
        "with the command's work 23 %",
        "the device is shared: its counters are of all processes on it, and so are its joules",
        "unknown: launched, and mostly waiting for the others' turns");
    readings->shared_with = 2;
    print();
    SAYS("shared with 2 other processes, at work:");
    readings->others = HEC_OTHERS_MAYBE;
    print();
    SAYS(
        "shared with 2 other processes: the energy is the device's, not the command's alone, and so may be the counters",
        "others may have been at work on the H200");
    readings->others = HEC_OTHERS_IDLE;
    print();
    SAYS("shared with 2 other processes: the energy is the device's, not the command's alone");
    SAYS_NOT("counters are of all of them");
    style.columns = 0;
}

TEST(test_a_finding_whole) {
    starved();
    find(HEC_CAUSE_LAUNCH, 0.1, 0.09);
    find(HEC_CAUSE_NONE, 0, 0.9);
    find(HEC_CAUSE_SYNC, 0.01, 0.01);
    find(HEC_CAUSE_COPY, 0.005, 0.01);
    print();
    SAYS("  saves      20 % of the joules (16 to 24), about 7.1 kJ", "  do         at ",
         "images.py:41 Images.__getitem__: ", "  then       launch-bound: 10 % of the joules (8 to 12)",
         "Findings  1  starved for data: 40 % of the steps' time (confidence 0.90)",
         "  because    - code is loaded 0 times", "images.py:41 Images.__getitem__ (84 %)", "          2  launch-bound",
         "          3  stalled by synchronisation: 1 % of the steps' time");
    SAYS_NOT("loaded 2 times"); /* not the first: its title only */
    SAYS_NOT("healthy", "stalled by copies");
    SAYS("and 1 more", "hec explain data");
    SAYS_NOT("--trace auto", "nan");
    style.all = true;
    print();
    SAYS("loaded 2 times", "loaded 3 times", "  lever      load ahead, in parallel: DataLoader(");
    SAYS_NOT("and 1 more");
}

static void on_what_watts_rest(struct hec_reason how) {
    of.watts.how = how;
    print();
}

/* A line under the ledger, but for watts that were measured. */
TEST(test_on_what_watts_rest) {
    style.all = true;
    on_what_watts_rest(HEC_BECAUSE_OF(ROUGH_WIDE, 0.3));
    SAYS("\n             watts rough: the readings give some states only within 30 %\n");
    on_what_watts_rest(HEC_BECAUSE(ROUGH_OTHERS));
    SAYS("\n             watts rough: the joules are the device's, and others worked on it\n             too\n");
    for (int id = HEC_REASON_MEASURED_SAMPLES; id <= HEC_REASON_MEASURED_CONTEXT; id++) {
        on_what_watts_rest((struct hec_reason){.id = id});
        SAYS("120 W");
        SAYS_NOT("measured");
    }
    on_what_watts_rest(HEC_BECAUSE(NONE));
    SAYS("120 W");
    SAYS_NOT("\n             watts");
}

TEST(test_at_the_end_of_run) {
    starved();
    find(HEC_CAUSE_LAUNCH, 0.1, 0.09);
    style.brief = true;
    print();
    SAYS("found      starved for data: the H200 idled 40 %",
         "images.py:41 Images.__getitem__: ", "load\n             ahead, in parallel", "then       launch-bound: 10 %");
    SAYS_NOT("because");
}

TEST(test_dollars_where_they_count) {
    starved()->saved_s = 0.4 * summary.seconds;
    print();
    SAYS_NOT("kJ, $");
    summary.price.dollars_per_gpu_hour = 3;
    print(); /* 0.4 of a minute of 3 $ an hour */
    SAYS("about 7.1 kJ, $0.020");
}

TEST(test_hostile_text) {
    struct hec_finding *f = starved();
    f->title = HEC_FACT(USED_BY, NAN);
    f->title.name = "\033[2Jstarved\n";
    hec_finding_add_of(f, "\033]0;x\007\r", HEC_FACT(KERNEL, 1e-6, 3));
    snprintf(f->lines[0].file, sizeof f->lines[0].file, "%s", "\033[31m\xff/\n.py");
    snprintf(f->lines[0].function, sizeof f->lines[0].function, "%s", "f\xc3\x28\t");
    style.columns = 60;
    print();
    SAYS_NOT("\033");
    style.brief = true;
    style.columns = 80;
    print();
    SAYS_NOT("\033");
}

TEST(test_places) {
    char text[128];
    const char *file = "/home/somebody/project/loader/images.py";
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

TEST(test_scale_out_and_latency) {
    summary.job.findings.scale_out =
        (struct hec_scale_out){.verdict = HEC_SCALE_OUT, .reason = HEC_SCALE_FULL, .utilisation = 0.9};
    summary.job.findings.latency = (struct hec_latency){
        .valid = true, .total_s = 0.01, .compute_s = 0.004, .batching_s = 0.003, .transport_s = 0, .host_s = 0.003};
    print();
    SAYS("Scale out?   yes: busy 90 % of the time in use and little is left to fix: add\n             devices");
    summary.job.findings.scale_out = (struct hec_scale_out){.verdict = HEC_SCALE_OPTIMISE,
                                                            .reason = HEC_SCALE_WASTE,
                                                            .utilisation = 0.9,
                                                            .recoverable = NAN,
                                                            .recoverable_seconds = 0.21};
    print();
    SAYS(
        "Scale out?   optimise first: busy 90 % of the time in use, but about 21 % of the\n             time is recoverable: tune first");
    summary.job.findings.scale_out.reason = HEC_SCALE_IDLE;
    summary.job.findings.scale_out.utilisation = 0.3;
    print();
    SAYS("busy 30 % of the time in use, below 70 %: more",
         "Latency      10.0 ms a call: compute 4.00 ms (40 %), batching 3.00 ms (30 %),");
    SAYS_NOT("transport");
}

/* Of every cause all is said. */
TEST(test_explain) {
    for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++) {
        const struct hec_cause_words *words = hec_cause_words((enum hec_cause)cause);
        assert_true(strlen(words->meaning) > 40 && strlen(words->detection) > 40 && strlen(words->saving) >= 5);
        assert_true(hec_limit_next((enum hec_cause)cause, NULL) && hec_advice_next((enum hec_cause)cause, NULL));
        for (const struct hec_advice *a = NULL; (a = hec_advice_next((enum hec_cause)cause, a));)
            assert_true(a->framework[0] && a->text[0] && (!a->code || a->code[strlen(a->code) - 1] == '\n'));
        assert_int_equal(hec_report_explain((enum hec_cause)cause, false, &style, page()), 0);
        SAYS(hec_cause_title((enum hec_cause)cause), "signs", "answer");
    }
    assert_string_equal(hec_cause_title((enum hec_cause) - 1), "?");
    char words[HEC_LIMIT_WORDS];
    hec_limit_words(words, sizeof words, HEC_CAUSE_COPY, "{COPY_LEAST}, {STATE_SMALL_BYTES}, {FINDING_SURE}.");
    assert_string_equal(words, "5 %, 64 KiB, 0.3.");
    assert_string_equal(hec_limit_words(words, sizeof words, HEC_CAUSE_COUNT, "{NAME}={FINDING_WORTH}, {}, {"),
                        "{NAME}=5 %, {}, {");
    assert_string_equal(hec_limit_words(words, 9, HEC_CAUSE_DATA, "at most {STATE_SMALL_BYTES}"), "at most ");
    assert_int_equal(hec_report_explain(HEC_CAUSE_COUNT, true, &style, page()), 0);
    parse();
    assert_int_equal(json_array_size(value_at("causes")), HEC_CAUSE_COUNT);
}

EACH_TEST(start_traced, finish)
