/* hec verify: receipts against their own trials. */
#include "base/log.h"
#include "report/words/results.h"
#include "base/text.h"
#include "cli/experiment.h"
#include "cli/output.h"
#include "cli/receipt_read.h"
#include "report/html.h"
#include "report/receipt/check.h"
#include "report/receipt/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* hec verify --replay: the experiment of a receipt once more. */

/* ---- before ---- */

static int say_command(const struct hec_receipt *receipt, int side) {
    struct hec_buf line;
    hec_buf_init(&line, 64u << 20);
    hec_receipt_command(&line, receipt, side);
    char *clean = hec_buf_error(&line) < 0 ? NULL : malloc(line.length + 1);
    if (clean)
        fprintf(stderr, "hec: %c: %s\n", "AB"[side],
                hec_text_clean(clean, line.length + 1, hec_buf_text(&line), line.length, true));
    hec_buf_free(&line);
    free(clean);
    return clean ? HEC_OK : HEC_ERR_NOMEM;
}

/* Of the words of its commands. */
static const char *first_withheld(const struct hec_receipt *receipt, char out[64]) {
    const char *name = "a word of its commands";
    for (int i = receipt->withheld.count; i-- > 0;)
        if (strncmp(receipt->withheld.list[i], "word ", 5) == 0)
            name = receipt->withheld.list[i];
    return hec_text_clean(out, 64, name, strlen(name), true);
}

/* Nothing of a receipt is run that was not shown whole, and agreed to: by --yes, or an answer at the terminal. */
static int ask(const struct hec_args *args, const struct hec_receipt *receipt) {
    char answer[8] = "", first[64];
    if (!hec_receipt_has_commands(receipt)) {
        hec_error("verify: %s is not in the receipt, as it may be a secret: run `hec ab` with the whole commands",
                  first_withheld(receipt, first));
        return HEC_ERR_USAGE;
    }
    for (int side = 0; side < 2; side++)
        if (say_command(receipt, side) < 0)
            return HEC_ERR_NOMEM;
    if (hec_args_has(args, HEC_OPT_YES))
        return HEC_OK;
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
        hec_error("verify: --replay runs these commands, which came with the receipt: --yes, if you know them");
        return HEC_ERR_USAGE;
    }
    fprintf(stderr, "hec: run these commands? [y/N] ");
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return HEC_OK;
    hec_error("verify: not run");
    return HEC_ERR_USAGE;
}

static void warn_of(const char *name, const char *then, const char *now) {
    char clean[3][256];
    const char *texts[] = {name, then ? then : "not set", now ? now : "not set"};
    for (int i = 0; i < 3; i++)
        hec_text_clean(clean[i], sizeof clean[i], texts[i], strlen(texts[i]), true);
    hec_warn("verify: %s: %s in the receipt, %s now", clean[0], clean[1], clean[2]);
}

/* What is not as it was, and may be why the replay differs. */
static int check_environment(const struct hec_receipt *receipt) {
    struct hec_receipt now = {.error = HEC_OK};
    char folder[PATH_MAX];
    hec_receipt_add_environment(&now, environ);
    for (int i = 0; i < receipt->environment.count; i++) {
        const struct hec_receipt_fact *then = &receipt->environment.list[i];
        const char *value = hec_receipt_fact(&now.environment, then->name);
        if (!value || strcmp(value, then->value) != 0)
            warn_of(then->name, then->value, value);
    }
    for (int i = 0; i < now.environment.count; i++)
        if (!hec_receipt_fact(&receipt->environment, now.environment.list[i].name))
            warn_of(now.environment.list[i].name, NULL, now.environment.list[i].value);
    if (receipt->folder && getcwd(folder, sizeof folder)) {
        hec_receipt_set_folder(&now, folder);
        if (now.folder && strcmp(now.folder, receipt->folder) != 0)
            warn_of("the working folder", receipt->folder, now.folder);
    }
    int err = now.error;
    hec_receipt_free(&now);
    return err;
}

/* ---- the first trial ---- */

/* On something else it is another experiment. */
static int check_machine(struct hec_experiment_run *run, const struct hec_ab_outcome *so_far, struct hec_why *why) {
    struct hec_condition_differences unlikes;
    if (so_far->count > 1 || hec_args_has(&run->args, HEC_OPT_UNLIKE))
        return HEC_OK;
    hec_receipt_unlikes(run->follows, &run->receipt, &unlikes);
    const struct hec_condition_difference *first = &unlikes.list[0];
    return unlikes.grave ? hec_fail(why, HEC_ERR_UNSUPPORTED,
                                    "%s: %.150s in the receipt, %.150s now; --unlike replays it all the same",
                                    hec_condition_words(first->what), first->value[0], first->value[1])
                         : HEC_OK;
}

