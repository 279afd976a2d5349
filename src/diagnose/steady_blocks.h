/* The steady part of a run in consecutive blocks: what comparing runs rests on (prove/trial.h), for what a program takes
 * varies from step to step, and blocks of them show by how much.
 *
 * With steps (steps.h; those that the run goes by) the steady part is steady.h's, from the end of its third step to the end
 * of its last one, and a block is a number of whole steps, about as many in each. Without, it is the time in which the
 * devices were in use, in blocks of equal time. Up to 60 blocks, none meant to be shorter than 0.25 s (3 s where power is
 * polled: many devices then give a mean of the last second).
 *
 * Joules of a block are those of all used devices together (meter/joules.h). */
#pragma once

#include "base/error.h"
#include "diagnose/finding.h"
#include "model/run.h"

#include <stdint.h>

enum { HEC_STEADY_BLOCKS_MAX = 60 };

struct hec_steady_block {
    double seconds;
    double joules; /* NAN unknown */
    double units;  /* NAN unknown */
    double steps;  /* NAN: there are none */
};

enum hec_block_work {
    HEC_WORK_UNKNOWN, /* nobody counted work */
    HEC_WORK_BY_STEP, /* steps say when it was done */
    HEC_WORK_EVENLY   /* only the whole run's count is known: it counts as done evenly in time, of the whole run */
};

struct hec_steady_blocks {
    struct hec_steady_block block[HEC_STEADY_BLOCKS_MAX];
    struct hec_steady_block whole; /* the sum of them */
    int count;                     /* 0: there is no such part */
    enum hec_block_work work;
    char unit[64];             /* what units count; "" unknown */
    double step_p50, step_p99; /* durations of whole.steps, seconds; NAN: there are none */
};

/* For a pass that is open (pass.h) and a summary with devices, their use and energy, and units. 0, HEC_ERR_NOMEM or what the
 * input returned. */
struct hec_meter;
struct hec_pass;
struct hec_summary;
int hec_steady_blocks_build(const struct hec_pass *pass, struct hec_meter *meter, const struct hec_summary *summary,
                            struct hec_steady_blocks *out, struct hec_why *why);

/* ---- the loop: that steady part, and what stands around it ---- */

enum hec_run_part { HEC_RUN_SETUP, HEC_RUN_LOOP, HEC_RUN_END, HEC_RUN_PARTS };

/* Work per second and joules a unit are of the loop, as programs count that print their own rate. The seconds and joules of set-up and
 * of the end stand beside it. */
struct hec_loop {
    bool known; /* steps tell where it is, or calls (states/inferred/loop.c); else all else is 0 */
    double seconds[HEC_RUN_PARTS];
    double joules[HEC_RUN_PARTS], bound_joules[HEC_RUN_PARTS];          /* of the used devices; NAN unknown */
    double device_joules[HEC_DEVICE_MAX], device_bound[HEC_DEVICE_MAX]; /* of the loop alone, by hec_device.index */
    int64_t steps;                                                      /* 0: told by calls */
    struct hec_finding_line setup_line; /* that took most of the idle time of set-up; share 0: not known */
};

/* As hec_steady_blocks_build. Counts the units' work in the loop. */
int hec_loop_build(const struct hec_pass *pass, struct hec_meter *meter, struct hec_summary *summary,
                   struct hec_why *why);
/* Rates and joules of the units in the loop, once it is known which devices they are charged with. */
void hec_loop_units(struct hec_summary *summary);
