/* What HEC knows of a cause: the tables of diagnose/rules, for people and as JSON. */
#pragma once

#include "report/run/report.h"

#define HEC_CAUSES_SCHEMA "hec.causes/1"
#define HEC_WORDS_SCHEMA "hec.words/1"

/* cause: HEC_CAUSE_COUNT for all of them (for people: a table, a line each). */
int hec_report_explain(enum hec_cause cause, bool json, const struct hec_report_style *style, struct hec_buf *out);
/* What the words of the reports mean, and the states of a device; only: this one, a kind of event too. HEC_ERR_NOTFOUND: there is no
 * such word. */
int hec_report_words(const char *only, bool json, const struct hec_report_style *style, struct hec_buf *out);