/* ---- after ---- */

static bool meet(const struct hec_answer *a, const struct hec_answer *b, enum hec_quantity quantity) {
    const struct hec_comparison *one = &a->quantity[quantity], *other = &b->quantity[quantity];
    return isnan(one->ratio_low) || isnan(other->ratio_low) ||
           (one->ratio_low <= other->ratio_high && other->ratio_low <= one->ratio_high);
}

static int compare(const struct hec_receipt *then, const struct hec_receipt *now) {
    struct hec_answer a = hec_receipt_answer(then), b = hec_receipt_answer(now);
    char sentence[HEC_ANSWER_SENTENCE];
    bool same = hec_answer_verdict(&a) == hec_answer_verdict(&b) && then->result.judged == now->result.judged;
    bool near = meet(&a, &b, then->result.judged);
    printf("receipt: %s\n", hec_answer_sentence(sentence, &a));
    printf("replay:  %s\n", hec_answer_sentence(sentence, &b));
    printf("%s\n", !same   ? "the replay comes to another verdict"
                   : !near ? "the replay comes to the same verdict, with an interval that does not meet the receipt's"
                           : "the replay comes to the same verdict");
    return same && near ? 0 : 1;
}

/* run: its verb and args. The exit status: 0 where it comes to the same verdict, with an interval that meets the receipt's; 1 where it does
 * not; else after an error message. Free the run (hec_experiment_free). */
static int replay_receipt(struct hec_experiment_run *run, const struct hec_receipt *receipt) {
    struct hec_ab_outcome outcome;
    struct hec_lever_set levers = {.count = 0};
    struct hec_why why = {""};
    if (hec_receipt_is_baseline(receipt)) {
        hec_error("verify: a baseline has no verdict to replay; `hec check` compares with it");
        return hec_err_exit_status(HEC_ERR_USAGE);
    }
    int err = check_environment(receipt);
    run->options.session.simulated = receipt->simulated;
    hec_experiment_follow(run, receipt);
    if (err < 0 || (err = hec_experiment_options(run)) < 0 || (err = hec_experiment_path(run)) < 0)
        return hec_err_exit_status(err);
    if ((err = ask(&run->args, receipt)) < 0)
        return hec_err_exit_status(err);
    run->ab.plan = receipt->plan;
    run->options.session.hooks = receipt->hooks;
    for (int side = 0; side < 2; side++)
        run->ab.command[side] = receipt->command[side].list;
    for (int i = 0; i < receipt->levers.count; i++)
        if ((err = hec_lever_set_add(&levers, receipt->levers.list[i], &why)) < 0) {
            hec_error("verify: %s", why.text);
            return hec_err_exit_status(err);
        }
    run->ab.levers = levers.count ? &levers : NULL;
    run->after = check_machine;
    int status = hec_experiment_run(run, &outcome);
    if (!status)
        status = compare(receipt, &run->receipt);
    hec_ab_free(&outcome);
    return status;
}

static void put_verified(const struct hec_receipt *receipt, const char *path, const json_t *root, struct hec_buf *out) {
    struct hec_answer answer = hec_receipt_answer(receipt);
    char sentence[HEC_ANSWER_SENTENCE], clean[PATH_MAX];
    hec_buf_printf(out, "%s: verified: ", hec_text_clean(clean, sizeof clean, path, strlen(path), true));
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
        hec_text_print(stderr, hec_buf_text(&objections));
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
    return first ? first : err;
}

static int replay(struct hec_experiment_run *run) {
    struct hec_receipt receipt;
    json_t *root;
    int err = load(run->args.rest[0], &receipt, &root), status = hec_err_exit_status(err);
    if (err == HEC_OK)
        status = replay_receipt(run, &receipt);
    hec_experiment_free(run);
    hec_receipt_free(&receipt);
    json_decref(root);
    hec_verb_exit(status);
}

int hec_verb_verify(struct hec_args *args) {
    struct hec_experiment_run run = {.verb = "verify", .args = *args, .options = {.session = hec_session_defaults()}};
    bool again = hec_args_has(args, HEC_OPT_REPLAY);
    if (hec_args_has(args, HEC_OPT_SCHEMA))
        return hec_print_schema(hec_receipt_schema);
    if (hec_args_has(args, HEC_OPT_HTML) && (again || args->rest_count > 1)) {
        hec_error("verify: --html is the page of one receipt, without --replay");
        return HEC_ERR_USAGE;
    }
    if (args->rest_count == 0 || (again && args->rest_count > 1))
        return hec_args_wrong(args, again ? "one receipt to replay" : "which receipt?");
    if (again)
        return replay(&run);
    int err = hec_output_check(args);
    return err < 0 ? err : verify_all(args);
}
