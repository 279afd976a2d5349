#include "report/words/explain.h"

#include "diagnose/rules/facts.h"
#include "report/words/causes.h"
#include "report/words/facts.h"
#include "report/words/results.h"
#include "report/json_print.h"
#include "report/page.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- JSON ---- */

static json_t *in_words(enum hec_cause cause, const char *words) {
    char text[HEC_LIMIT_WORDS];
    return json_string(hec_limit_words(text, sizeof text, cause, words));
}

static json_t *cause_of(enum hec_cause id) {
    const struct hec_cause_words *words = hec_cause_words(id);
    const struct hec_goes *goes = hec_goes_of(id);
    json_t *limits = json_array(), *advice = json_array();
    char lever[HEC_FACT_SIZE];
    for (const struct hec_limit *l = NULL; (l = hec_limit_next(id, l));)
        json_array_append_new(limits, json_pack("{s:f, s:s, s:o, s:s}", "value", hec_limit_printed(l), "unit", l->unit,
                                                "meaning", in_words(id, l->meaning), "source", l->source));
    for (const struct hec_advice *a = NULL; (a = hec_advice_next(id, a));)
        json_array_append_new(
            advice, json_pack("{s:s, s:s, s:s?}", "framework", a->framework, "text", a->text, "code", a->code));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:o}", "cause", hec_cause_name(id), "title",
                     words->title, "meaning", in_words(id, words->meaning), "detection", in_words(id, words->detection),
                     "thresholds", limits, "saving", in_words(id, words->saving), "goes",
                     goes->confidence > 0 ? json_pack("[f,f,f]", goes->part.low, goes->part.best, goes->part.high)
                                          : json_null(),
                     "lever_id", hec_lever_name(hec_rule_of(id)->lever), "lever",
                     hec_lever_default_words(lever, hec_rule_of(id)->lever), "advice", advice);
}

static int print_json(enum hec_cause only, struct hec_buf *out) {
    json_t *causes = json_array();
    for (int i = 0; i < HEC_CAUSE_COUNT; i++)
        if (only == HEC_CAUSE_COUNT || i == (int)only)
            json_array_append_new(causes, cause_of((enum hec_cause)i));
    return hec_json_print(json_pack("{s:s, s:o}", "schema", HEC_CAUSES_SCHEMA, "causes", causes), out);
}

/* ---- terminal ---- */

static void print_table(struct hec_page *page) {
    for (int i = 0; i < HEC_CAUSE_COUNT; i++) {
        char lever[HEC_FACT_SIZE];
        hec_lever_default_words(lever, hec_rule_of((enum hec_cause)i)->lever);
        hec_page_line(page, 0, hec_cause_name((enum hec_cause)i), HEC_TONE_PLAIN, "%s: %.*s",
                      hec_cause_title((enum hec_cause)i), (int)strcspn(lever, ":;,("), lever);
    }
    hec_page_blank(page);
    hec_page_row(page, 0, "", HEC_TONE_DIM,
                 "hec explain CAUSE: what it means, its signs, what fixes it; hec explain words: what "
                 "the words of a report mean");
}

static void print_words(struct hec_page *page, enum hec_cause cause, const char *label, const char *words) {
    char text[HEC_LIMIT_WORDS];
    hec_page_row(page, 0, label, HEC_TONE_PLAIN, "%s", hec_limit_words(text, sizeof text, cause, words));
}

static void print_limits(struct hec_page *page, enum hec_cause cause) {
    const char *label = "thresholds";
    char meaning[HEC_LIMIT_WORDS];
    for (const struct hec_limit *l = NULL; (l = hec_limit_next(cause, l)); label = "") {
        hec_page_row(page, 0, label, HEC_TONE_PLAIN, "%g%s%s: %s", hec_limit_printed(l), l->unit[0] ? " " : "", l->unit,
                     hec_limit_words(meaning, sizeof meaning, cause, l->meaning));
        hec_page_row(page, 0, "", HEC_TONE_DIM, "(%s)", l->source);
    }
}

static void print_advice(struct hec_page *page, enum hec_cause cause) {
    for (const struct hec_advice *a = NULL; (a = hec_advice_next(cause, a));) {
        hec_page_row(page, 2, strcmp(a->framework, "any") ? a->framework : "", HEC_TONE_PLAIN, "%s", a->text);
        if (a->code)
            hec_page_code(page, 4, a->code);
    }
}

