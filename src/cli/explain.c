/* hec explain: what a cause means, how it is recognised, and what answers it; and how a run could be shared out to devices. */
#include "report/words/explain.h"

#include "base/log.h"
#include "cli/joined.h"
#include "cli/load.h"
#include "report/run/parallelism.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int unknown(const char *name) {
    char names[512];
    int length = 0;
    for (int i = 0; i < HEC_CAUSE_COUNT; i++)
        length += snprintf(names + length, sizeof names - (size_t)length, "%s%s", i ? ", " : "",
                           hec_cause_name((enum hec_cause)i));
    hec_error(
        "explain: there is no cause \"%s\", and no such word in reports; there are %s, words, and " HEC_PARALLELISM_WORD,
        name, names);
    return HEC_ERR_USAGE;
}

/* A cause; all words; a word of the reports, which may be several ("SM active"). */
static int print(const char *asked, bool json, const struct hec_report_style *style) {
    struct hec_buf out;
    enum hec_cause cause = asked[0] ? hec_cause_find(asked) : HEC_CAUSE_COUNT;
    int err;
    hec_buf_init(&out, 1u << 20);
    if (!asked[0] || cause != HEC_CAUSE_COUNT)
        err = hec_report_explain(cause, json, style, &out);
    else
        err = hec_report_words(strcmp(asked, "words") == 0 ? NULL : asked, json, style, &out);
    if (err != HEC_ERR_NOTFOUND)
        return hec_print_made(&out, err);
    hec_buf_free(&out);
    return unknown(asked);
}

/* ---- hec explain parallelism RUN ---- */

static int print_parallelism(const struct hec_summary *summary, bool json, const struct hec_report_style *style) {
    struct hec_buf out;
    hec_buf_init(&out, 1u << 20);
    return hec_print_made(&out,
                          json ? hec_parallelism_json(summary, &out) : hec_parallelism_terminal(summary, style, &out));
}

/* Of one run: several files are to be those of one job. */
static int load(const struct hec_args *args, struct hec_summary *summary, struct hec_why *why) {
    struct hec_price price = hec_price_default();
    struct hec_joined joined;
    int count = args->rest_count - 1;
    char *const *files = args->rest + 1;
    int err = hec_joined_make(files, count, &joined, why);
    for (int i = 0; i < count && count > 1 && err >= 0; i++)
        if (!joined.path[0] || !joined.is_part[i])
            err = hec_fail(why, HEC_ERR_USAGE, "%s: not of one job with the others", files[i]);
    if (err >= 0)
        err = hec_load_summary(joined.path[0] ? joined.path : files[0], args, &price, 0, summary, why);
    hec_joined_free(&joined);
    return err;
}

static int explain_parallelism(const struct hec_args *args, bool json, const struct hec_report_style *style) {
    struct hec_summary summary;
    struct hec_why why = {""};
    if (args->rest_count == 1 && json)
        return hec_args_wrong(args, "no run file");
    if (args->rest_count == 1)
        return print_parallelism(NULL, json, style);
    int err = load(args, &summary, &why);
    if (err < 0) {
        hec_error("explain: %s", why.text[0] ? why.text : hec_err_text(err));
        return err;
    }
    snprintf(summary.file, sizeof summary.file, "%s", args->rest[1]);
    err = print_parallelism(&summary, json, style);
    hec_summary_free(&summary);
    return err;
}

int hec_verb_explain(struct hec_args *args) {
    struct hec_report_style style;
    char asked[256] = "";
    bool json = hec_args_has(args, HEC_OPT_JSON);
    int err = hec_load_style(args, STDOUT_FILENO, &style);
    if (err)
        return err;
    if (args->rest_count && strcmp(args->rest[0], HEC_PARALLELISM_WORD) == 0)
        return explain_parallelism(args, json, &style);
    for (int i = 0; i < args->rest_count; i++)
        snprintf(asked + strlen(asked), sizeof asked - strlen(asked), "%s%s", i ? " " : "", args->rest[i]);
    return print(asked, json, &style);
}
