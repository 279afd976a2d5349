/* A streaming reader of JSON (RFC 8259), for traces of any size: pull, one pass, a window of fixed size, no allocation per
 * value. Chosen over libraries by measurement: docs/decisions/0005-streaming-json.md.
 *
 * Also understood, because profilers write them: NaN, nan, Infinity and inf, with a sign or without, as numbers. Repaired, and
 * counted: in a string a backslash that begins no escape (paths of Windows), a control character, and a quote that cannot be
 * the last because nothing that follows a string comes after it (a source line in a name).
 * Not checked: that text is UTF-8 (whoever shows it cleans it), and that keys are unique (they come as they are).
 *
 * Errors stick: after one, every call returns it. HEC_ERR_CORRUPT says what was expected at which byte (of the unpacked
 * text); HEC_ERR_LIMIT for nesting deeper than HEC_JSON_DEPTH_MAX; or the input's own error. */
#pragma once

#include "store/import/input.h"

#include <stdbool.h>
#include <stdint.h>

#define HEC_JSON_DEPTH_MAX 128
#define HEC_JSON_TEXT_MAX 16384 /* bytes kept of a string; longer ones are cut, reading goes on */
#define HEC_JSON_WINDOW 262144

struct hec_json {
    struct hec_import_input *input;
    struct hec_why *why;
    const uint8_t *at, *end; /* *end is 0 */
    int64_t base;            /* offset of the window's first byte */
    int error;
    int64_t repaired; /* bytes that are not valid, read as they were meant */
    int64_t doubt_at; /* offset of the first quote of this string that was taken for text; -1: none */
    int depth;
    bool input_ended, input_failed;
    bool fresh; /* the container was just entered: no comma before what comes */
    uint8_t is_array[HEC_JSON_DEPTH_MAX];
    char scratch[HEC_JSON_TEXT_MAX + 8];
    uint8_t window[HEC_JSON_WINDOW + 16];
};

/* Bytes of the window or of the scratch: valid until the next call. */
struct hec_json_text {
    const char *data;
    size_t length;
};

/* The reader is large: allocate it. why (not NULL) is kept. */
void hec_json_init(struct hec_json *json, struct hec_import_input *input, struct hec_why *why);

/* Passes the byte order mark of UTF-8, which some editors put first: before anything is read. */
void hec_json_skip_mark(struct hec_json *json);

/* The first byte of the next value: one of { [ " t f n, or '0' for any number; 0 at the end of the input, where a value
 * need not follow. Negative on error (no value can begin so). */
int hec_json_peek(struct hec_json *json);

int hec_json_enter(struct hec_json *json); /* past the { or [ that peek saw */

/* The next member of the object: 1 with its key, then its value must be read or skipped; 0 past the closing brace. */
int hec_json_member(struct hec_json *json, struct hec_json_text *key);
/* The next element of the array, likewise. */
int hec_json_element(struct hec_json *json);
/* Reads on to the end of the object or array that was entered last, and leaves it. */
int hec_json_leave(struct hec_json *json);

int hec_json_skip(struct hec_json *json);                                 /* any value */
int hec_json_string(struct hec_json *json, struct hec_json_text *text);   /* where peek saw " */
int hec_json_number(struct hec_json *json, struct hec_json_text *digits); /* where peek saw '0' */

/* After the last value: nothing but blanks may follow. */
int hec_json_finish(struct hec_json *json);
