#include "observe/stacks/names.h"

#include "base/error.h"
#include "base/list.h"
#include "observe/stacks/decode.h"

#include <stdlib.h>

#define OUTERMOST 30
#define CODES_MAX 65536
#define PLACES_MAX 200000
#define LINES_MAX 65536    /* bytes of a table of lines */
#define ANYWHERE INT32_MIN /* a module that is imported: its line does not matter */
#define FROZEN "<frozen "
#define IMPORTS FROZEN "importlib"
#define HOOKS "/hec/_hooks/"

/* ---- code objects ---- */

static size_t slot_of(uint64_t a, uint64_t b, size_t count) {
    uint64_t hash = (a ^ b * UINT64_C(0xc2b2ae3d27d4eb4f)) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash >> 32) & (count - 1);
}

/* The slot of an address: free, or its. */
static uint32_t *code_slot(const struct hec_python_names *n, uint64_t address) {
    size_t at = slot_of(address >> 3, 0, n->code_slot_count);
    while (n->code_slots[at] && n->codes[n->code_slots[at] - 1].address != address)
        at = (at + 1) & (n->code_slot_count - 1);
    return &n->code_slots[at];
}

static bool code_room(struct hec_python_names *n) {
    if (!hec_list_room(n->codes, n->code_count, n->code_room, 256))
        return false;
    if (2 * n->code_count < n->code_slot_count)
        return true;
    size_t count = n->code_slot_count ? 2 * n->code_slot_count : 512;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    free(n->code_slots);
    n->code_slots = slots;
    n->code_slot_count = count;
    for (size_t i = 0; i < n->code_count; i++) /* of those that had one address the last one is there now */
        *code_slot(n, n->codes[i].address) = (uint32_t)i + 1;
    return true;
}

static bool read_text(const struct hec_python *python, const struct hec_memory *memory, uint64_t address,
                      char out[HEC_PYTHON_TEXT_MAX + 1]) {
    unsigned char object[128], characters[4 * HEC_PYTHON_TEXT_MAX];
    struct hec_python_text text;
    if (python->layout.text_ascii > sizeof object ||
        !hec_memory_read(memory, address, object, python->layout.text_ascii) ||
        !hec_python_text_at(&python->layout, object, address, &text) ||
        !hec_memory_read(memory, text.address, characters, text.count * (size_t)text.kind))
        return false;
    hec_python_text_decode(&text, characters, out);
    return true;
}

static struct hec_python_code parse(const struct hec_python_layout *l, uint64_t address, const unsigned char *bytes) {
    struct hec_python_code code = {
        .address = address,
        .filename = hec_memory_u64(bytes + l->code_filename),
        .name = hec_memory_u64(bytes + l->code_name),
        .lines = hec_memory_u64(bytes + l->code_lines),
        .size = hec_memory_u64(bytes + (l->minor < 11 ? l->code_instructions : l->bytes_size)),
    };
    memcpy(&code.first_line, bytes + l->code_first_line, sizeof code.first_line);
    return code;
}

static bool same_code(const struct hec_python_code *a, const struct hec_python_code *b) {
    return a->address == b->address && a->filename == b->filename && a->name == b->name && a->lines == b->lines &&
           a->size == b->size && a->first_line == b->first_line;
}

/* Its index plus 1; 0: torn, or no room. bytes: of the object. */
static uint32_t code_of(struct hec_python_names *n, const struct hec_python *python, const struct hec_memory *memory,
                        uint64_t address, const unsigned char *bytes) {
    char file[HEC_PYTHON_TEXT_MAX + 1], function[HEC_PYTHON_TEXT_MAX + 1];
    struct hec_python_code code = parse(&python->layout, address, bytes);
    uint32_t known = n->code_slot_count ? *code_slot(n, address) : 0;
    if (known && same_code(&n->codes[known - 1], &code))
        return known;
    if ((python->code_type && hec_memory_u64(bytes + sizeof(uint64_t)) != python->code_type) ||
        !read_text(python, memory, code.filename, file) || !read_text(python, memory, code.name, function) ||
        !code_room(n))
        return 0;
    code.imports = strncmp(file, IMPORTS, sizeof IMPORTS - 1) == 0;
    code.generated = (file[0] == '<' && strncmp(file, FROZEN, sizeof FROZEN - 1) != 0) || file[0] == '\0';
    code.module = strcmp(function, "<module>") == 0;
    code.ours = strstr(file, HOOKS) != NULL;
    code.file = file[0] ? n->sink->trace_name(n->sink->context, file) : 0;
    code.function = function[0] ? n->sink->trace_name(n->sink->context, function) : 0;
    n->codes[n->code_count++] = code;
    return *code_slot(n, address) = (uint32_t)n->code_count;
}

