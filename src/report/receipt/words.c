#include "report/receipt/words.h"

#include "base/names.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];

/* ---- names ---- */

HEC_NAME_OF(hec_look_step_name, enum hec_look_step, "go_on", "better", "worse", "equivalent", "undecided")

HEC_NAME_OF(hec_quality_name, enum hec_quality_verdict, "pass", "fail", "cannot_judge")

HEC_NAME_OF(hec_quality_why_name, enum hec_quality_why, "within", "not_finite", "off", "nothing", "few_reruns",
            "a_not_finite", "a_flat", "spread", "gradients")

HEC_NAME_OF(hec_quality_part_name, enum hec_quality_part, "start", "mean", "end")

HEC_NAME_OF(hec_quality_gradient_name, int, "all", "first", "part_1", "part_2", "part_3", "part_4", "part_5", "part_6",
            "part_7", "part_8", "part_9", "part_10", "part_11", "part_12", "part_13", "part_14", "part_15", "part_16")

HEC_NAME_OF(hec_receipt_writes_name, enum hec_receipt_writes, "in_place", "disk", "memory")

HEC_NAME_OF(hec_receipt_caches_name, enum hec_receipt_caches, "trials", "fresh", "user")

const char *hec_receipt_side_name(int side) {
    return side == 0 ? "A" : side == 1 ? "B" : "?";
}

/* ---- the answer ---- */

/* What decides is known of all pairs; what would come before it, of some at most. */
static bool passed_over(enum hec_quantity quantity, enum hec_quantity judged) {
    static const int order[HEC_QUANTITY_COUNT] = {
        [HEC_QUANTITY_JOULES_PER_UNIT] = 1, [HEC_QUANTITY_JOULES] = 2, [HEC_QUANTITY_UNITS_PER_SECOND] = 3};
    return order[quantity] && order[quantity] < (order[judged] ? order[judged] : 4);
}

struct hec_answer hec_receipt_answer(const struct hec_receipt *r) {
    struct hec_answer answer = {.unit = r->unit,
                                .no_interval = "there are too few pairs to tell by how much they vary"};
    for (int q = 0; q < HEC_QUANTITY_COUNT; q++) {
        struct hec_comparison c = r->result.quantity[q];
        if (hec_receipt_is_baseline(r) || passed_over(q, r->result.judged))
            c.shown = HEC_SHOWN_UNKNOWN;
        hec_answer_put(&answer, q, &c, true);
    }
    return answer;
}

static const char *more_words(const struct hec_quality *q) {
    switch (q->why) {
    case HEC_QUALITY_NOTHING:
        return "no losses were recorded in all trials, or too few of them; the hooks see those of PyTorch programs";
    case HEC_QUALITY_FEW_RERUNS:
        return "less than two trials of A have losses; more pairs would help";
    case HEC_QUALITY_A_NOT_FINITE:
        return "losses of A itself are not finite";
    case HEC_QUALITY_SPREAD:
        return "reruns differ too much for this margin; more pairs would help, or a wider margin";
    case HEC_QUALITY_A_FLAT: /* it has a number */
    case HEC_QUALITY_WITHIN:
    case HEC_QUALITY_NOT_FINITE:
    case HEC_QUALITY_OFF:
    case HEC_QUALITY_GRADIENT:
        break;
    }
    return "";
}

/* "+0.4 % (-1 to +2)" */
static char *part_words(text out, const struct hec_quality_difference *d) {
    int decimals = hec_change_decimals(100 * d->low, 100 * d->high, 100 * d->difference);
    if (isfinite(d->low) && isfinite(d->high))
        snprintf(out, sizeof(text), "%+.*f %% (%+.*f to %+.*f)", decimals,
                 hec_change_rounded(100 * d->difference, decimals), decimals,
                 hec_change_rounded(100 * d->low, decimals), decimals, hec_change_rounded(100 * d->high, decimals));
    else
        snprintf(out, sizeof(text), "%+.1f %%", hec_change_rounded(100 * d->difference, 1));
    return out;
}

static void gradient_words(char out[HEC_QUALITY_SENTENCE], const struct hec_quality *q) {
    text whose = "";
    bool part = q->gradient >= HEC_GRADIENT_PART;
    if (part)
        snprintf(whose, sizeof whose, " in part %d of %d of its parameters", q->gradient - HEC_GRADIENT_PART + 1,
                 HEC_GRADIENT_PARTS);
    else if (q->gradient == HEC_GRADIENT_AT_FIRST)
        snprintf(whose, sizeof whose, " in its first %d steps", HEC_GRADIENT_FIRST);
    if (q->gradients.difference < log(HEC_QUALITY_NO_GRADIENT))
        snprintf(out, HEC_QUALITY_SENTENCE, "fail: B has no gradients to speak of%s, A has", whose);
    else
        snprintf(out, HEC_QUALITY_SENTENCE,
                 "fail: the gradients of B%s are %.2g times as large as those of A (%.2g to %.2g); allowed is a factor "
                 "of %g",
                 whose, exp(q->gradients.difference), exp(q->gradients.low), exp(q->gradients.high),
                 part ? HEC_QUALITY_PART_GRADIENTS : HEC_QUALITY_GRADIENTS);
}

