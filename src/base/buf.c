#include "base/buf.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hec_buf_init(struct hec_buf *buf, size_t maximum) {
    memset(buf, 0, sizeof *buf);
    buf->maximum = maximum;
}

void hec_buf_free(struct hec_buf *buf) {
    size_t maximum = buf->maximum;
    free(buf->data);
    hec_buf_init(buf, maximum);
}

void hec_buf_clear(struct hec_buf *buf) {
    buf->length = 0;
    buf->error = HEC_OK;
    if (buf->data)
        buf->data[0] = '\0';
}

static int reserve(struct hec_buf *buf, size_t more) {
    if (buf->error)
        return buf->error;
    if (more >= buf->maximum || buf->length > buf->maximum - more - 1)
        return buf->error = HEC_ERR_LIMIT;
    size_t need = buf->length + more + 1;
    if (need <= buf->capacity)
        return HEC_OK;
    size_t capacity = buf->capacity ? buf->capacity : 256;
    while (capacity < need)
        capacity *= 2;
    char *data = realloc(buf->data, capacity);
    if (!data)
        return buf->error = HEC_ERR_NOMEM;
    buf->data = data;
    buf->capacity = capacity;
    return HEC_OK;
}

int hec_buf_add(struct hec_buf *buf, const char *text, size_t length) {
    int err = reserve(buf, length);
    if (err)
        return err;
    memcpy(buf->data + buf->length, text, length);
    buf->length += length;
    buf->data[buf->length] = '\0';
    return HEC_OK;
}

int hec_buf_puts(struct hec_buf *buf, const char *text) {
    return hec_buf_add(buf, text, strlen(text));
}

int hec_buf_printf(struct hec_buf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    int err = length < 0 ? HEC_ERR_FAILED : reserve(buf, (size_t)length);
    if (err == HEC_OK) {
        vsnprintf(buf->data + buf->length, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    }
    va_end(again);
    return err;
}

int hec_buf_error(const struct hec_buf *buf) {
    return buf->error;
}

const char *hec_buf_text(const struct hec_buf *buf) {
    return buf->data ? buf->data : "";
}
