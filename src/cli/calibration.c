#include "cli/calibration.h"

#include "base/text.h"
#include "launch/kept_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_FAMILY "hec.calibration/"
#define FILE_BYTES_MAX (256 << 10) /* a file has about 5 KiB */

/* ---- where ---- */

static int folder(char path[PATH_MAX], struct hec_why *why) {
    const char *given = getenv("HEC_CALIBRATION_DIR"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int length;
    if (given && given[0])
        length = snprintf(path, PATH_MAX, "%s", given);
    else if (data && data[0] == '/') /* the specification ignores relative ones */
        length = snprintf(path, PATH_MAX, "%s/hec/calibration", data);
    else if (home && home[0] == '/')
        length = snprintf(path, PATH_MAX, "%s/.local/share/hec/calibration", home);
    else
        return hec_fail(why, HEC_ERR_NOTFOUND, "no place for calibrations: HOME is not set");
    return length < PATH_MAX - 128 ? HEC_OK : hec_fail(why, HEC_ERR_LIMIT, "the folder's name is too long");
}

/* Where the file of this device is or would be. HEC_ERR_NOTFOUND: there is no home folder; HEC_ERR_USAGE: that is no UUID. */
static int path_of(const char *uuid, char path[PATH_MAX], struct hec_why *why) {
    size_t length = strlen(uuid);
    if (length < 8 || length > 90 ||
        strspn(uuid, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") != length)
        return hec_fail(why, HEC_ERR_USAGE, "the device has no usable UUID");
    int err = folder(path, why);
    if (err == HEC_OK)
        snprintf(path + strlen(path), 128, "/%s.json", uuid);
    return err;
}

/* ---- writing ---- */

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *string(const char *from) {
    char clean[128];
    return json_string(hec_text_clean(clean, sizeof clean, from, strlen(from), true));
}

static json_t *figure(const struct hec_peak *peak, enum hec_peak_kind kind) {
    json_t *object = json_object();
    set(object, "value", number(peak->value));
    set(object, "unit", json_string(hec_peak_unit(kind)));
    set(object, "low", number(peak->low));
    set(object, "high", number(peak->high));
    set(object, "runs", json_integer(peak->runs));
    set(object, "method", string(peak->method));
    set(object, "throttled", json_boolean(peak->throttled));
    if (isfinite(peak->sustained)) {
        set(object, "sm_mhz", number(peak->sm_mhz));
        set(object, "sustained", number(peak->sustained));
        set(object, "sustained_mhz", number(peak->sustained_mhz));
        set(object, "sustained_throttled", json_boolean(peak->sustained_throttled));
    }
    return object;
}

json_t *hec_calibration_json(const struct hec_peaks *peaks) {
    json_t *root = json_object(), *figures = json_object();
    set(root, "schema", json_string(HEC_CALIBRATION_SCHEMA));
    set(root, "uuid", string(peaks->uuid));
    set(root, "name", string(peaks->name));
    set(root, "driver", string(peaks->driver));
    set(root, "measured", string(peaks->measured));
    set(root, "hec_version", string(peaks->hec_version));
    set(root, "cuda_major", json_integer(peaks->cuda_major));
    set(root, "cuda_minor", json_integer(peaks->cuda_minor));
    set(root, "sms", json_integer(peaks->sms));
    set(root, "sm_max_mhz", number(peaks->sm_max_mhz));
    set(root, "power_limit_w", number(peaks->power_limit_w));
    set(root, "shared", json_boolean(peaks->shared));
    set(root, "simulated", json_boolean(peaks->simulated));
    for (int i = 0; i < HEC_PEAK_COUNT; i++)
        if (peaks->peak[i].runs > 0)
            set(figures, hec_peak_name((enum hec_peak_kind)i), figure(&peaks->peak[i], (enum hec_peak_kind)i));
    set(root, "peaks", figures);
    return root;
}

int hec_calibration_write(const struct hec_peaks *peaks, char path[PATH_MAX], struct hec_why *why) {
    int err = path_of(peaks->uuid, path, why);
    if (err < 0)
        return err;
    json_t *root = hec_calibration_json(peaks);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (!text)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the calibration");
    err = hec_kept_file_write(path, text, why);
    free(text);
    return err;
}

/* ---- reading: the file may hold anything ---- */

static bool take_text(const json_t *object, const char *key, char *out, size_t size) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value) || json_string_length(value) >= size)
        return false;
    hec_text_clean(out, size, json_string_value(value), json_string_length(value), true);
    return true;
}

static bool take_flag(const json_t *object, const char *key, bool *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_is_true(value);
    return json_is_boolean(value);
}

/* null: unknown. Every figure is above 0, and none of them comes near 1e18. */
static bool take_number(const json_t *object, const char *key, double *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_is_number(value) ? json_number_value(value) : NAN;
    return !value || json_is_null(value) || (*out > 0 && *out < 1e18);
}

