/* Inside src/report: numbers and names into words, for the tables of words. In the words:
 *   {2}, {joules}   a number, by its place or by its name; {2:FORMAT} with, in this order and all optional, a factor (% 100, m 1e3,
 *                   u 1e6, M 1e-6, G 1e-9), digits (after the point; all of them where g follows), and g or r (about three digits);
 *                   {0:gpu} that device, {0:rank} the rank whose it is, or that device where no recording says whose
 *   {0#a|b}         a where the number is 1 (one), else b; {0?a|b} a where it is 0, else b
 *   {ID}            a limit (diagnose/limits.def), as `hec explain` prints it: "64 KiB"
 *   {word}          else what text_of says
 *   [...]           left out where a number or a text in it is unknown */
#pragma once

#include "diagnose/finding.h"

#include <stddef.h>

struct hec_fill {
    char *out;
    size_t size, length; /* length: there already */
    const double *value; /* NAN unknown */
    int count;
    const char *names;    /* of the numbers, with commas between; NULL: they go by their places */
    enum hec_cause cause; /* whose limits are meant first; HEC_CAUSE_COUNT: any's */
    const struct hec_rank *ranks;
    int rank_count;
    const char *(*text_of)(const void *context, const char *word); /* word goes on to its brace; NULL or "": unknown */
    const void *context;
    size_t text_most; /* of a text's bytes */
};

/* Returns out. */
char *hec_fill(struct hec_fill *fill, const char *words);
