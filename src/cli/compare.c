/* hec compare: two sets of run files, A and B. */
#include "base/log.h"
#include "report/words/results.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/experiment.h"
#include "report/html.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the operands: A B, or A... -- B... ---- */

/* Where B begins: after "--", else it is the second of two. 0: no such place, after an error message. */
static int second_side(const struct hec_args *args) {
    int after = args->after;
    if (after == -2)
        hec_error("compare: -- stands once, between the runs of A and those of B");
    else if (after > 0 && args->rest_count > after)
        return args->rest_count - after;
    else if (after >= 0)
        hec_error("compare: no runs %s --", after > 0 ? "before" : "after");
    else if (args->rest_count == 2)
        return 1;
    else
        hec_args_wrong(args, "two run files, or any number of each side with -- between");
    return 0;
}

/* ---- trials ---- */

static int compare(const struct hec_side *side, struct hec_versus *versus) {
    int count = side[0].count + side[1].count;
    struct hec_trial *trials = calloc((size_t)count, sizeof *trials);
    struct hec_trial_block *blocks = calloc((size_t)count * HEC_STEADY_BLOCKS_MAX, sizeof *blocks);
    int err = trials && blocks ? HEC_OK : HEC_ERR_NOMEM;
    for (int i = 0; i < count && !err; i++)
        hec_trial_of(&side[0].runs[i], blocks + (size_t)i * HEC_STEADY_BLOCKS_MAX, &trials[i]); /* those of B follow */
    if (!err)
        err = hec_compare(trials, side[0].count, trials + side[0].count, side[1].count, NULL, versus->quantity);
    free(trials);
    free(blocks);
    return err;
}

/* ---- the whole ---- */

static int refuse(const struct hec_condition_differences *unlikes) {
    for (int i = 0; i < unlikes->grave; i++)
        hec_error("compare: %s: %s in A, %s in B", hec_condition_words(unlikes->list[i].what),
                  unlikes->list[i].value[0], unlikes->list[i].value[1]);
    hec_error("compare: unlike runs show nothing of a change; --unlike compares them all the same");
    return HEC_ERR_USAGE;
}

static int print(const struct hec_args *args, const struct hec_report_style *style, const struct hec_versus *versus) {
    struct hec_buf out;
    hec_buf_init(&out, HEC_HTML_MOST);
    int err = !versus                                ? hec_versus_schema(&out)
              : hec_args_has(args, HEC_OPT_HTML)     ? hec_html_compare(versus, &out)
              : hec_args_has(args, HEC_OPT_JSON)     ? hec_versus_json(versus, &out)
              : hec_args_has(args, HEC_OPT_MARKDOWN) ? hec_versus_markdown(versus, &out)
                                                     : hec_versus_terminal(versus, style, &out);
    if (err == HEC_OK)
        err = hec_output_print(args, &out);
    hec_buf_free(&out);
    return err;
}

/* A run counts once: given twice it would look like two that do not differ. */
static int check_once(const struct hec_args *args) {
    for (int i = 0; i < args->rest_count; i++) {
        struct stat one, other;
        for (int k = 0; k < i && stat(args->rest[i], &one) == 0; k++)
            if (stat(args->rest[k], &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino) {
                hec_error("compare: %s is given twice", args->rest[i]);
                return HEC_ERR_USAGE;
            }
    }
    return HEC_OK;
}

/* All of them, or none: a comparison without one of its runs is another one. */
static int load(const struct hec_args *args, struct hec_summary *runs) {
    struct hec_price price = hec_price_default();
    int first = check_once(args), view = hec_args_has(args, HEC_OPT_HTML) ? args->rest_count : 0;
    for (int i = 0; i < args->rest_count && first != HEC_ERR_USAGE; i++) {
        struct hec_why why = {""};
        int err = hec_load_summary(args->rest[i], args, &price, view, &runs[i], &why);
        if (err < 0)
            hec_error("%s", why.text[0] ? why.text : hec_err_text(err));
        first = first == HEC_OK && err < 0 ? err : first;
    }
    return first;
}

static int compare_files(const struct hec_args *args, int second, const struct hec_report_style *style) {
    struct hec_summary *runs = calloc((size_t)args->rest_count, sizeof *runs);
    struct hec_versus *versus = calloc(1, sizeof *versus);
    int err = runs && versus ? load(args, runs) : HEC_ERR_NOMEM;
    if (err == HEC_OK) {
        versus->side[0] = (struct hec_side){runs, second};
        versus->side[1] = (struct hec_side){runs + second, args->rest_count - second};
        hec_conditions_compare(versus->side, &versus->unlikes);
        if (versus->unlikes.grave && !hec_args_has(args, HEC_OPT_UNLIKE))
            err = refuse(&versus->unlikes);
    }
    if (err == HEC_OK) {
        hec_delta_find(versus->side, &versus->moved);
        err = compare(versus->side, versus);
    }
    if (err == HEC_OK)
        err = print(args, style, versus);
    for (int i = 0; runs && i < args->rest_count; i++)
        hec_summary_free(&runs[i]);
    free(runs);
    free(versus);
    return err;
}

int hec_verb_compare(struct hec_args *args) {
    struct hec_report_style style;
    if (hec_args_has(args, HEC_OPT_SCHEMA))
        return print(args, NULL, NULL);
    int second = second_side(args), err = second ? hec_output_check(args) : HEC_ERR_USAGE;
    if (err == HEC_OK && (err = hec_load_style(args, STDOUT_FILENO, &style)) == HEC_OK)
        err = compare_files(args, second, &style);
    return err;
}
