#include "report/format.h"

#include "base/text.h"
#include "model/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

char *hec_format_clean(char *text, size_t size, const char *from, bool utf8) {
    return hec_text_clean(text, size, from, strlen(from), utf8);
}

/* The power of 1000 for a value, and its prefix. */
static int thousands(double value, int lowest, int highest, const char **prefix) {
    static const char *const prefixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P"};
    int power = value != 0 && isfinite(value) ? (int)floor(log10(fabs(value)) / 3 + 1e-12) : 0;
    power = power < lowest ? lowest : power > highest ? highest : power;
    *prefix = prefixes[power + 3];
    return power;
}

static int decimals_for(double scaled, int digits) {
    int before = scaled != 0 ? (int)floor(log10(fabs(scaled)) + 1e-12) + 1 : 1;
    int decimals = digits - before;
    return decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
}

char *hec_format_si(char text[HEC_FORMAT_SIZE], double value, int digits, const char *unit) {
    const char *prefix;
    if (!isfinite(value)) {
        snprintf(text, HEC_FORMAT_SIZE, "unknown");
        return text;
    }
    bool rate = !unit[0] || unit[0] == '/'; /* 0.199 of them a second: "199 m/s" would be metres */
    int power = thousands(value, rate ? 0 : -3, 5, &prefix);
    double scaled = value / pow(1000, power);
    snprintf(text, HEC_FORMAT_SIZE, "%.*f %s%s", decimals_for(scaled, digits), scaled, prefix, unit);
    return text;
}

char *hec_format_bounded(char text[HEC_FORMAT_SIZE], double value, double bound, const char *unit, bool utf8) {
    const char *prefix;
    if (!isfinite(value) || !isfinite(bound) || bound <= 0)
        return hec_format_si(text, value, 4, unit);
    int power = thousands(fmax(fabs(value), bound), -3, 5, &prefix);
    double scaled = value / pow(1000, power), width = bound / pow(1000, power);
    int order = (int)floor(log10(width));
    double lead = width / pow(10, order);
    int decimals = (lead < 2 ? 1 : 0) - order;
    decimals = decimals < 0 ? 0 : decimals > 6 ? 6 : decimals;
    /* the bound is rounded up: it is a bound */
    double unit_in_last = pow(10, -decimals);
    width = ceil(width / unit_in_last - 1e-9) * unit_in_last;
    snprintf(text, HEC_FORMAT_SIZE, "%.*f %s%s %s %.*f %s%s", decimals, scaled, prefix, unit, utf8 ? "\u00b1" : "+-",
             decimals, width, prefix, unit);
    return text;
}

char *hec_format_seconds(char text[HEC_FORMAT_SIZE], double seconds) {
    long long whole = isfinite(seconds) ? llround(seconds) : 0;
    if (!isfinite(seconds))
        snprintf(text, HEC_FORMAT_SIZE, "unknown");
    else if (seconds < 1)
        hec_format_si(text, seconds, 3, "s");
    else if (seconds < 120)
        snprintf(text, HEC_FORMAT_SIZE, "%.*f s", seconds < 10 ? 2 : 1, seconds);
    else if (whole < 7200)
        snprintf(text, HEC_FORMAT_SIZE, "%lld min %lld s", whole / 60, whole % 60);
    else
        snprintf(text, HEC_FORMAT_SIZE, "%lld h %lld min", whole / 3600, whole % 3600 / 60);
    return text;
}

char *hec_format_bytes(char text[HEC_FORMAT_SIZE], double bytes, const char *suffix) {
    const char *prefix;
    if (!isfinite(bytes)) {
        snprintf(text, HEC_FORMAT_SIZE, "unknown");
        return text;
    }
    int power = thousands(bytes, 0, 5, &prefix);
    double scaled = bytes / pow(1000, power);
    snprintf(text, HEC_FORMAT_SIZE, "%.*f %sB%s", power ? decimals_for(scaled, 3) : 0, scaled, prefix, suffix);
    return text;
}

char *hec_format_share(char text[HEC_FORMAT_SIZE], double share) {
    double percent = 100 * share;
    if (!isfinite(share))
        snprintf(text, HEC_FORMAT_SIZE, "-");
    else
        snprintf(text, HEC_FORMAT_SIZE, "%.*f %%",
                 fabs(percent) < 0.995 && percent != 0 ? 2
                 : fabs(percent) < 9.95                ? 1
                                                       : 0,
                 percent);
    return text;
}

char *hec_format_count(char text[HEC_FORMAT_SIZE], double count) {
    double size = fabs(count);
    if (!isfinite(count))
        snprintf(text, HEC_FORMAT_SIZE, "unknown");
    else
        snprintf(text, HEC_FORMAT_SIZE, size < 1000 ? "%.4g" : size < 1e15 ? "%.0f" : "%.6g", count);
    return text;
}

static _Thread_local bool by_no_vendor;

void hec_format_count_devices(bool by_vendor) {
    by_no_vendor = !by_vendor;
}

int hec_format_device_block(void) {
    return by_no_vendor ? HEC_DEVICE_MAX : HEC_VENDOR_DEVICES_MAX;
}

char *hec_format_gpu(char text[HEC_FORMAT_SIZE], int index) {
    const struct hec_vendor_info *vendor = hec_vendor_of_device(index);
    bool usual = vendor == hec_vendor_info(HEC_VENDOR_USUAL);
    if (!vendor || by_no_vendor) /* a damaged file, or many devices */
        snprintf(text, HEC_FORMAT_SIZE, "GPU %d", index);
    else
        snprintf(text, HEC_FORMAT_SIZE, "%s%sGPU %d", usual ? "" : vendor->title, usual ? "" : " ",
                 index % HEC_VENDOR_DEVICES_MAX);
    return text;
}

char *hec_format_dollars(char text[HEC_FORMAT_SIZE], double dollars) {
    if (!isfinite(dollars))
        snprintf(text, HEC_FORMAT_SIZE, "unknown");
    else if (dollars >= 0.1 || dollars == 0)
        snprintf(text, HEC_FORMAT_SIZE, "$%.2f", dollars);
    else
        snprintf(text, HEC_FORMAT_SIZE, "$%.*f", (int)fmin(12, 1 - floor(log10(dollars))), dollars);
    return text;
}
