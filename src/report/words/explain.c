#include "report/words/explain.h"

#include "diagnose/rules/rule.h"
#include "report/words/facts.h"
#include "report/json_print.h"
#include "report/page.h"

#include <stdio.h>
#include <string.h>

#define set json_object_set_new

/* ---- JSON ---- */

static json_t *cause_of(const struct hec_rule *rule) {
    json_t *cause = json_object(), *limits = json_array(), *advice = json_array();
    char lever[HEC_FACT_SIZE];
    for (int i = 0; i < rule->limit_count; i++) {
        const struct hec_rule_limit *l = &rule->limits[i];
        json_t *limit = json_object();
        set(limit, "value", json_real(l->value));
        set(limit, "unit", json_string(l->unit));
        set(limit, "meaning", json_string(l->meaning));
        set(limit, "source", json_string(l->source));
        json_array_append_new(limits, limit);
    }
    for (int i = 0; i < rule->advice_count; i++) {
        const struct hec_rule_advice *a = &rule->advice[i];
        json_t *row = json_object();
        set(row, "framework", json_string(a->framework));
        set(row, "text", json_string(a->text));
        set(row, "code", a->code ? json_string(a->code) : json_null());
        json_array_append_new(advice, row);
    }
    set(cause, "cause", json_string(hec_cause_name(rule->cause)));
    set(cause, "title", json_string(hec_cause_title(rule->cause)));
    set(cause, "meaning", json_string(rule->meaning));
    set(cause, "detection", json_string(rule->detection));
    set(cause, "thresholds", limits);
    set(cause, "saving", json_string(rule->saving));
    set(cause, "goes",
        rule->confidence > 0 ? json_pack("[f,f,f]", rule->goes.low, rule->goes.best, rule->goes.high) : json_null());
    set(cause, "lever_id", json_string(hec_lever_name(rule->lever)));
    set(cause, "lever", json_string(hec_lever_default_words(lever, rule->lever)));
    set(cause, "advice", advice);
    return cause;
}

static int print_json(enum hec_cause only, struct hec_buf *out) {
    json_t *root = json_object(), *causes = json_array();
    for (int i = 0; i < HEC_CAUSE_COUNT; i++) {
        const struct hec_rule *rule = hec_rule_of((enum hec_cause)i);
        if (rule && (only == HEC_CAUSE_COUNT || i == (int)only))
            json_array_append_new(causes, cause_of(rule));
    }
    set(root, "schema", json_string(HEC_CAUSES_SCHEMA));
    set(root, "causes", causes);
    return hec_json_print(root, out);
}

/* ---- terminal ---- */

static void print_table(struct hec_page *page) {
    for (int i = 0; i < HEC_CAUSE_COUNT; i++) {
        const struct hec_rule *rule = hec_rule_of((enum hec_cause)i);
        char lever[HEC_FACT_SIZE];
        if (rule && hec_lever_default_words(lever, rule->lever))
            hec_page_line(page, 0, hec_cause_name(rule->cause), HEC_TONE_PLAIN, "%s: %.*s",
                          hec_cause_title(rule->cause), (int)strcspn(lever, ":;,("), lever);
    }
    hec_page_blank(page);
    hec_page_row(page, 0, "", HEC_TONE_DIM,
                 "hec explain CAUSE: what it means, its signs, what fixes it; hec explain words: what "
                 "the words of a report mean");
}

static void print_limits(struct hec_page *page, const struct hec_rule *rule) {
    for (int i = 0; i < rule->limit_count; i++) {
        const struct hec_rule_limit *l = &rule->limits[i];
        hec_page_row(page, 0, i ? "" : "thresholds", HEC_TONE_PLAIN, "%g%s%s: %s", l->value, l->unit[0] ? " " : "",
                     l->unit, l->meaning);
        if (l->source[0])
            hec_page_row(page, 0, "", HEC_TONE_DIM, "(%s)", l->source);
    }
}

static void print_advice(struct hec_page *page, const struct hec_rule *rule) {
    for (int i = 0; i < rule->advice_count; i++) {
        const struct hec_rule_advice *a = &rule->advice[i];
        hec_page_row(page, 2, strcmp(a->framework, "any") ? a->framework : "", HEC_TONE_PLAIN, "%s", a->text);
        if (a->code)
            hec_page_code(page, 4, a->code);
    }
}

static void print_cause(struct hec_page *page, const struct hec_rule *rule) {
    char lever[HEC_FACT_SIZE];
    hec_page_row(page, 0, hec_cause_name(rule->cause), HEC_TONE_BOLD, "%s", hec_cause_title(rule->cause));
    hec_page_row(page, 0, "", HEC_TONE_PLAIN, "%s", rule->meaning);
    hec_page_blank(page);
    hec_page_row(page, 0, "signs", HEC_TONE_PLAIN, "%s", rule->detection);
    print_limits(page, rule);
    hec_page_row(page, 0, "saving", HEC_TONE_PLAIN, "%s", rule->saving);
    if (rule->confidence > 0)
        hec_page_row(page, 0, "", HEC_TONE_PLAIN,
                     "best guess: %.0f %% of that time (%.0f to %.0f %%), each second at idle power",
                     100 * rule->goes.best, 100 * rule->goes.low, 100 * rule->goes.high);
    hec_page_blank(page);
    hec_page_row(page, 0, "answer", HEC_TONE_BOLD, "%s", hec_lever_default_words(lever, rule->lever));
    print_advice(page, rule);
}

int hec_report_explain(enum hec_cause cause, bool json, const struct hec_report_style *style, struct hec_buf *out) {
    const struct hec_rule *rule = cause == HEC_CAUSE_COUNT ? NULL : hec_rule_of(cause);
    if (json)
        return print_json(cause, out);
    struct hec_page page;
    hec_page_init(&page, style, out);
    if (rule)
        print_cause(&page, rule);
    else
        print_table(&page);
    return hec_buf_error(out);
}