/* ---- places ---- */

/* Of a table of `count` slots. */
static struct hec_python_place *place_slot(struct hec_python_place *places, size_t count, uint32_t parent,
                                           uint32_t code, int32_t instruction) {
    size_t at = slot_of((uint64_t)parent << 32 | code, (uint32_t)instruction, count);
    for (;; at = (at + 1) & (count - 1)) {
        struct hec_python_place *p = &places[at];
        if (!p->code || (p->parent == parent && p->code == code && p->instruction == instruction))
            return p;
    }
}

static bool place_room(struct hec_python_names *n) {
    if (2 * n->place_count < n->place_slot_count)
        return true;
    size_t count = n->place_slot_count ? 2 * n->place_slot_count : 1024;
    struct hec_python_place *grown = calloc(count, sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = 0; i < n->place_slot_count; i++) {
        const struct hec_python_place *p = &n->places[i];
        if (p->code)
            *place_slot(grown, count, p->parent, p->code, p->instruction) = *p;
    }
    free(n->places);
    n->places = grown;
    n->place_slot_count = count;
    return true;
}

/* -1: torn. */
static int32_t line_of(const struct hec_python *python, const struct hec_memory *memory, struct hec_python_scratch *s,
                       const struct hec_python_code *code, int32_t instruction) {
    const struct hec_python_layout *l = &python->layout;
    uint64_t size;
    if (instruction == ANYWHERE)
        return 0;
    if (!hec_memory_read(memory, code->lines + l->bytes_size, &size, sizeof size) || size > LINES_MAX ||
        !hec_memory_read(memory, code->lines + l->bytes_data, s->bytes, (size_t)size))
        return -1;
    return hec_python_line(l->minor, code->first_line, s->bytes, (size_t)size, instruction);
}

/* The frame at an instruction of a code object below `parent`; false: torn, or no room. */
static bool frame_at(struct hec_python_names *n, const struct hec_python *python, const struct hec_memory *memory,
                     struct hec_python_scratch *s, uint32_t parent, uint32_t code, int32_t instruction,
                     uint32_t *frame) {
    if (!place_room(n))
        return false;
    struct hec_python_place *place = place_slot(n->places, n->place_slot_count, parent, code, instruction);
    if (!place->code) {
        const struct hec_python_code *c = &n->codes[code - 1];
        int32_t line = line_of(python, memory, s, c, instruction);
        if (line < 0)
            return false;
        const struct hec_frame made = {.parent = parent, .file = c->file, .function = c->function, .line = line};
        *place = (struct hec_python_place){parent, code, instruction, n->sink->trace_frame(n->sink->context, &made)};
        n->place_count++;
    }
    *frame = place->frame;
    return place->frame != 0;
}

/* ---- a stack ---- */

static bool within(const struct hec_python_layout *l, const struct hec_python_code *code, int64_t instruction) {
    int64_t most = l->minor >= 11 ? 2 * (int64_t)(code->size < INT32_MAX / 2 ? code->size : INT32_MAX / 2) : INT32_MAX;
    return instruction >= -2 && instruction < most;
}

static bool named_room(struct hec_python_named *named, int count) {
    if (count <= named->room)
        return true;
    struct hec_python_level *grown = realloc(named->levels, (size_t)(count + 64) * sizeof *grown);
    if (!grown)
        return false;
    named->levels = grown;
    named->room = count + 64;
    return true;
}

/* What is to be named: frames of a stack, the outermost first. */
struct asked {
    int depth[HEC_PYTHON_DEPTH_MAX];
    uint32_t code[HEC_PYTHON_DEPTH_MAX]; /* index plus 1; 0: C calls Python there */
    int count;
};

static const struct hec_python_frame *at_depth(const struct hec_python_stack *stack, int depth) {
    return &stack->frames[stack->count - 1 - depth];
}

