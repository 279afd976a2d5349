/* Whether a command may begin now, by files and the local clock, and when it may by what the files forecast. */
#pragma once

#include "act/when.h"
#include "observe/grid/signals.h"

#include <stdint.h>

struct hec_off_peak {
    struct hec_when when;
    struct hec_signals carbon, prices;
};

struct hec_off_peak_look {
    enum hec_when_answer answer;
    struct hec_when_now now;
    int64_t true_s; /* when it will be true, by the files and the clock; now, where it is; INT64_MAX: they do not say */
};

/* Each kind of file is there that a term asks for: HEC_ERR_USAGE. */
int hec_off_peak_check(const struct hec_off_peak *off_peak, struct hec_why *why);

/* What is known of a moment, in seconds since 1970. */
struct hec_when_now hec_off_peak_now(const struct hec_signals *carbon, const struct hec_signals *prices, int64_t t_s);
/* At a moment, in seconds since 1970. */
void hec_off_peak_look(const struct hec_off_peak *off_peak, int64_t t_s, struct hec_off_peak_look *out);

/* When the answer may change next after t_s; INT64_MAX: never, by these files. */
int64_t hec_off_peak_next(const struct hec_off_peak *off_peak, int64_t t_s);

/* --until: 8h, 90m, 2d, 30s from t_s on; 06:00, when the local clock next says so; 2026-11-30T06:00, local without Z or an offset. The
 * moment, or HEC_ERR_USAGE. */
int hec_off_peak_until(const char *text, int64_t t_s, int64_t *until_s, struct hec_why *why);
