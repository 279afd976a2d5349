#include "observe/stacks/walk.h"

#include <stdlib.h>

#define INTERPRETERS_MAX 64
#define LISTED_MAX 4096   /* threads of all interpreters that are passed by */
#define PIECES_FRAMES 900 /* of one read; the rest is read when it is come to */
#define GAP_BYTES                                                                                                      \
    4096 /* frames of 3.11 and later lie in a stack of their own: read as one where they are no further apart */
#define HEAP_GAP_BYTES 2048 /* the same on the heap: no page lies in between that may not be there */
#define RUN_BYTES (64u * 1024)
#define WINDOW_BYTES 2048 /* read below a frame that was not expected: those that called it lie there */
#define ROOM_BYTES 1024
#define PAGE UINT64_C(4096)
#define TAGS UINT64_C(3)

enum owner { OWNER_C = 3 }; /* from there on, since 3.12: where C calls Python, and no frame of a program */

/* ---- what is read at once ---- */

static bool plan(struct hec_python_scratch *s, uint64_t address, size_t size) {
    if (s->piece_count == PIECES_FRAMES || s->used + size > sizeof s->bytes)
        return false;
    s->pieces[s->piece_count] = hec_memory_piece(address, size);
    s->piece_at[s->piece_count++] = s->used;
    s->used += size;
    return true;
}

/* What the innermost frame has called meanwhile lies behind it: as far as it is on the same page, which is there. */
static uint64_t with_room(uint64_t end) {
    uint64_t page_end = (end + PAGE - 1) & ~(PAGE - 1);
    return page_end - end < ROOM_BYTES ? page_end : end + ROOM_BYTES;
}

/* The frames of the interpreter's own stack, or those of C's. */
static void plan_frames(const struct hec_python_layout *l, const struct hec_python_stack *stack, bool of_c,
                        struct hec_python_scratch *s) {
    uint64_t low = 0, high = 0; /* of what is read as one */
    uint64_t gap = l->minor >= 11 ? GAP_BYTES : HEAP_GAP_BYTES;
    for (int i = 0; i < stack->count; i++) {
        uint64_t at = stack->frames[i].address;
        if ((stack->frames[i].code == 0) != of_c)
            continue;
        /* those that called it lie below; before 3.11 anywhere, near each other where they were made one after the other */
        if (at < low && low - at <= gap && high - at <= RUN_BYTES) {
            low = at;
            continue;
        }
        if (l->minor < 11 && at >= low && at < high + gap && at + l->frame_bytes - low <= RUN_BYTES) {
            high = at + l->frame_bytes > high ? at + l->frame_bytes : high;
            continue;
        }
        if (high && !plan(s, low, high - low))
            return;
        low = at;
        high = at + l->frame_bytes;
        if (i == 0 && l->minor >= 11 && !of_c)
            high = with_room(high);
    }
    if (high)
        plan(s, low, high - low);
}

static const unsigned char *planned(struct hec_python_scratch *s, uint64_t address, size_t size) {
    size_t at = s->found;
    for (size_t i = 0; i < s->piece_count; i++, at++) {
        at = at < s->piece_count ? at : 0;
        uint64_t base = (uintptr_t)s->pieces[at].iov_base;
        if (address < base || address - base + size > s->pieces[at].iov_len)
            continue;
        s->found = at;
        return s->bytes + s->piece_at[at] + (address - base);
    }
    return NULL;
}

/* Reads one more piece. NULL: it is not there. */
static const unsigned char *fetch(const struct hec_memory *memory, struct hec_python_scratch *s, uint64_t address,
                                  size_t below, size_t size) {
    uint64_t page = address & ~(PAGE - 1), base = address > below && address - below > page ? address - below : page;
    size_t count = s->piece_count, used = s->used;
    if (below == 0)
        base = address;
    if (!plan(s, base, address - base + size)) {
        /* no room: what was read before it is not needed again, or is read again */
        hec_python_plan_begin(s);
        count = used = 0;
        if (!plan(s, base, address - base + size))
            return NULL;
    }
    if (hec_memory_read(memory, base, s->bytes + used, s->pieces[count].iov_len))
        return s->bytes + used + (address - base);
    s->piece_count = count;
    s->used = used;
    return NULL;
}

/* What was planned, else it is read now. NULL: it is not there. */
static const unsigned char *bytes_at(const struct hec_memory *memory, struct hec_python_scratch *s, uint64_t address,
                                     size_t below, size_t size) {
    const unsigned char *bytes = planned(s, address, size);
    return bytes ? bytes : fetch(memory, s, address, below, size);
}

