/* When a command may begin: "co2<200 | price<0.08 & 22:00-06:00". | is any, & is all and binds tighter; there are no parentheses. Hours
 * are of the local clock, also over midnight. Pure: what is known now comes in. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

#define HEC_WHEN_TERMS_MOST 32

enum hec_when_kind { HEC_WHEN_CO2, HEC_WHEN_PRICE, HEC_WHEN_HOURS };

struct hec_when_term {
    enum hec_when_kind kind;
    bool another;            /* it begins an alternative: a | stands before it */
    double below;            /* of carbon and price */
    int from_min, until_min; /* of the day, of hours: 0 to 1440; from_min may be later: over midnight */
};

struct hec_when {
    struct hec_when_term terms[HEC_WHEN_TERMS_MOST];
    int count;
};

/* HEC_ERR_USAGE, and a sentence with the column (from 1) of what is wrong. */
int hec_when_parse(const char *text, struct hec_when *out, struct hec_why *why);

/* Unknown is not true. */
enum hec_when_answer { HEC_WHEN_FALSE, HEC_WHEN_UNKNOWN, HEC_WHEN_TRUE };

struct hec_when_now {
    double co2, price; /* of a kWh; NAN: not known */
    int minute;        /* of the day, of the local clock */
};

enum hec_when_answer hec_when_holds(const struct hec_when *when, const struct hec_when_now *now);
/* Whether a term is of that kind. */
bool hec_when_asks(const struct hec_when *when, enum hec_when_kind kind);
