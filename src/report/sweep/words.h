/* Inside src/report: what a sweep says, in words; one wording for the terminal, Markdown and JSON. */
#pragma once

#include "report/format.h"
#include "report/sweep/sweep.h"

enum { HEC_SWEEP_LINE = 1200, HEC_SWEEP_NOTES = 8 };

const char *hec_sweep_state_name(enum hec_sweep_state state); /* "done": stable */
const char *hec_sweep_figure_name(int figure);                /* "units_per_second": stable */
/* "sample"; "run" where a unit is a whole run. */
const char *hec_sweep_unit(const struct hec_sweep_report *report);
/* "512 4": the values alone */
char *hec_sweep_values(char out[HEC_SWEEP_LABEL], const struct hec_sweep_report *report, int arm);

/* What is recommended and why, or why nothing is. */
char *hec_sweep_advice(char out[HEC_SWEEP_LINE], const struct hec_sweep_report *report);
/* "batch: from 128 to 512, with workers=4: ..." */
char *hec_sweep_plateau(char out[HEC_SWEEP_LINE], const struct hec_sweep_report *report,
                        const struct hec_sweep_line *line);
char *hec_sweep_cliff(char out[HEC_SWEEP_LINE], const struct hec_sweep_report *report,
                      const struct hec_sweep_line *line);
/* "out of device memory", "not shown to be within 5 %"; "" where it is eligible. */
char *hec_sweep_why(char out[HEC_SWEEP_LINE], const struct hec_sweep_report *report, int arm);
/* "-54.6 %", "-55 to -52"; the second "" without an interval. */
void hec_sweep_change(char change[HEC_FORMAT_SIZE], char range[HEC_FORMAT_SIZE],
                      const struct hec_sweep_interval *ratio);
/* What limits it. The number of sentences. */
int hec_sweep_notes(const struct hec_sweep_report *report, char out[HEC_SWEEP_NOTES][HEC_SWEEP_LINE]);
char *hec_sweep_cost(char out[HEC_SWEEP_LINE], const struct hec_sweep_report *report);
