#include "report/receipt/tried.h"

#include "report/words/answer.h"
#include "report/format.h"
#include "report/markdown.h"
#include "report/receipt/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];

static const struct {
    const char *words;
    enum hec_tone tone;
    bool explained; /* its text says why */
} outcomes[HEC_TRIEDS] = {
    [HEC_TRIED_BASE] = {"", HEC_TONE_PLAIN, false},         [HEC_TRIED_KEPT] = {"kept", HEC_TONE_GOOD, false},
    [HEC_TRIED_BETTER] = {"better", HEC_TONE_PLAIN, false}, [HEC_TRIED_NO_GAIN] = {"no gain", HEC_TONE_DIM, false},
    [HEC_TRIED_SLOWER] = {"too slow", HEC_TONE_DIM, false}, [HEC_TRIED_NOTHING] = {"nothing to do", HEC_TONE_DIM, true},
    [HEC_TRIED_FAILED] = {"out", HEC_TONE_WARN, true},
};

/* proven: what the experiment showed of the set that it was made for. */
static const char *words_of(const struct hec_receipt_tried *t, bool proven) {
    if (t->outcome == HEC_TRIED_KEPT && !proven)
        return "best";
    return outcomes[(unsigned)t->outcome < HEC_TRIEDS ? t->outcome : HEC_TRIED_FAILED].words;
}

/* "-12.3 %" and its interval "(-13 to -11)"; "" where nothing is known. */
static void put_change(const double range[3], text change, text interval) {
    double low = 100 * (range[0] - 1), best = 100 * (range[1] - 1), high = 100 * (range[2] - 1);
    change[0] = interval[0] = '\0';
    if (!isfinite(best))
        return;
    bool known = isfinite(low) && isfinite(high);
    int decimals = known ? hec_change_decimals(low, high, best) : 0;
    snprintf(change, sizeof(text), "%+.*f %%", decimals, hec_change_rounded(best, decimals));
    if (known)
        snprintf(interval, sizeof(text), "(%.*f to %.*f)", decimals, hec_change_rounded(low, decimals), decimals,
                 hec_change_rounded(high, decimals));
}

static const char *amount(text out, double value, const char *unit) {
    return isfinite(value) ? hec_format_si(out, value, 3, unit) : strcpy(out, "-");
}

static int trials_of(const struct hec_receipt *r) {
    int sum = 0;
    for (int i = 0; i < r->tried_count; i++)
        sum += r->tried[i].trials;
    return sum;
}

static void put_row(struct hec_page *page, const struct hec_receipt_tried *t, bool proven) {
    text joules, rate, change, interval;
    enum hec_tone tone = outcomes[(unsigned)t->outcome < HEC_TRIEDS ? t->outcome : HEC_TRIED_FAILED].tone;
    put_change(isnan(t->joules[1]) ? t->rate : t->joules, change, interval);
    hec_page_line(page, 2, "", tone, "%s", t->levers[0] ? t->levers : "as it is");
    hec_page_line(page, 2, "", tone, "  %9s %9s/s %8s %-14s %s", amount(joules, t->joules_per_unit, "J"),
                  amount(rate, t->units_per_second, ""), change, interval, words_of(t, proven));
    if (outcomes[t->outcome].explained && t->text[0])
        hec_page_row(page, 2, "", HEC_TONE_DIM, "  %s", t->text);
}

void hec_tried_page(struct hec_page *page, const struct hec_receipt *r) {
    text seconds;
    const char *why_not;
    bool proven = hec_receipt_proves(r, &why_not);
    if (!r->tried_count)
        return;
    hec_page_row(
        page, 0, "Tried", HEC_TONE_PLAIN,
        "%d set%s of levers in %d trial%s of %s; joules by %s, units a second, and %s against the command as it is",
        r->tried_count - 1, r->tried_count == 2 ? "" : "s", trials_of(r), trials_of(r) == 1 ? "" : "s",
        hec_format_seconds(seconds, r->plan.spent_seconds), r->unit[0] ? r->unit : "trial",
        isnan(r->tried[0].joules_per_unit) ? "speed" : "joules");
    for (int i = 0; i < r->tried_count; i++)
        put_row(page, &r->tried[i], proven);
}

void hec_tried_markdown(struct hec_buf *out, const struct hec_receipt *r) {
    if (!r->tried_count)
        return;
    const char *why_not;
    bool proven = hec_receipt_proves(r, &why_not);
    int sets = r->tried_count - 1;
    hec_buf_printf(out, "\n%d set%s of levers %s tried before, in %d trial%s:\n\n", sets, sets == 1 ? "" : "s",
                   sets == 1 ? "was" : "were", trials_of(r), trials_of(r) == 1 ? "" : "s");
    hec_buf_puts(out, "| levers | joules a unit | units a second | joules, or speed where they are not known | | |\n"
                      "| --- | ---: | ---: | ---: | --- | --- |\n");
    for (int i = 0; i < r->tried_count; i++) {
        const struct hec_receipt_tried *t = &r->tried[i];
        text joules, rate, change, interval;
        put_change(isnan(t->joules[1]) ? t->rate : t->joules, change, interval);
        hec_buf_puts(out, "| ");
        hec_markdown_text(out, t->levers[0] ? t->levers : "as it is");
        hec_buf_printf(out, " | %s | %s | %s %s | %s | ", amount(joules, t->joules_per_unit, "J"),
                       amount(rate, t->units_per_second, ""), change, interval, words_of(t, proven));
        hec_markdown_text(out, t->text);
        hec_buf_puts(out, " |\n");
    }
}
