/* Inside src/report: what the JSON of the verbs is, as objects, for those that put several of them together. NULL: no memory,
 * or what it is made of is broken. */
#pragma once

#include "report/compare/compare.h"
#include "report/sweep/sweep.h"

#include <jansson.h>

json_t *hec_report_root(const struct hec_summary *summary);
json_t *hec_versus_root(const struct hec_versus *versus);
json_t *hec_receipt_root(const struct hec_receipt *receipt);
json_t *hec_sweep_root(const struct hec_sweep_report *report);
/* Of view.h: series, states, steps and a stretch in detail; docs/html.md has the format. */
struct hec_view;
json_t *hec_view_root(const struct hec_view *view);

/* The unit in which a metric is shown: "W", "1" for shares, "bytes/s". */
const char *hec_json_unit(enum hec_metric metric);
