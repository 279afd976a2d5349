/* Which jobs take part in the budget of the node's power, and in which class: --power-classes FILE. A line:
 *
 *     CLASS [KEY=PATTERN...]      jobs of which every KEY fits, by the patterns of a shell; the first line that fits counts
 *     slowdown CLASS PERCENT [when EXPR]     how much slower a class may be, for fewer joules; the first line of the class whose
 *                                            condition (act/when.h) holds counts
 *
 * Keys: namespace, pod, container, job, user, command. '#' begins a comment. A job that no line fits takes no part. */
#pragma once

#include "act/budget.h"
#include "act/when.h"
#include "agent/identity.h"
#include "base/error.h"

#define HEC_POWER_RULES_MAX 256
#define HEC_POWER_CONDITIONS_MAX 6
#define HEC_POWER_SLOWDOWNS_MAX 16

struct hec_power_condition {
    int key; /* row of the keys */
    char pattern[256];
};

struct hec_power_rules {
    struct {
        enum hec_power_class power_class;
        int count;
        struct hec_power_condition conditions[HEC_POWER_CONDITIONS_MAX];
    } rules[HEC_POWER_RULES_MAX];
    int count;
    struct {
        enum hec_power_class power_class;
        double slowdown;      /* 0.05 */
        struct hec_when when; /* without a term: always */
    } slowdowns[HEC_POWER_SLOWDOWNS_MAX];
    int slowdown_count;
};

/* Anything may be in it. HEC_ERR_USAGE with the line and what is wrong there. */
int hec_power_rules_parse(const char *text, size_t length, struct hec_power_rules *rules, struct hec_why *why);
int hec_power_rules_read(const char *path, struct hec_power_rules *rules, struct hec_why *why);
/* How much slower the class may be now, said here or not. */
double hec_power_rules_slowdown(const struct hec_power_rules *rules, enum hec_power_class power_class,
                                const struct hec_when_now *now);
/* Whether a condition asks for it. */
bool hec_power_rules_ask(const struct hec_power_rules *rules, enum hec_when_kind kind);
/* HEC_POWER_CLASS_COUNT: it takes no part. */
enum hec_power_class hec_power_rules_class(const struct hec_power_rules *rules, const struct hec_tenant *tenant);
