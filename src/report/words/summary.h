/* Inside src/report: what a run took, in words; the terminal's report and Markdown say the same. */
#pragma once

#include "diagnose/result.h"
#include "report/format.h"

#define HEC_SUMMARY_WORDS 512

enum hec_energy_known { HEC_ENERGY_KNOWN, HEC_ENERGY_ABSENT, HEC_ENERGY_INVALID };

int hec_summary_used(const struct hec_summary *summary); /* devices */
/* "24.9 s, exit code 0" */
char *hec_outcome_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *summary);
/* "3.529 kJ ± 0.004 kJ, mean 196 W of 1.40 kW (14 %), all GPUs used"; why there is none */
enum hec_energy_known hec_energy_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *summary, bool utf8);
/* "2880 samples, 115.8 a second, 969.5 mJ ± 0.7 mJ per sample": of the whole run */
char *hec_unit_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *summary,
                     const struct hec_unit_summary *unit, bool utf8);
/* "182.2 samples a second, 678 mJ ± 36 mJ per sample": of the loop; where it is not known, of the whole run as above */
char *hec_rate_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *summary,
                     const struct hec_unit_summary *unit, bool utf8);
/* "1159 tok a second, 2.1 J ± 0.1 per tok (median of 12 lines in the loop)"; why there is no figure */
char *hec_printed_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *summary,
                        const struct hec_printed_summary *printed, bool utf8);
/* "9.20 s, 4.1 kJ" */
char *hec_part_words(char out[HEC_SUMMARY_WORDS], const struct hec_loop *loop, enum hec_run_part part);
/* "train.py:20 main", where most of set-up was; "": not known, or nowhere */
char *hec_setup_place_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *summary);
/* "$0.00010, 367 mg CO2 (defaults: ...)"; "" where the joules are unknown */
char *hec_cost_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *summary);
/* What happened, as it was recorded. */
char *hec_event_words(char out[HEC_SUMMARY_WORDS], const struct hec_event_summary *event);
/* "batch=128 (32 to 512), lr=0.1": what the program read; "": it read none */
char *hec_knobs_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *summary);
/* "tf32: on"; whether it took effect */
bool hec_lever_took_words(char out[HEC_SUMMARY_WORDS], const struct hec_lever_summary *lever);
/* "424 W (rough)", "126 W ± 8": of a state; "" unknown */
char *hec_state_watts_words(char out[HEC_FORMAT_SIZE], const struct hec_ledger_row *row, bool utf8);
