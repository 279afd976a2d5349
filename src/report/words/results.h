/* Inside src/report, and for messages: what enumerators of results mean, in words (words/results.def). */
#pragma once

#include "diagnose/compare/conditions.h"
#include "diagnose/replay/replay.h"

#define HEC_RESULT_WORDS 320

const char *hec_state_meaning(enum hec_state state);            /* "" out of range */
const char *hec_ledger_basis_text(enum hec_ledger_basis basis); /* "" where it was measured */
const char *hec_counters_text(enum hec_counters counters);      /* "" where they were read */
const char *hec_phase_energy_text(enum hec_phase_energy why);   /* "" where it is known */
const char *hec_condition_words(enum hec_condition condition);  /* "the power limit" */
/* What is asked of the schedule, and what the number says that the edit takes; "": it takes none. */
char *hec_edit_asks(char out[HEC_RESULT_WORDS], enum hec_edit edit);
const char *hec_edit_number(enum hec_edit edit);
