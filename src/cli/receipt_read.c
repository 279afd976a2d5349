#include "cli/receipt_read.h"

#include "base/trace.h"
#include "launch/kept_file.h"
#include "model/trace.h"
#include "report/json_check.h"
#include "report/receipt/digest.h"
#include "report/receipt/words.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Receipts read back: from anybody, so nothing in them is trusted. */

#define BYTES_MOST (32u << 20) /* HEC_RECEIPT_TRIALS_MOST trials take about 6 MB */
#define STEPS_MOST 1000000000000000
#define PAIRS_MOST 1000000

/* What is read after the schema has said that all keys are there, and of their types. */
struct read {
    struct hec_receipt *receipt;
    struct hec_why *why;
    int err;
};

static void fault(struct read *r, const char *key, const char *what) {
    if (!r->err)
        r->err = hec_fail(r->why, HEC_ERR_CORRUPT, "%s %s", key, what);
}

static const json_t *at(const json_t *object, const char *key) {
    return json_object_get(object, key);
}

static double number(const json_t *object, const char *key) {
    const json_t *value = at(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int64_t integer(struct read *r, const json_t *object, const char *key, int64_t most) {
    int64_t value = json_integer_value(at(object, key));
    if (value > most)
        fault(r, key, "is too large");
    return value;
}

static void string(struct read *r, const json_t *object, const char *key, char *out, size_t size) {
    const char *value = json_string_value(at(object, key));
    if (value && strlen(value) >= size)
        fault(r, key, "is too long");
    else
        snprintf(out, size, "%s", value ? value : "");
}

static void words(struct read *r, const json_t *list, struct hec_receipt_words *out) {
    for (size_t i = 0; i < json_array_size(list); i++)
        hec_receipt_add_word(r->receipt, out, json_string_value(json_array_get(list, i)));
}

static void facts(struct read *r, const json_t *list, struct hec_receipt_facts *out) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *fact = json_array_get(list, i);
        hec_receipt_add_fact(r->receipt, out, json_string_value(at(fact, "name")),
                             json_string_value(at(fact, "value")));
    }
}

/* The place of a name in a list; the schema has seen to it that it is there. */
static int place(const json_t *object, const char *key, const char *(*name)(int), int count) {
    const char *value = json_string_value(at(object, key));
    int i = 0;
    while (i < count - 1 && strcmp(name(i), value) != 0)
        i++;
    return i;
}

static const char *writes_name(int i) {
    return hec_receipt_writes_name((enum hec_receipt_writes)i);
}
static const char *caches_name(int i) {
    return hec_receipt_caches_name((enum hec_receipt_caches)i);
}

static const char *source_name(int i) {
    return hec_step_source_name((enum hec_step_source)i);
}

/* ---- parts ---- */

static void read_plan(struct read *r, const json_t *plan) {
    struct hec_experiment_plan *p = &r->receipt->plan;
    const char *seed = json_string_value(at(plan, "seed"));
    char *end;
    errno = 0;
    p->seed = strtoull(seed, &end, 10);
    if (!seed[0] || strspn(seed, "0123456789") != strlen(seed) || errno)
        fault(r, "plan.seed", "is no number of 64 bits");
    p->pairs = (int)integer(r, plan, "pairs", PAIRS_MOST);
    p->pairs_most = (int)integer(r, plan, "pairs_most", PAIRS_MOST);
    p->until = number(plan, "until");
    p->margin = number(plan, "margin");
    p->spent_joules = number(plan, "spent_joules");
    p->spent_seconds = number(plan, "spent_seconds");
    p->large_effects = json_is_true(at(plan, "large_effects"));    /* not in older ones */
    p->saving_least = json_number_value(at(plan, "saving_least")); /* 0 where it is not there */
    p->expected_cost = json_number_value(at(plan, "expected_cost"));
    p->expected_speed = json_number_value(at(plan, "expected_speed"));
    p->gradients = json_is_true(at(plan, "gradients"));
    p->loss_steps = integer(r, plan, "loss_steps", STEPS_MOST);
    r->receipt->warm_up = (int)integer(r, plan, "warm_up", PAIRS_MOST);
    if (isnan(p->until) || isnan(p->margin) || isnan(p->spent_seconds))
        fault(r, "plan", "has no precision, no margin or no time before it");
}