char *hec_quality_sentence(char out[HEC_QUALITY_SENTENCE], const struct hec_quality *q) {
    static const char *const where[] = {"at its start", "on average", "at its end"};
    text mean, end, margin;
    snprintf(margin, sizeof margin, "the margin is %.3g %%", 100 * q->margin);
    if (q->why == HEC_QUALITY_A_FLAT)
        snprintf(
            out, HEC_QUALITY_SENTENCE,
            "cannot judge: the loss of A does not fall by %g %% of itself and more than its reruns differ by; longer "
            "trials would help",
            100 * HEC_QUALITY_FALL_LEAST);
    else if (q->verdict == HEC_QUALITY_CANNOT_JUDGE)
        snprintf(out, HEC_QUALITY_SENTENCE, "cannot judge: %s", more_words(q));
    else if (q->why == HEC_QUALITY_NOT_FINITE)
        snprintf(out, HEC_QUALITY_SENTENCE, "fail: losses of B are not finite, those of A are");
    else if (q->why == HEC_QUALITY_GRADIENT)
        gradient_words(out, q);
    else if (q->verdict == HEC_QUALITY_FAIL)
        snprintf(out, HEC_QUALITY_SENTENCE,
                 "fail: the loss of B is off that of A %s by %s of what A's loss falls by; %.60s", where[q->part],
                 part_words(mean, &q->parts[q->part]), margin);
    else
        snprintf(out, HEC_QUALITY_SENTENCE,
                 "pass: the loss of B against A, in parts of what A's loss falls by: mean %s, end %s; %.60s",
                 part_words(mean, &q->parts[HEC_QUALITY_MEAN]), part_words(end, &q->parts[HEC_QUALITY_END]), margin);
    return out;
}

/* ---- cost ---- */

char *hec_receipt_cost(char out[HEC_RECEIPT_LINE], const struct hec_receipt *r) {
    text joules, seconds;
    const char *search = r->plan.spent_seconds > 0 ? "the search and " : "";
    if (isfinite(r->result.cost_joules))
        snprintf(out, HEC_RECEIPT_LINE, "%s and %s in %s%d trials",
                 hec_format_si(joules, r->result.cost_joules, 4, "J"),
                 hec_format_seconds(seconds, r->result.cost_seconds), search, r->trial_count);
    else
        snprintf(out, HEC_RECEIPT_LINE, "%s in %s%d trials; joules are not known of all of them",
                 hec_format_seconds(seconds, r->result.cost_seconds), search, r->trial_count);
    return out;
}

/* "1.2 million", "77800": three digits that count. */
static char *work_words(text out, double work) {
    double scale = pow(10, floor(log10(fmax(work, 1))) - 2);
    if (!isfinite(work))
        snprintf(out, sizeof(text), "perhaps never");
    else if (work >= 1e6)
        snprintf(out, sizeof(text), "%.3g million", work / 1e6);
    else
        snprintf(out, sizeof(text), "%.0f", work < 1000 ? ceil(work) : round(work / scale) * scale);
    return out;
}

static bool paid_words(char *out, size_t size, const struct hec_breakeven *b, const char *unit, const char *what) {
    text work, soonest, latest;
    if (!b->shown)
        return false;
    snprintf(out, size, "after %.40s %.64ss by the %s saved (soonest %.40s, latest %.40s)", work_words(work, b->work),
             unit, what, work_words(soonest, b->soonest), work_words(latest, b->latest));
    return true;
}

char *hec_receipt_paid(char out[HEC_RECEIPT_LINE], const struct hec_receipt *r) {
    if (r->unit[0] && (paid_words(out, HEC_RECEIPT_LINE, &r->result.joules, r->unit, "joules") ||
                       paid_words(out, HEC_RECEIPT_LINE, &r->result.seconds, r->unit, "time")))
        return out;
    snprintf(out, HEC_RECEIPT_LINE, "%s",
             r->unit[0] ? "never, as far as is shown: nothing is saved" : "not known: no unit of work is");
    return out;
}

/* ---- where, how ---- */

