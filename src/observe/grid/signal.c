#include "observe/grid/parts.h"

#include "base/text.h"
#include "observe/grid/time_text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CARBON_MOST 100000 /* g per kWh: a hundred times what coal gives is no carbon intensity */
#define PRICE_MOST 100000

int hec_signal_add(struct hec_signal_rows *rows, const char *where, const char *time, double value,
                   struct hec_why *why) {
    struct hec_signal *out = rows->out;
    char shown[48];
    int64_t from_s;
    bool zoned;
    if (!hec_time_text(time, &from_s, &zoned))
        return hec_fail(why, HEC_ERR_CORRUPT, "%s: \"%s\" is no time", where,
                        hec_text_clean(shown, sizeof shown, time, strlen(time), true));
    if (out->count && from_s <= out->values[out->count - 1].from_s)
        return hec_fail(why, HEC_ERR_CORRUPT, "%s: its time is not after the one before", where);
    double most = rows->carbon ? CARBON_MOST : PRICE_MOST;
    if (!isnan(value) && !(value >= (rows->carbon ? 0 : -most) && value <= most))
        return hec_fail(why, HEC_ERR_CORRUPT, "%s: %g %s cannot be", where, value,
                        rows->carbon ? "g of CO2 per kWh" : "per kWh");
    if (out->count == rows->capacity) {
        size_t capacity = rows->capacity ? 2 * rows->capacity : 256;
        struct hec_signal_value *grown = realloc(out->values, capacity * sizeof *grown);
        if (!grown)
            return hec_fail(why, HEC_ERR_NOMEM, "no memory for its values");
        out->values = grown;
        rows->capacity = capacity;
    }
    out->values[out->count++] = (struct hec_signal_value){.from_s = from_s, .until_s = from_s, .value = value};
    return HEC_OK;
}

int hec_signal_finish(struct hec_signal_rows *rows, int64_t period_s, struct hec_why *why) {
    struct hec_signal_value *values = rows->out->values;
    size_t count = rows->out->count;
    if (!count)
        return hec_fail(why, HEC_ERR_CORRUPT, "it has no values");
    int64_t shortest_s = period_s > 0 ? period_s : INT64_MAX;
    for (size_t i = 1; i < count && period_s <= 0; i++)
        if (values[i].from_s - values[i - 1].from_s < shortest_s)
            shortest_s = values[i].from_s - values[i - 1].from_s;
    if (shortest_s == INT64_MAX)
        return hec_fail(why, HEC_ERR_CORRUPT, "it has one value, and does not say how long that holds");
    for (size_t i = 0; i < count; i++) {
        values[i].until_s = values[i].from_s + shortest_s;
        if (i + 1 < count && values[i + 1].from_s < values[i].until_s)
            values[i].until_s = values[i + 1].from_s;
    }
    return HEC_OK;
}

int hec_signal_parse(const char *bytes, size_t length, bool carbon, struct hec_signal *out, struct hec_why *why) {
    struct hec_signal_rows rows = {.out = out, .carbon = carbon};
    size_t first = 0;
    *out = (struct hec_signal){.kind = carbon ? HEC_SIGNAL_AVERAGE : HEC_SIGNAL_PRICE};
    if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        bytes += 3;
        length -= 3;
    }
    while (first < length && isspace((unsigned char)bytes[first]))
        first++;
    bool json = first < length && (bytes[first] == '{' || bytes[first] == '[');
    int err = json ? hec_signal_watttime(&rows, bytes, length, why) : hec_signal_table(&rows, bytes, length, why);
    if (err < 0)
        hec_signal_free(out);
    return err;
}

void hec_signal_free(struct hec_signal *signal) {
    free(signal->values);
    signal->values = NULL;
    signal->count = 0;
}

const char *hec_signal_kind_name(enum hec_signal_kind kind) {
    static const char *const names[] = {
        [HEC_SIGNAL_AVERAGE] = "average", [HEC_SIGNAL_MARGINAL] = "marginal", [HEC_SIGNAL_PRICE] = "price"};
    return names[kind];
}

/* How many values begin at t_s or before. */
static size_t begun(const struct hec_signal *signal, int64_t t_s) {
    size_t low = 0, high = signal->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (signal->values[middle].from_s <= t_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct hec_signal_value *hec_signal_at(const struct hec_signal *signal, int64_t t_s) {
    size_t count = begun(signal, t_s);
    const struct hec_signal_value *value = count ? &signal->values[count - 1] : NULL;
    return value && t_s < value->until_s && !isnan(value->value) ? value : NULL;
}

int64_t hec_signal_next(const struct hec_signal *signal, int64_t t_s) {
    size_t count = begun(signal, t_s);
    if (count && signal->values[count - 1].until_s > t_s)
        return signal->values[count - 1].until_s;
    return count < signal->count ? signal->values[count].from_s : INT64_MAX;
}
