/* The memory of a made CPython process: one interpreter, its threads, frames, code objects and texts, as a version lays them out. */
#pragma once

#include "unit.h"

#include "observe/stacks/walk.h"

#define IMAGE_BASE UINT64_C(0x100000)
#define IMAGE_BYTES 65536

struct image {
    struct hec_python python;
    uint64_t used, interpreter, last_thread;
    unsigned char bytes[IMAGE_BYTES];
};

static inline void *image_at(struct image *m, uint64_t address) {
    assert_true(address >= IMAGE_BASE && address < IMAGE_BASE + IMAGE_BYTES - 64);
    return m->bytes + (address - IMAGE_BASE);
}

static inline void image_put(struct image *m, uint64_t address, uint64_t value) {
    memcpy(image_at(m, address), &value, sizeof value);
}

static inline void image_put32(struct image *m, uint64_t address, uint32_t value) {
    memcpy(image_at(m, address), &value, sizeof value);
}

static inline uint64_t image_room(struct image *m, uint64_t size) {
    uint64_t address = IMAGE_BASE + m->used;
    m->used += (size + 15) & ~UINT64_C(15);
    assert_true(m->used <= IMAGE_BYTES);
    return address;
}

static size_t image_read(void *context, const struct iovec *pieces, size_t count, void *to) {
    const struct image *m = context;
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = (uintptr_t)pieces[i].iov_base, size = pieces[i].iov_len;
        if (address < IMAGE_BASE || address >= IMAGE_BASE + IMAGE_BYTES || size > IMAGE_BASE + IMAGE_BYTES - address)
            break;
        memcpy((char *)to + done, m->bytes + (address - IMAGE_BASE), size);
        done += size;
    }
    return done;
}

static inline struct hec_memory image_memory(struct image *m) {
    return (struct hec_memory){m, image_read};
}

static inline uint64_t image_text(struct image *m, const char *text) {
    const struct hec_python_layout *l = &m->python.layout;
    uint64_t at = image_room(m, l->text_ascii + strlen(text) + 1);
    image_put(m, at + l->text_length, strlen(text));
    image_put32(m, at + l->text_state,
                (1u | 1u << 3 | 1u << 4) << l->text_kind_shift); /* a byte each, compact, ASCII */
    memcpy(image_at(m, at + l->text_ascii), text, strlen(text));
    return at;
}

static inline uint64_t image_table(struct image *m, const void *bytes, size_t size) {
    const struct hec_python_layout *l = &m->python.layout;
    uint64_t at = image_room(m, l->bytes_data + size + 1);
    image_put(m, at + l->bytes_size, size);
    memcpy(image_at(m, at + l->bytes_data), bytes, size);
    return at;
}

/* Instructions of ten bytes on the first line, then ten on the one after the next. */
static inline uint64_t image_code(struct image *m, const char *file, const char *function, int32_t first_line) {
    static const unsigned char pairs[] = {10, 2, 10, 0}, ranges[] = {10, 0, 10, 2},
                               locations[] = {128 | 13 << 3 | 4, 0, 128 | 12 << 3 | 4, 0, 0};
    const struct hec_python_layout *l = &m->python.layout;
    uint64_t at = image_room(m, 512);
    image_put(m, at + 8, m->python.code_type);
    image_put(m, at + l->code_filename, image_text(m, file));
    image_put(m, at + l->code_name, image_text(m, function));
    image_put32(m, at + l->code_first_line, (uint32_t)first_line);
    if (l->minor < 10)
        image_put(m, at + l->code_lines, image_table(m, pairs, sizeof pairs));
    else if (l->minor == 10)
        image_put(m, at + l->code_lines, image_table(m, ranges, sizeof ranges));
    else
        image_put(m, at + l->code_lines, image_table(m, locations, sizeof locations));
    if (l->minor >= 11)
        image_put(m, at + l->bytes_size, 10);
    return at;
}

/* At the instruction of so many bytes after the first one. previous: the frame that called it, 0. */
static inline uint64_t image_frame(struct image *m, uint64_t code, int64_t instruction, uint64_t previous) {
    const struct hec_python_layout *l = &m->python.layout;
    uint64_t at = image_room(m, l->frame_bytes + 16);
    image_put(m, at + l->frame_previous, previous);
    image_put(m, at + l->frame_code, code | (l->minor >= 14 ? 1 : 0));
    if (l->minor >= 11)
        image_put(m, at + l->frame_instruction, code + l->code_instructions + (uint64_t)instruction);
    else
        image_put32(m, at + l->frame_instruction,
                    (uint32_t)(l->minor == 10 && instruction > 0 ? instruction / 2 : instruction));
    return at;
}

/* Where C calls Python, from 3.12 on. */
static inline uint64_t image_c_frame(struct image *m, uint64_t previous) {
    const struct hec_python_layout *l = &m->python.layout;
    if (l->minor < 12)
        return previous;
    uint64_t at = image_frame(m, 0, 0, previous);
    *(unsigned char *)image_at(m, at + l->frame_owner) = 3;
    return at;
}

static inline void image_top(struct image *m, uint64_t thread, uint64_t frame) {
    const struct hec_python_layout *l = &m->python.layout;
    if (!hec_python_has(l->cframe_frame)) {
        image_put(m, thread + l->thread_frame, frame);
        return;
    }
    uint64_t cframe = image_room(m, 32);
    image_put(m, cframe + l->cframe_frame, frame);
    image_put(m, thread + l->thread_frame, cframe);
}

/* The first one that is made is the last of the list, as in CPython. */
static inline uint64_t image_thread(struct image *m, uint64_t id, uint64_t native_id, uint64_t frame) {
    const struct hec_python_layout *l = &m->python.layout;
    uint64_t at = image_room(m, l->thread_bytes + 16);
    image_put(m, at + l->thread_next, m->last_thread);
    image_put(m, at + l->thread_interpreter, m->interpreter);
    image_put(m, at + l->thread_id, id);
    if (hec_python_has(l->thread_native_id))
        image_put(m, at + l->thread_native_id, native_id);
    image_top(m, at, frame);
    image_put(m, m->interpreter + l->interpreter_threads, at);
    return m->last_thread = at;
}

static inline void image_begin(struct image *m, int minor, uint64_t main_id) {
    memset(m, 0, sizeof *m);
    assert_true(hec_python_layout_of(minor, &m->python.layout));
    const struct hec_python_layout *l = &m->python.layout;
    m->python.runtime = image_room(m, 2048);
    m->python.code_type = image_room(m, 64);
    m->interpreter = image_room(m, l->interpreter_threads + 64);
    image_put(m, m->python.runtime + l->runtime_interpreters, m->interpreter);
    if (hec_python_has(l->runtime_main_thread))
        image_put(m, m->python.runtime + l->runtime_main_thread, main_id);
}
