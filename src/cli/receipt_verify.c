#include "cli/receipt_verify.h"

#include "report/receipt/digest.h"
#include "report/receipt/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        compare(v, json_object_get(root, key), item, key);
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
