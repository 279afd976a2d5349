/* What a sweep was and what it showed. Pure: bytes out. */
#pragma once

#include "prove/sweep.h"
#include "report/receipt/receipt.h"

#define HEC_SWEEP_SCHEMA "hec.sweep/1"

enum hec_sweep_state { HEC_SWEEP_DONE, HEC_SWEEP_SPENT, HEC_SWEEP_INTERRUPTED, HEC_SWEEP_STATES };

struct hec_sweep_parameter {
    const char *name;
    char *const *value;
    int count;
    bool knob; /* given as one; false: in the words of the command */
};

struct hec_sweep_report {
    struct hec_receipt conditions; /* command A: with its {NAME}s; no trials */
    struct hec_sweep_parameter parameter[HEC_SWEEP_PARAMETERS_MOST];
    struct hec_sweep_plan plan;
    uint64_t seed;
    int rounds;
    double budget_seconds;   /* 0: none */
    int64_t effective_batch; /* 0: none */
    enum hec_sweep_state state;
    struct hec_price price;
    const struct hec_sweep_trial *trials; /* in the order in which they ran */
    int trial_count;
    char *tail[HEC_SWEEP_ARMS_MOST]; /* the last of what a setting that failed printed; NULL: it did not */
    struct hec_sweep_result result;
};

int hec_sweep_terminal(const struct hec_sweep_report *report, const struct hec_report_style *style,
                       struct hec_buf *out);
int hec_sweep_markdown(const struct hec_sweep_report *report, struct hec_buf *out);
/* JSON of docs/sweep.schema.json, and that schema: both from sweep.def. Numbers are exact. */
int hec_sweep_json(const struct hec_sweep_report *report, struct hec_buf *out);
int hec_sweep_schema(struct hec_buf *out);

/* "batch=32 workers=4" */
#define HEC_SWEEP_LABEL 320
char *hec_sweep_label(char out[HEC_SWEEP_LABEL], const struct hec_sweep_report *report, int arm);