static void read_conditions(struct read *r, const json_t *c) {
    struct hec_receipt *out = r->receipt;
    const char *simulated = json_string_value(at(c, "simulated"));
    out->steps = integer(r, c, "steps", STEPS_MOST);
    if (json_is_string(at(c, "steps_by")))
        out->steps_by = (enum hec_step_source)place(c, "steps_by", source_name, HEC_STEP_SOURCE_COUNT);
    out->seconds = number(c, "seconds");
    out->writes = (enum hec_receipt_writes)place(c, "writes", writes_name, HEC_RECEIPT_WRITES);
    out->caches = (enum hec_receipt_caches)place(c, "caches", caches_name, HEC_RECEIPT_CACHES);
    out->trace = place(c, "trace", hec_trace_mode_name, HEC_TRACE_MODE_COUNT);
    out->trace_memory_mb = number(c, "trace_memory_mb");
    out->hooks = json_is_true(at(c, "hooks"));
    words(r, at(c, "covered"), &out->covered);
    words(r, at(c, "left"), &out->left);
    words(r, at(c, "units"), &out->units);
    words(r, at(c, "printed"), &out->printed); /* not in older ones */
    if (simulated)
        hec_receipt_set(out, &out->simulated, simulated);
    if (isnan(out->seconds) || isnan(out->trace_memory_mb))
        fault(r, "conditions", "do not say when trials were ended");
}

static struct hec_trial_block block_of(const json_t *block) {
    return (struct hec_trial_block){.seconds = number(block, "seconds"),
                                    .joules = number(block, "joules"),
                                    .units = number(block, "units"),
                                    .steps = number(block, "steps")};
}

static const char *tried_name(int i) {
    return hec_tried_name((enum hec_tried)i);
}

static void range(const json_t *list, double out[3]) {
    for (size_t i = 0; i < 3; i++) {
        const json_t *value = json_array_get(list, i);
        out[i] = json_is_number(value) ? json_number_value(value) : NAN;
    }
}

static void read_tried(struct read *r, const json_t *t) {
    struct hec_receipt_tried tried = {
        .outcome = (enum hec_tried)place(t, "outcome", tried_name, HEC_TRIEDS),
        .trials = (int)integer(r, t, "trials", PAIRS_MOST),
        .joules_per_unit = number(t, "joules_per_unit"),
        .units_per_second = number(t, "units_per_second"),
    };
    string(r, t, "levers", tried.levers, sizeof tried.levers);
    string(r, t, "text", tried.text, sizeof tried.text);
    range(at(t, "joules"), tried.joules);
    range(at(t, "rate"), tried.rate);
    hec_receipt_add_tried(r->receipt, &tried);
}

static void read_block(struct read *r, const json_t *b) {
    struct hec_receipt_block block = {
        .failed = json_is_true(at(b, "failed")),
        .switching_s = number(b, "switching_s"),
        .settling_s = number(b, "settling_s"),
        .seconds = number(b, "seconds"),
        .joules_per_unit = number(b, "joules_per_unit"),
        .units_per_second = number(b, "units_per_second"),
    };
    string(r, b, "levers", block.levers, sizeof block.levers);
    hec_receipt_add_block(r->receipt, &block);
}

