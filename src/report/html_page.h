/* Inside src/report: what all pages have in common. */
#ifndef HEC_REPORT_HTML_PAGE_H
#define HEC_REPORT_HTML_PAGE_H

#include "report/html.h"

#include <jansson.h>

json_t *hec_html_data(const char *kind);
/* Takes data away from the caller. text: the same for who runs no scripts. */
int hec_html_page(json_t *data, const char *title, const char *text, bool live, struct hec_buf *out);

#endif
