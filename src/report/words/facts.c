#include "report/words/facts.h"

#include "diagnose/limits.h"
#include "report/format.h"
#include "report/words/causes.h"
#include "report/words/fill.h"
#include "report/words/reasons.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_MOST 100 /* of a kernel's name */

static const struct {
    const char *evidence[HEC_EVIDENCE_COUNT], *lever[HEC_LEVER_COUNT], *waits_for[HEC_CAUSE_COUNT];
} words_of = {
#define HEC_EVIDENCE_WORDS(id, words) .evidence[HEC_EVIDENCE_##id] = words,
#define HEC_LEVER_WORDS(id, words) .lever[HEC_LEVER_##id] = words,
#define HEC_LEVER_WORDS_OF(framework, id, words)
#define HEC_WAITS_FOR(cause, words) .waits_for[HEC_CAUSE_##cause] = words,
#include "report/words/facts.def"
};

/* NULL: as those of OTHER, and where there are none either as in general. */
static const char *const lever_words_of[HEC_FRAMEWORK_COUNT][HEC_LEVER_COUNT] = {
#define HEC_EVIDENCE_WORDS(id, words)
#define HEC_LEVER_WORDS(id, words)
#define HEC_LEVER_WORDS_OF(framework, id, words) [HEC_FRAMEWORK_##framework][HEC_LEVER_##id] = words,
#define HEC_WAITS_FOR(cause, words)
#include "report/words/facts.def"
};

/* Of utilisation, what is recoverable, whether that is time, and the utilisation that scaling out asks for. */
static const char *const scale_words[HEC_SCALE_REASONS] = {
    [HEC_SCALE_NOT_SEEN] = "how busy the device was is not known",
    [HEC_SCALE_FAILED] = "the command failed: it may not have come to what it should do",
    [HEC_SCALE_RANKS] = "how long its ranks wait for each other was not looked at",
    [HEC_SCALE_UNSEEN] = "busy {0:%} % of the time in use, but nothing shows that the work is dense",
    [HEC_SCALE_SHARED] = "the device is shared, and what it would do for the command alone is not known",
    [HEC_SCALE_IDLE] = "busy {0:%} % of the time in use, below {3:%} %: more devices would wait as well; tune first",
    [HEC_SCALE_WASTE] =
        "busy {0:%} % of the time in use, but about {1:%} % of the {2?joules are|time is} recoverable: tune first",
    [HEC_SCALE_FULL] = "busy {0:%} % of the time in use and little is left to fix: add devices",
};

static const char *const per_words[] = {[HEC_PER_STEP] = "step", [HEC_PER_SECOND] = "second"};

/* What the words that are no numbers say. */
struct saying {
    const struct hec_finding *finding;
    const char *name, *file, *why;
};

static const char *text_of(const void *context, const char *word) {
    const struct saying *s = context;
    const char *slash = s->file ? strrchr(s->file, '/') : NULL;
    if (strncmp(word, "name", 4) == 0)
        return s->name;
    if (strncmp(word, "file", 4) == 0)
        return slash ? slash + 1 : s->file;
    if (strncmp(word, "why", 3) == 0)
        return s->why;
    if (strncmp(word, "cause", 5) == 0)
        return hec_cause_title(s->finding->cause);
    if (strncmp(word, "for", 3) == 0)
        return words_of.waits_for[s->finding->cause];
    return per_words[s->finding->per];
}

static char *say(char out[HEC_FACT_SIZE], size_t length, const struct saying *s, const double *value,
                 const char *words) {
    struct hec_fill fill = {.out = out,
                            .size = HEC_FACT_SIZE,
                            .length = length,
                            .value = value,
                            .count = HEC_FINDING_NUMBERS,
                            .cause = s->finding->cause,
                            .ranks = s->finding->ranks,
                            .rank_count = s->finding->rank_count,
                            .text_of = text_of,
                            .context = s,
                            .text_most = NAME_MOST};
    return hec_fill(&fill, words);
}

char *hec_evidence_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding,
                         const struct hec_evidence *evidence) {
    const struct saying s = {finding, evidence->name, evidence->file, evidence->why ? HEC_SAY(evidence->why) : NULL};
    size_t length = 0;
    if (evidence->device >= 0) {
        char gpu[HEC_FORMAT_SIZE];
        length = (size_t)snprintf(out, HEC_FACT_SIZE, "%s: ", hec_format_gpu(gpu, evidence->device));
    }
    return say(out, length, &s, evidence->value, words_of.evidence[evidence->what]);
}

char *hec_title_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding) {
    return hec_evidence_words(out, finding, &finding->title);
}

static const char *lever_words(enum hec_framework framework, enum hec_lever_id id) {
    bool own = framework != HEC_FRAMEWORK_UNTOLD && framework != HEC_FRAMEWORK_PYTORCH;
    const char *words = lever_words_of[framework][id];
    if (!words && own)
        words = lever_words_of[HEC_FRAMEWORK_OTHER][id];
    return words ? words : words_of.lever[id];
}

char *hec_lever_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding) {
    const struct saying s = {.finding = finding};
    return say(out, 0, &s, finding->lever.value, lever_words(finding->framework, finding->lever.id));
}

char *hec_lever_default_words(char out[HEC_FACT_SIZE], enum hec_lever_id id) {
    const struct hec_finding finding = {.lever = {.id = id}};
    return hec_lever_words(out, &finding);
}

char *hec_scale_words(char out[HEC_FACT_SIZE], const struct hec_scale_out *scale) {
    const struct hec_finding none = {0};
    bool time = isnan(scale->recoverable);
    const double value[HEC_FINDING_NUMBERS] = {
        scale->utilisation, time ? scale->recoverable_seconds : scale->recoverable, time, HEC_SCALE_UTILISATION};
    const struct saying s = {.finding = &none};
    return say(out, 0, &s, value, scale_words[scale->reason]);
}

char *hec_evidence_unit_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding,
                              const struct hec_evidence *evidence) {
    const char *unit = hec_evidence_unit(evidence->what);
    size_t length = strlen(unit);
    bool rate = length > 4 && strcmp(unit + length - 4, "/per") == 0;
    snprintf(out, HEC_FACT_SIZE, "%.*s%s", (int)(rate ? length - 3 : length), unit,
             rate ? per_words[finding->per] : "");
    return out;
}
