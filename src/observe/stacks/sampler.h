/* The threads of one process that runs Python, read one after the other. */
#pragma once

#include "observe/stacks/interpreter.h"
#include "observe/stacks/names.h"
#include "observe/stacks/stacks.h"

struct hec_stacks_thread {
    struct hec_python_thread python;
    pid_t tid; /* 0: not known, its samples are dropped */
    uint32_t track;
    bool main, listed;
    int64_t changed_ns, read_ns, stands_ns; /* stands_ns: its newest sample */
    struct hec_python_stack stack;
    struct hec_python_named named;
};

struct hec_stacks_counts {
    int64_t samples, torn;
};

/* Samples go here. */
struct hec_stacks_out {
    const struct hec_sink *sink;
    struct hec_activity batch[256];
    int count;
    struct hec_stacks_counts counts;
};
void hec_stacks_flush(struct hec_stacks_out *out);

struct hec_stacks_sampler {
    struct hec_python_process process; /* it refers to itself: the sampler stays where it is */
    struct hec_python_names names;
    struct hec_stacks_thread *threads;
    int thread_count, thread_room, id_at;
    int64_t listed_ns; /* when the threads were listed last; 0: they have to be */
    int64_t sampled_ns;
    int failed; /* reads in a row that gave nothing */
};

/* The process is `process`, which was opened. */
void hec_stacks_sampler_init(struct hec_stacks_sampler *sampler, const struct hec_sink *sink);
void hec_stacks_sampler_free(struct hec_stacks_sampler *sampler);

/* Reads the main thread, those that changed lately, and of the others whose turn it is, HEC_STACKS_THREADS in all. Each sample stands for
 * the time until the thread is read again, as it was since the last time, period_ns at least. False: nothing of the interpreter is
 * there any more. */
bool hec_stacks_sample(struct hec_stacks_sampler *sampler, int64_t now_ns, int64_t period_ns,
                       struct hec_python_scratch *scratch, struct hec_stacks_out *out);
