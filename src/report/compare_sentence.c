/* The answer of a comparison in a sentence, and what limits it. */
#include "report/compare_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    enum hec_quantity quantity = hec_versus_time(v);
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
    struct hec_comparison c = comparison_of(v, hec_versus_energy(v));
    char less[128], more[128], times[128], per[80] = "";
    if (hec_versus_energy(v) == HEC_QUANTITY_JOULES_PER_UNIT)
        snprintf(per, sizeof per, " per %.64s", hec_side_unit(v->side));
    snprintf(less, sizeof less, "fewer joules%s than A", per);
    snprintf(more, sizeof more, "more joules%s than A", per);
    snprintf(times, sizeof times, "the joules%s of A", per);
    change_words(out, size, &c, less, more, times);
}

static const char *work_words(const struct hec_versus *v) {
    return hec_side_unit(v->side)[0] ? "" : ", if both did the same work";
}

/* One run a side shows what these two did, not what the programs do: runs of one program may differ by more. */
static bool of_two_runs(const struct hec_versus *v) {
    return v->side[0].count == 1 && v->side[1].count == 1 && hec_versus_verdict(v) != HEC_VERDICT_NOT_SHOWN;
}

static void time_words(char *out, size_t size, const struct hec_versus *v, bool alone) {
    struct hec_comparison c = speed_of(v);
    char words[256];
    if (c.shown == HEC_SHOWN_UNKNOWN) {
        snprintf(out, size, "%s", alone ? "neither joules nor times are known of both sides" : "");
        return;
    }
    if (c.shown == HEC_SHOWN_NOT && hec_versus_has_interval(v, hec_versus_time(v))) {
        between_words(words, sizeof words, &c, "slower", "faster");
        snprintf(out, size, alone ? "B is %s than A" : "; its speed is not shown to differ (%s)", words);
        return;
    }
    change_words(words, sizeof words, &c, alone ? "slower than A" : "slower", alone ? "faster than A" : "faster",
                 alone ? "as fast as A" : "as fast");
    snprintf(out, size, "%s %s %s", alone ? "B" : ", and", of_two_runs(v) ? "was" : "is", words);
}

char *hec_versus_sentence(char out[HEC_VERSUS_SENTENCE], const struct hec_versus *v) {
    enum hec_verdict verdict = hec_versus_verdict(v);
    char energy[256], range[256], time[320];
    static const char *const begin[] = {"not shown", "saved", "lost", "faster", "slower"};
    bool known = hec_versus_shown(v, hec_versus_energy(v)) != HEC_SHOWN_UNKNOWN;
    bool two = of_two_runs(v);
    const char *where = two ? " in these two runs" : "";
    time_words(time, sizeof time, v, !known);
    energy_words(energy, sizeof energy, v);
    if (!known)
        snprintf(out, HEC_VERSUS_SENTENCE, "%s%s: %s%s; joules are not known", begin[verdict], where, time,
                 work_words(v));
    else if (verdict != HEC_VERDICT_NOT_SHOWN)
        snprintf(out, HEC_VERSUS_SENTENCE, "%s%s: B %s %s%s%s", begin[verdict], where, two ? "took" : "takes", energy,
                 time, work_words(v));
    else if (!hec_versus_has_interval(v, hec_versus_energy(v)))
        snprintf(out, HEC_VERSUS_SENTENCE, "not shown: %s; B took %s%s%s",
                 hec_versus_by_step(v) ? "the runs are too short to tell by how much their steps vary"
                                       : "one run a side does not tell by how much runs vary",
                 energy, time, work_words(v));
    else {
        between_words(range, sizeof range, &v->quantity[hec_versus_energy(v)], "fewer", "more");
        snprintf(out, HEC_VERSUS_SENTENCE, "not shown: B takes %s joules%s%.64s than A%s%s", range,
                 hec_versus_energy(v) == HEC_QUANTITY_JOULES_PER_UNIT ? " per " : "",
                 hec_versus_energy(v) == HEC_QUANTITY_JOULES_PER_UNIT ? hec_side_unit(v->side) : "", time,
                 work_words(v));
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
    for (int at = 0; at < 2 && hec_versus_shown(v, hec_versus_energy(v)) == HEC_SHOWN_UNKNOWN; at++) {
        const char *why = why_no_joules(v, at);
        if (why)
            snprintf(out[count++], HEC_VERSUS_NOTE, "no joules of %c: %.250s", "AB"[at], why);
    }
    if (v->side[0].count == 1 && v->side[1].count == 1 && hec_versus_has_interval(v, hec_versus_time(v)))
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
    if (!hec_versus_equal_work(v))
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "the runs did not do equal work: figures of whole runs are not comparable");
    return count;
}
