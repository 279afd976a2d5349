/* Receipts: written and read back bit for bit, every change of one is found, and nothing that is none is read. */
#include "base/sha256.h"
#include "base/trace.h"
#include "cli/receipt_read.h"
#include "launch/kept_file.h"
#include "prove_worlds.h"
#include "report/receipt/digest.h"
#include "report/receipt/receipt.h"
#include "report/receipt/try.h"
#include "report/receipt/words.h"
#include "report_json.h"

/* ---- a receipt whose figures are drawn: B takes 0.9 of A's joules and is 1.25 times as fast ---- */

static struct hec_experiment_trial receipt_trial(int pair, int side, double joules) {
    struct hec_experiment_trial t = {
        .pair = pair, .side = side, .stopped = true, .loss_count = 640, .gradients = hec_gradients_none()};
    t.gradients.all = t.gradients.first = 0.5 + 0.001 * pair;
    for (int i = 0; i < 5; i++)
        t.gradients.part[i] = -1 + 0.002 * pair;
    double noise = 1 + 0.004 * world_normal();
    t.steady = (struct hec_trial_block){(side ? 8 / 3.0 : 10 / 3.0) * (1 + 0.003 * world_normal()),
                                        joules * 400 / 3 * noise, 400, 100};
    t.run = (struct hec_trial_block){t.steady.seconds + 1.7, t.steady.joules + 130.1, 420, 105};
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++)
        t.loss[i] = 0.3 + 2.1 * exp(-i / 8.0) + 0.003 * world_normal();
    return t;
}

static void receipt_add_words(struct hec_receipt *r, struct hec_receipt_words *to, const char *const *words) {
    for (; *words; words++)
        hec_receipt_add_word(r, to, *words);
}

/* pairs 0: a baseline of 4. Free it with hec_receipt_free. */
static void receipt_make(struct hec_receipt *r, int pairs) {
    static const char *const a[] = {"python3", "train.py", "--note", "a | b\n\033[31mred", NULL};
    static const char *const b[] = {"python3", "train.py", "--bf16", NULL};
    static const char *const variables[] = {
        "PATH=/bin", "OMP_NUM_THREADS=4", "HF_TOKEN=hf_geheim", "CUDA_VISIBLE_DEVICES=0", "nothing", "CUDA_EMPTY=",
        NULL};
    world_state = 7;
    *r = (struct hec_receipt){.steps = 105,
                              .warm_up = 1,
                              .writes = HEC_RECEIPT_ON_DISK,
                              .trace = HEC_TRACE_OFF,
                              .hooks = true,
                              .plan = {.seed = UINT64_MAX - 1, .pairs = pairs, .gradients = true, .loss_steps = 105}};
    snprintf(r->created, sizeof r->created, "2026-11-22T16:00:00+00:00");
    snprintf(r->hec_version, sizeof r->hec_version, "%s", HEC_VERSION);
    snprintf(r->unit, sizeof r->unit, "sample");
    hec_receipt_set(r, &r->folder, "/home/x/träume");
    receipt_add_words(r, &r->command[0], a);
    if (pairs)
        receipt_add_words(r, &r->command[1], b);
    if (pairs) {
        struct hec_receipt_tried base = {.outcome = HEC_TRIED_BASE,
                                         .trials = 2,
                                         .joules_per_unit = 0.1,
                                         .units_per_second = 5000,
                                         .joules = {NAN, NAN, NAN},
                                         .rate = {NAN, NAN, NAN}};
        struct hec_receipt_tried kept = {.levers = "bf16_autocast",
                                         .outcome = HEC_TRIED_KEPT,
                                         .trials = 1,
                                         .joules_per_unit = 0.09,
                                         .units_per_second = 5100,
                                         .joules = {0.88, 0.9, 0.92},
                                         .rate = {NAN, 1.02, NAN},
                                         .text = "on: 1 module"};
        struct hec_receipt_tried failed = {.levers = "compile",
                                           .outcome = HEC_TRIED_FAILED,
                                           .trials = 1,
                                           .joules_per_unit = NAN,
                                           .units_per_second = NAN,
                                           .joules = {NAN, NAN, NAN},
                                           .rate = {NAN, NAN, NAN},
                                           .text = "exit status 1: a | b"};
        hec_receipt_add_word(r, &r->levers, "bf16_autocast");
        hec_receipt_add_tried(r, &base);
        hec_receipt_add_tried(r, &kept);
        hec_receipt_add_tried(r, &failed);
        struct hec_receipt_block on = {"bf16_autocast", false, 0.5, 3, 2, 0.09, 5100},
                                 gone = {.levers = "compile", .failed = true};
        gone.switching_s = gone.settling_s = gone.seconds = gone.joules_per_unit = gone.units_per_second = NAN;
        hec_receipt_add_block(r, &on);
        hec_receipt_add_block(r, &gone);
        r->plan.spent_joules = 1200;
        r->plan.spent_seconds = 100;
    }
    hec_receipt_add_environment(r, (char *const *)variables);
    hec_receipt_add_fact(r, &r->facts, "device", "NVIDIA H100 80GB HBM3");
    hec_receipt_add_fact(r, &r->facts, "driver", "580.95");
    hec_receipt_add_fact(r, &r->facts, "cpu", "Xeon");
    hec_receipt_add_fact(r, &r->facts, "host", "node1");
    hec_receipt_add_word(r, &r->covered, "/home/x");
    hec_receipt_add_word(r, &r->covered, "/tmp");
    hec_receipt_add_word(r, &r->left, "what was sent over the network");
    for (int side = 0; side < (pairs ? 2 : 1); side++) {
        struct hec_experiment_trial t = receipt_trial(-1, side, 1.3);
        hec_receipt_add_trial(r, &t);
    }
    for (int i = 0; i < 2 * pairs; i++) {
        int side = hec_sequential_b_first(r->plan.seed, i / 2) ^ (i & 1);
        struct hec_experiment_trial t = receipt_trial(i / 2, side, side ? 0.9 : 1);
        hec_receipt_add_trial(r, &t);
    }
    for (int i = 0; i < 4 && !pairs; i++) {
        struct hec_experiment_trial t = receipt_trial(i, 0, 1);
        hec_receipt_add_trial(r, &t);
    }
    hec_receipt_judge(r);
}