char *hec_receipt_where(char out[HEC_RECEIPT_LINE], const struct hec_receipt *r) {
    size_t length;
    if (r->writes == HEC_RECEIPT_IN_PLACE) {
        snprintf(out, HEC_RECEIPT_LINE, "trials wrote in place: what they wrote is there");
        return out;
    }
    snprintf(out, HEC_RECEIPT_LINE, "what trials wrote went into a scratch layer %s and is gone; it lay over",
             r->writes == HEC_RECEIPT_ON_DISK ? "on disk" : "in memory");
    for (int i = 0; i < r->covered.count; i++) {
        length = strlen(out);
        snprintf(out + length, HEC_RECEIPT_LINE - length, "%s %s", i ? "," : "", r->covered.list[i]);
    }
    return out;
}

int hec_receipt_method(const struct hec_receipt *r, char out[HEC_RECEIPT_LINES][HEC_RECEIPT_LINE]) {
    int count = 0;
    if (hec_receipt_is_baseline(r))
        return 0;
    if (r->plan.pairs)
        snprintf(
            out[count++], HEC_RECEIPT_LINE,
            "%d pairs of trials, a number fixed before; 95 %% t intervals of how pairs differ (paired, log ratios)",
            r->plan.pairs);
    else
        snprintf(out[count++], HEC_RECEIPT_LINE,
                 "pairs of trials until %s, at most %d; 95 %% intervals that hold at all looks at once (confidence "
                 "sequence of the pairs' log ratios%s)",
                 r->plan.until > 0 ? "the ratio was known as precisely as asked for"
                                   : "a difference was shown or excluded",
                 r->plan.pairs_most ? r->plan.pairs_most : HEC_EXPERIMENT_PAIRS_MOST,
                 r->plan.expected_cost > 0 || r->plan.expected_speed > 0 ? ", held against what the search saw as well"
                                                                         : "");
    snprintf(out[count++], HEC_RECEIPT_LINE,
             "the order within pairs was drawn from the seed %" PRIu64
             ", one of either kind in every two pairs, so that "
             "drift cancels",
             r->plan.seed);
    snprintf(out[count++], HEC_RECEIPT_LINE,
             "figures by unit of work are of the steady part: after start-up, warm-up and compiling");
    return count;
}

int hec_receipt_notes(const struct hec_receipt *r, char out[HEC_RECEIPT_LINES][HEC_RECEIPT_LINE]) {
    int count = 0;
    if (hec_receipt_is_baseline(r))
        return 0;
    if (r->simulated)
        snprintf(out[count++], HEC_RECEIPT_LINE, "on a simulated GPU: this proves nothing of a real one");
    if (!r->result.done)
        snprintf(out[count++], HEC_RECEIPT_LINE, "it ended before its plan was done: what there is was judged");
    if (r->result.quality.verdict == HEC_QUALITY_FAIL)
        snprintf(out[count++], HEC_RECEIPT_LINE, "B does not do the same work as well: what it saves is no saving");
    const char *no_effect = hec_receipt_fact(&r->facts, HEC_RECEIPT_NO_EFFECT);
    if (no_effect)
        snprintf(out[count++], HEC_RECEIPT_LINE, "without effect: %.280s", no_effect);
    if (!r->unit[0])
        snprintf(out[count++], HEC_RECEIPT_LINE, "no unit of work is known of all trials: figures are of whole trials");
    return count;
}

void hec_receipt_command(struct hec_buf *out, const struct hec_receipt *r, int side) {
    if (r->levers.count && (side || hec_receipt_is_baseline(r))) {
        hec_buf_puts(out, "hec run --with ");
        for (int i = 0; i < r->levers.count; i++)
            hec_buf_printf(out, "%s%s", i ? "," : "", r->levers.list[i]);
        hec_buf_puts(out, " -- ");
    }
    hec_shell_line(r->command[side].list, out);
}

/* Best guess, of joules, or where they are not known of time; a part of A's. */
static double saving_shown(const struct hec_answer *a, enum hec_verdict verdict) {
    enum hec_quantity of = verdict == HEC_VERDICT_FASTER ? hec_answer_time(a) : hec_answer_energy(a);
    double ratio = a->quantity[of].ratio;
    return 1 - (of == HEC_QUANTITY_UNITS_PER_SECOND ? 1 / ratio : ratio);
}

bool hec_receipt_proves(const struct hec_receipt *r, const char **why_not) {
    struct hec_answer answer = hec_receipt_answer(r);
    enum hec_verdict verdict = hec_receipt_is_baseline(r) ? HEC_VERDICT_NOT_SHOWN : hec_answer_verdict(&answer);
    bool saves = verdict == HEC_VERDICT_SAVED || verdict == HEC_VERDICT_FASTER;
    double by = saving_shown(&answer, verdict);
    *why_not = !saves                      ? "no saving is shown"
               : by < r->plan.saving_least ? "what is shown is less than is worth a lever (--min-saving)"
               : r->result.quality.verdict == HEC_QUALITY_FAIL ? "its losses are not those of the command as it is"
                                                               : NULL;
    return !*why_not;
}
