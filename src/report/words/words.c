/* What the words of the reports and the states mean, for people and as JSON. */
#include "diagnose/states/state.h"
#include "report/words/causes.h"
#include "report/words/explain.h"
#include "report/words/results.h"
#include "report/json_print.h"
#include "report/page.h"

static const struct {
    const char *word, *meaning;
} words[] = {
#define HEC_WORD(word, meaning) {word, meaning},
#include "report/words/words.def"
#undef HEC_WORD
};

static const char *meaning_of(size_t i, char out[HEC_LIMIT_WORDS]) {
    return hec_limit_words(out, HEC_LIMIT_WORDS, HEC_CAUSE_COUNT, words[i].meaning);
}

static json_t *row_of(const char *key, const char *name, const char *meaning) {
    json_t *row = json_object();
    json_object_set_new(row, key, json_string(name));
    json_object_set_new(row, "meaning", json_string(meaning));
    return row;
}

static int print_json(struct hec_buf *out) {
    char meaning[HEC_LIMIT_WORDS];
    json_t *root = json_object(), *list = json_array(), *states = json_array();
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        json_array_append_new(list, row_of("word", words[i].word, meaning_of(i, meaning)));
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        json_t *state = row_of("state", hec_state_name((enum hec_state)i), hec_state_meaning((enum hec_state)i));
        json_object_set_new(state, "busy", json_boolean(!hec_state_idle((enum hec_state)i)));
        json_array_append_new(states, state);
    }
    json_object_set_new(root, "schema", json_string(HEC_WORDS_SCHEMA));
    json_object_set_new(root, "words", list);
    json_object_set_new(root, "states", states);
    return hec_json_print(root, out);
}

int hec_report_words(bool json, const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_page page;
    char meaning[HEC_LIMIT_WORDS];
    if (json)
        return print_json(out);
    hec_page_init(&page, style, out);
    hec_page_row(&page, 0, "Words", HEC_TONE_BOLD, "%s", "in reports");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hec_page_row(&page, 2, words[i].word, HEC_TONE_PLAIN, "%s", meaning_of(i, meaning));
    hec_page_blank(&page);
    hec_page_row(&page, 0, "States", HEC_TONE_BOLD,
                 "of a device: at every instant one of them, the rows of the ledger");
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        hec_page_row(&page, 2, hec_state_name((enum hec_state)i), HEC_TONE_PLAIN, "%s: %s",
                     hec_state_idle((enum hec_state)i) ? "idle" : "busy", hec_state_meaning((enum hec_state)i));
    return hec_buf_error(out);
}
