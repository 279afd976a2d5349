/* The report of a comparison: results in, bytes out. */
#pragma once

#include "diagnose/compare/delta.h"
#include "prove/compare.h"
#include "report/run/report.h"
#include "report/words/conditions.h"

#define HEC_COMPARE_SCHEMA "hec.compare/1"

/* Two sets of runs, and all that is known of how they differ. */
struct hec_versus {
    struct hec_side side[2];
    struct hec_condition_differences unlikes;
    struct hec_delta moved;
    struct hec_comparison quantity[HEC_QUANTITY_COUNT];
};

int hec_versus_terminal(const struct hec_versus *versus, const struct hec_report_style *style, struct hec_buf *out);
/* Only what moved in the ledger, and the findings that went and came. */
int hec_versus_moved_terminal(const struct hec_versus *versus, const struct hec_report_style *style,
                              struct hec_buf *out);
int hec_versus_markdown(const struct hec_versus *versus, struct hec_buf *out);
/* JSON of docs/compare.schema.json, and that schema: both from compare.def. */
int hec_versus_json(const struct hec_versus *versus, struct hec_buf *out);
int hec_versus_schema(struct hec_buf *out);