static void read_trial(struct read *r, const json_t *t) {
    struct hec_experiment_trial trial = {
        .pair = json_is_null(at(t, "pair")) ? -1 : (int)integer(r, t, "pair", PAIRS_MOST),
        .side = place(t, "side", hec_receipt_side_name, 2),
        .stopped = json_is_true(at(t, "stopped")),
        .steady = block_of(at(t, "steady")),
        .run = block_of(at(t, "run")),
        .loss_count = (int)integer(r, t, "loss_count", INT_MAX),
        .gradients = {.all = number(t, "gradient"), .first = number(t, "gradient_first")},
    };
    for (size_t i = 0; i < HEC_GRADIENT_PARTS; i++) {
        const json_t *part = json_array_get(at(t, "gradient_parts"), i);
        trial.gradients.part[i] = json_is_number(part) ? json_number_value(part) : NAN;
    }
    for (size_t i = 0; i < HEC_EXPERIMENT_BINS; i++) {
        const json_t *loss = json_array_get(at(t, "loss"), i);
        if (json_is_string(loss) && strcmp(json_string_value(loss), "infinite") != 0)
            fault(r, "loss", "is a text other than \"infinite\"");
        trial.loss[i] = json_is_number(loss) ? json_number_value(loss) : json_is_string(loss) ? INFINITY : NAN;
    }
    hec_receipt_add_trial(r->receipt, &trial);
}

static void read_all(struct read *r, const json_t *root) {
    struct hec_receipt *out = r->receipt;
    const json_t *trials = at(root, "trials"), *tried = at(root, "tried"), *blocks = at(root, "blocks");
    const char *folder = json_string_value(at(root, "folder"));
    string(r, root, "created", out->created, sizeof out->created);
    string(r, root, "hec_version", out->hec_version, sizeof out->hec_version);
    string(r, root, "unit", out->unit, sizeof out->unit);
    words(r, at(at(root, "commands"), "a"), &out->command[0]);
    words(r, at(at(root, "commands"), "b"), &out->command[1]);
    words(r, at(at(root, "commands"), "levers"), &out->levers);
    words(r, at(root, "withheld"), &out->withheld);
    facts(r, at(root, "facts"), &out->facts);
    facts(r, at(root, "environment"), &out->environment);
    if (folder)
        hec_receipt_set(out, &out->folder, folder);
    read_plan(r, at(root, "plan"));
    read_conditions(r, at(root, "conditions"));
    for (size_t i = 0; i < json_array_size(tried) && !out->error; i++)
        read_tried(r, json_array_get(tried, i));
    for (size_t i = 0; i < json_array_size(blocks) && !out->error; i++) /* not in older ones */
        read_block(r, json_array_get(blocks, i));
    for (size_t i = 0; i < json_array_size(trials) && !out->error; i++)
        read_trial(r, json_array_get(trials, i));
    if (!r->err && !out->command[0].count)
        fault(r, "commands.a", "is empty");
    if (!r->err && out->error)
        r->err = hec_fail(r->why, out->error, out->error == HEC_ERR_LIMIT ? "it has more than %d trials" : "no memory",
                          HEC_RECEIPT_TRIALS_MOST);
}

/* ---- the whole ---- */

static int check_schema(const json_t *root, struct hec_why *why) {
    struct hec_buf text;
    const char *version = json_string_value(at(root, "schema"));
    if (!version || strncmp(version, "hec.receipt/", strlen("hec.receipt/")) != 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "this is no receipt of hec");
    if (strcmp(version, HEC_RECEIPT_SCHEMA) != 0)
        return hec_fail(why, HEC_ERR_VERSION, "a receipt of another format than " HEC_RECEIPT_SCHEMA);
    hec_buf_init(&text, 1 << 20);
    int err = hec_receipt_schema(&text);
    json_t *schema = err ? NULL : json_loads(hec_buf_text(&text), 0, NULL);
    hec_buf_free(&text);
    err = schema ? hec_json_check(schema, root, why) : hec_fail(why, HEC_ERR_NOMEM, "no memory");
    json_decref(schema);
    return err;
}

