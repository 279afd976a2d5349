/* Bytes as a receipt: read, judged, checked against its trials, and printed. */
#include "cli/receipt_read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct hec_report_style style = {.utf8 = true};
    struct hec_receipt receipt;
    struct hec_why why = {""};
    struct hec_buf out;
    json_t *root;
    int err = hec_receipt_read((const char *)data, size, &receipt, &root, &why);
    if (err < 0) {
        if (!why.text[0] || root || receipt.trials)
            abort();
        return 0;
    }
    hec_buf_init(&out, 64u << 20);
    if (hec_receipt_verify(&receipt, root, &out) < 0 || hec_receipt_markdown(&receipt, &out) < 0 ||
        hec_receipt_terminal(&receipt, &style, &out) < 0)
        abort();
    hec_buf_free(&out);
    hec_receipt_free(&receipt);
    json_decref(root);
    return 0;
}
