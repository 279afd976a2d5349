/* The figures of a calibration for people. */
#include "cli/calibrate.h"
#include "report/format.h"

#include <math.h>
#include <stdio.h>

static void print_figure(const struct hec_peaks *peaks, const struct hec_part *part, enum hec_peak_kind kind) {
    const struct hec_peak *peak = &peaks->peak[kind];
    char value[HEC_FORMAT_SIZE], spread[32] = "", stated[64] = "", sustained[256] = "";
    double vendor = hec_peak_stated(part, kind);
    if (kind == HEC_PEAK_IDLE_POWER)
        snprintf(value, sizeof value, "%.1f W", peak->value);
    else if (hec_peak_is_rate(kind))
        hec_format_si(value, peak->value, 4, hec_peak_unit(kind));
    else
        hec_format_si(value, peak->value * 1e-9, 4, "s");
    if (peak->runs > 1)
        snprintf(spread, sizeof spread, "-%.1f/+%.1f %%", 100 * (1 - peak->low / peak->value),
                 100 * (peak->high / peak->value - 1));
    if (vendor > 0)
        snprintf(stated, sizeof stated, "%.0f %%", 100 * peak->value / vendor);
    printf("  %-12s %16s  %-14s %6s  %s%s\n", hec_peak_name(kind), value, spread, stated, peak->method,
           peak->throttled ? ", clocks lowered" : "");
    if (isfinite(peak->sustained)) {
        hec_format_si(value, peak->sustained, 4, hec_peak_unit(kind));
        snprintf(sustained, sizeof sustained, "%16s  without a pause, at %.0f MHz%s (bursts: %.0f MHz)", value,
                 peak->sustained_mhz, peak->sustained_throttled ? ", clocks lowered" : "", peak->sm_mhz);
        printf("  %-12s %s\n", "", sustained);
    }
}

void hec_calibrate_text(const struct hec_peaks *peaks, int index) {
    const struct hec_part *part = hec_part_find(peaks->name);
    char gpu[HEC_FORMAT_SIZE];
    printf("%s  %s, %s\n", hec_format_gpu(gpu, index), peaks->name, peaks->uuid);
    printf("  measured %s, driver %s, %d SMs, up to %.0f MHz, power limit %.0f W%s%s\n", peaks->measured, peaks->driver,
           peaks->sms, peaks->sm_max_mhz, peaks->power_limit_w,
           peaks->shared ? "; other processes used the device: too low" : "",
           peaks->simulated ? "; SIMULATED: no measurement" : "");
    printf("  %-12s %16s  %-14s %6s  %s\n", "", "median", "spread", "vendor", "method");
    for (int i = 0; i < HEC_PEAK_COUNT; i++)
        if (peaks->peak[i].runs > 0)
            print_figure(peaks, part, (enum hec_peak_kind)i);
        else
            printf("  %-12s %16s\n", hec_peak_name((enum hec_peak_kind)i), "unknown");
    if (part)
        printf("  vendor: share of what is stated for %s (%s)\n", part->name, part->source);
}
