/* The schema of a receipt, from receipt.def. */
#define HEC_JSON_TABLE "report/receipt/receipt.def"
#include "report/receipt/words.h"
#include "report/json_schema.h"

int hec_receipt_schema(struct hec_buf *out) {
    static const struct hec_json_document document = {
        .id = "urn:hec:receipt:1",
        .title = "HEC receipt",
        .older = true,
        .description = "What `hec ab -o` and `hec check -o` write, and `hec verify` checks. Missing is null, never 0.",
        .root = "receipt",
    };
    return hec_json_schema(hec_json_rows, sizeof hec_json_rows / sizeof hec_json_rows[0], &document, out);
}
