/* A receipt for programs: receipt.def gives its fields. */
#define HEC_JSON_TABLE "report/receipt.def"
#include "report/receipt_words.h"
#include "report/json_names.h"
#include "report/json_values.h"
#include "report/receipt_digest.h"

#include <stdlib.h>
#include <string.h>

static json_t *words_of(const struct hec_receipt_words *words) {
    json_t *list = json_array();
    for (int i = 0; i < words->count; i++)
        json_array_append_new(list, of_EXACT(words->list[i]));
    return list;
}

static json_t *lines_of(const struct hec_receipt *r,
                        int (*make)(const struct hec_receipt *, char (*)[HEC_RECEIPT_LINE])) {
    char lines[HEC_RECEIPT_LINES][HEC_RECEIPT_LINE];
    int count = make(r, lines);
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, of_STRING(lines[i]));
    return list;
}

static json_t *notes_of(const struct hec_receipt *r) {
    return lines_of(r, hec_receipt_notes);
}

static json_t *method_of(const struct hec_receipt *r) {
    return lines_of(r, hec_receipt_method);
}

static json_t *losses_of(const struct hec_experiment_trial *t) {
    json_t *list = json_array();
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++)
        json_array_append_new(list, isinf(t->loss[i]) ? json_string("infinite") : of_NUMBER(t->loss[i]));
    return list;
}

#include "report/json_objects.h"

/* ---- as text ---- */

#define INDENT 2
#define DUMP (JSON_ENCODE_ANY | JSON_REAL_PRECISION(17))

static bool holds_containers(json_t *value) {
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_array(value))
        json_array_foreach(value, i, item) if (json_is_array(item) || json_is_object(item)) return true;
    json_object_foreach(value, key, item) if (json_is_array(item) || json_is_object(item)) return true;
    return false;
}

static int add_bytes(const char *data, size_t size, void *out) {
    return hec_buf_add(out, data, size) < 0 ? -1 : 0;
}

/* A trial takes a few lines, not sixty: what holds plain values alone is one. */
static int print(json_t *value, int depth, struct hec_buf *out) {
    bool array = json_is_array(value);
    const char *key, *between = array ? "[" : "{";
    json_t *item;
    size_t i;
    int failed = 0;
    if (!holds_containers(value))
        return json_dump_callback(value, add_bytes, out, DUMP);
    if (array)
        json_array_foreach(value, i, item) {
            hec_buf_printf(out, "%s\n%*s", between, INDENT * (depth + 1), "");
            failed |= print(item, depth + 1, out);
            between = ",";
        }
    json_object_foreach(value, key, item) {
        hec_buf_printf(out, "%s\n%*s\"%s\": ", between, INDENT * (depth + 1), "", key);
        failed |= print(item, depth + 1, out);
        between = ",";
    }
    hec_buf_printf(out, "\n%*s%s", INDENT * depth, "", array ? "]" : "}");
    return failed;
}

int hec_receipt_json(const struct hec_receipt *receipt, struct hec_buf *out) {
    char digest[HEC_SHA256_TEXT];
    struct hec_answer answer = hec_receipt_answer(receipt);
    json_t *root = receipt->error ? NULL : json_receipt(receipt, &answer);
    int err = receipt->error ? receipt->error : root ? hec_receipt_digest(root, digest) : HEC_ERR_NOMEM;
    if (!err) {
        json_object_set_new(root, "digest", json_string(digest));
        err = print(root, 0, out) ? HEC_ERR_NOMEM : HEC_OK;
        hec_buf_puts(out, "\n");
    }
    json_decref(root);
    return hec_buf_error(out) ? hec_buf_error(out) : err;
}
