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
    hec_error("explain: there is no cause \"%s\", and no such word in reports; there are %s, and words", name, names);
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

int hec_verb_explain(struct hec_args *args) {
    struct hec_report_style style;
    char asked[256] = "";
    for (int i = 0; i < args->rest_count; i++)
        snprintf(asked + strlen(asked), sizeof asked - strlen(asked), "%s%s", i ? " " : "", args->rest[i]);
    int err = hec_load_style(args, STDOUT_FILENO, &style);
    return err ? err : print(asked, hec_args_has(args, HEC_OPT_JSON), &style);
}
