/* Inside src/report: the words of causes, and the limits and the advice that go with them. */
#pragma once

#include "diagnose/finding.h"

#include <stddef.h>

struct hec_cause_words {
    const char *title;     /* "starved for data" */
    const char *meaning;   /* two or three sentences for people who have never met it */
    const char *detection; /* what is read, and what must hold */
    const char *saving;    /* how the saving is predicted */
};
const struct hec_cause_words *hec_cause_words(enum hec_cause cause);
const char *hec_cause_title(enum hec_cause cause); /* "?" out of range */

/* A row of diagnose/limits.def. */
struct hec_limit {
    enum hec_cause cause; /* whose limit it is; HEC_CAUSE_COUNT: nobody's, it weighs */
    const char *id;       /* "DATA_LEAST" */
    double value,
        factor; /* factor 0: the constant's own row; else the value is that of the own row, printed times the factor */
    const char *unit;    /* "%", "us", "" */
    const char *meaning; /* "least share of the run's time in state data" */
    const char *source;  /* where the number comes from */
};
/* The next row of the cause after that one (NULL: the first); NULL: there is none. */
const struct hec_limit *hec_limit_next(enum hec_cause cause, const struct hec_limit *after);
double hec_limit_printed(const struct hec_limit *limit); /* in its unit */

/* Words with each {ID} replaced by that limit as it is printed of the cause, or else of any: "5 %". Other braces stay. */
char *hec_limit_words(char *out, size_t size, enum hec_cause cause, const char *words);
#define HEC_LIMIT_WORDS 1024

struct hec_advice {
    enum hec_cause cause;
    const char *framework;    /* "PyTorch", "JAX", "TensorFlow", "CuPy", "TensorRT", "CUDA", "serving", "any" */
    uint64_t levers;          /* bits (1 << enum hec_lever_id) of the answers that its code is; 0: of none */
    bool training, inference; /* it is of such programs alone */
    const char *text;         /* a sentence */
    const char *code;         /* a snippet, lines ended by \n; NULL: none */
};
const struct hec_advice *hec_advice_next(enum hec_cause cause, const struct hec_advice *after);