int hec_receipt_read(const char *text, size_t length, struct hec_receipt *receipt, json_t **root, struct hec_why *why) {
    struct read r = {receipt, why, HEC_OK};
    json_error_t error;
    *receipt = (struct hec_receipt){.error = HEC_OK};
    *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!*root)
        r.err = hec_fail(why, HEC_ERR_CORRUPT, "it is no JSON: line %d, column %d", error.line, error.column);
    if (!r.err)
        r.err = check_schema(*root, why);
    if (!r.err)
        read_all(&r, *root);
    if (!r.err && (r.err = hec_receipt_judge(receipt)) < 0)
        hec_fail(why, r.err, "no memory");
    if (r.err < 0) {
        hec_receipt_free(receipt);
        json_decref(*root);
        *root = NULL;
    }
    return r.err;
}

int hec_receipt_load(const char *path, struct hec_receipt *receipt, json_t **root, struct hec_why *why) {
    struct hec_why inner = {""};
    size_t length;
    char *text;
    *receipt = (struct hec_receipt){.error = HEC_OK};
    *root = NULL;
    int err = hec_small_file_read(path, BYTES_MOST, &text, &length, why);
    if (!err && (err = hec_receipt_read(text, length, receipt, root, &inner)) < 0)
        hec_fail(why, err, "%.200s: %.300s", path, inner.text);
    free(text);
    return err;
}

#define LINES_MOST 20
#define PATH_SIZE 160
#define ROUNDING 1e-9 /* relative: what mathematical libraries differ by; far below what any figure says */

struct verify {
    const struct hec_receipt *receipt;
    struct hec_buf *out;
    int count;
    bool other_version;
};

__attribute__((format(printf, 2, 3))) static void objection(struct verify *v, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (v->count++ < LINES_MOST)
        hec_buf_printf(v->out, "%s\n", line);
}

/* ---- the table ---- */

static int check_warm_up(struct verify *v) {
    const struct hec_receipt *r = v->receipt;
    int count = 0, sides = hec_receipt_is_baseline(r) ? 1 : 2;
    while (count < r->trial_count && r->trials[count].pair < 0) {
        if (r->trials[count].side != count % sides)
            objection(v, "trial %d, a warm-up, is of %s and should be of %s", count + 1,
                      hec_receipt_side_name(r->trials[count].side), hec_receipt_side_name(count % sides));
        count++;
    }
    if (count != sides * r->warm_up && (count > sides * r->warm_up || count < r->trial_count))
        objection(v, "there are %d warm-ups before the first pair, and the plan says %d", count, sides * r->warm_up);
    return count;
}

/* In the order of the seed, no pair left out, none more than planned. */
static void check_order(struct verify *v) {
    const struct hec_receipt *r = v->receipt;
    bool alone = hec_receipt_is_baseline(r);
    int first = check_warm_up(v);
    int most = alone || r->plan.pairs ? r->plan.pairs
               : r->plan.pairs_most   ? r->plan.pairs_most
                                      : HEC_EXPERIMENT_PAIRS_MOST;
    for (int i = first; i < r->trial_count; i++) {
        int pair = alone ? i - first : (i - first) / 2;
        int side = alone ? 0 : hec_sequential_b_first(r->plan.seed, pair) ^ ((i - first) & 1);
        const struct hec_experiment_trial *t = &r->trials[i];
        if (t->pair != pair || t->side != side)
            objection(v, "trial %d is %s of pair %d; the order of the seed asks for %s of pair %d", i + 1,
                      hec_receipt_side_name(t->side), t->pair + 1, hec_receipt_side_name(side), pair + 1);
    }
    if (most && r->trial_count - first > (alone ? 1 : 2) * most)
        objection(v, "there are more pairs than the %d that were planned", most);
}

/* ---- what follows from it ---- */

static bool near(double a, double b) {
    return fabs(a - b) <= ROUNDING * fmax(fabs(a), fabs(b));
}

static bool is_words(const char *path) {
    return strstr(path, "sentence") || strstr(path, "notes[") || strncmp(path, "method[", 7) == 0;
}

