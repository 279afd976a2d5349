/* The schema of `hec top --json`, from json.def. */
#include "top/json.h"

#define HEC_JSON_TABLE "top/json.def"
#include "report/json_schema.h"

int hec_top_schema(struct hec_buf *out) {
    static const struct hec_json_document document = {
        .id = "urn:hec:top:1",
        .title = "HEC top",
        .description = "What `hec top --json` prints: an object a line. Missing is null, never 0.",
        .root = "top",
    };
    return hec_json_schema(hec_json_rows, sizeof hec_json_rows / sizeof hec_json_rows[0], &document, out);
}
