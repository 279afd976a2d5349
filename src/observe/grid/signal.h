/* A signal of the electric grid over time: carbon per kWh (average or marginal) or a price, from a file that somebody else fetches
 * (docs/when.md has the formats). A value holds for its own interval. Outside of these nothing is known, and nothing is guessed. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Average and marginal carbon answer other questions, and are never mixed. */
enum hec_signal_kind { HEC_SIGNAL_AVERAGE, HEC_SIGNAL_MARGINAL, HEC_SIGNAL_PRICE };

struct hec_signal_value {
    int64_t from_s, until_s; /* seconds since 1970, UTC; until_s is no part of it */
    double value;            /* grams of CO2 per kWh, or the price of a kWh; NAN: the file has the time and no value */
};

struct hec_signal {
    enum hec_signal_kind kind;
    char source[96]; /* "Electricity Maps, DE, life cycle", "WattTime, CAISO_NORTH", "CSV"; "" of a price */
    struct hec_signal_value *values; /* by time, and no two at once; malloc'ed */
    size_t count;
};

#define HEC_SIGNAL_FILE_MOST (64u << 20)

/* The text of a file: of carbon, or else of prices. HEC_ERR_CORRUPT and a sentence that names the line, HEC_ERR_NOMEM. */
int hec_signal_parse(const char *bytes, size_t length, bool carbon, struct hec_signal *out, struct hec_why *why);
void hec_signal_free(struct hec_signal *signal);

/* "average", "marginal" or "price". */
const char *hec_signal_kind_name(enum hec_signal_kind kind);

/* NULL: nothing is known of that time. */
const struct hec_signal_value *hec_signal_at(const struct hec_signal *signal, int64_t t_s);
/* When after t_s a value begins or ends next; INT64_MAX: never. */
int64_t hec_signal_next(const struct hec_signal *signal, int64_t t_s);
