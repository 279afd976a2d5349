#include "cli/replay.h"

#include "base/log.h"
#include "base/text.h"
#include "report/receipt/check.h"
#include "report/receipt/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- before ---- */

static void say_command(const struct hec_receipt *receipt, int side) {
    struct hec_buf line;
    char clean[1024];
    hec_buf_init(&line, 1 << 20);
    hec_receipt_command(&line, receipt, side);
    fprintf(stderr, "hec: %c: %s\n", "AB"[side],
            hec_text_clean(clean, sizeof clean, hec_buf_text(&line), line.length, true));
    hec_buf_free(&line);
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
    if (receipt->folder && getcwd(folder, sizeof folder) && strcmp(folder, receipt->folder) != 0)
        warn_of("the working folder", receipt->folder, folder);
    int err = now.error;
    hec_receipt_free(&now);
    return err;
}

/* ---- the first trial ---- */

/* On something else it is another experiment. */
static int check_machine(struct hec_experiment_run *run, const struct hec_ab_outcome *so_far, struct hec_why *why) {
    struct hec_unlikes unlikes;
    if (so_far->count > 1 || hec_args_has(&run->args, HEC_OPT_UNLIKE))
        return HEC_OK;
    hec_receipt_unlikes(run->follows, &run->receipt, &unlikes);
    const struct hec_unlike *first = &unlikes.list[0];
    return unlikes.grave ? hec_fail(why, HEC_ERR_UNSUPPORTED,
                                    "%s: %.150s in the receipt, %.150s now; --unlike replays it all the same",
                                    hec_alike_words(first->what), first->value[0], first->value[1])
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

int hec_replay(struct hec_experiment_run *run, const struct hec_receipt *receipt) {
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
    run->ab.plan = receipt->plan;
    run->options.session.hooks = receipt->hooks;
    for (int side = 0; side < 2; side++) {
        run->ab.command[side] = receipt->command[side].list;
        say_command(receipt, side);
    }
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
