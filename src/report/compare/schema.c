/* The schema of a comparison as JSON, from compare.def. */
#define HEC_JSON_TABLE "report/compare/compare.def"
#include "report/compare/words.h"
#include "report/json_schema.h"

int hec_versus_schema(struct hec_buf *out) {
    static const struct hec_json_document document = {
        .id = "urn:hec:compare:1",
        .title = "HEC comparison",
        .description = "What `hec compare --json` prints. Missing is null, never 0.",
        .root = "comparison",
    };
    return hec_json_schema(hec_json_rows, sizeof hec_json_rows / sizeof hec_json_rows[0], &document, out);
}
