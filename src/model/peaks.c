#include "model/peaks.h"

#include <math.h>
#include <string.h>

enum { RATE = 1, COST = 0 };

static const struct {
    const char *name, *unit, *meaning;
    int rate;
    enum hec_precision precision;
} table[] = {
#define HEC_PEAK(id, name, unit, rate, precision, meaning) {name, unit, meaning, rate, HEC_PRECISION_##precision},
#include "model/peaks.def"
#undef HEC_PEAK
};

void hec_peaks_init(struct hec_peaks *peaks) {
    memset(peaks, 0, sizeof *peaks);
    peaks->sm_max_mhz = peaks->power_limit_w = NAN;
    for (int i = 0; i < HEC_PEAK_COUNT; i++) {
        struct hec_peak *peak = &peaks->peak[i];
        peak->value = peak->low = peak->high = peak->sustained = peak->sm_mhz = peak->sustained_mhz = NAN;
    }
}

const char *hec_peak_name(enum hec_peak_kind kind) {
    return table[kind].name;
}

const char *hec_peak_unit(enum hec_peak_kind kind) {
    return table[kind].unit;
}

const char *hec_peak_meaning(enum hec_peak_kind kind) {
    return table[kind].meaning;
}

bool hec_peak_is_rate(enum hec_peak_kind kind) {
    return table[kind].rate == RATE;
}

double hec_peak_stated(const struct hec_part *part, enum hec_peak_kind kind) {
    if (!part)
        return NAN;
    if (kind == HEC_PEAK_DRAM_READ || kind == HEC_PEAK_DRAM_COPY)
        return part->memory_gb_per_s * 1e9;
    if (table[kind].precision == HEC_PRECISION_COUNT)
        return NAN;
    return part->peak_tflops[table[kind].precision] * 1e12;
}

double hec_peak_roof(const struct hec_peaks *peaks, const struct hec_part *part, enum hec_peak_kind kind,
                     enum hec_peak_source *source) {
    double measured = peaks && !peaks->shared && !peaks->simulated ? peaks->peak[kind].value : NAN;
    double stated = hec_peak_stated(part, kind);
    enum hec_peak_source from = HEC_PEAK_UNKNOWN;
    double roof = NAN;
    if (measured > 0 && !(stated > measured)) {
        roof = measured;
        from = HEC_PEAK_CALIBRATED;
    } else if (!isnan(stated)) {
        roof = stated;
        from = HEC_PEAK_PART_TABLE;
    }
    if (source)
        *source = from;
    return roof;
}
