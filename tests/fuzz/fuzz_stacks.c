/* The memory of a process that says it is a Python interpreter. Input: a version, then its memory from BASE on, _PyRuntime first. */
#include "observe/stacks/names.h"

#include <stdlib.h>

#define BASE UINT64_C(0x100000)

struct input {
    const uint8_t *data;
    size_t size;
};

static uint32_t texts, frames;

static size_t read_input(void *context, const struct iovec *pieces, size_t count, void *to) {
    const struct input *input = context;
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = (uintptr_t)pieces[i].iov_base - BASE;
        if (at >= input->size || pieces[i].iov_len > input->size - at)
            break;
        memcpy((char *)to + done, input->data + at, pieces[i].iov_len);
        done += pieces[i].iov_len;
    }
    return done;
}

static uint32_t trace_name(void *context, const char *text) {
    (void)context;
    if (!text[0] || strlen(text) >= 256)
        abort();
    return ++texts;
}

static uint32_t trace_frame(void *context, const struct hec_frame *frame) {
    (void)context;
    if (frame->parent > frames || frame->file > texts || frame->function > texts || frame->line < 0)
        abort();
    return frames % 8 == 7 ? 0 : ++frames; /* full, at some time */
}

static const struct hec_sink sink = {.trace_name = trace_name, .trace_frame = trace_frame};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct hec_python_scratch scratch;
    struct hec_python python = {.runtime = BASE};
    struct hec_python_thread threads[4];
    if (size < 1 || (!hec_python_layout_told(data + 1, size - 1, &python.layout) &&
                     !hec_python_layout_of(HEC_PYTHON_MINOR_FIRST + data[0] % 7, &python.layout)))
        return 0;
    struct input input = {data + 1, size - 1};
    const struct hec_memory memory = {&input, read_input};
    struct hec_python_names names = {.sink = &sink};
    texts = frames = 0;
    int count = hec_python_threads(&python, &memory, &scratch, NULL, 0, threads, 4);
    for (int i = 0; i < count; i++) {
        struct hec_python_stack stack = {0};
        struct hec_python_named named = {0};
        for (int turn = 0; turn < 2; turn++) {
            int same;
            uint32_t leaf = 0;
            if (hec_python_walk(&python, &memory, &threads[i], &scratch, &stack, &same) >= 0)
                hec_python_name(&names, &python, &memory, &scratch, &stack, same, &named, &leaf);
            if (leaf > frames)
                abort();
        }
        hec_python_stack_free(&stack);
        hec_python_named_free(&named);
    }
    hec_python_names_free(&names);
    return 0;
}