static bool take_integer(const json_t *object, const char *key, int least, int most, int *out) {
    const json_t *value = json_object_get(object, key);
    json_int_t number_of = json_integer_value(value);
    *out = number_of >= least && number_of <= most ? (int)number_of : 0;
    return json_is_integer(value) && number_of >= least && number_of <= most;
}

static bool take_figure(const json_t *object, enum hec_peak_kind kind, struct hec_peak *peak) {
    const json_t *unit = json_object_get(object, "unit");
    bool sustained = json_object_get(object, "sustained") != NULL;
    return json_is_string(unit) && strcmp(json_string_value(unit), hec_peak_unit(kind)) == 0 &&
           take_number(object, "value", &peak->value) && take_number(object, "low", &peak->low) &&
           take_number(object, "high", &peak->high) && peak->low <= peak->value && peak->value <= peak->high &&
           take_integer(object, "runs", 1, HEC_PEAK_RUNS_MAX, &peak->runs) &&
           take_text(object, "method", peak->method, sizeof peak->method) &&
           take_flag(object, "throttled", &peak->throttled) && take_number(object, "sm_mhz", &peak->sm_mhz) &&
           take_number(object, "sustained", &peak->sustained) &&
           take_number(object, "sustained_mhz", &peak->sustained_mhz) &&
           (!sustained || take_flag(object, "sustained_throttled", &peak->sustained_throttled));
}

static const char *take_all(const json_t *root, struct hec_peaks *peaks) {
    if (!take_text(root, "uuid", peaks->uuid, sizeof peaks->uuid) ||
        !take_text(root, "name", peaks->name, sizeof peaks->name) ||
        !take_text(root, "driver", peaks->driver, sizeof peaks->driver) ||
        !take_text(root, "measured", peaks->measured, sizeof peaks->measured) ||
        !take_text(root, "hec_version", peaks->hec_version, sizeof peaks->hec_version) ||
        !take_integer(root, "cuda_major", 1, 999, &peaks->cuda_major) ||
        !take_integer(root, "cuda_minor", 0, 9, &peaks->cuda_minor) ||
        !take_integer(root, "sms", 1, 100000, &peaks->sms) || !take_number(root, "sm_max_mhz", &peaks->sm_max_mhz) ||
        !take_number(root, "power_limit_w", &peaks->power_limit_w) || !take_flag(root, "shared", &peaks->shared) ||
        !take_flag(root, "simulated", &peaks->simulated))
        return "a fact of the device is missing or wrong";
    const json_t *figures = json_object_get(root, "peaks");
    if (!json_is_object(figures))
        return "it has no figures";
    for (int i = 0; i < HEC_PEAK_COUNT; i++) {
        const json_t *object = json_object_get(figures, hec_peak_name((enum hec_peak_kind)i));
        if (object && !take_figure(object, (enum hec_peak_kind)i, &peaks->peak[i]))
            return hec_peak_name((enum hec_peak_kind)i);
    }
    return NULL;
}

static int parse(const json_t *root, const char *uuid, struct hec_peaks *peaks, const char *path, struct hec_why *why) {
    const json_t *schema = json_object_get(root, "schema");
    if (!json_is_string(schema) || strncmp(json_string_value(schema), SCHEMA_FAMILY, strlen(SCHEMA_FAMILY)) != 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "%s is no calibration", path);
    if (strcmp(json_string_value(schema), HEC_CALIBRATION_SCHEMA) != 0)
        return hec_fail(why, HEC_ERR_VERSION, "%s is a calibration of another version of HEC", path);
    const char *wrong = take_all(root, peaks);
    if (wrong)
        return hec_fail(why, HEC_ERR_CORRUPT, "%s is damaged: %s", path, wrong);
    if (strcmp(peaks->uuid, uuid) != 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "%s belongs to another device", path);
    return HEC_OK;
}

int hec_calibration_read(const char *uuid, struct hec_peaks *peaks, struct hec_why *why) {
    char path[PATH_MAX], *text = NULL;
    size_t length = 0;
    json_error_t reason;
    hec_peaks_init(peaks);
    int err = path_of(uuid, path, why);
    if (err == HEC_OK && (err = hec_kept_file_read(path, FILE_BYTES_MAX, &text, &length, why)) == HEC_ERR_NOTFOUND)
        hec_fail(why, err, "this device was not calibrated yet; `hec calibrate` does it");
    if (err == HEC_OK) {
        json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
        err = root ? parse(root, uuid, peaks, path, why)
                   : hec_fail(why, HEC_ERR_CORRUPT, "%s is damaged: line %d is no JSON", path, reason.line);
        json_decref(root);
    }
    free(text);
    if (err < 0)
        hec_peaks_init(peaks);
    return err;
}