/* The frames from depth `from` on that are kept. */
static void ask(const struct hec_python_stack *stack, int from, struct asked *asked) {
    asked->count = 0;
    for (int depth = from; depth < stack->count; depth++) {
        if (stack->count > HEC_PYTHON_DEPTH_MAX && depth == OUTERMOST)
            depth = stack->count - (HEC_PYTHON_DEPTH_MAX - OUTERMOST);
        asked->depth[asked->count++] = depth;
    }
}

/* Where the code object of a frame is among those that are read; *count: it is a new one. */
static int piece_of(struct hec_python_scratch *s, uint64_t code, size_t size, int *count) {
    int at = 0;
    while (at < *count && (uintptr_t)s->pieces[at].iov_base != code)
        at++;
    if (at == *count)
        s->pieces[(*count)++] = hec_memory_piece(code, size);
    return at;
}

/* Their code objects, each read once, all in one read; false: torn. */
static bool find_codes(struct hec_python_names *n, const struct hec_python *python, const struct hec_memory *memory,
                       struct hec_python_scratch *s, const struct hec_python_stack *stack, struct asked *asked) {
    size_t size = python->layout.code_bytes;
    int at[HEC_PYTHON_DEPTH_MAX], count = 0;
    for (int i = 0; i < asked->count; i++)
        if (at_depth(stack, asked->depth[i])->code)
            at[i] = piece_of(s, at_depth(stack, asked->depth[i])->code, size, &count);
    if (count > 0 && memory->read(memory->context, s->pieces, (size_t)count, s->bytes) != (size_t)count * size)
        return false;
    for (int i = 0; i < asked->count; i++) {
        const struct hec_python_frame *frame = at_depth(stack, asked->depth[i]);
        asked->code[i] = 0;
        if (!frame->code)
            continue;
        asked->code[i] = code_of(n, python, memory, frame->code, s->bytes + size * (size_t)at[i]);
        if (!asked->code[i] || !within(&python->layout, &n->codes[asked->code[i] - 1], frame->instruction))
            return false;
    }
    return true;
}

int hec_python_name(struct hec_python_names *n, const struct hec_python *python, const struct hec_memory *memory,
                    struct hec_python_scratch *s, const struct hec_python_stack *stack, int same,
                    struct hec_python_named *named, uint32_t *leaf) {
    struct asked asked;
    struct hec_python_level level = {0};
    int known = same < named->count ? same : named->count;
    if (stack->count > HEC_PYTHON_DEPTH_MAX && known > OUTERMOST)
        known = OUTERMOST;
    *leaf = 0;
    if (!named_room(named, stack->count))
        return HEC_ERR_NOMEM;
    if (n->code_count > CODES_MAX || n->place_count > PLACES_MAX) /* code that is made anew all the time */
        hec_python_names_free(n);
    named->count = known;
    ask(stack, known, &asked);
    if (!find_codes(n, python, memory, s, stack, &asked))
        return HEC_PYTHON_TORN;
    if (known)
        level = named->levels[known - 1];
    bool certain = true;
    for (int i = 0; i < asked.count; i++) {
        const struct hec_python_code *code = asked.code[i] ? &n->codes[asked.code[i] - 1] : NULL;
        const struct hec_python_frame *frame = at_depth(stack, asked.depth[i]);
        int32_t instruction = code && code->module && level.imports ? ANYWHERE : (int32_t)frame->instruction;
        if (code && !code->imports &&
            !frame_at(n, python, memory, s, level.frame, asked.code[i], instruction, &level.frame))
            return HEC_PYTHON_TORN;
        if (code)
            level.imports = code->imports;
        level.ours |= code && code->ours && asked.depth[i] == 0;
        certain = certain && !(code && code->generated && !code->imports);
        named->levels[asked.depth[i]] = level;
        if (certain && asked.depth[i] == named->count)
            named->count++;
    }
    *leaf = level.ours ? 0 : level.frame;
    return 0;
}

void hec_python_names_free(struct hec_python_names *n) {
    free(n->codes);
    free(n->code_slots);
    free(n->places);
    n->codes = NULL;
    n->code_slots = NULL;
    n->places = NULL;
    n->code_count = n->code_room = n->code_slot_count = n->place_count = n->place_slot_count = 0;
}

void hec_python_named_free(struct hec_python_named *named) {
    free(named->levels);
    *named = (struct hec_python_named){0};
}
