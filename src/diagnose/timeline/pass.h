/* Inside src/diagnose: the one pass over a trace, which feeds all that is made of it. Windows and steps are read first, for
 * they say what the rest is to be counted for; all else follows in the order of time. Each record is read once. */
#pragma once

#include "diagnose/timeline/steps.h"

enum hec_stage {
#define STAGE(id, kinds, needs, apart) HEC_STAGE_##id,
#include "diagnose/stages.def"
    HEC_STAGE_COUNT
};

/* How a stage goes beside the others. */
enum hec_stage_beside { HEC_STAGE_TOGETHER, HEC_STAGE_APART, HEC_STAGE_ALONE };

struct hec_stage_info {
    uint32_t kinds; /* bits of HEC_ACTIVITY_BIT */
    uint32_t needs; /* bits of stages */
    enum hec_stage_beside beside;
};
extern const struct hec_stage_info hec_stages[HEC_STAGE_COUNT];

/* What all have in common. */
struct hec_pass {
    const struct hec_timeline_input *input;
    struct hec_timeline_tables tables;
    struct hec_windows windows, rests; /* device activity was traced; calls were not recorded */
    struct hec_step_survey survey;     /* of phases and values: what has gone by */
};

/* Reads definitions, windows and steps. 0, HEC_ERR_NOMEM or what the input returned; then there is nothing to close. */
int hec_pass_open(const struct hec_timeline_input *input, struct hec_pass *out, struct hec_why *why);
void hec_pass_close(struct hec_pass *pass);

/* Takes records in ascending start over all tracks, in chunks, and passes over those of kinds that it has no use for. What
 * it returns, if not 0, ends the pass. */
struct hec_pass_consumer {
    void *context;
    uint32_t kinds;
    int (*take)(void *context, const struct hec_activity *activities, size_t count);
    bool apart; /* shares nothing with those that are not: may be fed at the same time (beside of the input) */
};

/* As the table has it for a stage; context NULL: it takes nothing. */
struct hec_pass_consumer hec_stage_consumer(enum hec_stage stage, void *context,
                                            int (*take)(void *context, const struct hec_activity *activities,
                                                        size_t count));

/* All but windows and steps, to each consumer in turn. Once only. 0, or what a consumer or the input returned. */
int hec_pass_run(const struct hec_pass *pass, const struct hec_pass_consumer *consumers, size_t count,
                 struct hec_why *why);
