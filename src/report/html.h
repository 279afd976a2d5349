/* Results as one HTML page that needs no network and nothing beside it: the front end (web/dist) is in the program, the data
 * is JSON in the page (docs/html.md). Text from outside, however odd, is data there and no markup. */
#pragma once

#include "report/compare/compare.h"
#include "report/sweep/sweep.h"

#include <jansson.h>

/* ---- what all pages have in common ---- */

json_t *hec_html_data(const char *kind);
/* Takes data away from the caller. text: the same for who runs no scripts. */
int hec_html_page(json_t *data, const char *title, const char *text, bool live, struct hec_buf *out);

#define HEC_HTML_SCHEMA "hec.page/1"
#define HEC_HTML_MOST (256u << 20) /* bytes of a page: the limit for the buffer that takes it */

int hec_html_report(const struct hec_summary *summaries, size_t count, struct hec_buf *out);
int hec_html_compare(const struct hec_versus *versus, struct hec_buf *out);
int hec_html_receipt(const struct hec_receipt *receipt, struct hec_buf *out);
int hec_html_sweep(const struct hec_sweep_report *report, struct hec_buf *out);
/* The agent's: it fetches live.json from where it came from, again and again. */
int hec_html_live(const char *hostname, struct hec_buf *out);

/* The page's Content-Security-Policy: nothing but what is inlined in it; live: and its own server. */
#define HEC_HTML_POLICY 384
char *hec_html_policy(char out[HEC_HTML_POLICY], bool live);
