/* hec explain: what a cause means, how it is recognised, and what answers it. */
#include "report/words/explain.h"

#include "base/log.h"
#include "cli/load.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int unknown(const char *name) {
    char names[512];
    int length = 0;
    for (int i = 0; i < HEC_CAUSE_COUNT; i++)
        length += snprintf(names + length, sizeof names - (size_t)length, "%s%s", i ? ", " : "",
                           hec_cause_name((enum hec_cause)i));
    hec_error("explain: there is no cause \"%s\"; there are %s, and words", name, names);
    return HEC_ERR_USAGE;
}

static int print(enum hec_cause cause, bool words, bool json, const struct hec_report_style *style) {
    struct hec_buf out;
    hec_buf_init(&out, 1u << 20);
    int err = words ? hec_report_words(json, style, &out) : hec_report_explain(cause, json, style, &out);
    return hec_print_made(&out, err);
}

int hec_verb_explain(struct hec_args *args) {
    struct hec_report_style style;
    int err = args->rest_count > 1 ? hec_args_wrong(args, "one cause, please") : HEC_OK;
    enum hec_cause cause = HEC_CAUSE_COUNT;
    bool words = err == HEC_OK && args->rest_count == 1 && strcmp(args->rest[0], "words") == 0;
    if (err == HEC_OK && args->rest_count == 1 && !words && (cause = hec_cause_find(args->rest[0])) == HEC_CAUSE_COUNT)
        err = unknown(args->rest[0]);
    if (err == HEC_OK)
        err = hec_load_style(args, STDOUT_FILENO, &style);
    if (err == HEC_OK)
        err = print(cause, words, hec_args_has(args, HEC_OPT_JSON), &style);
    return err;
}
