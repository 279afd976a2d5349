/* hec verify: receipts against their own trials. */
#include "base/log.h"
#include "cli/load.h"
#include "cli/receipt_read.h"
#include "cli/receipt_verify.h"
#include "report/receipt_words.h"

#include <stdio.h>
#include <string.h>

static void put_verified(const struct hec_receipt *receipt, const char *path, const json_t *root, struct hec_buf *out) {
    struct hec_answer answer = hec_receipt_answer(receipt);
    char sentence[HEC_ANSWER_SENTENCE];
    hec_buf_printf(out, "%s: verified: ", path);
    if (hec_receipt_is_baseline(receipt))
        hec_buf_printf(out, "a baseline of %d trials", receipt->trial_count);
    else
        hec_buf_puts(out, hec_answer_sentence(sentence, &answer));
    hec_buf_printf(out, "\n  digest %s\n", json_string_value(json_object_get(root, "digest")));
}

/* HEC_ERR_FAILED: it does not hold. */
static int verify(const struct hec_args *args, const char *path, struct hec_buf *out) {
    struct hec_receipt receipt;
    struct hec_why why = {""};
    struct hec_buf doubts;
    json_t *root;
    int err = hec_receipt_load(path, &receipt, &root, &why);
    if (err < 0) {
        hec_error("verify: %s", why.text);
        return err;
    }
    hec_buf_init(&doubts, 1 << 20);
    int count = err = hec_receipt_verify(&receipt, root, &doubts);
    if (count > 0) {
        hec_error("verify: %s does not hold:", path);
        fputs(hec_buf_text(&doubts), stderr);
        err = HEC_ERR_FAILED;
    } else if (count < 0) {
        hec_error("verify: %s: %s", path, hec_err_text(count));
    } else if (hec_args_has(args, HEC_OPT_MARKDOWN)) {
        err = hec_receipt_markdown(&receipt, out);
    } else {
        put_verified(&receipt, path, root, out);
    }
    hec_buf_free(&doubts);
    hec_receipt_free(&receipt);
    json_decref(root);
    return err;
}

int hec_verb_verify(int argc, char **argv) {
    struct hec_args args;
    struct hec_buf out;
    int first = HEC_OK, err = hec_args_parse(HEC_VERB_VERIFY, argc, argv, &args);
    if (err != HEC_OK)
        return err > 0 ? 0 : hec_err_exit_status(err);
    hec_buf_init(&out, 64u << 20);
    if (hec_args_has(&args, HEC_OPT_SCHEMA)) {
        first = hec_receipt_schema(&out);
    } else if (args.rest_count == 0) {
        hec_error("verify: which receipt? usage: hec verify %s", hec_verb_info(HEC_VERB_VERIFY)->usage);
        first = HEC_ERR_USAGE;
    }
    for (int i = 0; i < args.rest_count && first != HEC_ERR_USAGE; i++) {
        err = verify(&args, args.rest[i], &out);
        first = first ? first : err;
    }
    err = out.length ? hec_print(&out) : HEC_OK;
    hec_buf_free(&out);
    return hec_err_exit_status(first ? first : err);
}
