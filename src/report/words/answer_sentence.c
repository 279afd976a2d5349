/* The answer in a sentence. */
#include "report/words/answer.h"

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
