/* {"data": [{"point_time": "2026-11-30T00:00:00+00:00", "value": 870.0}, ...], "meta": {"region": ..., "signal_type": "co2_moer",
 * "units": "lbs_co2_per_mwh", "data_point_period_seconds": 300}}, as /v3/historical and /v3/forecast answer. */
#include "observe/grid/parts.h"

#include "base/text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GRAMS_PER_POUND 453.59237 /* exact, by definition */
#define PERIOD_MOST_S 86400

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int read_meta(struct hec_signal *out, const json_t *meta, json_int_t *period_s, struct hec_why *why) {
    char shown[48];
    const char *type = text_of(meta, "signal_type"), *units = text_of(meta, "units"), *region = text_of(meta, "region");
    bool marginal = strcmp(type, "co2_moer") == 0;
    if (!marginal && strcmp(type, "co2_aoer") != 0)
        return hec_fail(why, HEC_ERR_CORRUPT,
                        "meta.signal_type is \"%s\", and neither co2_moer (marginal) nor co2_aoer (average)",
                        hec_text_clean(shown, sizeof shown, type, strlen(type), true));
    if (strcmp(units, "lbs_co2_per_mwh") != 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "meta.units is \"%s\", not lbs_co2_per_mwh",
                        hec_text_clean(shown, sizeof shown, units, strlen(units), true));
    out->kind = marginal ? HEC_SIGNAL_MARGINAL : HEC_SIGNAL_AVERAGE;
    hec_text_clean(shown, sizeof shown, region, strlen(region), true);
    snprintf(out->source, sizeof out->source, "WattTime%s%s", shown[0] ? ", " : "", shown);
    const json_t *period = json_object_get(meta, "data_point_period_seconds");
    *period_s = json_integer_value(period);
    if (period && (*period_s <= 0 || *period_s > PERIOD_MOST_S))
        return hec_fail(why, HEC_ERR_CORRUPT,
                        "meta.data_point_period_seconds is no whole number of seconds up to a day");
    return HEC_OK;
}

static int read_point(struct hec_signal_rows *rows, const json_t *point, const char *type, size_t index,
                      struct hec_why *why) {
    char where[48];
    const json_t *value = json_object_get(point, "value");
    const char *own = text_of(point, "signal_type");
    snprintf(where, sizeof where, "data[%zu]", index);
    if (own[0] && strcmp(own, type) != 0)
        return hec_fail(why, HEC_ERR_CORRUPT,
                        "%s: it is of another signal than meta.signal_type says: they are not to be mixed", where);
    if (!json_is_number(value) && !json_is_null(value))
        return hec_fail(why, HEC_ERR_CORRUPT, "%s: it has no value", where);
    double grams = json_is_null(value) ? NAN : json_number_value(value) * GRAMS_PER_POUND / 1e3;
    return hec_signal_add(rows, where, text_of(point, "point_time"), grams, why);
}

static int read_root(struct hec_signal_rows *rows, const json_t *root, struct hec_why *why) {
    const json_t *data = json_object_get(root, "data"), *meta = json_object_get(root, "meta"), *point;
    size_t index;
    json_int_t period_s = 0;
    if (!rows->carbon)
        return hec_fail(why, HEC_ERR_CORRUPT, "it is JSON: prices come as CSV");
    if (!json_is_array(data) || !json_is_object(meta))
        return hec_fail(why, HEC_ERR_CORRUPT, "it has no data and meta, as WattTime's answers have");
    int err = read_meta(rows->out, meta, &period_s, why);
    json_array_foreach(data, index, point) {
        if (err < 0)
            break;
        err = read_point(rows, point, text_of(meta, "signal_type"), index, why);
    }
    return err < 0 ? err : hec_signal_finish(rows, period_s, why);
}

int hec_signal_watttime(struct hec_signal_rows *rows, const char *bytes, size_t length, struct hec_why *why) {
    json_error_t error;
    char shown[160];
    json_t *root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return hec_fail(why, HEC_ERR_CORRUPT, "line %d: %s", error.line,
                        hec_text_clean(shown, sizeof shown, error.text, strlen(error.text), true));
    int err = read_root(rows, root, why);
    json_decref(root);
    return err;
}
