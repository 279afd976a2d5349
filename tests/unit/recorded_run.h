/* The run of a test: what was recorded of it, in memory, and the summary that is made of that. */
#pragma once

#include "fake_run.h"
#include "fake_timeline.h"

static struct fake_run run;
static struct fake_timeline timeline;
static struct hec_summary summary;

/* Anew, of what is recorded by now. */
static inline void summarise(void) {
    const struct hec_price price = hec_price_default();
    struct hec_why why = {""};
    hec_summary_free(&summary);
    run.input.timeline = timeline.input;
    int err = hec_summary_build(&run.input, &price, &summary, &why);
    if (err)
        fail_msg("%d: %s", err, why.text);
}

/* With nothing recorded; its timeline exists once a test makes one (fake_tl_init). */
static inline void run_begin(double seconds) {
    hec_summary_free(&summary);
    fake_tl_free(&timeline);
    fake_free(&run);
    memset(&summary, 0, sizeof summary);
    memset(&timeline, 0, sizeof timeline);
    fake_init(&run, seconds);
}

/* One H200, at work as fake_worker says, for process 4321. */
static inline void run_begin_with(double seconds, double watts, int engine, int sm, int occupancy) {
    run_begin(seconds);
    fake_worker(&run, 0, watts, engine, sm, occupancy);
    fake_used(&run, 0, 4321);
}
