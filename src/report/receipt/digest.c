#include "report/receipt/digest.h"

#include "base/buf.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MOST (256u << 20)

static void add_text(struct hec_buf *out, const char *text, size_t length) {
    hec_buf_printf(out, "\"%zu:", length);
    hec_buf_add(out, text, length);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_value(struct hec_buf *out, const json_t *value, const char *without);

static void add_object(struct hec_buf *out, const json_t *object, const char *without) {
    const char **keys = malloc((json_object_size(object) + 1) * sizeof *keys);
    size_t count = 0;
    if (!keys) {
        out->error = HEC_ERR_NOMEM;
        return;
    }
    for (void *at = json_object_iter((json_t *)object); at; at = json_object_iter_next((json_t *)object, at))
        keys[count++] = json_object_iter_key(at);
    qsort(keys, count, sizeof *keys, by_bytes);
    hec_buf_puts(out, "{");
    for (size_t i = 0; i < count; i++) {
        if (without && strcmp(keys[i], without) == 0)
            continue;
        add_text(out, keys[i], strlen(keys[i]));
        add_value(out, json_object_get(object, keys[i]), NULL);
    }
    hec_buf_puts(out, "}");
    free(keys);
}

static void add_value(struct hec_buf *out, const json_t *value, const char *without) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        add_object(out, value, without);
        break;
    case JSON_ARRAY:
        hec_buf_puts(out, "[");
        for (size_t i = 0; i < json_array_size(value); i++)
            add_value(out, json_array_get(value, i), NULL);
        hec_buf_puts(out, "]");
        break;
    case JSON_STRING:
        add_text(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        hec_buf_printf(out, "#%.17g;", json_number_value(value));
        break;
    case JSON_TRUE:
        hec_buf_puts(out, "t");
        break;
    case JSON_FALSE:
        hec_buf_puts(out, "f");
        break;
    case JSON_NULL:
        hec_buf_puts(out, "n");
        break;
    }
}

int hec_receipt_digest(const json_t *receipt, char digest[HEC_SHA256_TEXT]) {
    struct hec_buf bytes;
    hec_buf_init(&bytes, BYTES_MOST);
    add_value(&bytes, receipt, "digest");
    int err = hec_buf_error(&bytes);
    if (!err)
        hec_sha256(digest, hec_buf_text(&bytes), bytes.length);
    hec_buf_free(&bytes);
    return err;
}
