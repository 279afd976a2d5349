/* Shows a played case to whoever traces: for each segment that has happened, the calls that a program would have made and
 * the kernels and copies that they launched, in this order, through the hook of the double of libcuda (cuda/hook.h). Times
 * are those of the segment, so that the timeline of a tracer and the power of the device agree, and what was
 * shown is known exactly. */
#pragma once

#include "sim/model.h"

/* What the device was doing, as a diagnosis should name it: the state of the ledger, or the reason for being idle. */
enum sim_state {
    SIM_STATE_COMPUTE,
    SIM_STATE_COMM,
    SIM_STATE_COPY,
    SIM_STATE_QUEUE,  /* between two kernels that were both launched in time */
    SIM_STATE_LAUNCH, /* the next kernel had not been launched yet */
    SIM_STATE_STARTUP,
    SIM_STATE_DATA,
    SIM_STATE_SYNC,
    SIM_STATE_HOST,
    SIM_STATE_CHECKPOINT,
    SIM_STATE_ALLOC,
    SIM_STATE_OTHER, /* a context, and the program before or after its work */
    SIM_STATE_COUNT
};

const char *sim_state_name(enum sim_state state); /* "compute" */

struct sim_show_truth {
    bool shown; /* a double of libcuda was there: the rest counts */
    uint64_t kernels, copies, memsets;
    uint64_t bytes_pinned, bytes_pageable,
        bytes_to_host; /* copied to the device from pinned and pageable memory; to host */
    double window_seconds, busy_seconds, compute_seconds, copy_seconds, kernel_sum_seconds;
    struct {
        double seconds, joules; /* joules: of the whole device in that time */
    } state[SIM_STATE_COUNT];
};

struct sim_show;

/* Load the double of libcuda and initialise it, which loads the tracer that the environment names. *show is NULL where
 * there is no double: a case is then played without being shown. ordinal: CUDA's. HEC_ERR_NOMEM. */
int sim_show_open(int ordinal, struct sim_show **show);
/* The program's first call, before the clock of the play starts: it gets its memory, `bytes`. Returns when a tracer that
 * wants to be there from the first launch on is. show NULL is fine. */
void sim_show_begin(struct sim_show *show, uint64_t bytes, int64_t now_ns);
/* A segment is over. Pieces are contiguous; segments come in order. show NULL is fine. */
void sim_show_segment(struct sim_show *show, enum sim_activity activity, const struct sim_piece *pieces, int count);
void sim_show_truth(const struct sim_show *show, struct sim_show_truth *truth);
void sim_show_close(struct sim_show *show);

/* The states of a play as sim_case_truth predicts it, without playing it: only `state` of *truth is filled. HEC_ERR_NOMEM
 * or HEC_ERR_USAGE. */
struct sim_case;
int sim_show_predict(const struct sim_case *workload, double seconds, const struct sim_profile *profile, int32_t cap_mw,
                     uint64_t seed, struct sim_show_truth *truth);
/* The state of the ledger that a state is counted for: "launch" of SIM_STATE_QUEUE, "tail" of SIM_STATE_OTHER. */
const char *sim_state_of_ledger(enum sim_state state);
