/* hec whatif: what a run would take, were its schedule another one. */
#include "report/run/whatif.h"

#include "base/log.h"
#include "cli/load.h"
#include "report/words/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUESTIONS_MAX HEC_EDIT_COUNT

struct session {
    struct hec_args args;
    struct hec_price price;
    struct hec_report_style style;
    struct hec_whatif_question questions[QUESTIONS_MAX];
    size_t count;
    struct hec_whatif whatif;
};

static int unknown_edit(const char *text, size_t length) {
    const char *list[HEC_EDIT_COUNT + 1] = {NULL};
    char name[64];
    for (int i = 0; i < HEC_EDIT_COUNT; i++)
        list[i] = hec_edit_info((enum hec_edit)i)->name;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    const char *near = hec_nearest(name, list);
    if (near)
        hec_error("whatif: there is no edit \"%s\"; did you mean \"%s\"?", name, near);
    else
        hec_error("whatif: there is no edit \"%s\"; `hec whatif --list` lists them", name);
    return HEC_ERR_USAGE;
}

static bool is_given(const struct hec_whatif_question *question, enum hec_edit edit) {
    bool given = false;
    for (int i = 0; i < question->count; i++)
        given |= question->edits[i].edit == edit;
    return given;
}

/* NAME or NAME=VALUE. */
static int parse_edit(const char *text, struct hec_whatif_edit *out) {
    size_t length = strcspn(text, "=");
    out->edit = hec_edit_find(text, length);
    out->value = NAN;
    if (out->edit == HEC_EDIT_COUNT)
        return unknown_edit(text, length);
    const struct hec_edit_info *info = hec_edit_info(out->edit);
    char *end = NULL;
    if (text[length])
        out->value = strtod(text + length + 1, &end);
    if ((text[length] &&
         (!end || *end || end == text + length + 1 || !(out->value >= info->least) || !(out->value <= info->most))) ||
        (!text[length] && !isfinite(info->value))) {
        if (info->least == info->most)
            hec_error("whatif: %s takes no number", info->name);
        else
            hec_error("whatif: %s wants a number from %g to %g: %s", info->name, info->least, info->most,
                      hec_edit_number(out->edit));
        return HEC_ERR_USAGE;
    }
    return HEC_OK;
}

/* Those that were given hold together; without any, each alone. */
static int choose(struct session *s) {
    struct hec_whatif_question *given = &s->questions[0];
    for (int i = 0; i < s->args.given_count; i++) {
        if (s->args.given[i].option != HEC_OPT_EDIT)
            continue;
        if (given->count == HEC_WHATIF_EDITS_MAX) {
            hec_error("whatif: no more than %d edits, please", HEC_WHATIF_EDITS_MAX);
            return HEC_ERR_USAGE;
        }
        struct hec_whatif_edit *edit = &given->edits[given->count];
        if (parse_edit(s->args.given[i].value, edit) < 0)
            return HEC_ERR_USAGE;
        if (is_given(given, edit->edit)) {
            hec_error("whatif: %s is given twice", hec_edit_info(edit->edit)->name);
            return HEC_ERR_USAGE;
        }
        given->count++;
        s->count = 1;
    }
    for (int e = 0; e < HEC_EDIT_COUNT && !hec_args_has(&s->args, HEC_OPT_EDIT); e++)
        if (isfinite(hec_edit_info((enum hec_edit)e)->value))
            s->questions[s->count++] = (struct hec_whatif_question){.edits = {{(enum hec_edit)e, NAN}}, .count = 1};
    return HEC_OK;
}

static int ask(void *context, const struct hec_summary_input *input, struct hec_why *why) {
    struct session *s = context;
    struct hec_schedule schedule = {0};
    struct hec_summary_input with = *input;
    struct hec_summary summary;
    with.schedule = &schedule;
    int err = hec_summary_build(&with, &s->price, &summary, why);
    if (err == HEC_OK) {
        err = hec_whatif_ask(&with, &summary, s->questions, s->count, &s->whatif, why);
        if (err == HEC_ERR_UNSUPPORTED)
            hec_fail(why, err,
                     "there is nothing to replay: kernels and copies were not recorded in the steady part of the run "
                     "(hec run --trace=full records them)");
        hec_summary_free(&summary);
    }
    hec_schedule_free(&schedule);
    return err;
}

static int print(const struct session *s, bool list) {
    struct hec_buf out;
    hec_buf_init(&out, 1u << 20);
    bool json = hec_args_has(&s->args, HEC_OPT_JSON);
    int err =
        list && json ? hec_whatif_list_json(&out)
        : list       ? hec_whatif_list(&s->style, &out)
        : json       ? hec_whatif_json(&s->whatif, s->questions, &out)
               : hec_whatif_terminal(&s->whatif, s->questions, hec_args_has(&s->args, HEC_OPT_EDIT), &s->style, &out);
    return hec_print_made(&out, err);
}

int hec_verb_whatif(struct hec_args *args) {
    static struct session s; /* of some KB */
    struct hec_why why = {""};
    bool list = hec_args_has(args, HEC_OPT_LIST);
    int err;
    s.args = *args;
    if (args->rest_count != (list ? 0 : 1))
        return hec_args_wrong(args, "one run file, please");
    if ((err = choose(&s)) < 0 || (err = hec_load_price(&s.args, &s.price)) < 0 ||
        (err = hec_load_style(&s.args, STDOUT_FILENO, &s.style)) < 0)
        return err;
    if (!list && (err = hec_load_input(s.args.rest[0], &s.args, ask, &s, &why)) < 0)
        hec_error("%s", why.text[0] ? why.text : hec_err_text(err));
    if (err == HEC_OK)
        err = print(&s, list);
    hec_whatif_free(&s.whatif);
    return err;
}
