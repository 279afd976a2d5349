#include "report/compare_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];

static const struct {
    const char *name, *unit; /* stable */
    const char *label, *short_unit;
} quantities[HEC_QUANTITY_COUNT] = {
    [HEC_QUANTITY_SECONDS] = {"seconds", "s", "run time", "s"},
    [HEC_QUANTITY_JOULES] = {"joules", "J", "run energy", "J"},
    [HEC_QUANTITY_JOULES_PER_UNIT] = {"joules_per_unit", "J/unit", "energy", "J"},
    [HEC_QUANTITY_UNITS_PER_SECOND] = {"units_per_second", "units/s", "speed", "/s"},
    [HEC_QUANTITY_SECONDS_PER_STEP] = {"seconds_per_step", "s/step", "a step", "s"},
    [HEC_QUANTITY_WATTS] = {"watts", "W", "power", "W"},
};

const char *hec_quantity_name(enum hec_quantity quantity) {
    return (unsigned)quantity < HEC_QUANTITY_COUNT ? quantities[quantity].name : "?";
}

const char *hec_quantity_unit(enum hec_quantity quantity) {
    return (unsigned)quantity < HEC_QUANTITY_COUNT ? quantities[quantity].unit : "?";
}

/* As many decimals as the width of the interval bears: two digits of it. */
int hec_change_decimals(double low, double high, double value) {
    double width = isfinite(high - low) ? fabs(high - low) : fabs(value) / 10;
    int decimals = width > 0 ? 1 - (int)floor(log10(width)) - 1 : 1;
    return decimals < 0 ? 0 : decimals > 3 ? 3 : decimals;
}

/* Never "-0". */
double hec_change_rounded(double value, int decimals) {
    double scale = pow(10, decimals);
    return round(value * scale) / scale + 0.0;
}

/* ---- quantities ---- */

bool hec_quantity_words(const struct hec_versus *v, int at, struct hec_quantity_words *out) {
    static const enum hec_quantity order[HEC_QUANTITY_COUNT] = {
        HEC_QUANTITY_JOULES_PER_UNIT, HEC_QUANTITY_UNITS_PER_SECOND, HEC_QUANTITY_SECONDS_PER_STEP,
        HEC_QUANTITY_WATTS,           HEC_QUANTITY_JOULES,           HEC_QUANTITY_SECONDS};
    enum hec_quantity quantity = order[at];
    static const char *const shown[] = {"not shown", "better", "worse", "changed", ""};
    const struct hec_comparison *c = &v->quantity[quantity];
    const char *unit = hec_side_unit(v->side);
    bool per_unit = quantity == HEC_QUANTITY_JOULES_PER_UNIT || quantity == HEC_QUANTITY_UNITS_PER_SECOND;
    *out = (struct hec_quantity_words){.shown = ""};
    if (c->shown == HEC_SHOWN_UNKNOWN || (per_unit && !unit[0]) ||
        (quantity == HEC_QUANTITY_SECONDS_PER_STEP && strcmp(unit, "step") == 0))
        return false;
    snprintf(out->label, sizeof out->label, "%s", quantities[quantity].label);
    hec_format_si(out->value[0], c->a, 4, quantities[quantity].short_unit);
    hec_format_si(out->value[1], c->b, 4, quantities[quantity].short_unit);
    double low = 100 * (c->ratio_low - 1), high = 100 * (c->ratio_high - 1), change = 100 * (c->ratio - 1);
    bool known = hec_versus_has_interval(v, quantity);
    int decimals = known ? hec_change_decimals(low, high, change) : 1;
    snprintf(out->change, sizeof out->change, "%+.*f %%", decimals, hec_change_rounded(change, decimals));
    if (known)
        snprintf(out->range, sizeof out->range, "%+.*f to %+.*f", decimals, hec_change_rounded(low, decimals), decimals,
                 hec_change_rounded(high, decimals));
    out->shown = shown[hec_versus_shown(v, quantity)];
    return true;
}

char *hec_quantities_of(char out[192], const struct hec_versus *v) {
    const char *unit = hec_side_unit(v->side);
    const struct hec_paced *paced = &v->side[0].runs[0].paced;
    if (unit[0])
        snprintf(out, 192, "energy per %.64s and %.64ss a second %s", unit, unit,
                 paced->work == HEC_PACED_BY_STEP ? "in the steady part, after start-up" : "of whole runs");
    else
        snprintf(out, 192, "power while the devices were in use, and whole runs");
    return out;
}

/* ---- what differs, what moved ---- */

char *hec_unlike_words(char *out, size_t size, const struct hec_unlike *unlike) {
    snprintf(out, size, "%s: %s in A, %s in B", hec_alike_words(unlike->what), unlike->value[0], unlike->value[1]);
    return out;
}

char *hec_moved_per(char out[96], const struct hec_versus *v) {
    snprintf(out, 96, "per %.64s", v->moved.per_unit ? hec_side_unit(v->side) : "run");
    return out;
}

const char *hec_moved_fate(const struct hec_moved_cause *cause) {
    return !cause->runs[1] ? "went" : !cause->runs[0] ? "came" : "stayed";
}

static void saving_words(char *out, size_t size, double saving) {
    text share;
    snprintf(out, size, "%s", isfinite(saving) ? hec_format_share(share, saving) : "an unknown part");
}

char *hec_moved_words(char out[192], const struct hec_versus *v, const struct hec_moved_cause *cause) {
    char saving[2][HEC_FORMAT_SIZE], runs[64] = "";
    int at = cause->runs[1] ? 1 : 0;
    for (int i = 0; i < 2; i++)
        saving_words(saving[i], sizeof saving[i], cause->saving[i]);
    if (cause->runs[at] < v->side[at].count)
        snprintf(runs, sizeof runs, ", in %d of %d runs of %c", cause->runs[at], v->side[at].count, "AB"[at]);
    if (cause->runs[0] && cause->runs[1])
        snprintf(out, 192, "%s: fixing it would save %.40s of A, %.40s of B%s", hec_cause_title(cause->cause),
                 saving[0], saving[1], runs);
    else
        snprintf(out, 192, "%s: fixing it would save %.40s of %c%s", hec_cause_title(cause->cause), saving[at],
                 "AB"[at], runs);
    return out;
}