static struct hec_receipt r; /* of a test: freed before the next */

static void make(int pairs) {
    hec_receipt_free(&r);
    receipt_make(&r, pairs);
}

static char *text_of(const struct hec_receipt *of) {
    assert_int_equal(hec_receipt_json(of, page()), 0);
    return strdup(hec_buf_text(&out));
}

/* What is read back from the JSON of a receipt. */
static void read_back(struct hec_receipt *there, struct hec_receipt *back) {
    struct hec_why why = {""};
    json_t *root;
    hec_receipt_judge(there);
    char *text = text_of(there);
    assert_int_equal(hec_receipt_read(text, strlen(text), back, &root, &why), 0);
    free(text);
    json_decref(root);
}

static char *made(int pairs) {
    make(pairs);
    char *text = text_of(&r);
    return text;
}

/* FIPS 180-4's examples, and lengths around the ends of blocks (by coreutils' sha256sum). */
TEST(sha256) {
    char text[HEC_SHA256_TEXT], as[128];
    memset(as, 'a', sizeof as);
    assert_string_equal(hec_sha256(text, "", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(hec_sha256(text, "abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(hec_sha256(text, as, 55), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    assert_string_equal(hec_sha256(text, as, 56), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    assert_string_equal(hec_sha256(text, as, 64), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    assert_string_equal(hec_sha256(text, as, 119), "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
}

/* ---- there and back ---- */

TEST(round_trip) {
    for (int pairs = 0; pairs <= 6; pairs += 3) {
        struct hec_receipt there, back;
        receipt_make(&there, pairs);
        there.trials[1].loss[3] = NAN;
        there.trials[2].loss[4] = INFINITY;
        there.trials[2].steady.joules = 0.1 + 0.2;
        there.trials[3].steady.units = NAN;
        there.trials[3].run.seconds = 5e-324;
        read_back(&there, &back);
        assert_int_equal(back.trial_count, there.trial_count);
        for (int i = 0; i < there.trial_count; i++)
            for (size_t k = 0; k < HEC_EXPERIMENT_BINS; k++)
                assert_true(memcmp(&back.trials[i].loss[k], &there.trials[i].loss[k], sizeof(double)) == 0 ||
                            isnan(there.trials[i].loss[k]));
        assert_memory_equal(&back.trials[2].steady, &there.trials[2].steady, sizeof there.trials[2].steady);
        assert_true(back.plan.seed == UINT64_MAX - 1);
        assert_string_equal(back.command[0].list[3], "a | b\n\033[31mred");
        assert_null(back.command[0].list[4]);
        char *text = text_of(&there), *again = text_of(&back);
        assert_string_equal(text, again);
        free(text);
        free(again);
        hec_receipt_free(&there);
        hec_receipt_free(&back);
    }
}

/* B takes a tenth less: enough where so much is asked, or nothing is. */
TEST(least_saving) {
    const double least[] = {0, 0.05, 0.15};
    for (int i = 0; i < 3; i++) {
        struct hec_receipt there, back;
        const char *why_not;
        receipt_make(&there, 6);
        there.plan.saving_least = least[i];
        read_back(&there, &back);
        assert_int_equal(hec_receipt_proves(&back, &why_not), i < 2);
        assert_true(i < 2 || strstr(why_not, "--min-saving"));
        hec_receipt_free(&there);
        hec_receipt_free(&back);
    }
}

/* What helped most in the search is not worth a proof: it saves too little, or was measured too briefly. */
TEST(why_nothing_is_kept) {
    const struct {
        double joules;
        const char *says;
    } cases[] = {
        {0.99, "what helped most saves less than 2 % (--min-saving asks for less): tf32"},
        {0.44,
         "what helped most takes 56 % fewer joules, in so few blocks that it may be chance (--budget-seconds allows more)"}};
    for (int i = 0; i < 2; i++) {
        struct hec_report_style style = {.columns = 200};
        struct hec_try_report tried = {.receipt = &r, .headline = "", .old = ""};
        struct hec_receipt_tried base = {.outcome = HEC_TRIED_BASE,
                                         .trials = 2,
                                         .joules_per_unit = 1,
                                         .joules = {NAN, NAN, NAN},
                                         .rate = {NAN, NAN, NAN}};
        struct hec_receipt_tried better = {.levers = "tf32",
                                           .outcome = HEC_TRIED_BETTER,
                                           .trials = 2,
                                           .joules_per_unit = cases[i].joules,
                                           .joules = {NAN, cases[i].joules, NAN},
                                           .rate = {NAN, NAN, NAN}};
        make(0);
        r.plan.saving_least = 0.02;
        hec_receipt_add_tried(&r, &base);
        hec_receipt_add_tried(&r, &better);
        assert_int_equal(hec_try_terminal(&tried, &style, page()), 0);
        assert_non_null(strstr(hec_buf_text(&out), cases[i].says));
    }
}

TEST(environment) {
    make(2);
    assert_int_equal(r.environment.count, 3);
    assert_string_equal(r.environment.list[0].name, "CUDA_EMPTY"); /* in order of the names */
    assert_string_equal(hec_receipt_fact(&r.environment, "OMP_NUM_THREADS"), "4");
    assert_null(hec_receipt_fact(&r.environment, "PATH"));
    assert_int_equal(r.withheld.count, 1);
    assert_int_equal(hec_receipt_json(&r, page()), 0);
    SAYS("HF_TOKEN");
    SAYS_NOT("geheim");
}

/* docs/receipt.schema.json is what `hec verify --schema` prints, and names what is written. */
TEST(schema) {
    free(made(3));
    parse();
    assert_schema(hec_receipt_schema, "receipt", "receipt", false);
}

/* ---- for people ---- */

/* What a receipt says in Markdown and on a terminal: tests/golden/receipt.md; HEC_GOLDEN_UPDATE=1 writes it anew. */
TEST(pages) {
    const char *path = HEC_SOURCE_DIR "/tests/golden/receipt.md";
    const struct hec_report_style style = {.utf8 = true};
    char *kept;
    size_t length;
    make(4);
    snprintf(r.hec_version, sizeof r.hec_version, "0.0.0");
    assert_int_equal(hec_receipt_terminal(&r, &style, page()), 0);
    lines(80);
    assert_int_equal(hec_receipt_markdown(&r, page()), 0);
    hec_buf_puts(&out, "\n```\n");
    assert_int_equal(hec_receipt_terminal(&r, &style, &out), 0);
    SAYS_NOT("\033");
    hec_buf_puts(&out, "```\n");
    if (getenv("HEC_GOLDEN_UPDATE"))
        assert_int_equal(hec_kept_file_write(path, out.data, NULL), 0);
    assert_int_equal(hec_kept_file_read(path, 1 << 20, &kept, &length, NULL), 0);
    if (length != out.length || memcmp(kept, out.data, length) != 0)
        fail_msg("it is not what tests/golden/receipt.md says:\n%s", out.data);
    free(kept);
}

static void assert_quality(struct hec_quality q, const char *words) {
    char sentence[HEC_QUALITY_SENTENCE];
    q.margin = 0.1;
    if (strcmp(hec_quality_sentence(sentence, &q), words) != 0)
        fail_msg("\"%s\", not \"%s\"", sentence, words);
}

TEST(words) {
    struct hec_quality q = {.verdict = HEC_QUALITY_FAIL, .why = HEC_QUALITY_OFF, .part = HEC_QUALITY_END};
    q.parts[HEC_QUALITY_END] = (struct hec_quality_difference){0.234, 0.18, 0.288, true};
    assert_quality(
        q, "fail: the loss of B is off that of A at its end by +23 % (+18 to +29) of what A's loss falls by; the "
           "margin is 10 %");
    q.why = HEC_QUALITY_NOT_FINITE;
    assert_quality(q, "fail: losses of B are not finite, those of A are");
    q.verdict = HEC_QUALITY_CANNOT_JUDGE;
    for (q.why = HEC_QUALITY_NOTHING; q.why <= HEC_QUALITY_SPREAD; q.why++) { /* each says why */
        char sentence[HEC_QUALITY_SENTENCE];
        assert_true(strlen(hec_quality_sentence(sentence, &q)) > strlen("cannot judge: because"));
    }
    q.why = HEC_QUALITY_A_FLAT;
    assert_quality(
        q, "cannot judge: the loss of A does not fall by 1 % of itself and more than its reruns differ by; longer "
           "trials would help");
    struct hec_receipt paid = {.unit = "sample", .result = {.joules = {true, 2.34e6, 2e6, INFINITY}}};
    char line[HEC_RECEIPT_LINE];
    assert_string_equal(hec_receipt_paid(line, &paid),
                        "after 2.34 million samples by the joules saved (soonest 2 million, latest perhaps never)");
    paid.result.joules.shown = false;
    assert_string_equal(hec_receipt_paid(line, &paid), "never, as far as is shown: nothing is saved");
    paid.unit[0] = '\0';
    assert_string_equal(hec_receipt_paid(line, &paid), "not known: no unit of work is");
}

/* ---- every change is found ---- */

/* How many there are; their words are in `out`. */
static int objections_of(json_t *root) {
    struct hec_receipt receipt;
    struct hec_why why = {""};
    json_t *read;
    char *text = json_dumps(root, JSON_REAL_PRECISION(17));
    page();
    int count = hec_receipt_read(text, strlen(text), &receipt, &read, &why);
    if (!count) {
        count = hec_receipt_verify(&receipt, read, &out);
        hec_receipt_free(&receipt);
        json_decref(read);
    }
    free(text);
    return count;
}

static json_t *changed(json_t *value) {
    static const char *const words[] = {"A", "B", "better", "worse", "pass", "fail", "start", "end"};
    if (json_is_real(value))
        return json_real(json_real_value(value) * 1.001 + 1e-6);
    if (json_is_integer(value))
        return json_integer(json_integer_value(value) + 1);
    if (json_is_boolean(value))
        return json_boolean(!json_is_true(value));
    if (json_is_null(value))
        return json_real(0.25);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) /* one that the schema knows as well */
        if (strcmp(json_string_value(value), words[i]) == 0)
            return json_string(words[i ^ 1]);
    return json_sprintf("%s0", json_string_value(value));
}

/* Changes every plain value below `parent`, one after another; with a digest that fits too, as a forger would. */
static int tamper(json_t *root, json_t *parent, bool forge, int *unseen) {
    int count = 0;
    size_t size = json_is_array(parent) ? json_array_size(parent) : json_object_size(parent), i = 0;
    const char **keys = calloc(size + 1, sizeof *keys), *key;
    json_t *item;
    json_object_foreach(parent, key, item) keys[i++] = key;
    for (i = 0; i < size;
         i += json_is_array(parent) && size > 8 ? size - 1 : 1) { /* of losses the first and the last */
        json_t *value = json_is_array(parent) ? json_array_get(parent, i) : json_object_get(parent, keys[i]);
        if (json_is_array(value) || json_is_object(value)) {
            count += tamper(root, value, forge, unseen);
            continue;
        }
        json_t *kept = json_deep_copy(value), *digest = json_deep_copy(json_object_get(root, "digest"));
        json_t *new = changed(value);
        if (json_is_array(parent))
            json_array_set_new(parent, i, new);
        else
            json_object_set_new(parent, keys[i], new);
        char text[HEC_SHA256_TEXT];
        if (forge && hec_receipt_digest(root, text) == 0)
            json_object_set_new(root, "digest", json_string(text));
        if (objections_of(root) == 0)
            (*unseen)++;
        json_object_set_new(root, "digest", digest);
        if (json_is_array(parent))
            json_array_set_new(parent, i, kept);
        else
            json_object_set_new(parent, keys[i], kept);
        count++;
    }
    free(keys);
    return count;
}

TEST(every_change_is_found) {
    char *text = made(2);
    int unseen = 0;
    json_t *root = json_loads(text, 0, NULL);
    assert_int_equal(objections_of(root), 0);
    assert_true(tamper(root, root, false, &unseen) > 150);
    assert_int_equal(unseen, 0);
    /* what follows from the trials is found even where the digest was made anew */
    assert_true(tamper(root, json_object_get(root, "verdict"), true, &unseen) > 60);
    assert_true(tamper(root, json_object_get(root, "method"), true, &unseen) > 1);
    assert_int_equal(unseen, 0);
    json_t *ratio = json_object_get(json_object_get(json_object_get(root, "verdict"), "look"), "ratio");
    json_array_set_new(ratio, 1, json_real(0.5));
    json_t *verdict = json_object_get(root, "verdict");
    json_object_set_new(verdict, "sentence",
                        json_sprintf("%s!", json_string_value(json_object_get(verdict, "sentence"))));
    objections_of(root);
    SAYS("!\", its plan"); /* what differs is shown, at the end of a long sentence too */
    SAYS("digest: the receipt was changed",
         "verdict.look.ratio[1]: the receipt says 0.5, its plan and trials give 0.8");
    json_decref(root);
    free(text);
}

/* Older builds wrote less, and judged pairs for small effects alone. */
TEST(an_older_one_holds) {
    char *text = made(6), digest[HEC_SHA256_TEXT];
    json_t *root = json_loads(text, 0, NULL), *plan = json_object_get(root, "plan");
    assert_int_equal(json_object_del(root, "blocks"), 0);
    assert_int_equal(json_object_del(plan, "large_effects"), 0);
    assert_int_equal(json_object_del(plan, "saving_least"), 0);
    assert_int_equal(hec_receipt_digest(root, digest), 0);
    json_object_set_new(root, "digest", json_string(digest));
    assert_int_equal(objections_of(root), 0);
    json_decref(root);
    free(text);
}

/* Two trials swapped, one pair dropped, one pair more than planned: a result that was picked. */
TEST(order_is_that_of_the_seed) {
    static const char *const said[] = {"the order of the seed asks for", "the order of the seed asks for",
                                       "more pairs than the 4",
                                       "1 warm-ups before the first pair, and the plan says 2"};
    for (int way = 0; way < 4; way++) {
        make(4);
        struct hec_experiment_trial *t = r.trials, kept = t[2];
        if (way == 0) {
            t[2] = t[3];
            t[3] = kept;
        } else if (way == 1) {
            memmove(t + 4, t + 6, (size_t)(r.trial_count - 6) * sizeof *t);
            r.trial_count -= 2;
        } else if (way == 2) {
            for (int i = 8; i < 10; i++) {
                kept = t[2 + (hec_sequential_b_first(r.plan.seed, 4) ^ (i & 1))];
                kept.pair = 4;
                kept.side = hec_sequential_b_first(r.plan.seed, 4) ^ (i & 1);
                hec_receipt_add_trial(&r, &kept);
                t = r.trials;
            }
        } else {
            memmove(t, t + 1, (size_t)(r.trial_count - 1) * sizeof *t);
            r.trial_count--;
        }
        hec_receipt_judge(&r);
        assert_int_equal(hec_receipt_json(&r, page()), 0);
        assert_true(objections_of(parse()) > 0);
        SAYS(said[way]);
        SAYS_NOT("digest");
    }
}

/* ---- what is no receipt ---- */

static void assert_refused(const char *text, int err, const char *words) {
    struct hec_receipt receipt;
    struct hec_why why = {""};
    json_t *root;
    int got = hec_receipt_read(text, strlen(text), &receipt, &root, &why);
    if (got != err || !strstr(why.text, words))
        fail_msg("%d \"%s\", not %d \"%s\"", got, why.text, err, words);
    assert_null(root);
    assert_true(receipt.trials == NULL && receipt.command[0].list == NULL);
}

/* The text with the first `from` replaced. */
static void assert_refused_with(const char *from, const char *to, int err, const char *words) {
    char *text = made(2), *at = strstr(text, from), *with = NULL;
    assert_non_null(at);
    assert_true(asprintf(&with, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    assert_refused(with, err, words);
    free(with);
    free(text);
}

TEST(hostile) {
    assert_refused("", HEC_ERR_CORRUPT, "no JSON");
    assert_refused("{", HEC_ERR_CORRUPT, "line 1");
    assert_refused("[]", HEC_ERR_CORRUPT, "no receipt of hec");
    assert_refused("{\"schema\": 5}", HEC_ERR_CORRUPT, "no receipt of hec");
    assert_refused("{\"schema\": \"hec.report/2\"}", HEC_ERR_CORRUPT, "no receipt of hec");
    assert_refused("{\"schema\": \"hec.receipt/1\"}", HEC_ERR_CORRUPT, "created is missing");
    static const struct {
        const char *from, *to; /* what is replaced in a good one */
        const char *words;
    } cases[] = {
        {"\"seed\": \"", "\"seed\": \"9", "plan.seed is no number of 64 bits"},
        {"\"seed\": \"", "\"seed\": \"-", "plan.seed"},
        {"\"pairs_most\": 0", "\"pairs_most\": 99999999999", "pairs_most is too large"},
        {"\"pairs_most\": 0", "\"pairs_most\": 1e99999", "no JSON"},
        {"\"pairs_most\": 0", "\"pairs_most\": 0.5", "plan.pairs_most is not integer"},
        {"\"margin\": 0.0", "\"margin\": null", "no precision, no margin or no time before it"},
        {"\"hooks\": true", "\"hooks\": 1", "conditions.hooks is not boolean"},
        {"\"hooks\": true", "\"hooks\": true, \"hooks\": true", "no JSON"},
        {"\"hooks\": true", "\"hooks\": true, \"more\": 1", "conditions.more is not known"},
        {"\"writes\": \"disk\"", "\"writes\": \"moon\"", "none of the words"},
        {"\"pair\": null", "\"pair\": -1", "trials[0].pair is out of range"},
        {"\"loss\": [", "\"loss\": [1,", "trials[0].loss has too few or too many"},
        {"\"loss\": [", "\"loss\": [[", "no JSON"},
        {"\"created\": \"", "\"created\": \"0000000000000000000000000000000000000000", "created is too long"},
        {"\"python3\"", "\"\\u0000\"", "no JSON"},
        {"\"python3\"", "{}", "commands.a[0] is not string"},
        {"sample", "s\xff", "no JSON"},
    };
    assert_refused_with("hec.receipt/1", "hec.receipt/2", HEC_ERR_VERSION, "another format");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused_with(cases[i].from, cases[i].to, HEC_ERR_CORRUPT, cases[i].words);
}

TEST(too_many_trials) {
    make(2);
    while (!r.error)
        hec_receipt_add_trial(&r, &r.trials[0]);
    assert_int_equal(r.error, HEC_ERR_LIMIT);
    assert_int_equal(r.trial_count, HEC_RECEIPT_TRIALS_MOST);
    assert_int_equal(hec_receipt_json(&r, page()), HEC_ERR_LIMIT); /* what is not whole is not written */
}
