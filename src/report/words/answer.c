#include "report/words/answer.h"

#include "base/names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

HEC_NAME_OF(hec_verdict_name, enum hec_verdict, "not_shown", "saved", "lost", "faster", "slower")

HEC_NAME_OF(hec_shown_name, enum hec_shown, "not_shown", "better", "worse", "changed", "unknown")

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

/* The answer in a sentence. */

typedef char text[HEC_FORMAT_SIZE];

/* " (21 to 25)", "" where there is no interval. */
static char *range_words(text out, double low, double high, int decimals) {
    out[0] = '\0';
    if (isfinite(low) && isfinite(high))
        snprintf(out, sizeof(text), " (%.*f to %.*f)", decimals, hec_change_rounded(fmin(low, high), decimals),
                 decimals, hec_change_rounded(fmax(low, high), decimals));
    return out;
}

#define TIMES_FROM 2.0 /* beyond: times, not percents */

/* "23 % fewer joules (21 to 25)", "3.1 times as many joules (3 to 3.2)", of a ratio b / a. less and more: words for it. */
static void change_words(char *out, size_t size, const struct hec_comparison *c, const char *less, const char *more,
                         const char *times) {
    text range = "";
    if (c->ratio >= TIMES_FROM) {
        int decimals = hec_change_decimals(c->ratio_low, c->ratio_high, c->ratio);
        snprintf(out, size, "%.*f times %s%s", decimals ? decimals : 1, c->ratio, times,
                 range_words(range, c->ratio_low, c->ratio_high, decimals ? decimals : 1));
        return;
    }
    double sign = c->ratio < 1 ? -100 : 100, value = sign * (c->ratio - 1);
    int decimals = hec_change_decimals(100 * c->ratio_low, 100 * c->ratio_high, value);
    snprintf(out, size, "%.*f %% %s%s", decimals, hec_change_rounded(value, decimals), c->ratio < 1 ? less : more,
             range_words(range, sign * (c->ratio_low - 1), sign * (c->ratio_high - 1), decimals));
}

/* "between 4.1 % fewer and 2.2 % more" */
static void between_words(char *out, size_t size, const struct hec_comparison *c, const char *less, const char *more) {
    double low = 100 * (1 - c->ratio_low), high = 100 * (c->ratio_high - 1);
    int decimals = hec_change_decimals(-low, high, 0);
    if (isfinite(low) && isfinite(high))
        snprintf(out, size, "between %.*f %% %s and %.*f %% %s", decimals, hec_change_rounded(fabs(low), decimals),
                 low < 0 ? more : less, decimals, hec_change_rounded(fabs(high), decimals), high < 0 ? less : more);
    else
        snprintf(out, size, "by how much is not known");
}

/* ---- the sentence ---- */

/* Speed as units a second, whichever quantity it is read from: of seconds the inverse. */
static struct hec_comparison speed_of(const struct hec_answer *a) {
    enum hec_quantity quantity = hec_answer_time(a);
    struct hec_comparison c = a->quantity[quantity];
    if (quantity == HEC_QUANTITY_SECONDS) {
        double low = c.ratio_low;
        c.ratio = 1 / c.ratio;
        c.ratio_low = 1 / c.ratio_high;
        c.ratio_high = 1 / low;
    }
    return c;
}

/* "23 % fewer joules per sample than A (21 to 25)" has its interval last. */
static void energy_words(char *out, size_t size, const struct hec_answer *a) {
    struct hec_comparison c = a->quantity[hec_answer_energy(a)];
    char less[128], more[128], times[128], per[80] = "";
    if (hec_answer_energy(a) == HEC_QUANTITY_JOULES_PER_UNIT)
        snprintf(per, sizeof per, " per %.64s", a->unit);
    snprintf(less, sizeof less, "fewer joules%s than A", per);
    snprintf(more, sizeof more, "more joules%s than A", per);
    snprintf(times, sizeof times, "the joules%s of A", per);
    change_words(out, size, &c, less, more, times);
}

static const char *work_words(const struct hec_answer *a) {
    return a->unit[0] ? "" : ", if both did the same work";
}

static bool of_two_runs(const struct hec_answer *a) {
    return a->two_runs && hec_answer_verdict(a) != HEC_VERDICT_NOT_SHOWN;
}

