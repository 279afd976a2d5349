#include "report/words/results.h"

#include "report/words/causes.h"

/* A table takes the rows of its kind. */
#define HEC_WORDS_STATE(id, words)
#define HEC_WORDS_LEDGER(id, words)
#define HEC_WORDS_COUNTERS(id, words)
#define HEC_WORDS_EDIT(id, words)
#define HEC_WORDS_EDIT_NUMBER(id, words)
#define HEC_WORDS_CONDITION(id, words)
#define HEC_WORDS_PHASE_ENERGY(id, words)

static const char *const states[HEC_STATE_COUNT] = {
#undef HEC_WORDS_STATE
#define HEC_WORDS_STATE(id, words) [HEC_STATE_##id] = words,
#include "report/words/results.def"
#undef HEC_WORDS_STATE
#define HEC_WORDS_STATE(id, words)
};

static const char *const bases[HEC_LEDGER_BASIS_COUNT] = {
#undef HEC_WORDS_LEDGER
#define HEC_WORDS_LEDGER(id, words) [HEC_LEDGER_##id] = words,
#include "report/words/results.def"
#undef HEC_WORDS_LEDGER
#define HEC_WORDS_LEDGER(id, words)
};

static const char *const counters[HEC_COUNTERS_KINDS] = {
#undef HEC_WORDS_COUNTERS
#define HEC_WORDS_COUNTERS(id, words) [HEC_COUNTERS_##id] = words,
#include "report/words/results.def"
#undef HEC_WORDS_COUNTERS
#define HEC_WORDS_COUNTERS(id, words)
};

static const char *const edits[HEC_EDIT_COUNT] = {
#undef HEC_WORDS_EDIT
#define HEC_WORDS_EDIT(id, words) [HEC_EDIT_##id] = words,
#include "report/words/results.def"
#undef HEC_WORDS_EDIT
#define HEC_WORDS_EDIT(id, words)
};

static const char *const numbers[HEC_EDIT_COUNT] = {
#undef HEC_WORDS_EDIT_NUMBER
#define HEC_WORDS_EDIT_NUMBER(id, words) [HEC_EDIT_##id] = words,
#include "report/words/results.def"
#undef HEC_WORDS_EDIT_NUMBER
#define HEC_WORDS_EDIT_NUMBER(id, words)
};

static const char *const conditions[HEC_CONDITION_COUNT] = {
#undef HEC_WORDS_CONDITION
#define HEC_WORDS_CONDITION(id, words) [HEC_CONDITION_##id] = words,
#include "report/words/results.def"
#undef HEC_WORDS_CONDITION
#define HEC_WORDS_CONDITION(id, words)
};

static const char *const phases[HEC_PHASE_ENERGY_KINDS] = {
#undef HEC_WORDS_PHASE_ENERGY
#define HEC_WORDS_PHASE_ENERGY(id, words) [HEC_PHASE_ENERGY_##id] = words,
#include "report/words/results.def"
#undef HEC_WORDS_PHASE_ENERGY
#define HEC_WORDS_PHASE_ENERGY(id, words)
};

const char *hec_state_meaning(enum hec_state state) {
    return (unsigned)state < HEC_STATE_COUNT ? states[state] : "";
}

const char *hec_ledger_basis_text(enum hec_ledger_basis basis) {
    return (unsigned)basis < HEC_LEDGER_BASIS_COUNT ? bases[basis] : "";
}

const char *hec_counters_text(enum hec_counters why) {
    return (unsigned)why < HEC_COUNTERS_KINDS ? counters[why] : "";
}

const char *hec_phase_energy_text(enum hec_phase_energy why) {
    return (unsigned)why < HEC_PHASE_ENERGY_KINDS ? phases[why] : "";
}

const char *hec_condition_words(enum hec_condition condition) {
    return conditions[condition];
}

char *hec_edit_asks(char out[HEC_RESULT_WORDS], enum hec_edit edit) {
    return hec_limit_words(out, HEC_RESULT_WORDS, hec_edit_info(edit)->cause, edits[edit]);
}

const char *hec_edit_number(enum hec_edit edit) {
    return numbers[edit] ? numbers[edit] : "";
}
