#include "observe/stacks/decode.h"

#include <string.h>

#define TEXT_LENGTH_MAX 1000000 /* names and paths are shorter */

/* ---- lines ---- */

/* co_lnotab: pairs of bytes: instructions, and lines after them. */
static int32_t by_pairs(int64_t line, const unsigned char *table, size_t size, int64_t instruction) {
    int64_t at = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        at += table[i];
        if (at > instruction)
            break;
        line += (int8_t)table[i + 1];
    }
    return line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
}

/* co_linetable of 3.10: pairs of bytes: instructions, and lines before them; -128: they are of none. */
static int32_t by_ranges(int64_t line, const unsigned char *table, size_t size, int64_t instruction) {
    int64_t end = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int8_t lines = (int8_t)table[i + 1];
        if (lines != -128)
            line += lines;
        end += table[i];
        if (end > instruction)
            return lines == -128 ? 0 : line > 0 && line <= INT32_MAX ? (int32_t)line : -1;
    }
    return -1;
}

/* Numbers of 6 bits a byte, the lowest first. */
static bool varint(const unsigned char *table, size_t size, size_t *at, uint32_t *value) {
    *value = 0;
    for (unsigned shift = 0; *at < size && shift < 32; shift += 6) {
        unsigned char byte = table[(*at)++];
        *value |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64))
            return true;
    }
    return false;
}

static bool signed_varint(const unsigned char *table, size_t size, size_t *at, int64_t *value) {
    uint32_t coded;
    if (!varint(table, size, at, &coded))
        return false;
    *value = coded & 1 ? -(int64_t)(coded >> 1) : (int64_t)(coded >> 1);
    return true;
}

enum location { SHORT_LAST = 9, LINE_FIRST = 10, LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15 };

/* co_linetable from 3.11 on (Objects/locations.md of CPython). */
static int32_t by_locations(int64_t line, const unsigned char *table, size_t size, int64_t instruction) {
    int64_t end = 0;
    for (size_t at = 0; at < size;) {
        unsigned char first = table[at++];
        int code = first >> 3 & 15;
        int64_t lines = 0;
        uint32_t skipped;
        if (!(first & 128))
            return -1;
        end += ((first & 7) + 1) * 2;
        if (code <= SHORT_LAST) {
            at++;
        } else if (code <= LINE_LAST) {
            lines = code - LINE_FIRST;
            at += 2;
        } else if (code != NO_LOCATION && !signed_varint(table, size, &at, &lines)) {
            return -1;
        } else if (code == LONG) {
            for (int i = 0; i < 3; i++)
                if (!varint(table, size, &at, &skipped))
                    return -1;
        }
        line += lines;
        if (end > instruction)
            return code == NO_LOCATION ? 0 : line > 0 && line <= INT32_MAX ? (int32_t)line : -1;
    }
    return -1;
}

int32_t hec_python_line(int minor, int32_t first_line, const unsigned char *table, size_t size, int64_t instruction) {
    if (instruction < 0)
        return first_line > 0 ? first_line : 0;
    return minor < 10    ? by_pairs(first_line, table, size, instruction)
           : minor == 10 ? by_ranges(first_line, table, size, instruction)
                         : by_locations(first_line, table, size, instruction);
}

/* ---- texts ---- */

bool hec_python_text_at(const struct hec_python_layout *layout, const unsigned char *object, uint64_t address,
                        struct hec_python_text *text) {
    int64_t length;
    uint32_t state;
    memcpy(&length, object + layout->text_length, sizeof length);
    memcpy(&state, object + layout->text_state, sizeof state);
    state >>= layout->text_kind_shift;
    bool compact = state >> 3 & 1, ascii = state >> 4 & 1;
    text->kind = (int)(state & 7);
    if (!compact || length < 0 || length > TEXT_LENGTH_MAX || (text->kind != 1 && text->kind != 2 && text->kind != 4) ||
        (ascii && text->kind != 1))
        return false;
    text->count = length < HEC_PYTHON_TEXT_MAX ? (size_t)length : HEC_PYTHON_TEXT_MAX;
    text->address = address + (ascii ? layout->text_ascii : layout->text_compact) +
                    ((uint64_t)length - text->count) * (uint64_t)text->kind;
    return true;
}

static size_t encode(uint32_t c, char out[4]) {
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = '?';
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf0u << (4 - length) & 0xff) | c);
    return length;
}

void hec_python_text_decode(const struct hec_python_text *text, const unsigned char *characters,
                            char out[HEC_PYTHON_TEXT_MAX + 1]) {
    size_t at = HEC_PYTHON_TEXT_MAX;
    for (size_t i = text->count; i-- > 0;) {
        uint32_t c = 0;
        char bytes[4];
        memcpy(&c, characters + i * (size_t)text->kind, (size_t)text->kind);
        size_t length = encode(c, bytes);
        if (length > at)
            break;
        at -= length;
        memcpy(out + at, bytes, length);
    }
    memmove(out, out + at, HEC_PYTHON_TEXT_MAX - at);
    out[HEC_PYTHON_TEXT_MAX - at] = '\0';
}
