#include "report/words/results.h"

#include "report/words/causes.h"

static const struct {
    const char *state[HEC_STATE_COUNT], *ledger[HEC_LEDGER_BASIS_COUNT], *counters[HEC_COUNTERS_KINDS];
    const char *edit[HEC_EDIT_COUNT], *edit_number[HEC_EDIT_COUNT];
    const char *condition[HEC_CONDITION_COUNT], *phase_energy[HEC_PHASE_ENERGY_KINDS];
} words_of = {
#define HEC_WORDS_STATE(id, words) .state[HEC_STATE_##id] = words,
#define HEC_WORDS_LEDGER(id, words) .ledger[HEC_LEDGER_##id] = words,
#define HEC_WORDS_COUNTERS(id, words) .counters[HEC_COUNTERS_##id] = words,
#define HEC_WORDS_EDIT(id, words) .edit[HEC_EDIT_##id] = words,
#define HEC_WORDS_EDIT_NUMBER(id, words) .edit_number[HEC_EDIT_##id] = words,
#define HEC_WORDS_CONDITION(id, words) .condition[HEC_CONDITION_##id] = words,
#define HEC_WORDS_PHASE_ENERGY(id, words) .phase_energy[HEC_PHASE_ENERGY_##id] = words,
#include "report/words/results.def"
};

const char *hec_state_meaning(enum hec_state state) {
    return (unsigned)state < HEC_STATE_COUNT ? words_of.state[state] : "";
}

const char *hec_ledger_basis_text(enum hec_ledger_basis basis) {
    return (unsigned)basis < HEC_LEDGER_BASIS_COUNT ? words_of.ledger[basis] : "";
}

const char *hec_counters_text(enum hec_counters why) {
    return (unsigned)why < HEC_COUNTERS_KINDS ? words_of.counters[why] : "";
}

const char *hec_phase_energy_text(enum hec_phase_energy why) {
    return (unsigned)why < HEC_PHASE_ENERGY_KINDS ? words_of.phase_energy[why] : "";
}

const char *hec_condition_words(enum hec_condition condition) {
    return words_of.condition[condition];
}

char *hec_edit_asks(char out[HEC_RESULT_WORDS], enum hec_edit edit) {
    return hec_limit_words(out, HEC_RESULT_WORDS, hec_edit_info(edit)->cause, words_of.edit[edit]);
}

const char *hec_edit_number(enum hec_edit edit) {
    return words_of.edit_number[edit] ? words_of.edit_number[edit] : "";
}
