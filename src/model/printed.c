#include "model/printed.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TQDM "tqdm"
/* "[00:10<00:12, 4.50it/s, loss=0.1]", without a total "[00:10, 4.50it/s]"; below one a second "2.10s/it" */
#define TQDM_TIMES "\\[[0-9:]+(<[0-9:?]+)?, *"
#define TQDM_RATE TQDM_TIMES "([0-9.]+[kMGT]?)[^]/, ]*/s[],]"
#define TQDM_SECONDS TQDM_TIMES "([0-9.]+)s/[^],]+[],]"
#define TQDM_GROUP 2
#define GROUPS_MAX 3
#define NUMBER_MAX 64

static int compile(regex_t *regex, const char *pattern, struct hec_why *why) {
    char text[128];
    int failed = regcomp(regex, pattern, REG_EXTENDED);
    if (!failed)
        return HEC_OK;
    regerror(failed, regex, text, sizeof text);
    return hec_fail(why, HEC_ERR_USAGE, "\"%.200s\" is no POSIX extended regular expression: %s", pattern, text);
}

int hec_printed_parse(const char *text, struct hec_printed_unit *out, struct hec_why *why) {
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    *out = (struct hec_printed_unit){.rate = length >= 2 && memcmp(equals - 2, "/s", 2) == 0};
    length -= out->rate ? 2 : 0;
    if (!length || length >= sizeof out->name || strpbrk(text, "\n\r") || strlen(text) >= HEC_PRINTED_TEXT)
        return hec_fail(
            why, HEC_ERR_USAGE,
            "it is NAME=PATTERN for a count or NAME/s=PATTERN for a rate, in one line of less than %d characters",
            HEC_PRINTED_TEXT);
    memcpy(out->name, text, length);
    snprintf(out->pattern, sizeof out->pattern, "%s", equals + 1);
    if (strcmp(out->pattern, TQDM) == 0)
        return out->rate ? HEC_OK : hec_fail(why, HEC_ERR_USAGE, "the bars of tqdm show a rate: %s/s=" TQDM, out->name);
    regex_t regex;
    int err = compile(&regex, out->pattern, why);
    if (err < 0)
        return err;
    size_t groups = regex.re_nsub;
    regfree(&regex);
    return groups == 1 ? HEC_OK
                       : hec_fail(why, HEC_ERR_USAGE,
                                  "\"%.200s\" has %zu groups in parentheses, and needs one, around the number",
                                  out->pattern, groups);
}

int hec_printed_compile(const struct hec_printed_unit *unit, struct hec_printed_matcher *out, struct hec_why *why) {
    bool tqdm = strcmp(unit->pattern, TQDM) == 0;
    *out = (struct hec_printed_matcher){.group = tqdm ? TQDM_GROUP : 1};
    int err = compile(&out->regex[0], tqdm ? TQDM_RATE : unit->pattern, why);
    out->count = err == HEC_OK;
    if (err == HEC_OK && tqdm && (err = compile(&out->regex[1], TQDM_SECONDS, why)) == HEC_OK)
        out->count++;
    return err;
}

void hec_printed_release(struct hec_printed_matcher *matcher) {
    for (int i = 0; i < matcher->count; i++)
        regfree(&matcher->regex[i]);
    matcher->count = 0;
}

static double times(char suffix) {
    return suffix == 'k' || suffix == 'K' ? 1e3
           : suffix == 'M'                ? 1e6
           : suffix == 'G'                ? 1e9
           : suffix == 'T'                ? 1e12
                                          : NAN;
}

/* The number that a group holds; NAN: it holds none. */
static double number_of(const char *from, size_t length) {
    char text[NUMBER_MAX], *end;
    size_t kept = 0;
    if (length >= sizeof text)
        return NAN;
    for (size_t i = 0; i < length; i++)
        if (from[i] != ',' && !isspace((unsigned char)from[i]))
            text[kept++] = from[i];
    text[kept] = '\0';
    if (!strspn(text, "+-.0123456789") || strpbrk(text, "xX")) /* neither inf nor hexadecimal */
        return NAN;
    double value = strtod(text, &end);
    if (!*end)
        return value;
    return end != text && !end[1] ? value * times(*end) : NAN;
}

bool hec_printed_match(const struct hec_printed_matcher *matcher, const char *line, double *number) {
    regmatch_t match[GROUPS_MAX];
    for (int i = 0; i < matcher->count; i++) {
        if (regexec(&matcher->regex[i], line, GROUPS_MAX, match, 0) != 0 || match[matcher->group].rm_so < 0)
            continue;
        regmatch_t at = match[matcher->group];
        double value = number_of(line + at.rm_so, (size_t)(at.rm_eo - at.rm_so));
        *number = i ? 1 / value : value;
        return isfinite(*number) && *number >= 0 && *number <= HEC_PRINTED_LARGEST;
    }
    return false;
}
