/* What objects of CPython mean, by their bytes. Bytes are of another process: any may come. */
#pragma once

#include "observe/stacks/layout.h"

/* The line that an instruction is of: `instruction` is its distance in bytes from the first one, negative: before it.
 * table: co_lnotab (until 3.9) or co_linetable. 0: of no line; -1: the table has no such instruction, or is damaged. */
int32_t hec_python_line(int minor, int32_t first_line, const unsigned char *table, size_t size, int64_t instruction);

/* Where the end of a text lies. */
struct hec_python_text {
    uint64_t address;
    size_t count; /* characters, at most HEC_PYTHON_TEXT_MAX */
    int kind;     /* bytes of each: 1, 2, 4 */
};
#define HEC_PYTHON_TEXT_MAX 255

/* object: layout->text_compact bytes at `address`. False: it is no text. */
bool hec_python_text_at(const struct hec_python_layout *layout, const unsigned char *object, uint64_t address,
                        struct hec_python_text *text);
/* To UTF-8, of which the last HEC_PYTHON_TEXT_MAX bytes are kept. characters: text->count * text->kind bytes. */
void hec_python_text_decode(const struct hec_python_text *text, const unsigned char *characters,
                            char out[HEC_PYTHON_TEXT_MAX + 1]);