static void print_cause(struct hec_page *page, enum hec_cause cause) {
    const struct hec_cause_words *words = hec_cause_words(cause);
    const struct hec_goes *goes = hec_goes_of(cause);
    char lever[HEC_FACT_SIZE];
    hec_page_row(page, 0, hec_cause_name(cause), HEC_TONE_BOLD, "%s", words->title);
    print_words(page, cause, "", words->meaning);
    hec_page_blank(page);
    print_words(page, cause, "signs", words->detection);
    print_limits(page, cause);
    print_words(page, cause, "saving", words->saving);
    if (goes->confidence > 0)
        hec_page_row(page, 0, "", HEC_TONE_PLAIN,
                     "best guess: %.0f %% of that time (%.0f to %.0f %%), each second at idle power",
                     100 * goes->part.best, 100 * goes->part.low, 100 * goes->part.high);
    hec_page_blank(page);
    hec_page_row(page, 0, "answer", HEC_TONE_BOLD, "%s", hec_lever_default_words(lever, hec_rule_of(cause)->lever));
    print_advice(page, cause);
}

int hec_report_explain(enum hec_cause cause, bool json, const struct hec_report_style *style, struct hec_buf *out) {
    if (json)
        return print_json(cause, out);
    struct hec_page page;
    hec_page_init(&page, style, out);
    if (cause < HEC_CAUSE_COUNT)
        print_cause(&page, cause);
    else
        print_table(&page);
    return hec_buf_error(out);
}

/* ---- what the words of the reports and the states mean ---- */

static const struct {
    const char *word, *meaning;
} words[] = {
#define HEC_WORD(word, meaning) {word, meaning},
#include "report/words/words.def"
};

static const char *meaning_of(size_t i, char out[HEC_LIMIT_WORDS]) {
    return hec_limit_words(out, HEC_LIMIT_WORDS, HEC_CAUSE_COUNT, words[i].meaning);
}

/* What happened to a run has its meanings beside its names. */
static const struct {
    const char *name, *meaning;
} events[] = {
#define HEC_EVENT(id, name, meaning) {name, meaning},
#include "model/event.def"
};

/* In any case; names of the JSON have _ for spaces. */
static bool same(const char *asked, const char *word) {
    for (; *asked && *word; asked++, word++)
        if (tolower((unsigned char)*asked) != tolower((unsigned char)*word) && !(*asked == ' ' && *word == '_') &&
            !(*asked == '_' && *word == ' '))
            return false;
    return !*asked && !*word;
}

static json_t *word_of(const char *word, const char *meaning) {
    return json_pack("{s:s, s:s}", "word", word, "meaning", meaning);
}

static json_t *state_of(enum hec_state s) {
    return json_pack("{s:s, s:s, s:b}", "state", hec_state_name(s), "meaning", hec_state_meaning(s), "busy",
                     !hec_state_idle(s));
}

static bool asked_for(const char *only, const char *word) {
    return !only || same(only, word);
}

/* only NULL: all but the events, which a list of words would drown in. */
static size_t words_of(const char *only, json_t *list, json_t *states) {
    char meaning[HEC_LIMIT_WORDS];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (asked_for(only, words[i].word))
            json_array_append_new(list, word_of(words[i].word, meaning_of(i, meaning)));
    for (size_t i = 0; i < sizeof events / sizeof events[0] && only; i++)
        if (same(only, events[i].name))
            json_array_append_new(list, word_of(events[i].name, events[i].meaning));
    for (enum hec_state s = 0; s < HEC_STATE_COUNT; s++)
        if (asked_for(only, hec_state_name(s)))
            json_array_append_new(states, state_of(s));
    return json_array_size(list) + json_array_size(states);
}

static void print_words_page(struct hec_page *page, const json_t *list, const json_t *states) {
    if (json_array_size(list))
        hec_page_row(page, 0, "Words", HEC_TONE_BOLD, "%s", "in reports");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        hec_page_row(page, 2, json_string_value(json_object_get(row, "word")), HEC_TONE_PLAIN, "%s",
                     json_string_value(json_object_get(row, "meaning")));
    }
    if (json_array_size(list) && json_array_size(states))
        hec_page_blank(page);
    if (json_array_size(states))
        hec_page_row(page, 0, "States", HEC_TONE_BOLD,
                     "of a device: at every instant one of them, the rows of the ledger");
    for (size_t i = 0; i < json_array_size(states); i++) {
        const json_t *row = json_array_get(states, i);
        hec_page_row(page, 2, json_string_value(json_object_get(row, "state")), HEC_TONE_PLAIN, "%s: %s",
                     json_is_true(json_object_get(row, "busy")) ? "busy" : "idle",
                     json_string_value(json_object_get(row, "meaning")));
    }
}

int hec_report_words(const char *only, bool json, const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_page page;
    json_t *list = json_array(), *states = json_array();
    int err = words_of(only, list, states) ? HEC_OK : HEC_ERR_NOTFOUND;
    if (!err && json)
        return hec_json_print(json_pack("{s:s, s:o, s:o}", "schema", HEC_WORDS_SCHEMA, "words", list, "states", states),
                              out);
    hec_page_init(&page, style, out);
    if (!err)
        print_words_page(&page, list, states);
    json_decref(list);
    json_decref(states);
    return err ? err : hec_buf_error(out);
}
