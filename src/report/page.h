/* Inside src/report: rows of a label and wrapped text. */
#pragma once

#include "report/run/report.h"

#include <stdarg.h>

enum hec_tone { HEC_TONE_PLAIN, HEC_TONE_BOLD, HEC_TONE_DIM, HEC_TONE_GOOD, HEC_TONE_WARN, HEC_TONE_BAD };

struct hec_page {
    struct hec_buf *out;
    bool color, utf8, all; /* all: nothing is left out (-v) */
    int columns;
    int lines;
};

void hec_page_init(struct hec_page *page, const struct hec_report_style *style, struct hec_buf *out);
/* One row: the label in its column (13 wide, indent included), then the text in that tone, wrapped at the page's
 * width with a hanging indent. An empty label continues the row above. The text is cleaned of control characters. */
void hec_page_row(struct hec_page *page, int indent, const char *label, enum hec_tone tone, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same, cut to one line. */
void hec_page_line(struct hec_page *page, int indent, const char *label, enum hec_tone tone, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Lines of source code, ended by \n, as they are: they are neither wrapped nor cut. */
void hec_page_code(struct hec_page *page, int indent, const char *code);
void hec_page_blank(struct hec_page *page);
