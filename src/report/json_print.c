#include "report/json_print.h"

#include "base/error.h"

static int add_bytes(const char *data, size_t size, void *out) {
    return hec_buf_add(out, data, size) < 0 ? -1 : 0;
}

int hec_json_print(json_t *root, struct hec_buf *out) {
    if (!root)
        return HEC_ERR_NOMEM;
    int failed = json_dump_callback(root, add_bytes, out, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    json_decref(root);
    if (!failed)
        hec_buf_puts(out, "\n");
    return hec_buf_error(out) ? hec_buf_error(out) : failed ? HEC_ERR_NOMEM : HEC_OK;
}
