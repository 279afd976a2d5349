/* Plays a simulated workload on the simulated machine, as `hec sim CASE` does: opens a context, appends the case's
 * segments a little ahead of time, sleeps, ends the steps when their time has come, closes the context. Prints nothing.
 * It uses almost no CPU: of a real program's host side only the waiting is imitated. A tracer sees what such a program
 * would have launched (sim/show.h). */
#pragma once

#include "sim/case.h"
#include "sim/show.h"
#include "sim/world.h"

#include <jansson.h>
#include <signal.h>

struct sim_play_options {
    double seconds;         /* how long to play, the startup included; > 0 */
    int device;             /* CUDA ordinal: CUDA_VISIBLE_DEVICES is honoured */
    uint64_t seed;          /* 0: no jitter */
    const char *world_path; /* NULL: HEC_SIM_WORLD */
    /* Called at the end of each step, in the playing thread; may be NULL. */
    void (*on_step)(void *context, double units);
    /* Called when a wait is over whose cause only the program itself can report (its loader, a checkpoint), in the
     * playing thread; name: that of the phase. Times are CLOCK_MONOTONIC. May be NULL. */
    void (*on_phase)(void *context, const char *name, int64_t start_ns, int64_t end_ns);
    void *context;
    /* Ends the play early when it becomes non-zero. NULL: SIGTERM and SIGINT end it; their handlers are put back. */
    const volatile sig_atomic_t *stop;
    /* What a tracer could see; may be NULL. Cases are shown only with world_path NULL, and where the double of libcuda is
     * found (sim/show.h). */
    struct sim_show_truth *shown;
};

/* case_name: of the table, or a case as sim_case_read takes it.
 * HEC_ERR_NOTFOUND: no such case, no world, no such device. *truth (may be NULL) is exact for what was really played,
 * also after an early end: the energy of the device between the opening and the closing of the context, if no other
 * process used it at the same time. */
int sim_play(const char *case_name, const struct sim_play_options *options, struct sim_truth *truth,
             struct hec_why *why);

/* {"cases": [{"name", "planted", "untraced", "unit", "units_per_step", "step_seconds", "power_limit_w", "meaning",
 * "segments": [{"activity", "seconds", "times"}]}]}; NULL when out of memory. The caller owns it. */
json_t *sim_cases_json(void);
/* {"seconds", "joules", "work": {...}, "idle": {...}, "steps", "units", "activities": {name: {"seconds", "joules"}}, ...};
 * with shown (may be NULL) also "timeline": {"kernels", "copies", ..., "busy_seconds", ...} and "states": {name:
 * {"seconds", "joules"}}, which sum to the whole. */
/* {"compute": {"seconds", "joules"}} by state of the ledger. */
json_t *sim_ledger_json(const struct sim_show_truth *shown);
json_t *sim_truth_json(const struct sim_truth *truth, const struct sim_show_truth *shown);