/* The same, copied: however many there are. */
static bool copy(const struct hec_memory *memory, struct hec_python_scratch *s, uint64_t address, void *to,
                 size_t size) {
    const unsigned char *bytes = planned(s, address, size);
    if (bytes)
        memcpy(to, bytes, size);
    return bytes || hec_memory_read(memory, address, to, size);
}

/* ---- the threads ---- */

int hec_python_threads(const struct hec_python *python, const struct hec_memory *memory, struct hec_python_scratch *s,
                       const uint64_t *known, int known_count, struct hec_python_thread *out, int room) {
    const struct hec_python_layout *l = &python->layout;
    unsigned char bytes[HEC_PYTHON_THREAD_BYTES];
    uint64_t interpreter, state, main = 0;
    int count = 0, listed = 0;
    hec_python_plan_begin(s);
    plan(s, python->runtime + l->runtime_interpreters, sizeof interpreter);
    if (hec_python_has(l->runtime_main_thread))
        plan(s, python->runtime + l->runtime_main_thread, sizeof main);
    for (int i = 0; i < known_count; i++)
        plan(s, known[i], l->thread_bytes);
    hec_python_plan_read(memory, s);
    if (!copy(memory, s, python->runtime + l->runtime_interpreters, &interpreter, sizeof interpreter) ||
        (hec_python_has(l->runtime_main_thread) &&
         !copy(memory, s, python->runtime + l->runtime_main_thread, &main, sizeof main)))
        return HEC_PYTHON_TORN;
    for (int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
        if (!copy(memory, s, interpreter + l->interpreter_threads, &state, sizeof state))
            return HEC_PYTHON_TORN;
        while (state && listed++ < LISTED_MAX) {
            if (!copy(memory, s, state, bytes, l->thread_bytes) ||
                hec_memory_u64(bytes + l->thread_interpreter) != interpreter)
                return HEC_PYTHON_TORN;
            struct hec_python_thread thread = {
                .state = state, .interpreter = interpreter, .id = hec_memory_u64(bytes + l->thread_id)};
            if (hec_python_has(l->thread_native_id))
                thread.native_id = hec_memory_u64(bytes + l->thread_native_id);
            thread.main = main && thread.id == main;
            if (thread.id && count < room)
                out[count++] = thread;
            state = hec_memory_u64(bytes + l->thread_next);
        }
        if (!copy(memory, s, interpreter + l->interpreter_next, &interpreter, sizeof interpreter))
            return HEC_PYTHON_TORN;
    }
    return count;
}

/* ---- the frames ---- */

static bool take_frame(const struct hec_python_layout *l, uint64_t address, const unsigned char *bytes,
                       struct hec_python_frame *frame) {
    uint64_t code = hec_memory_u64(bytes + l->frame_code);
    *frame = (struct hec_python_frame){.address = address};
    if (hec_python_has(l->frame_owner) && l->minor >= 12 && bytes[l->frame_owner] >= OWNER_C)
        return true;
    if (l->minor >= 14)
        code &= ~TAGS;
    frame->code = code;
    if (l->minor >= 11) {
        frame->instruction = (int64_t)(hec_memory_u64(bytes + l->frame_instruction) - code - l->code_instructions);
    } else {
        int32_t last;
        memcpy(&last, bytes + l->frame_instruction, sizeof last);
        frame->instruction = l->minor == 10 && last > 0 ? 2 * (int64_t)last : last;
    }
    return code != 0 && code % sizeof code == 0;
}

/* HEC_PYTHON_TORN, or how many. A circle is torn: frames of two instants lead to each other where one came in the place of another. One
 * frame of the circle is met again before as many more have been passed as there were then (Brent). */
static int follow(const struct hec_python *python, const struct hec_memory *memory, struct hec_python_scratch *s,
                  uint64_t address) {
    const struct hec_python_layout *l = &python->layout;
    uint64_t met = 0;
    int count = 0, next = 1;
    for (; address && count < HEC_PYTHON_FRAMES_MAX; count++) {
        if (address == met)
            return HEC_PYTHON_TORN;
        if (count == next) {
            met = address;
            next *= 2;
        }
        const unsigned char *bytes = bytes_at(memory, s, address, l->minor >= 11 ? WINDOW_BYTES : 0, l->frame_bytes);
        if (!bytes || address % sizeof address != 0 || !take_frame(l, address, bytes, &s->frames[count]))
            return HEC_PYTHON_TORN;
        address = hec_memory_u64(bytes + l->frame_previous);
    }
    return count;
}

