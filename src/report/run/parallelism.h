/* Ways to share training out to devices (diagnose/parallelism.h), in the report and for `hec explain parallelism`. */
#pragma once

#include "diagnose/parallelism.h"
#include "report/page.h"

#define HEC_PARALLELISM_SCHEMA "hec.parallelism/1"
#define HEC_PARALLELISM_WORD "parallelism" /* of hec explain */

/* The command that tries it beside the run's own; "": no single one does. */
char *hec_strategy_command(char *out, size_t size, const struct hec_summary *summary,
                           const struct hec_parallelism *parallelism, enum hec_strategy strategy);
const char *hec_strategy_how(enum hec_strategy strategy);
/* What is missing, of bits of hec_lack; "": nothing. */
char *hec_lacks_words(char *out, size_t size, uint32_t lacks);

/* summary NULL: what the ways are, without figures. style and out as of a report. */
int hec_parallelism_terminal(const struct hec_summary *summary, const struct hec_report_style *style,
                             struct hec_buf *out);
int hec_parallelism_json(const struct hec_summary *summary, struct hec_buf *out);

/* In reports: the table, where there is something to divide and to divide it to. */
void hec_terminal_parallelism(struct hec_page *page, const struct hec_summary *summary);
void hec_markdown_parallelism(struct hec_buf *out, const struct hec_summary *summary);
