#include "report/compare_words.h"

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

/* ---- what is known ---- */

static bool of_whole_runs(enum hec_quantity quantity) {
    return quantity == HEC_QUANTITY_SECONDS || quantity == HEC_QUANTITY_JOULES;
}

static bool by_step(const struct hec_versus *v) {
    return hec_side_unit(v->side)[0] && v->side[0].runs[0].paced.work == HEC_PACED_BY_STEP;
}

/* Of whole runs: figures of other amounts of work are not comparable. */
static bool equal_work(const struct hec_versus *v) {
    double a = v->side[0].runs[0].units[0].count;
    if (!hec_side_unit(v->side)[0])
        return true; /* as far as is known */
    for (int at = 0; at < 2; at++)
        for (int i = 0; i < v->side[at].count; i++)
            if (fabs(v->side[at].runs[i].units[0].count - a) > 0.001 * a)
                return false;
    return true;
}

bool hec_versus_has_interval(const struct hec_versus *v, enum hec_quantity quantity) {
    const struct hec_comparison *c = &v->quantity[quantity];
    return isfinite(c->ratio_low) && isfinite(c->ratio_high) &&
           (of_whole_runs(quantity) ? c->between_runs && equal_work(v) : c->between_runs || by_step(v));
}

/* What a unit takes, where all runs count the same one; else what a run takes. */
static enum hec_quantity energy_of(const struct hec_versus *v) {
    return hec_side_unit(v->side)[0] && v->quantity[HEC_QUANTITY_JOULES_PER_UNIT].shown != HEC_SHOWN_UNKNOWN
               ? HEC_QUANTITY_JOULES_PER_UNIT
               : HEC_QUANTITY_JOULES;
}

static enum hec_quantity time_of(const struct hec_versus *v) {
    return hec_side_unit(v->side)[0] && v->quantity[HEC_QUANTITY_UNITS_PER_SECOND].shown != HEC_SHOWN_UNKNOWN
               ? HEC_QUANTITY_UNITS_PER_SECOND
               : HEC_QUANTITY_SECONDS;
}

enum hec_shown hec_versus_shown(const struct hec_versus *v, enum hec_quantity quantity) {
    enum hec_shown shown = v->quantity[quantity].shown;
    return shown == HEC_SHOWN_UNKNOWN || hec_versus_has_interval(v, quantity) ? shown : HEC_SHOWN_NOT;
}

enum hec_verdict hec_versus_verdict(const struct hec_versus *v) {
    enum hec_shown energy = hec_versus_shown(v, energy_of(v)), time = hec_versus_shown(v, time_of(v));
    if (energy == HEC_SHOWN_UNKNOWN)
        return time == HEC_SHOWN_BETTER  ? HEC_VERDICT_FASTER
               : time == HEC_SHOWN_WORSE ? HEC_VERDICT_SLOWER
                                         : HEC_VERDICT_NOT_SHOWN;
    return energy == HEC_SHOWN_BETTER  ? HEC_VERDICT_SAVED
           : energy == HEC_SHOWN_WORSE ? HEC_VERDICT_LOST
                                       : HEC_VERDICT_NOT_SHOWN;
}

/* ---- numbers ---- */

typedef char text[HEC_FORMAT_SIZE];

/* As many decimals as the width of the interval bears: two digits of it. */
static int decimals_of(double low, double high, double value) {
    double width = isfinite(high - low) ? fabs(high - low) : fabs(value) / 10;
    int decimals = width > 0 ? 1 - (int)floor(log10(width)) - 1 : 1;
    return decimals < 0 ? 0 : decimals > 3 ? 3 : decimals;
}

/* Never "-0". */
static double rounded(double value, int decimals) {
    double scale = pow(10, decimals);
    return round(value * scale) / scale + 0.0;
}

/* " (21 to 25)", "" where there is no interval. */
static char *range_words(text out, double low, double high, int decimals) {
    out[0] = '\0';
    if (isfinite(low) && isfinite(high))
        snprintf(out, sizeof(text), " (%.*f to %.*f)", decimals, rounded(fmin(low, high), decimals), decimals,
                 rounded(fmax(low, high), decimals));
    return out;
}

#define TIMES_FROM 2.0 /* beyond: times, not percents */

