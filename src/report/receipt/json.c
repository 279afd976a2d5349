/* A receipt for programs: receipt.def gives its fields. */
#define HEC_JSON_TABLE "report/receipt/receipt.def"
#include "report/json_values.h"
#include "report/receipt/words.h"
#include "report/json_names.h"
#include "report/json_print.h"
#include "report/json_roots.h"
#include "report/receipt/digest.h"

#include <stdlib.h>
#include <string.h>

static json_t *lines_of(const struct hec_receipt *r,
                        int (*make)(const struct hec_receipt *, char (*)[HEC_RECEIPT_LINE])) {
    char lines[HEC_RECEIPT_LINES][HEC_RECEIPT_LINE];
    return strings_of(lines[0], sizeof lines[0], make(r, lines));
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

static json_t *gradient_parts_of(const struct hec_experiment_trial *t) {
    json_t *list = json_array();
    for (int i = 0; i < HEC_GRADIENT_PARTS; i++)
        json_array_append_new(list, of_NUMBER(t->gradients.part[i]));
    return list;
}

#include "report/json_objects.h"

json_t *hec_receipt_root(const struct hec_receipt *receipt) {
    char digest[HEC_SHA256_TEXT];
    struct hec_answer answer = hec_receipt_answer(receipt);
    json_t *root = receipt->error ? NULL : json_receipt(receipt, &answer);
    if (root && hec_receipt_digest(root, digest) == 0) {
        json_object_set_new(root, "digest", json_string(digest));
        return root;
    }
    json_decref(root);
    return NULL;
}

int hec_receipt_json(const struct hec_receipt *receipt, struct hec_buf *out) {
    json_t *root = hec_receipt_root(receipt);
    int err = receipt->error ? receipt->error : root ? hec_json_print_rows(root, out) : HEC_ERR_NOMEM;
    json_decref(root);
    return hec_buf_error(out) ? hec_buf_error(out) : err;
}

#include "report/json_schema.h"

int hec_receipt_schema(struct hec_buf *out) {
    return HEC_JSON_SCHEMA(
        out, .id = "urn:hec:receipt:1", .title = "HEC receipt", .older = true,
        .description = "What `hec ab -o` and `hec check -o` write, and `hec verify` checks. Missing is null, never 0.",
        .root = "receipt");
}
