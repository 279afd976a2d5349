#include "observe/marks/marks.h"

#include <string.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define NAME_BYTES 63
#define VALUE_BYTES 255

static int count_of(const char *knobs) {
    int count = knobs[0] != '\0';
    for (; *knobs; knobs++) {
        if (*knobs == '\\' && knobs[1])
            knobs++;
        else
            count += *knobs == ';';
    }
    return count;
}

int hec_marks_knob_add(struct hec_buf *knobs, const char *assignment, struct hec_why *why) {
    size_t name = strspn(assignment, NAME_CHARACTERS);
    if (name == 0 || name > NAME_BYTES || assignment[name] != '=')
        return hec_fail(why, HEC_ERR_USAGE,
                        "a knob is NAME=VALUE, with a name of at most %d letters, digits, '_', '.' and '-', not \"%s\"",
                        NAME_BYTES, assignment);
    const char *value = assignment + name + 1;
    size_t length = strlen(value);
    if (length > VALUE_BYTES)
        return hec_fail(why, HEC_ERR_USAGE, "the value of knob %.*s is longer than %d bytes", (int)name, assignment,
                        VALUE_BYTES);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
            return hec_fail(why, HEC_ERR_USAGE, "the value of knob %.*s has control characters", (int)name, assignment);
    if (count_of(hec_buf_text(knobs)) >= HEC_MARKS_KNOBS_COUNT_MAX)
        return hec_fail(why, HEC_ERR_LIMIT, "more than %d knobs", HEC_MARKS_KNOBS_COUNT_MAX);
    if (knobs->length > 0)
        hec_buf_puts(knobs, ";");
    hec_buf_add(knobs, assignment, name + 1);
    for (size_t i = 0; i < length; i++) {
        if (value[i] == ';' || value[i] == '\\')
            hec_buf_puts(knobs, "\\");
        hec_buf_add(knobs, value + i, 1);
    }
    int err = hec_buf_error(knobs);
    return err ? hec_fail(why, err, "the knobs are longer than %d bytes together", HEC_MARKS_KNOBS_MAX) : HEC_OK;
}
