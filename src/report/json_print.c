#include "report/json_print.h"

#include "base/error.h"

#include <stdbool.h>

static int add_bytes(const char *data, size_t size, void *out) {
    return hec_buf_add(out, data, size) < 0 ? -1 : 0;
}

static int print(json_t *root, size_t flags, struct hec_buf *out) {
    if (!root)
        return HEC_ERR_NOMEM;
    int failed = json_dump_callback(root, add_bytes, out, flags | JSON_REAL_PRECISION(10));
    json_decref(root);
    if (!failed)
        hec_buf_puts(out, "\n");
    return hec_buf_error(out) ? hec_buf_error(out) : failed ? HEC_ERR_NOMEM : HEC_OK;
}

int hec_json_print(json_t *root, struct hec_buf *out) {
    return print(root, JSON_INDENT(2), out);
}

int hec_json_print_line(json_t *root, struct hec_buf *out) {
    return print(root, 0, out);
}

#define INDENT 2
#define DUMP (JSON_ENCODE_ANY | JSON_REAL_PRECISION(17))

static bool holds_containers(json_t *value) {
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_array(value))
        json_array_foreach(value, i, item) if (json_is_array(item) || json_is_object(item)) return true;
    json_object_foreach(value, key, item) if (json_is_array(item) || json_is_object(item)) return true;
    return false;
}

static int print_rows(json_t *value, int depth, struct hec_buf *out) {
    bool array = json_is_array(value);
    const char *key, *between = array ? "[" : "{";
    json_t *item;
    size_t i;
    int failed = 0;
    if (!holds_containers(value))
        return json_dump_callback(value, add_bytes, out, DUMP);
    if (array)
        json_array_foreach(value, i, item) {
            hec_buf_printf(out, "%s\n%*s", between, INDENT * (depth + 1), "");
            failed |= print_rows(item, depth + 1, out);
            between = ",";
        }
    json_object_foreach(value, key, item) {
        hec_buf_printf(out, "%s\n%*s\"%s\": ", between, INDENT * (depth + 1), "", key);
        failed |= print_rows(item, depth + 1, out);
        between = ",";
    }
    hec_buf_printf(out, "\n%*s%s", INDENT * depth, "", array ? "]" : "}");
    return failed;
}

int hec_json_print_rows(json_t *root, struct hec_buf *out) {
    int failed = root ? print_rows(root, 0, out) : -1;
    hec_buf_puts(out, "\n");
    return hec_buf_error(out) ? hec_buf_error(out) : failed ? HEC_ERR_NOMEM : HEC_OK;
}
