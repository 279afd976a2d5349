#include "agent/power_rules.h"

#include "launch/kept_file.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1u << 20)
#define BLANKS " \t\r"

static const struct {
    const char *name;
    size_t offset;
} keys[] = {
    {"namespace", offsetof(struct hec_tenant, pod_namespace)},
    {"pod", offsetof(struct hec_tenant, pod)},
    {"container", offsetof(struct hec_tenant, container)},
    {"job", offsetof(struct hec_tenant, job)},
    {"user", offsetof(struct hec_tenant, user)},
    {"command", offsetof(struct hec_tenant, command)},
};

#define KEYS (int)(sizeof keys / sizeof keys[0])

static int parse_condition(char *word, struct hec_power_condition *condition, struct hec_why *why) {
    char *pattern = strchr(word, '=');
    int key = 0;
    if (!pattern || pattern[1] == '\0')
        return hec_fail(why, HEC_ERR_USAGE, "\"%.60s\" is not KEY=PATTERN", word);
    *pattern++ = '\0';
    while (key < KEYS && strcmp(keys[key].name, word) != 0)
        key++;
    if (key == KEYS)
        return hec_fail(why, HEC_ERR_USAGE,
                        "there is no key \"%.60s\": namespace, pod, container, job, user or command", word);
    if (strlen(pattern) >= sizeof condition->pattern)
        return hec_fail(why, HEC_ERR_USAGE, "a pattern has at most %zu characters", sizeof condition->pattern - 1);
    condition->key = key;
    strcpy(condition->pattern, pattern);
    return HEC_OK;
}

/* "CLASS PERCENT", and behind it maybe "when EXPR" */
static int parse_slowdown(char **rest, struct hec_power_rules *rules, struct hec_why *why) {
    char *name = strtok_r(NULL, BLANKS, rest), *percent = name ? strtok_r(NULL, BLANKS, rest) : NULL, *end = percent;
    char *word = percent ? strtok_r(NULL, BLANKS, rest) : NULL;
    enum hec_power_class power_class = name ? hec_power_class_find(name) : HEC_POWER_CLASS_COUNT;
    double value = percent ? strtod(percent, &end) : NAN;
    if (power_class == HEC_POWER_CLASS_COUNT || !percent || (word && strcmp(word, "when") != 0) || end == percent ||
        (*end && strcmp(end, "%") != 0) || !(value >= 0 && value <= 90))
        return hec_fail(why, HEC_ERR_USAGE,
                        "it is not \"slowdown CLASS PERCENT [when EXPR]\" with high, normal or low, and 0 to 90");
    if (rules->slowdown_count == HEC_POWER_SLOWDOWNS_MAX)
        return hec_fail(why, HEC_ERR_USAGE, "there are more than %d slowdowns", HEC_POWER_SLOWDOWNS_MAX);
    __typeof__(&rules->slowdowns[0]) slowdown = &rules->slowdowns[rules->slowdown_count];
    slowdown->power_class = power_class;
    slowdown->slowdown = value / 100;
    slowdown->when = (struct hec_when){.count = 0};
    struct hec_why reason = {""};
    if (word && hec_when_parse(*rest, &slowdown->when, &reason) < 0)
        return hec_fail(why, HEC_ERR_USAGE, "\"when\": %s", reason.text);
    rules->slowdown_count++;
    return HEC_OK;
}

double hec_power_rules_slowdown(const struct hec_power_rules *rules, enum hec_power_class power_class,
                                const struct hec_when_now *now) {
    for (int i = 0; i < rules->slowdown_count; i++)
        if (rules->slowdowns[i].power_class == power_class &&
            (rules->slowdowns[i].when.count == 0 || hec_when_holds(&rules->slowdowns[i].when, now) == HEC_WHEN_TRUE))
            return rules->slowdowns[i].slowdown;
    return hec_power_class_slowdown(power_class);
}

bool hec_power_rules_ask(const struct hec_power_rules *rules, enum hec_when_kind kind) {
    for (int i = 0; i < rules->slowdown_count; i++)
        if (hec_when_asks(&rules->slowdowns[i].when, kind))
            return true;
    return false;
}

static int parse_line(char *line, struct hec_power_rules *rules, struct hec_why *why) {
    char *rest, *word = strtok_r(line, BLANKS, &rest);
    if (!word)
        return HEC_OK;
    if (strcmp(word, "slowdown") == 0)
        return parse_slowdown(&rest, rules, why);
    enum hec_power_class power_class = hec_power_class_find(word);
    if (power_class == HEC_POWER_CLASS_COUNT)
        return hec_fail(why, HEC_ERR_USAGE, "there is no class \"%.60s\": high, normal or low", word);
    if (rules->count == HEC_POWER_RULES_MAX)
        return hec_fail(why, HEC_ERR_USAGE, "there are more than %d rules", HEC_POWER_RULES_MAX);
    __typeof__(&rules->rules[0]) rule = &rules->rules[rules->count];
    rule->power_class = power_class;
    rule->count = 0;
    while ((word = strtok_r(NULL, BLANKS, &rest)) != NULL) {
        if (rule->count == HEC_POWER_CONDITIONS_MAX)
            return hec_fail(why, HEC_ERR_USAGE, "a rule has at most %d conditions", HEC_POWER_CONDITIONS_MAX);
        int err = parse_condition(word, &rule->conditions[rule->count], why);
        if (err < 0)
            return err;
        rule->count++;
    }
    rules->count++;
    return HEC_OK;
}

int hec_power_rules_parse(const char *text, size_t length, struct hec_power_rules *rules, struct hec_why *why) {
    char line[4096];
    int number = 0;
    rules->count = rules->slowdown_count = 0;
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t whole = end ? (size_t)(end - text) - at : length - at;
        struct hec_why reason = {""};
        number++;
        if (whole >= sizeof line || memchr(text + at, '\0', whole))
            return hec_fail(why, HEC_ERR_USAGE, "line %d is not a line of text", number);
        memcpy(line, text + at, whole);
        line[whole] = '\0';
        line[strcspn(line, "#")] = '\0';
        int err = parse_line(line, rules, &reason);
        if (err < 0)
            return hec_fail(why, err, "line %d: %s", number, reason.text);
        at += whole + 1;
    }
    return HEC_OK;
}

int hec_power_rules_read(const char *path, struct hec_power_rules *rules, struct hec_why *why) {
    char *text;
    size_t length;
    struct hec_why reason = {""};
    int err = hec_small_file_read(path, FILE_MAX, &text, &length, why);
    if (err < 0)
        return err;
    err = hec_power_rules_parse(text, length, rules, &reason);
    free(text);
    return err < 0 ? hec_fail(why, err, "%s: %s", path, reason.text) : HEC_OK;
}

enum hec_power_class hec_power_rules_class(const struct hec_power_rules *rules, const struct hec_tenant *tenant) {
    for (int r = 0; r < rules->count; r++) {
        bool fits = true;
        for (int c = 0; c < rules->rules[r].count && fits; c++) {
            const struct hec_power_condition *condition = &rules->rules[r].conditions[c];
            const char *text = (const char *)tenant + keys[condition->key].offset;
            fits = text[0] && fnmatch(condition->pattern, text, 0) == 0;
        }
        if (fits)
            return rules->rules[r].power_class;
    }
    return HEC_POWER_CLASS_COUNT;
}
