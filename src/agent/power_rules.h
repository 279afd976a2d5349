/* Which jobs take part in the budget of the node's power, and in which class: --power-classes FILE. A line:
 *
 *     CLASS [KEY=PATTERN...]      jobs of which every KEY fits, by the patterns of a shell; the first line that fits counts
 *     slowdown CLASS PERCENT      how much slower a class may be, for fewer joules
 *
 * Keys: namespace, pod, container, job, user, command. '#' begins a comment. A job that no line fits takes no part. */
#pragma once

#include "act/budget.h"
#include "agent/identity.h"
#include "base/error.h"

#define HEC_POWER_RULES_MAX 256
#define HEC_POWER_CONDITIONS_MAX 6

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
    double slowdown[HEC_POWER_CLASS_COUNT]; /* 0.05; NAN: nothing is said */
};

/* Anything may be in it. HEC_ERR_USAGE with the line and what is wrong there. */
int hec_power_rules_parse(const char *text, size_t length, struct hec_power_rules *rules, struct hec_why *why);
int hec_power_rules_read(const char *path, struct hec_power_rules *rules, struct hec_why *why);
/* HEC_POWER_CLASS_COUNT: it takes no part. */
enum hec_power_class hec_power_rules_class(const struct hec_power_rules *rules, const struct hec_tenant *tenant);
