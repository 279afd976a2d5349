/* Inside src/report: the kinds of values of json_kind.def as JSON: of_KIND(value). */
#pragma once

#include "report/format.h"
#include "report/receipt/receipt.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Text from outside: no control characters, valid UTF-8. */
static inline json_t *of_STRING(const char *from) {
    char clean[1100];
    return json_string(hec_format_clean(clean, sizeof clean, from, true));
}
/* For programs alone: JSON escapes control characters. */
static inline json_t *of_EXACT(const char *from) {
    json_t *exact = json_string(from);
    return exact ? exact : of_STRING(from); /* no UTF-8 */
}
static inline json_t *of_EXACT_TEXT(const char *from) {
    return from ? of_EXACT(from) : json_null();
}
static inline json_t *of_DIGITS(uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    return json_string(digits);
}
static inline json_t *of_TEXT(const char *from) {
    return from[0] ? of_STRING(from) : json_null();
}
static inline json_t *of_NUMBER(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}
#define of_AMOUNT of_NUMBER
#define of_SHARE of_NUMBER
static inline json_t *of_COUNT(int64_t value) {
    return json_integer(value);
}
static inline json_t *of_KNOWN(int64_t value) {
    return value < 0 ? json_null() : json_integer(value);
}
static inline json_t *of_POSITIVE(int64_t value) {
    return value <= 0 ? json_null() : json_integer(value);
}
static inline json_t *of_BOOLEAN(bool value) {
    return json_boolean(value);
}
static inline json_t *of_MAYBE(int value) {
    return value < 0 ? json_null() : json_boolean(value);
}
/* Those whose value is an array or an object already. */
#define of_STRINGS(made) (made)
#define of_INTERVAL(made) (made)
#define of_RANGE(made) (made)
#define of_INDICES(made) (made)
#define of_DIMENSIONS(made) (made)
#define of_METRICS(made) (made)
#define of_NUMBERS(made) (made)
#define of_LOSSES(made) (made)
#define of_GRADIENTS(made) (made)

static inline json_t *interval(double low, double value, double high) {
    if (!isfinite(value))
        return json_null();
    json_t *values = json_array();
    json_array_append_new(values, of_NUMBER(low));
    json_array_append_new(values, of_NUMBER(value));
    json_array_append_new(values, of_NUMBER(high));
    return values;
}

/* count texts, each of size bytes. */
static inline json_t *strings_of(const char *first, size_t size, int count) {
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, of_STRING(first + (size_t)i * size));
    return list;
}

/* The indices of bits that are set. */
static inline json_t *indices_of(uint64_t bits) {
    json_t *list = json_array();
    for (int i = 0; i < 64; i++)
        if (bits >> i & 1)
            json_array_append_new(list, json_integer(i));
    return list;
}

/* ---- values of receipt/conditions.def ---- */

static inline json_t *words_of(const struct hec_receipt_words *words) {
    json_t *list = json_array();
    for (int i = 0; i < words->count; i++)
        json_array_append_new(list, of_EXACT(words->list[i]));
    return list;
}