static char *dumped(const json_t *value) {
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10) | JSON_ENSURE_ASCII);
    return text ? text : strdup("?");
}

#define SHOWN 50

static void cut(char out[64], const char *text, size_t from) {
    snprintf(out, 64, "%s%.*s%s", from ? "..." : "", SHOWN, text + from, strlen(text + from) > SHOWN ? "..." : "");
}

/* Of long ones where they differ. */
static void shown(char said[64], char given[64], const json_t *says, const json_t *gives) {
    char *a = dumped(says), *b = dumped(gives);
    size_t same = 0, from = 0;
    while (a && b && a[same] && a[same] == b[same])
        same++;
    if (same > SHOWN / 2)
        from = same - SHOWN / 4;
    cut(said, a ? a : "?", a ? from : 0);
    cut(given, b ? b : "?", b ? from : 0);
    free(a);
    free(b);
}

static void compare(struct verify *v, const json_t *says, const json_t *gives, const char *path) {
    char inner[PATH_SIZE], said[64], given[64];
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_object(says) && json_is_object(gives)) { /* of the same keys: the schema has seen to it */
        json_object_foreach((json_t *)says, key, item) {
            snprintf(inner, sizeof inner, "%.120s%s%.30s", path, path[0] ? "." : "", key);
            compare(v, item, json_object_get(gives, key), inner);
        }
    } else if (json_is_array(says) && json_is_array(gives) && json_array_size(says) == json_array_size(gives)) {
        json_array_foreach(says, i, item) {
            snprintf(inner, sizeof inner, "%.120s[%zu]", path, i);
            compare(v, item, json_array_get(gives, i), inner);
        }
    } else if (v->other_version && json_is_string(says) && is_words(path)) {
        return; /* they may have been said otherwise */
    } else if (json_is_number(says) && json_is_number(gives) ? !near(json_number_value(says), json_number_value(gives))
                                                             : !json_equal(says, gives)) {
        shown(said, given, says, gives);
        objection(v, "%s: the receipt says %s, its plan and trials give %s", path, said, given);
    }
}

static int check_figures(struct verify *v, const json_t *root) {
    struct hec_buf text;
    hec_buf_init(&text, 256u << 20);
    int err = hec_receipt_json(v->receipt, &text);
    json_t *again = err ? NULL : json_loadb(hec_buf_text(&text), text.length, 0, NULL);
    hec_buf_free(&text);
    if (!again)
        return err ? err : HEC_ERR_NOMEM;
    json_object_del(again, "digest");
    const char *key;
    json_t *item;
    json_object_foreach(again, key, item) {
        const json_t *says = json_object_get(root, key);
        if (says) /* an older one may lack what came later: the schema has seen to the rest */
            compare(v, says, item, key);
    }
    json_decref(again);
    return HEC_OK;
}

static int check_digest(struct verify *v, const json_t *root) {
    char digest[HEC_SHA256_TEXT];
    int err = hec_receipt_digest(root, digest);
    if (!err && strcmp(digest, json_string_value(json_object_get(root, "digest"))) != 0)
        objection(v, "digest: the receipt was changed after it was written");
    return err;
}

int hec_receipt_verify(const struct hec_receipt *receipt, const json_t *root, struct hec_buf *out) {
    struct verify v = {receipt, out, 0, strcmp(receipt->hec_version, HEC_VERSION) != 0};
    int err = check_digest(&v, root);
    if (!err) {
        check_order(&v);
        err = check_figures(&v, root);
    }
    if (!err && v.count > LINES_MOST)
        hec_buf_printf(out, "and %d more\n", v.count - LINES_MOST);
    if (!err && v.count && v.other_version)
        hec_buf_printf(out, "the receipt is of another version of hec, whose figures and words may be others\n");
    if (!err)
        err = hec_buf_error(out);
    return err ? err : v.count;
}
