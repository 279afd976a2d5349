#include "report/words/facts.h"

#include "diagnose/limits.h"
#include "diagnose/result.h"
#include "report/format.h"
#include "report/words/causes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MOST 100 /* of a kernel's name */

static const struct {
    const char *evidence[HEC_EVIDENCE_COUNT], *lever[HEC_LEVER_COUNT], *waits_for[HEC_CAUSE_COUNT];
} words_of = {
#define HEC_EVIDENCE_WORDS(id, words) .evidence[HEC_EVIDENCE_##id] = words,
#define HEC_LEVER_WORDS(id, words) .lever[HEC_LEVER_##id] = words,
#define HEC_WAITS_FOR(cause, words) .waits_for[HEC_CAUSE_##cause] = words,
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

/* What the words are put together from, and what is there so far. */
struct writer {
    char *out;
    size_t length;
    const struct hec_finding *finding;
    const double *value;
    const char *name, *file;
};

static void put(struct writer *w, const char *text, size_t length) {
    size_t room = HEC_FACT_SIZE - 1 - w->length;
    length = length < room ? length : room;
    memcpy(w->out + w->length, text, length);
    w->out[w->length += length] = '\0';
}

/* A device, or the rank whose it is: "rank 3 (GPU 3)" where the recording says it. */
static void put_device(struct writer *w, int device, bool of_rank) {
    char gpu[HEC_FORMAT_SIZE], text[2 * HEC_FORMAT_SIZE];
    int rank = of_rank ? hec_rank_of(w->finding->ranks, w->finding->rank_count, device) : -1;
    hec_format_gpu(gpu, device);
    if (rank >= 0)
        snprintf(text, sizeof text, "rank %d (%s)", rank, gpu);
    put(w, rank >= 0 ? text : gpu, strlen(rank >= 0 ? text : gpu));
}

/* [factor][digits][g|r], or gpu, or rank */
static void put_number(struct writer *w, double x, const char *format) {
    static const struct {
        char letter;
        double factor;
    } factors[] = {{'%', 1e2}, {'m', 1e3}, {'u', 1e6}, {'M', 1e-6}, {'G', 1e-9}};
    char text[HEC_FORMAT_SIZE], *end;
    bool of_rank = strncmp(format, "rank", 4) == 0;
    if (isfinite(x) && (of_rank || strncmp(format, "gpu", 3) == 0)) {
        put_device(w, (int)x, of_rank);
        return;
    }
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        if (*format == factors[i].letter) {
            x *= factors[i].factor;
            format++;
            break;
        }
    int digits = (int)strtol(format, &end, 10);
    if (*end == 'r')
        digits = x >= 100 ? 0 : x >= 10 ? 1 : 2;
    if (!isfinite(x))
        snprintf(text, sizeof text, "?");
    else
        snprintf(text, sizeof text, *end == 'g' ? "%.*g" : "%.*f", digits, x);
    put(w, text, strlen(text));
}

/* One of "a|b". */
static void put_choice(struct writer *w, const char *choices, const char *end, bool second) {
    const char *bar = memchr(choices, '|', (size_t)(end - choices));
    if (bar)
        put(w, second ? bar + 1 : choices, (size_t)(second ? end - bar - 1 : bar - choices));
}

static const char *text_of(const struct writer *w, const char *field) {
    const char *slash = w->file ? strrchr(w->file, '/') : NULL;
    if (strncmp(field, "name", 4) == 0)
        return w->name;
    if (strncmp(field, "file", 4) == 0)
        return slash ? slash + 1 : w->file;
    if (strncmp(field, "cause", 5) == 0)
        return hec_cause_title(w->finding->cause);
    if (strncmp(field, "for", 3) == 0)
        return words_of.waits_for[w->finding->cause];
    return per_words[w->finding->per];
}

/* What stands between braces. */
static void put_field(struct writer *w, const char *field, const char *end) {
    if (*field >= 'A' && *field <= 'Z') {
        char id[HEC_FORMAT_SIZE], text[HEC_FORMAT_SIZE];
        snprintf(id, sizeof id, "{%.*s}", (int)(end - field), field);
        hec_limit_words(text, sizeof text, w->finding->cause, id);
        put(w, text, strlen(text));
        return;
    }
    if (*field < '0' || *field >= '0' + HEC_FINDING_NUMBERS) {
        const char *text = text_of(w, field);
        put(w, text ? text : "", text ? strnlen(text, NAME_MOST) : 0);
        return;
    }
    double x = w->value[*field - '0'];
    if (field[1] == '#')
        put_choice(w, field + 2, end, x != 1);
    else if (field[1] == '?')
        put_choice(w, field + 2, end, x != 0);
    else
        put_number(w, x, field[1] == ':' ? field + 2 : field + 1);
}

/* Whether all numbers up to the bracket's end are known. */
static bool known(const struct writer *w, const char *words) {
    for (const char *c = words; *c != ']'; c++)
        if (*c == '{' && c[1] >= '0' && c[1] < '0' + HEC_FINDING_NUMBERS && isnan(w->value[c[1] - '0']))
            return false;
    return true;
}

static char *write_words(struct writer *w, const char *words) {
    w->out[w->length] = '\0';
    while (*words) {
        size_t plain = strcspn(words, "{[]");
        put(w, words, plain);
        words += plain;
        if (*words == '{') {
            const char *end = strchr(words, '}');
            put_field(w, words + 1, end);
            words = end + 1;
        } else if (*words == '[' && !known(w, words)) {
            words = strchr(words, ']') + 1;
        } else if (*words) {
            words++;
        }
    }
    return w->out;
}

char *hec_evidence_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding,
                         const struct hec_evidence *evidence) {
    struct writer w = {
        .out = out, .finding = finding, .value = evidence->value, .name = evidence->name, .file = evidence->file};
    if (evidence->device >= 0) {
        char gpu[HEC_FORMAT_SIZE];
        w.length = (size_t)snprintf(out, HEC_FACT_SIZE, "%s: ", hec_format_gpu(gpu, evidence->device));
    }
    return write_words(&w, words_of.evidence[evidence->what]);
}

char *hec_title_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding) {
    return hec_evidence_words(out, finding, &finding->title);
}

char *hec_lever_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding) {
    struct writer w = {.out = out, .finding = finding, .value = finding->lever.value};
    return write_words(&w, words_of.lever[finding->lever.id]);
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
    struct writer w = {.out = out, .finding = &none, .value = value};
    return write_words(&w, scale_words[scale->reason]);
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
