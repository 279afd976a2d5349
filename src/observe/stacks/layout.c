#include "observe/stacks/layout.h"

#include <string.h>

#define VERSIONS (HEC_PYTHON_MINOR_LAST - HEC_PYTHON_MINOR_FIRST + 1)
#define COOKIE "xdebugpy"
#define OFFSET_MAX (1u << 24) /* the interpreter's state has some hundred kilobytes */

#define NONE HEC_PYTHON_NONE
static const struct {
    size_t field; /* in the layout */
    uint32_t at[VERSIONS], told[HEC_PYTHON_MINOR_LAST - HEC_PYTHON_MINOR_TOLD + 1];
} fields[] = {
#define HEC_PYTHON_FIELD(name, a, b, c, d, e, f, g, told_f, told_g)                                                    \
    {offsetof(struct hec_python_layout, name), {a, b, c, d, e, f, g}, {told_f, told_g}},
#include "observe/stacks/layouts.def"
#undef HEC_PYTHON_FIELD
};
#undef NONE
#define FIELDS (sizeof fields / sizeof fields[0])

static uint32_t *field_of(struct hec_python_layout *layout, size_t i) {
    return (uint32_t *)((char *)layout + fields[i].field);
}

static void cover(uint32_t *bytes, uint32_t field) {
    if (hec_python_has(field) && field + 8 > *bytes)
        *bytes = field + 8;
}

static bool finish(struct hec_python_layout *l) {
    l->thread_bytes = l->frame_bytes = l->code_bytes = 0;
    cover(&l->thread_bytes, l->thread_next);
    cover(&l->thread_bytes, l->thread_interpreter);
    cover(&l->thread_bytes, l->thread_id);
    cover(&l->thread_bytes, l->thread_native_id);
    cover(&l->thread_bytes, l->thread_frame);
    cover(&l->frame_bytes, l->frame_previous);
    cover(&l->frame_bytes, l->frame_code);
    cover(&l->frame_bytes, l->frame_instruction);
    cover(&l->frame_bytes, l->frame_owner);
    cover(&l->code_bytes, l->bytes_size); /* of code objects too, whose instructions it counts from 3.11 on */
    cover(&l->code_bytes, l->code_name);
    cover(&l->code_bytes, l->code_filename);
    cover(&l->code_bytes, l->code_first_line);
    cover(&l->code_bytes, l->code_lines);
    if (l->minor < 11)
        cover(&l->code_bytes, l->code_instructions);
    return l->thread_bytes <= HEC_PYTHON_THREAD_BYTES && l->frame_bytes <= HEC_PYTHON_FRAME_BYTES &&
           l->code_bytes <= HEC_PYTHON_CODE_BYTES && l->text_ascii <= l->text_compact &&
           l->text_length + 8 <= l->text_ascii && l->text_state + 4 <= l->text_ascii;
}

bool hec_python_layout_of(int minor, struct hec_python_layout *layout) {
    if (minor < HEC_PYTHON_MINOR_FIRST || minor > HEC_PYTHON_MINOR_LAST)
        return false;
    layout->minor = minor;
    for (size_t i = 0; i < FIELDS; i++)
        *field_of(layout, i) = fields[i].at[minor - HEC_PYTHON_MINOR_FIRST];
    return finish(layout);
}

bool hec_python_layout_told(const unsigned char *told, size_t size, struct hec_python_layout *layout) {
    struct {
        char cookie[8];
        uint64_t version, free_threaded;
    } head;
    if (size < sizeof head)
        return false;
    memcpy(&head, told, sizeof head);
    int minor = (int)(head.version >> 16 & 0xff);
    if (memcmp(head.cookie, COOKIE, sizeof head.cookie) != 0 || head.version >> 24 != 3 || head.free_threaded ||
        minor < HEC_PYTHON_MINOR_TOLD || !hec_python_layout_of(minor, layout))
        return false;
    for (size_t i = 0; i < FIELDS; i++) {
        uint32_t at = fields[i].told[minor - HEC_PYTHON_MINOR_TOLD];
        uint64_t offset;
        if (!hec_python_has(at))
            continue;
        if (at + sizeof offset > size)
            return false;
        memcpy(&offset, told + at, sizeof offset);
        if (offset >= OFFSET_MAX)
            return false;
        *field_of(layout, i) = (uint32_t)offset;
    }
    return finish(layout);
}
