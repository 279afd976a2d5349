/* The threads of a CPython interpreter and the frames they are in, from its memory.
 *
 * Nothing stops the program, so what is read may be of several instants: every walk is bounded, what cannot be is refused, and
 * a thread's state and its frames are copied with one call, the state first: what it points to is then there, or was a moment ago. */
#pragma once

#include "observe/stacks/layout.h"
#include "observe/stacks/memory.h"

#define HEC_PYTHON_THREADS_MAX 256
#define HEC_PYTHON_FRAMES_MAX 1000 /* innermost ones that are read */

struct hec_python {
    struct hec_python_layout layout;
    uint64_t runtime;   /* address of _PyRuntime */
    uint64_t code_type; /* of PyCode_Type; 0: not known */
};

struct hec_python_thread {
    uint64_t state, interpreter, id; /* id: pthread_self() of it */
    uint64_t native_id;              /* as the process numbers it; 0: not known */
    bool main;                       /* known to be (until 3.12) */
};

/* HEC_PYTHON_GONE: the thread has ended. */
enum { HEC_PYTHON_TORN = -1, HEC_PYTHON_GONE = -2 };

struct hec_python_frame {
    uint64_t address, code; /* code 0: C calls Python here, no frame of a program */
    int64_t instruction;    /* bytes from the first one; negative: before it */
};

/* A thread's stack as it was read last, innermost frame first, which the next read goes by. */
struct hec_python_stack {
    struct hec_python_frame *frames;
    int count, room;
    uint64_t cframe;
};

/* What a walk needs, once for all threads. */
struct hec_python_scratch {
    struct iovec pieces[HEC_MEMORY_PIECES_MAX];
    struct hec_python_frame frames[HEC_PYTHON_FRAMES_MAX];
    size_t piece_at[HEC_MEMORY_PIECES_MAX]; /* in bytes */
    size_t piece_count, used;
    size_t found; /* the piece that was looked up last: the next one is mostly behind it */
    unsigned char bytes[512 * 1024];
};

/* The threads that have run Python. Their number, at most `room`; 0: the interpreter has not begun; HEC_PYTHON_TORN.
 * known: states of those that were there the last time, which are read at once; known_count 0: none. */
int hec_python_threads(const struct hec_python *python, const struct hec_memory *memory,
                       struct hec_python_scratch *scratch, const uint64_t *known, int known_count,
                       struct hec_python_thread *out, int room);

/* Several stacks are read with one call, each where it was the last time: plan_begin, plan of each, plan_read, then take of each. */
void hec_python_plan_begin(struct hec_python_scratch *scratch);
void hec_python_plan(const struct hec_python *python, const struct hec_python_thread *thread,
                     const struct hec_python_stack *stack, struct hec_python_scratch *scratch);
void hec_python_plan_read(const struct hec_memory *memory, struct hec_python_scratch *scratch);
/* The stack of a thread that was planned. 1: it has changed since the last time, 0: it is the same; count 0: it runs no Python.
 * *same: so many of its outermost frames are those of the last time. HEC_PYTHON_TORN, HEC_PYTHON_GONE: *stack is as before. */
int hec_python_take(const struct hec_python *python, const struct hec_memory *memory,
                    const struct hec_python_thread *thread, struct hec_python_scratch *scratch,
                    struct hec_python_stack *stack, int *same);
/* All of it for one thread. */
int hec_python_walk(const struct hec_python *python, const struct hec_memory *memory,
                    const struct hec_python_thread *thread, struct hec_python_scratch *scratch,
                    struct hec_python_stack *stack, int *same);
void hec_python_stack_free(struct hec_python_stack *stack);
