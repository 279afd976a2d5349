#include "report/words/causes.h"

#include <stdio.h>
#include <string.h>

static const struct hec_cause_words causes[HEC_CAUSE_COUNT] = {
#define HEC_CAUSE_WORDS(cause, ...) [HEC_CAUSE_##cause] = {__VA_ARGS__},
#define HEC_ADVICE(cause, framework, fits, text, code)
#include "report/words/causes.def"
};

#define A(id) (UINT64_C(1) << HEC_LEVER_##id)
#define TRAINING (UINT64_C(1) << HEC_LEVER_COUNT)
#define INFERENCE (UINT64_C(2) << HEC_LEVER_COUNT)
static const struct hec_advice advices[] = {
#define HEC_CAUSE_WORDS(cause, ...)
#define HEC_ADVICE(cause, framework, fits, text, code)                                                                 \
    {HEC_CAUSE_##cause,                                                                                                \
     framework,                                                                                                        \
     (fits) & (TRAINING - 1),                                                                                          \
     ((fits)&TRAINING) != 0,                                                                                           \
     ((fits)&INFERENCE) != 0,                                                                                          \
     text,                                                                                                             \
     code},
#include "report/words/causes.def"
};
#undef A
#undef TRAINING
#undef INFERENCE
_Static_assert(HEC_LEVER_COUNT < 62, "bits of what fits");

static const struct hec_limit limits[] = {
#define HEC_LIMIT(cause, id, value, unit, meaning, source) {HEC_CAUSE_##cause, #id, value, 0, unit, meaning, source},
#define HEC_NUMBER(id, value, unit, meaning, source) {HEC_CAUSE_COUNT, #id, value, 0, unit, meaning, source},
#define HEC_LIMIT_ALSO(cause, id, factor, unit, meaning, source)                                                       \
    {HEC_CAUSE_##cause, #id, 0, factor, unit, meaning, source},
#define HEC_GOES(cause, low, best, confidence, source)
#include "diagnose/limits.def"
};

enum { LIMITS = sizeof limits / sizeof limits[0], ADVICES = sizeof advices / sizeof advices[0] };

const struct hec_cause_words *hec_cause_words(enum hec_cause cause) {
    return &causes[cause];
}

const char *hec_cause_title(enum hec_cause cause) {
    return (unsigned)cause < HEC_CAUSE_COUNT ? causes[cause].title : "?";
}

const struct hec_limit *hec_limit_next(enum hec_cause cause, const struct hec_limit *after) {
    for (const struct hec_limit *l = after ? after + 1 : limits; l < limits + LIMITS; l++)
        if (l->cause == cause)
            return l;
    return NULL;
}

const struct hec_advice *hec_advice_next(enum hec_cause cause, const struct hec_advice *after) {
    for (const struct hec_advice *a = after ? after + 1 : advices; a < advices + ADVICES; a++)
        if (a->cause == cause)
            return a;
    return NULL;
}

static bool is_called(const struct hec_limit *l, const char *id, size_t length) {
    return strncmp(l->id, id, length) == 0 && !l->id[length];
}

double hec_limit_printed(const struct hec_limit *limit) {
    if (!limit->factor)
        return strcmp(limit->unit, "%") == 0 ? 100 * limit->value : limit->value;
    for (const struct hec_limit *own = limits; own < limits + LIMITS; own++)
        if (!own->factor && strcmp(own->id, limit->id) == 0)
            return limit->factor * own->value;
    return 0;
}

static const struct hec_limit *find(enum hec_cause cause, const char *id, size_t length) {
    const struct hec_limit *found = NULL;
    for (const struct hec_limit *l = limits; l < limits + LIMITS; l++)
        if (is_called(l, id, length) && (!found || l->cause == cause))
            found = l;
    return found;
}

char *hec_limit_words(char *out, size_t size, enum hec_cause cause, const char *words) {
    size_t at = 0;
    out[0] = '\0';
    while (*words && at < size) {
        size_t plain = strcspn(words, "{"), id = strcspn(words + plain, "}");
        const struct hec_limit *l = id > 1 ? find(cause, words + plain + 1, id - 1) : NULL;
        id += words[plain + id] == '}';
        at += (size_t)snprintf(out + at, size - at, "%.*s", (int)plain, words);
        if (l && at < size)
            at += (size_t)snprintf(out + at, size - at, "%g%s%s", hec_limit_printed(l), l->unit[0] ? " " : "", l->unit);
        else if (at < size)
            at += (size_t)snprintf(out + at, size - at, "%.*s", (int)id, words + plain);
        words += plain + id;
    }
    return out;
}
