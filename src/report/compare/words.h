/* Inside src/report: what a comparison says, in words; one wording for the terminal, Markdown and JSON. */
#pragma once

#include "report/words/answer.h"
#include "report/compare/compare.h"

enum { HEC_VERSUS_NOTES_MAX = 6, HEC_VERSUS_NOTE = 320 };

struct hec_answer hec_versus_answer(const struct hec_versus *versus);
/* What limits it: one run a side, unlike runs, joules that are not known. The number of sentences. */
int hec_versus_notes(const struct hec_versus *versus, char out[HEC_VERSUS_NOTES_MAX][HEC_VERSUS_NOTE]);

/* "the driver: 580.95 in A, 575.57 in B" */
char *hec_condition_difference_words(char *out, size_t size, const struct hec_condition_difference *unlike);
/* "steady part, energy per sample" */
char *hec_quantities_of(char out[192], const struct hec_versus *versus);
/* "per sample", "per run": what the ledger's figures are of. */
char *hec_delta_per(char out[96], const struct hec_versus *versus);
/* "starved for data (would have saved 38 %)"; in 1 of 3 runs. which: 0 went, 1 came, 2 stayed. */
const char *hec_delta_fate(const struct hec_delta_cause *cause);
char *hec_delta_words(char out[192], const struct hec_versus *versus, const struct hec_delta_cause *cause);