/* The innermost frame of the thread; 0: it runs no Python. False: see *err. */
static bool top_of(const struct hec_python *python, const struct hec_memory *memory, struct hec_python_scratch *s,
                   const struct hec_python_thread *thread, struct hec_python_stack *stack, uint64_t *top, int *err) {
    const struct hec_python_layout *l = &python->layout;
    const unsigned char *bytes = planned(s, thread->state, l->thread_bytes);
    *err = HEC_PYTHON_TORN;
    if (!bytes)
        return false;
    if (hec_memory_u64(bytes + l->thread_interpreter) != thread->interpreter ||
        hec_memory_u64(bytes + l->thread_id) != thread->id) {
        *err = HEC_PYTHON_GONE;
        return false;
    }
    *top = hec_memory_u64(bytes + l->thread_frame);
    if (!hec_python_has(l->cframe_frame))
        return true;
    uint64_t cframe = *top;
    if (!cframe)
        return true;
    bytes = bytes_at(memory, s, cframe + l->cframe_frame, 0, sizeof *top);
    if (!bytes)
        return false;
    *top = hec_memory_u64(bytes);
    stack->cframe = cframe;
    return true;
}

static bool keep(struct hec_python_stack *stack, const struct hec_python_frame *frames, int count) {
    if (count > stack->room) {
        int room = count < 64 ? 64 : HEC_PYTHON_FRAMES_MAX;
        struct hec_python_frame *grown = realloc(stack->frames, (size_t)room * sizeof *grown);
        if (!grown)
            return false;
        stack->frames = grown;
        stack->room = room;
    }
    if (count > 0)
        memcpy(stack->frames, frames, (size_t)count * sizeof *frames);
    stack->count = count;
    return true;
}

static int common(const struct hec_python_stack *stack, const struct hec_python_frame *frames, int count) {
    int same = 0;
    while (same < count && same < stack->count) {
        const struct hec_python_frame *a = &stack->frames[stack->count - 1 - same], *b = &frames[count - 1 - same];
        if (a->address != b->address || a->code != b->code || a->instruction != b->instruction)
            break;
        same++;
    }
    return same;
}

void hec_python_plan_begin(struct hec_python_scratch *s) {
    s->piece_count = s->used = s->found = 0;
}

void hec_python_plan(const struct hec_python *python, const struct hec_python_thread *thread,
                     const struct hec_python_stack *stack, struct hec_python_scratch *s) {
    const struct hec_python_layout *l = &python->layout;
    plan(s, thread->state, l->thread_bytes);
    if (stack->cframe)
        plan(s, stack->cframe + l->cframe_frame, sizeof(uint64_t));
    plan_frames(l, stack, false, s);
    plan_frames(l, stack, true, s);
}

/* Pieces that did not come are as if they had not been planned. */
void hec_python_plan_read(const struct hec_memory *memory, struct hec_python_scratch *s) {
    size_t got = memory->read(memory->context, s->pieces, s->piece_count, s->bytes);
    while (s->piece_count && s->piece_at[s->piece_count - 1] + s->pieces[s->piece_count - 1].iov_len > got)
        s->piece_count--;
    s->used = got;
}

int hec_python_take(const struct hec_python *python, const struct hec_memory *memory,
                    const struct hec_python_thread *thread, struct hec_python_scratch *s,
                    struct hec_python_stack *stack, int *same) {
    uint64_t top;
    int err;
    if (!top_of(python, memory, s, thread, stack, &top, &err)) {
        stack->cframe = 0;
        return s->piece_count ? err : HEC_PYTHON_GONE;
    }
    int count = follow(python, memory, s, top);
    if (count < 0)
        return count;
    *same = common(stack, s->frames, count);
    if (*same == count && count == stack->count)
        return 0;
    return keep(stack, s->frames, count) ? 1 : HEC_PYTHON_TORN;
}

int hec_python_walk(const struct hec_python *python, const struct hec_memory *memory,
                    const struct hec_python_thread *thread, struct hec_python_scratch *s,
                    struct hec_python_stack *stack, int *same) {
    hec_python_plan_begin(s);
    hec_python_plan(python, thread, stack, s);
    hec_python_plan_read(memory, s);
    return hec_python_take(python, memory, thread, s, stack, same);
}

void hec_python_stack_free(struct hec_python_stack *stack) {
    free(stack->frames);
    *stack = (struct hec_python_stack){0};
}