/* "23 % fewer joules (21 to 25)", "3.1 times as many joules (3 to 3.2)", of a ratio b / a. less and more: words for it. */
static void change_words(char *out, size_t size, const struct hec_comparison *c, const char *less, const char *more,
                         const char *times) {
    text range = "";
    if (c->ratio >= TIMES_FROM) {
        int decimals = decimals_of(c->ratio_low, c->ratio_high, c->ratio);
        snprintf(out, size, "%.*f times %s%s", decimals ? decimals : 1, c->ratio, times,
                 range_words(range, c->ratio_low, c->ratio_high, decimals ? decimals : 1));
        return;
    }
    double sign = c->ratio < 1 ? -100 : 100, value = sign * (c->ratio - 1);
    int decimals = decimals_of(100 * c->ratio_low, 100 * c->ratio_high, value);
    snprintf(out, size, "%.*f %% %s%s", decimals, rounded(value, decimals), c->ratio < 1 ? less : more,
             range_words(range, sign * (c->ratio_low - 1), sign * (c->ratio_high - 1), decimals));
}

/* "between 4.1 % fewer and 2.2 % more" */
static void between_words(char *out, size_t size, const struct hec_comparison *c, const char *less, const char *more) {
    double low = 100 * (1 - c->ratio_low), high = 100 * (c->ratio_high - 1);
    int decimals = decimals_of(-low, high, 0);
    if (isfinite(low) && isfinite(high))
        snprintf(out, size, "between %.*f %% %s and %.*f %% %s", decimals, rounded(fabs(low), decimals),
                 low < 0 ? more : less, decimals, rounded(fabs(high), decimals), high < 0 ? less : more);
    else
        snprintf(out, size, "by how much is not known");
}

/* ---- the sentence ---- */

/* Without the interval where it is none. */
static struct hec_comparison comparison_of(const struct hec_versus *v, enum hec_quantity quantity) {
    struct hec_comparison c = v->quantity[quantity];
    c.shown = hec_versus_shown(v, quantity);
    if (!hec_versus_has_interval(v, quantity))
        c.ratio_low = c.ratio_high = NAN;
    return c;
}

/* Speed as units a second, whichever quantity it is read from: of seconds the inverse. */
static struct hec_comparison speed_of(const struct hec_versus *v) {
    enum hec_quantity quantity = time_of(v);
    struct hec_comparison c = comparison_of(v, quantity);
    if (quantity == HEC_QUANTITY_SECONDS) {
        double low = c.ratio_low;
        c.ratio = 1 / c.ratio;
        c.ratio_low = 1 / c.ratio_high;
        c.ratio_high = 1 / low;
    }
    return c;
}

/* "23 % fewer joules per sample than A (21 to 25)" has its interval last. */
static void energy_words(char *out, size_t size, const struct hec_versus *v) {
    struct hec_comparison c = comparison_of(v, energy_of(v));
    char less[128], more[128], times[128], per[80] = "";
    if (energy_of(v) == HEC_QUANTITY_JOULES_PER_UNIT)
        snprintf(per, sizeof per, " per %.64s", hec_side_unit(v->side));
    snprintf(less, sizeof less, "fewer joules%s than A", per);
    snprintf(more, sizeof more, "more joules%s than A", per);
    snprintf(times, sizeof times, "the joules%s of A", per);
    change_words(out, size, &c, less, more, times);
}

static const char *work_words(const struct hec_versus *v) {
    return hec_side_unit(v->side)[0] ? "" : ", if both did the same work";
}

static void time_words(char *out, size_t size, const struct hec_versus *v, bool alone) {
    struct hec_comparison c = speed_of(v);
    char words[256];
    if (c.shown == HEC_SHOWN_UNKNOWN) {
        snprintf(out, size, "%s", alone ? "neither joules nor times are known of both sides" : "");
        return;
    }
    if (c.shown == HEC_SHOWN_NOT && hec_versus_has_interval(v, time_of(v))) {
        between_words(words, sizeof words, &c, "slower", "faster");
        snprintf(out, size, alone ? "B is %s than A" : "; its speed is not shown to differ (%s)", words);
        return;
    }
    change_words(words, sizeof words, &c, alone ? "slower than A" : "slower", alone ? "faster than A" : "faster",
                 alone ? "as fast as A" : "as fast");
    snprintf(out, size, "%s%s", alone ? "B is " : ", and is ", words);
}

