/* A growing text buffer with a mandatory maximum. After any failed append the buffer is
 * "broken": later appends do nothing, and hec_buf_error says why, so that a writer checks once. */
#pragma once

#include <stddef.h>

struct hec_buf {
    char *data; /* NUL-terminated once anything was appended; NULL before */
    size_t length;
    size_t capacity;
    size_t maximum;
    int error;
};

void hec_buf_init(struct hec_buf *buf, size_t maximum);
void hec_buf_free(struct hec_buf *buf);
void hec_buf_clear(struct hec_buf *buf); /* keeps the memory */

int hec_buf_add(struct hec_buf *buf, const char *text, size_t length);
int hec_buf_puts(struct hec_buf *buf, const char *text);
int hec_buf_printf(struct hec_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* HEC_OK, HEC_ERR_NOMEM or HEC_ERR_LIMIT. */
int hec_buf_error(const struct hec_buf *buf);
const char *hec_buf_text(const struct hec_buf *buf); /* "" when empty */
