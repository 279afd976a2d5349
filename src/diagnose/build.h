/* Inside src/diagnose: what one diagnosis works with, and those of its stages (stages.def) that have files of their own. */
#ifndef HEC_DIAGNOSE_BUILD_H
#define HEC_DIAGNOSE_BUILD_H

#include "diagnose/meter/meter.h"
#include "diagnose/replay/schedule.h"
#include "diagnose/result.h"
#include "diagnose/timeline/pass.h"

struct hec_build {
    const struct hec_summary_input *input;
    const struct hec_price *price;
    struct hec_summary *out;
    struct hec_meter meter; /* which knows the end of the run */
    /* of the run's events */
    int64_t lost_ns[HEC_DEVICE_MAX];
    char sensor_failed[HEC_DEVICE_MAX][160];
    char no_answer[160]; /* the driver was given up at the end of the run */
    /* the pass, and who is fed by it */
    struct hec_timeline_input trace;
    struct hec_device *devices; /* of trace */
    struct hec_pass pass;
    struct hec_pass_consumer consumers[HEC_STAGE_COUNT];
    struct hec_timeline_builder *timeline;
    struct hec_phases *phases;
    struct hec_diagnosis_builder *diagnosis;
    struct hec_schedule_builder *recorder;
    struct hec_step_list found;      /* steps in the sequence of kernels, where there are no others */
    struct hec_schedule schedule;    /* until it is the predictor's or the caller's */
    struct hec_predictor *predictor; /* NULL: nothing to replay */
};

/* What a stage does before the pass and after it. NULL: nothing. */
struct hec_stage_functions {
    int (*begin)(struct hec_build *build, struct hec_why *why);
    int (*end)(struct hec_build *build, struct hec_why *why);
};
/* Begins all of them (HEC_STAGE_COUNT), feeds them, and ends each when those that it needs have ended. 0, or what the first that
 * failed returned; those after it have not ended then. */
int hec_stages_run(struct hec_build *build, const struct hec_stage_functions *stages, struct hec_why *why);

/* What the run says of itself: labels, devices, events, units, phases and its end. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_run_read(struct hec_build *build, struct hec_why *why);
/* After all was read: what had to be left out of it, as an event at its end. */
void hec_run_left_out(struct hec_build *build);

/* Joules, money and CO2 of the run and of its units of work: devices, who used them, and steps are there. */
void hec_totals_find(struct hec_summary *out, const struct hec_price *price);

#endif
