/* Bytes as numbers and as values for SQLite. The corpora rest on it: what is read must not change. */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *data;
    size_t size;
};

static inline int64_t take_number(struct bytes *b) {
    int64_t value = 0;
    size_t n = b->size < 8 ? b->size : 8;
    if (n)
        memcpy(&value, b->data, n);
    b->data += n;
    b->size -= n;
    return value >> (value & 63); /* small ones too */
}

/* Of a text, by the byte in front of its kind. */
static inline size_t text_length(const struct bytes *b) {
    return b->size && b->size > b->data[0] ? b->data[0] : b->size;
}

/* kind: 0 a text of at most `length` bytes, 1 a double, 2 NULL, else an integer. */
static inline void bind_kind(sqlite3_stmt *s, int column, struct bytes *b, int64_t kind, size_t length) {
    length = length < b->size ? length : b->size;
    switch (kind) {
    case 0:
        sqlite3_bind_text(s, column, (const char *)b->data, (int)length, SQLITE_TRANSIENT);
        b->data += length;
        b->size -= length;
        break;
    case 1:
        sqlite3_bind_double(s, column, (double)take_number(b) * 1e300);
        break;
    case 2:
        sqlite3_bind_null(s, column);
        break;
    default:
        sqlite3_bind_int64(s, column, take_number(b));
    }
}
