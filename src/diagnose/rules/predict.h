/* What the answer to a finding would save, by a replay of the recorded schedule; alone, and after the findings before it. */
#pragma once

#include "diagnose/rules/facts.h"
#include "diagnose/replay/lanes.h"

/* A report replays no more: its predictions are of the first so many calls of the steady part that were traced. */
#define HEC_PREDICT_CALLS (1u << 18)

struct hec_meter;
struct hec_predictor;

/* summary: complete but for its findings. The schedule is the predictor's from here on. *out is NULL, and nothing is predicted by
 * replay, where the schedule does not explain the recorded time to 2 %, or is of several jobs that know nothing of each other. 0,
 * HEC_ERR_NOMEM or what the input returned. */
int hec_predictor_begin(struct hec_meter *meter, const struct hec_summary *summary, struct hec_schedule *schedule,
                        struct hec_predictor **out, struct hec_why *why);
void hec_predictor_end(struct hec_predictor *predictor); /* NULL is fine */

/* Sets step_seconds, step_joules and `replayed` of a finding that an edit answers; leaves any other as it is. predictor may be
 * NULL. 0 or HEC_ERR_NOMEM. */
int hec_predict(const struct hec_predictor *predictor, const struct hec_facts *facts, struct hec_finding *finding);
/* Of a replayed finding: how long the recorded stretch is, and the device's joules in it (NAN unknown). A program that is ahead of its
 * device by all of its steps is done with them long before the device is. */
void hec_predictor_stretch(const struct hec_predictor *predictor, int device, double *seconds, double *joules);
/* In the order of the list: what each saves beyond those before it, and all of them together. */
int hec_predict_rest(const struct hec_predictor *predictor, struct hec_findings *findings);
/* A step as recorded, and with the answers to all of them (hec_lanes_draw). *count: how many answers; 0, and nothing is drawn: none, or the
 * cores would not do for what is drawn. predictor may be NULL. 0 or HEC_ERR_NOMEM. */
int hec_predict_lanes(const struct hec_predictor *predictor, const struct hec_findings *findings,
                      struct hec_step_lanes *recorded, struct hec_step_lanes *answered, int *count);