char *hec_versus_sentence(char out[HEC_VERSUS_SENTENCE], const struct hec_versus *v) {
    enum hec_verdict verdict = hec_versus_verdict(v);
    char energy[256], range[256], time[320];
    static const char *const begin[] = {"not shown", "saved", "lost", "faster", "slower"};
    bool known = hec_versus_shown(v, energy_of(v)) != HEC_SHOWN_UNKNOWN;
    time_words(time, sizeof time, v, !known);
    energy_words(energy, sizeof energy, v);
    if (!known)
        snprintf(out, HEC_VERSUS_SENTENCE, "%s: %s%s; joules are not known", begin[verdict], time, work_words(v));
    else if (verdict != HEC_VERDICT_NOT_SHOWN)
        snprintf(out, HEC_VERSUS_SENTENCE, "%s: B takes %s%s%s", begin[verdict], energy, time, work_words(v));
    else if (!hec_versus_has_interval(v, energy_of(v)))
        snprintf(out, HEC_VERSUS_SENTENCE, "not shown: %s; B took %s%s%s",
                 by_step(v) ? "the runs are too short to tell by how much their steps vary"
                            : "one run a side does not tell by how much runs vary",
                 energy, time, work_words(v));
    else {
        between_words(range, sizeof range, &v->quantity[energy_of(v)], "fewer", "more");
        snprintf(out, HEC_VERSUS_SENTENCE, "not shown: B takes %s joules%s%.64s than A%s%s", range,
                 energy_of(v) == HEC_QUANTITY_JOULES_PER_UNIT ? " per " : "",
                 energy_of(v) == HEC_QUANTITY_JOULES_PER_UNIT ? hec_side_unit(v->side) : "", time, work_words(v));
    }
    return out;
}

/* ---- notes ---- */

static const char *why_no_joules(const struct hec_versus *v, int at) {
    for (int i = 0; i < v->side[at].count; i++) {
        const struct hec_summary *s = &v->side[at].runs[i];
        for (int d = 0; d < s->device_count; d++)
            if (s->devices[d].used && !s->devices[d].energy.valid && s->devices[d].energy.why[0])
                return s->devices[d].energy.why;
        if (s->energy_unavailable[0])
            return s->energy_unavailable;
    }
    return NULL;
}

int hec_versus_notes(const struct hec_versus *v, char out[HEC_VERSUS_NOTES_MAX][HEC_VERSUS_NOTE]) {
    const struct hec_paced *paced = &v->side[0].runs[0].paced;
    int count = 0;
    if (v->unlikes.grave)
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "these runs are unlike: what differs (below) may be all that this shows");
    for (int at = 0; at < 2 && hec_versus_shown(v, energy_of(v)) == HEC_SHOWN_UNKNOWN; at++) {
        const char *why = why_no_joules(v, at);
        if (why)
            snprintf(out[count++], HEC_VERSUS_NOTE, "no joules of %c: %.250s", "AB"[at], why);
    }
    if (v->side[0].count == 1 && v->side[1].count == 1 && hec_versus_has_interval(v, time_of(v)))
        snprintf(
            out[count++], HEC_VERSUS_NOTE,
            "one run a side: the interval holds what steps of these runs vary by, and runs may differ by more than "
            "their steps do; several runs of each would tell (hec compare A... -- B...)");
    else if (v->side[0].count == 1 || v->side[1].count == 1)
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "one run of %s: several of each side would tell by how much runs vary (hec compare A... -- B...)",
                 v->side[0].count > 1   ? "B"
                 : v->side[1].count > 1 ? "A"
                                        : "each");
    if (hec_side_unit(v->side)[0] && paced->work == HEC_PACED_EVENLY)
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "no steps: figures per %.64s are of whole runs, their start and end included", paced->unit);
    else if (!hec_side_unit(v->side)[0])
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "no unit of work is known of all runs: --units N says how many were done");
    if (!equal_work(v))
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "the runs did not do equal work: figures of whole runs are not comparable");
    return count;
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
    int decimals = known ? decimals_of(low, high, change) : 1;
    snprintf(out->change, sizeof out->change, "%+.*f %%", decimals, rounded(change, decimals));
    if (known)
        snprintf(out->range, sizeof out->range, "%+.*f to %+.*f", decimals, rounded(low, decimals), decimals,
                 rounded(high, decimals));
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
