/* hec verify: receipts against their own trials. */
#include "base/log.h"
#include "cli/output.h"
#include "cli/receipt_read.h"
#include "cli/receipt_verify.h"
#include "cli/replay.h"
#include "launch/supervisor.h"
#include "report/html.h"
#include "report/receipt/words.h"

#include <stdio.h>

static void put_verified(const struct hec_receipt *receipt, const char *path, const json_t *root, struct hec_buf *out) {
    struct hec_answer answer = hec_receipt_answer(receipt);
    char sentence[HEC_ANSWER_SENTENCE];
    hec_buf_printf(out, "%s: verified: ", path);
    if (hec_receipt_is_baseline(receipt))
        hec_buf_printf(out, "a baseline of %d trial%s", receipt->trial_count, receipt->trial_count == 1 ? "" : "s");
    else
        hec_buf_puts(out, hec_answer_sentence(sentence, &answer));
    hec_buf_printf(out, "\n  digest %s\n", json_string_value(json_object_get(root, "digest")));
}

/* It holds, so far: HEC_OK, with root; else an error message, and HEC_ERR_FAILED where it does not. */
static int load(const char *path, struct hec_receipt *receipt, json_t **root) {
    struct hec_why why = {""};
    struct hec_buf objections;
    int err = hec_receipt_load(path, receipt, root, &why);
    if (err < 0) {
        hec_error("verify: %s", why.text);
        return err;
    }
    hec_buf_init(&objections, 1 << 20);
    int count = hec_receipt_verify(receipt, *root, &objections);
    if (count > 0) {
        hec_error("verify: %s does not hold:", path);
        fputs(hec_buf_text(&objections), stderr);
    } else if (count < 0) {
        hec_error("verify: %s: %s", path, hec_err_text(count));
    }
    hec_buf_free(&objections);
    return count > 0 ? HEC_ERR_FAILED : count;
}

static int verify(const struct hec_args *args, const char *path, struct hec_buf *out) {
    struct hec_receipt receipt;
    json_t *root;
    int err = load(path, &receipt, &root);
    if (err == HEC_OK && hec_args_has(args, HEC_OPT_HTML))
        err = hec_html_receipt(&receipt, out);
    else if (err == HEC_OK && hec_args_has(args, HEC_OPT_MARKDOWN))
        err = hec_receipt_markdown(&receipt, out);
    else if (err == HEC_OK)
        put_verified(&receipt, path, root, out);
    hec_receipt_free(&receipt);
    json_decref(root);
    return err;
}

static int verify_all(const struct hec_args *args) {
    struct hec_buf out;
    int first = HEC_OK, err;
    hec_buf_init(&out, HEC_HTML_MOST);
    for (int i = 0; i < args->rest_count; i++) {
        err = verify(args, args->rest[i], &out);
        first = first ? first : err;
    }
    err = out.length ? hec_output_print(args, &out) : HEC_OK;
    hec_buf_free(&out);
    return hec_err_exit_status(first ? first : err);
}

static int print_schema(void) {
    struct hec_buf out;
    hec_buf_init(&out, 1 << 20);
    int err = hec_receipt_schema(&out);
    err = err ? err : hec_print(&out);
    hec_buf_free(&out);
    return hec_err_exit_status(err);
}

static int replay(struct hec_experiment_run *run) {
    struct hec_receipt receipt;
    json_t *root;
    int err = load(run->args.rest[0], &receipt, &root), status = hec_err_exit_status(err);
    if (err == HEC_OK)
        status = hec_replay(run, &receipt);
    hec_experiment_free(run);
    hec_receipt_free(&receipt);
    json_decref(root);
    fflush(NULL);
    hec_supervisor_exit(status); /* an abandoned driver thread must not hold the exit up */
}

int hec_verb_verify(int argc, char **argv) {
    struct hec_experiment_run run = {.verb = "verify", .options = {.session = hec_session_defaults()}};
    const struct hec_args *args = &run.args;
    int err = hec_args_parse(HEC_VERB_VERIFY, argc, argv, &run.args);
    bool again = hec_args_has(args, HEC_OPT_REPLAY);
    if (err != HEC_OK)
        return err > 0 ? 0 : hec_err_exit_status(err);
    if (hec_args_has(args, HEC_OPT_SCHEMA))
        return print_schema();
    if (hec_args_has(args, HEC_OPT_HTML) && (again || args->rest_count > 1)) {
        hec_error("verify: --html is the page of one receipt, without --replay");
        return hec_err_exit_status(HEC_ERR_USAGE);
    }
    if (args->rest_count == 0 || (again && args->rest_count > 1)) {
        hec_error("verify: %s; usage: hec verify %s", again ? "one receipt to replay" : "which receipt?",
                  hec_verb_info(HEC_VERB_VERIFY)->usage);
        return hec_err_exit_status(HEC_ERR_USAGE);
    }
    if (again)
        return replay(&run);
    err = hec_output_check(args);
    return err < 0 ? hec_err_exit_status(err) : verify_all(args);
}
