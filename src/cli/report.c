/* hec report: print run files. */
#include "base/log.h"
#include "cli/joined.h"
#include "cli/load.h"
#include "cli/output.h"
#include "report/html.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int failed(int err, const struct hec_why *why) {
    hec_error("%s", why->text[0] ? why->text : hec_err_text(err));
    return err;
}

/* Runs of one job are one. A file that cannot be read is named, and the others are still reported; the first failure gives the status. */
static int load_all(const struct hec_args *args, const struct hec_price *price, struct hec_summary *summaries,
                    size_t *count) {
    int first = HEC_OK, view = hec_args_has(args, HEC_OPT_HTML) ? args->rest_count : 0;
    struct hec_joined joined;
    struct hec_why why = {""};
    bool part_done = false;
    int err = hec_joined_make(args->rest, args->rest_count, &joined, &why);
    if (err >= 0 && joined.apart[0])
        hec_warn("%s", joined.apart);
    if (err < 0)
        return failed(err, &why);
    for (int i = 0; i < args->rest_count; i++) {
        bool part = joined.path[0] && joined.is_part[i];
        if (part && part_done)
            continue;
        struct hec_summary *summary = &summaries[*count];
        err = hec_load_summary(part ? joined.path : args->rest[i], args, price, view, summary, &why);
        part_done = part_done || part;
        if (err < 0) {
            first = first == HEC_OK ? failed(err, &why) : (failed(err, &why), first);
            continue;
        }
        if (part)
            snprintf(summary->file, sizeof summary->file, "%s", joined.files);
        ++*count;
    }
    hec_joined_free(&joined);
    return first;
}

static int print(const struct hec_args *args, const struct hec_report_style *style, const struct hec_summary *summaries,
                 size_t count) {
    struct hec_buf out;
    bool json = hec_args_has(args, HEC_OPT_JSON), html = hec_args_has(args, HEC_OPT_HTML);
    hec_buf_init(&out, HEC_HTML_MOST);
    int err = html ? hec_html_report(summaries, count, &out) : json ? hec_report_json(summaries, count, &out) : HEC_OK;
    for (size_t i = 0; i < count && !json && !html && err == HEC_OK; i++) {
        if (i)
            hec_buf_puts(&out, "\n");
        err = hec_args_has(args, HEC_OPT_MARKDOWN) ? hec_report_markdown(&summaries[i], &out)
                                                   : hec_report_terminal(&summaries[i], style, &out);
    }
    if (err == HEC_OK)
        err = hec_output_print(args, &out);
    hec_buf_free(&out);
    return err;
}

int hec_verb_report(struct hec_args *args) {
    struct hec_price price;
    struct hec_report_style style;
    int err;
    if (hec_args_has(args, HEC_OPT_SCHEMA))
        return hec_print_schema(hec_report_schema);
    if (args->rest_count == 0)
        return hec_args_wrong(args, "no file");
    if ((err = hec_load_price(args, &price)) < 0 || (err = hec_load_style(args, STDOUT_FILENO, &style)) < 0 ||
        (err = hec_output_check(args)) < 0)
        return err;
    style.all = hec_args_has(args, HEC_OPT_VERBOSE);
    struct hec_summary *summaries = calloc((size_t)args->rest_count, sizeof *summaries);
    if (!summaries)
        return HEC_ERR_NOMEM;
    size_t count = 0;
    err = load_all(args, &price, summaries, &count);
    if (count > 0) {
        int printed = print(args, &style, summaries, count);
        if (err == HEC_OK)
            err = printed;
    }
    for (size_t i = 0; i < count; i++)
        hec_summary_free(&summaries[i]);
    free(summaries);
    return err;
}
