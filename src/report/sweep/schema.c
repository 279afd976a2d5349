/* The schema of a sweep, from sweep.def. */
#define HEC_JSON_TABLE "report/sweep/sweep.def"
#include "base/trace.h"
#include "report/receipt/words.h"
#include "report/sweep/words.h"
#include "report/json_schema.h"

int hec_sweep_schema(struct hec_buf *out) {
    static const struct hec_json_document document = {
        .id = "urn:hec:sweep:1",
        .title = "HEC sweep",
        .older = true,
        .description = "What `hec sweep --json` prints and `hec sweep -o` writes. Missing is null, never 0.",
        .root = "sweep",
    };
    return hec_json_schema(hec_json_rows, sizeof hec_json_rows / sizeof hec_json_rows[0], &document, out);
}
