/* Reports: results in, bytes out. */
#pragma once

#include "base/buf.h"
#include "diagnose/result.h"

#define HEC_REPORT_SCHEMA "hec.report/2"

struct hec_report_style {
    bool color;
    bool utf8;
    int columns; /* width of a line, 40 to 500; 0: 80 */
    bool brief;  /* the few lines at the end of `hec run` */
    bool all;    /* every finding and figure, not only those that say most */
};

int hec_report_terminal(const struct hec_summary *summary, const struct hec_report_style *style, struct hec_buf *out);
/* Markdown, short enough for a comment of a pull request. */
int hec_report_markdown(const struct hec_summary *summary, struct hec_buf *out);
/* JSON of docs/report.schema.json; more than one summary makes an array. */
int hec_report_json(const struct hec_summary *summaries, size_t count, struct hec_buf *out);
/* That schema (JSON Schema, draft 2020-12), made from the table that makes the report: json.def. */
int hec_report_schema(struct hec_buf *out);
