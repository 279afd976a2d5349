/* The schema of the report, from json.def. */
#define HEC_JSON_TABLE "report/run/json.def"
#include "report/json_schema.h"

int hec_report_schema(struct hec_buf *out) {
    static const struct hec_json_document document = {
        .id = "urn:hec:report:2",
        .title = "HEC report",
        .description = "What `hec report --json` prints: one report, or an array of reports when several files are "
                       "given. Missing is null, never 0. Ratios are 0..1.",
        .root = "report",
        .or_list = true,
    };
    return hec_json_schema(hec_json_rows, sizeof hec_json_rows / sizeof hec_json_rows[0], &document, out);
}
