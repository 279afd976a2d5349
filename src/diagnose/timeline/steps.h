/* Inside src/diagnose: the steps of a run, from what the program, the hooks or a profiler say. */
#pragma once

#include "diagnose/timeline/tables.h"

/* What is kept of single steps and phases, so that memory has an end for any file: 24 bytes each. More are counted
 * only: what is said of single steps is said of the first ones. */
#define HEC_STEPS_KEPT (1u << 20) /* of one process and source: three hours of steps of 10 ms; of all twice as many */
#define HEC_DATA_PHASES_KEPT (1u << 21) /* of all processes */
#define HEC_STEP_VALUES_KEPT (1u << 14) /* of one process: half an hour of losses as the hooks report them */
#define HEC_STEP_LISTS_MAX 256          /* processes and sources; others are passed over */

struct hec_step {
    int64_t start_ns, end_ns;
    double amount; /* units done, NAN unknown */
};

/* The steps of one process by one source, in the order of their start. */
struct hec_step_list {
    int32_t pid;
    enum hec_step_source source;
    uint32_t unit; /* name id, 0 unknown */
    struct hec_step *list;
    size_t count, capacity;
    int64_t beyond;       /* steps after those in the list */
    double beyond_amount; /* sum of their amounts that are known */
};

/* What is gathered in one pass over steps, phases and values. */
struct hec_step_survey {
    struct hec_step_list *lists; /* one a process and source */
    size_t list_count;
    size_t kept; /* steps in all lists */
    struct hec_data_phase {
        uint32_t track;
        int64_t start_ns, end_ns;
    } * phases; /* those called "data" */
    size_t phase_count, phase_capacity;
    bool phases_cut; /* there were more */
    struct hec_step_values {
        int32_t pid;
        bool gradients; /* those called "gradient_norm" and "gradient_norm/PART"; else "loss" */
        int64_t count;
        double first, last;
        int64_t last_ns;
        int64_t nonfinite, nonfinite_ns,
            finite_ns; /* nan or infinite ones; the first of the latest of them in a row; the one
                                                       before it, INT64_MIN: none */
        struct hec_step_value {
            int64_t t_ns;
            int part; /* as in hec_step_number */
            double value;
        } * kept; /* the first HEC_STEP_VALUES_KEPT */
        size_t kept_count, kept_capacity;
    } * values; /* one a process and name */
    size_t value_count;
};

int hec_step_list_add(struct hec_step_list *steps, int64_t start_ns, int64_t end_ns, double amount); /* 0 or NOMEM */
/* At most so many of them, for a picture: malloc'ed in any case. 0 or HEC_ERR_NOMEM. */
struct hec_thin_steps {
    int64_t *start_ns, *ns; /* of each group of steps the shortest and the longest, in the order of time */
    size_t count;
    int64_t total;
};
int hec_step_list_thin(const struct hec_step_list *steps, size_t most, struct hec_thin_steps *out);
/* A STEP, PHASE or VALUE with plausible times, in the order of their start; others are passed over. 0 or NOMEM. */
int hec_step_survey_add(struct hec_step_survey *survey, const struct hec_timeline_tables *tables,
                        const struct hec_activity *a);
void hec_step_survey_free(struct hec_step_survey *survey);

/* The steps to go by: the best source (MARKED, OPTIMIZER, MODULE, ANNOTATED), of it the process with most. NULL: none.
 * Steps that the hooks found in the first tenth alone of what a process did after its first one are not what it does: its
 * warm-up called a module, and then it replays a graph. */
const struct hec_step_list *hec_step_survey_best(const struct hec_step_survey *survey,
                                                 const struct hec_timeline_tables *tables);
/* The steps to go by of each device. Two programs of one run know nothing of each other: a device goes by the steps of the
 * processes that use it; only those of a process that uses no device itself (it has others do the work) are for all that
 * have none of their own. */
struct hec_device_steps {
    const struct hec_step_survey *survey;
    const struct hec_timeline_tables *tables;
    const struct hec_step_list *of[HEC_DEVICE_MAX]; /* by hec_device.index; NULL: none */
};
int hec_device_steps_choose(const struct hec_step_survey *survey, const struct hec_timeline_tables *tables,
                            struct hec_device_steps *out); /* 0 or HEC_ERR_NOMEM */
/* NULL: none. steps may be NULL. */
const struct hec_step_list *hec_device_steps_of(const struct hec_device_steps *steps, int device);
/* Everything of the summary but busy_share. steps may be NULL: there are none. 0 or HEC_ERR_NOMEM. */
int hec_step_survey_result(const struct hec_step_survey *survey, const struct hec_timeline_tables *tables,
                           const struct hec_step_list *steps, struct hec_step_summary *out);
/* The losses and gradients of these steps' process, and of those with others of their source, into *out. 0 or HEC_ERR_NOMEM. */
int hec_step_survey_losses(const struct hec_step_survey *survey, const struct hec_step_list *steps,
                           struct hec_step_summary *out);
