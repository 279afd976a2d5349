/* An input as a text. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Up to its first zero, in memory of the exact length, so that a read too far is seen; to be freed. NULL: no memory. */
static inline char *fuzz_text(const uint8_t *data, size_t size) {
    const uint8_t *zero = memchr(data, 0, size);
    size_t length = zero ? (size_t)(zero - data) : size;
    char *text = malloc(length + 1);
    if (text) {
        memcpy(text, data, length);
        text[length] = '\0';
    }
    return text;
}
