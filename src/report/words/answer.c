#include "report/words/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *hec_verdict_name(enum hec_verdict verdict) {
    static const char *const names[] = {"not_shown", "saved", "lost", "faster", "slower"};
    return (unsigned)verdict < HEC_VERDICT_COUNT ? names[verdict] : "?";
}

const char *hec_shown_name(enum hec_shown shown) {
    static const char *const names[] = {"not_shown", "better", "worse", "changed", "unknown"};
    return (unsigned)shown <= HEC_SHOWN_UNKNOWN ? names[shown] : "?";
}

/* ---- what is shown ---- */

void hec_answer_put(struct hec_answer *a, enum hec_quantity quantity, const struct hec_comparison *comparison,
                    bool has_interval) {
    struct hec_comparison *c = &a->quantity[quantity];
    *c = *comparison;
    if (has_interval && isfinite(c->ratio_low) && isfinite(c->ratio_high))
        return;
    c->ratio_low = c->ratio_high = c->difference_low = c->difference_high = NAN;
    if (c->shown != HEC_SHOWN_UNKNOWN)
        c->shown = HEC_SHOWN_NOT;
}

bool hec_answer_has_interval(const struct hec_answer *a, enum hec_quantity quantity) {
    return isfinite(a->quantity[quantity].ratio_low);
}

enum hec_quantity hec_answer_energy(const struct hec_answer *a) {
    return a->unit[0] && a->quantity[HEC_QUANTITY_JOULES_PER_UNIT].shown != HEC_SHOWN_UNKNOWN
               ? HEC_QUANTITY_JOULES_PER_UNIT
               : HEC_QUANTITY_JOULES;
}

enum hec_quantity hec_answer_time(const struct hec_answer *a) {
    return a->unit[0] && a->quantity[HEC_QUANTITY_UNITS_PER_SECOND].shown != HEC_SHOWN_UNKNOWN
               ? HEC_QUANTITY_UNITS_PER_SECOND
               : HEC_QUANTITY_SECONDS;
}

enum hec_verdict hec_answer_verdict(const struct hec_answer *a) {
    enum hec_shown energy = a->quantity[hec_answer_energy(a)].shown, time = a->quantity[hec_answer_time(a)].shown;
    if (energy == HEC_SHOWN_UNKNOWN)
        return time == HEC_SHOWN_BETTER  ? HEC_VERDICT_FASTER
               : time == HEC_SHOWN_WORSE ? HEC_VERDICT_SLOWER
                                         : HEC_VERDICT_NOT_SHOWN;
    return energy == HEC_SHOWN_BETTER  ? HEC_VERDICT_SAVED
           : energy == HEC_SHOWN_WORSE ? HEC_VERDICT_LOST
                                       : HEC_VERDICT_NOT_SHOWN;
}

/* ---- quantities ---- */

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

bool hec_quantity_words(const struct hec_answer *a, int at, struct hec_quantity_words *out) {
    static const enum hec_quantity order[HEC_QUANTITY_COUNT] = {
        HEC_QUANTITY_JOULES_PER_UNIT, HEC_QUANTITY_UNITS_PER_SECOND, HEC_QUANTITY_SECONDS_PER_STEP,
        HEC_QUANTITY_WATTS,           HEC_QUANTITY_JOULES,           HEC_QUANTITY_SECONDS};
    enum hec_quantity quantity = order[at];
    static const char *const shown[] = {"not shown", "better", "worse", "changed", ""};
    const struct hec_comparison *c = &a->quantity[quantity];
    bool per_unit = quantity == HEC_QUANTITY_JOULES_PER_UNIT || quantity == HEC_QUANTITY_UNITS_PER_SECOND;
    *out = (struct hec_quantity_words){.shown = ""};
    if (c->shown == HEC_SHOWN_UNKNOWN || (per_unit && !a->unit[0]) ||
        (quantity == HEC_QUANTITY_SECONDS_PER_STEP && strcmp(a->unit, "step") == 0))
        return false;
    snprintf(out->label, sizeof out->label, "%s", quantities[quantity].label);
    hec_format_si(out->value[0], c->a, 4, quantities[quantity].short_unit);
    hec_format_si(out->value[1], c->b, 4, quantities[quantity].short_unit);
    double low = 100 * (c->ratio_low - 1), high = 100 * (c->ratio_high - 1), change = 100 * (c->ratio - 1);
    bool known = hec_answer_has_interval(a, quantity);
    int decimals = known ? hec_change_decimals(low, high, change) : 1;
    snprintf(out->change, sizeof out->change, "%+.*f %%", decimals, hec_change_rounded(change, decimals));
    if (known)
        snprintf(out->range, sizeof out->range, "%+.*f to %+.*f", decimals, hec_change_rounded(low, decimals), decimals,
                 hec_change_rounded(high, decimals));
    out->shown = shown[c->shown];
    return true;
}