static void time_words(char *out, size_t size, const struct hec_answer *a, bool alone) {
    struct hec_comparison c = speed_of(a);
    char words[256];
    if (c.shown == HEC_SHOWN_UNKNOWN) {
        snprintf(out, size, "%s", alone ? "neither joules nor times are known of both sides" : "");
        return;
    }
    if (c.shown == HEC_SHOWN_NOT && hec_answer_has_interval(a, hec_answer_time(a))) {
        between_words(words, sizeof words, &c, "slower", "faster");
        snprintf(out, size, alone ? "B is %s than A" : "; its speed is not shown to differ (%s)", words);
        return;
    }
    change_words(words, sizeof words, &c, alone ? "slower than A" : "slower", alone ? "faster than A" : "faster",
                 alone ? "as fast as A" : "as fast");
    snprintf(out, size, "%s %s %s", alone ? "B" : ", and", of_two_runs(a) ? "was" : "is", words);
}

char *hec_answer_sentence(char out[HEC_ANSWER_SENTENCE], const struct hec_answer *a) {
    enum hec_verdict verdict = hec_answer_verdict(a);
    char energy[256], range[256], time[320];
    static const char *const begin[] = {"not shown", "saved", "lost", "faster", "slower"};
    bool known = a->quantity[hec_answer_energy(a)].shown != HEC_SHOWN_UNKNOWN;
    bool two = of_two_runs(a);
    const char *where = two ? " in these two runs" : "";
    time_words(time, sizeof time, a, !known);
    energy_words(energy, sizeof energy, a);
    if (!known)
        snprintf(out, HEC_ANSWER_SENTENCE, "%s%s: %s%s; joules are not known", begin[verdict], where, time,
                 work_words(a));
    else if (verdict != HEC_VERDICT_NOT_SHOWN)
        snprintf(out, HEC_ANSWER_SENTENCE, "%s%s: B %s %s%s%s", begin[verdict], where, two ? "took" : "takes", energy,
                 time, work_words(a));
    else if (!hec_answer_has_interval(a, hec_answer_energy(a)))
        snprintf(out, HEC_ANSWER_SENTENCE, "not shown: %s; B took %s%s%s", a->no_interval, energy, time, work_words(a));
    else {
        between_words(range, sizeof range, &a->quantity[hec_answer_energy(a)], "fewer", "more");
        snprintf(out, HEC_ANSWER_SENTENCE, "not shown: B takes %s joules%s%.64s than A%s%s", range,
                 hec_answer_energy(a) == HEC_QUANTITY_JOULES_PER_UNIT ? " per " : "",
                 hec_answer_energy(a) == HEC_QUANTITY_JOULES_PER_UNIT ? a->unit : "", time, work_words(a));
    }
    return out;
}

void hec_answer_page(struct hec_page *page, const struct hec_answer *answer) {
    static const enum hec_tone tones[] = {[HEC_VERDICT_NOT_SHOWN] = HEC_TONE_BOLD,
                                          [HEC_VERDICT_SAVED] = HEC_TONE_GOOD,
                                          [HEC_VERDICT_LOST] = HEC_TONE_BAD,
                                          [HEC_VERDICT_FASTER] = HEC_TONE_GOOD,
                                          [HEC_VERDICT_SLOWER] = HEC_TONE_BAD};
    char sentence[HEC_ANSWER_SENTENCE];
    hec_page_row(page, 2, "found", tones[hec_answer_verdict(answer)], "%s", hec_answer_sentence(sentence, answer));
}

void hec_answer_table_page(struct hec_page *page, const struct hec_answer *answer) {
    hec_page_line(page, 0, "", HEC_TONE_DIM, "%9s %9s  %7s  %s", "A", "B", "B to A", "95 % interval");
    for (int i = 0; i < HEC_QUANTITY_COUNT; i++) {
        struct hec_quantity_words words;
        if (hec_quantity_words(answer, i, &words))
            hec_page_line(page, 2, words.label, HEC_TONE_PLAIN, "%9s %9s  %7s  %-16s %s", words.value[0],
                          words.value[1], words.change, words.range, words.shown);
    }
}

void hec_answer_table_markdown(struct hec_buf *out, const struct hec_answer *answer) {
    hec_buf_puts(out, "| | A | B | B to A | 95 % interval | |\n| --- | ---: | ---: | ---: | ---: | --- |\n");
    for (int i = 0; i < HEC_QUANTITY_COUNT; i++) {
        struct hec_quantity_words words;
        if (hec_quantity_words(answer, i, &words))
            hec_buf_printf(out, "| %s | %s | %s | %s | %s | %s |\n", words.label, words.value[0], words.value[1],
                           words.change, words.range, words.shown);
    }
}
