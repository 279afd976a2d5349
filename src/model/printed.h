/* Units of work that a program prints itself, as `hec run --unit` names them: which of its lines say them, and as what.
 *
 *     NAME/s=PATTERN   the number is a rate, NAME a second
 *     NAME=PATTERN     the number is a count of NAME, done since the last such line
 *     NAME/s=tqdm      the rate in the bars of tqdm, in either of its forms ("12.5it/s", "2.1s/it")
 *
 * PATTERN is a POSIX extended regular expression with one group, which holds the number: digits with a point, commas between
 * thousands, an exponent, or k, M, G, T after it. */
#pragma once

#include "base/error.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#define HEC_PRINTED_MAX 8            /* units of one run */
#define HEC_PRINTED_NAME 64          /* with its end */
#define HEC_PRINTED_TEXT 512         /* NAME/s=PATTERN, with its end */
#define HEC_PRINTED_LARGEST 1e12     /* a larger number, or a negative one, is none */
#define HEC_PRINTED_LINE 4096        /* what follows in a line is not looked at */
#define HEC_PRINTED_PER_UNIT 1000000 /* metric.def's "printed" is in millionths */

struct hec_printed_unit {
    char name[HEC_PRINTED_NAME];
    bool rate;
    char pattern[HEC_PRINTED_TEXT];
};

/* What text says, as above; else HEC_ERR_USAGE and a sentence. The pattern is one that can be compiled. */
int hec_printed_parse(const char *text, struct hec_printed_unit *out, struct hec_why *why);

struct hec_printed_matcher {
    regex_t regex[2]; /* the second gives seconds a unit */
    int count;        /* of them */
    size_t group;
};

/* Of a unit that was parsed. */
int hec_printed_compile(const struct hec_printed_unit *unit, struct hec_printed_matcher *out, struct hec_why *why);
void hec_printed_release(struct hec_printed_matcher *matcher);

/* Whether the line says the unit's number. */
bool hec_printed_match(const struct hec_printed_matcher *matcher, const char *line, double *number);
