#include "report/receipt/try.h"

#include "base/text.h"
#include "report/format.h"
#include "report/markdown.h"
#include "report/receipt/words.h"
#include "report/words/answer.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A set that saves, and is slower than is allowed; NULL: there is none. */
static const struct hec_receipt_tried *too_slow(const struct hec_receipt *r) {
    const struct hec_receipt_tried *found = NULL;
    for (int i = 0; i < r->tried_count; i++)
        if (r->tried[i].outcome == HEC_TRIED_SLOWER && r->tried[i].joules[1] < 1 &&
            (!found || r->tried[i].joules[1] < found->joules[1]))
            found = &r->tried[i];
    return found;
}

/* The set that the search found best, which is not worth a proof; NULL: there is none. */
static const struct hec_receipt_tried *too_little(const struct hec_receipt *r) {
    const struct hec_receipt_tried *found = NULL;
    for (int i = 0; i < r->tried_count; i++)
        if (r->tried[i].outcome == HEC_TRIED_BETTER)
            found = &r->tried[i];
    return found;
}

static void put_nothing(struct hec_page *page, const struct hec_try_report *report) {
    const struct hec_receipt *r = report->receipt;
    const struct hec_receipt_tried *slow = too_slow(r), *little = too_little(r);
    const char *why = "no lever that was tried saves joules here";
    if (report->interrupted)
        why = "it was interrupted before anything was proven";
    else if (report->unproven)
        why = "it ended before anything was proven";
    else if (r->tried_count > 1 && isnan(r->tried[0].joules_per_unit))
        why = "no lever that was tried makes it faster; joules are not known";
    else if (r->tried_count <= 1 && report->spent)
        why = "the time ran out before any lever was tried (--budget-seconds)";
    else if (r->tried_count <= 1 && !report->headline[0])
        why = "nothing was found that a lever could answer";
    else if (r->tried_count <= 1)
        why = report->foreign ? "levers that answer this come in by the hooks of PyTorch, JAX or TensorFlow, and the "
                                "program uses none that has them; `hec explain` says what else does"
                              : "no lever answers what was found here";
    if (slow && !report->interrupted && !report->unproven)
        hec_page_row(
            page, 0, "Kept", HEC_TONE_BOLD,
            "nothing: what saves joules here makes it slower by more than %.3g %% (--max-slowdown allows more): "
            "%s takes %.0f %% fewer",
            100 * report->slowdown_most, slow->levers, 100 * (1 - slow->joules[1]));
    else if (little && !report->interrupted && !report->unproven && little->joules[1] <= 1 - r->plan.saving_least)
        hec_page_row(page, 0, "Kept", HEC_TONE_BOLD,
                     "nothing: what helped most takes %.0f %% fewer joules, in so few blocks that it may be chance "
                     "(--budget-seconds allows more): %s",
                     100 * (1 - little->joules[1]), little->levers);
    else if (little && !report->interrupted && !report->unproven)
        hec_page_row(page, 0, "Kept", HEC_TONE_BOLD,
                     "nothing: what helped most saves less than %.3g %% (--min-saving asks for less): %s",
                     100 * r->plan.saving_least, little->levers);
    else
        hec_page_row(page, 0, "Kept", HEC_TONE_BOLD, "nothing: %s", why);
}

static void put_keep(struct hec_page *page, const struct hec_try_report *report) {
    char at[PATH_MAX + 1], *sim = report->receipt->simulated, *words[9] = {"hec", "run"};
    struct hec_buf line;
    int count = 2;
    if (sim || report->of_device)
        words[count++] = sim ? "--sim" : "--allow-power";
    if (sim)
        words[count++] = sim;
    words[count++] = "--with";
    words[count++] = at;
    words[count++] = "--";
    words[count] = "COMMAND";
    snprintf(at, sizeof at, "@%s", report->path ? report->path : "");
    hec_buf_init(&line, 1 << 16);
    hec_shell_line(words, &line);
    hec_page_blank(page);
    if (report->path)
        hec_page_row(page, 0, "Keep it", HEC_TONE_PLAIN, "%s, or in the program itself:", hec_buf_text(&line));
    hec_buf_free(&line);
    for (int i = 0; i < report->keep_count; i++) {
        hec_page_row(page, 2, "", HEC_TONE_DIM, "%s", report->keep[i].words);
        hec_page_code(page, 4, report->keep[i].code);
    }
}

int hec_try_terminal(const struct hec_try_report *report, const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_page page;
    hec_page_init(&page, style, out);
    if (report->headline[0])
        hec_page_row(&page, 0, "Found", HEC_TONE_PLAIN, "%s", report->headline);
    hec_tried_page(&page, report->receipt);
    if (report->spent)
        hec_page_row(
            &page, 2, "", HEC_TONE_WARN,
            "not all was tried: of the %.0f s (--budget-seconds) the search has %.0f, the rest is for the proof; "
            "--budget-seconds %.0f tries more",
            report->budget_s, report->search_s, 2 * report->budget_s);
    if (report->old[0])
        hec_page_row(&page, 2, "", HEC_TONE_DIM, "not tried, since they need a newer PyTorch than %s: %s",
                     report->pytorch, report->old);
    if (hec_receipt_is_baseline(report->receipt)) { /* nothing to prove */
        put_nothing(&page, report);
        return hec_buf_error(out);
    }
    hec_page_blank(&page);
    const char *why_not;
    int err = hec_receipt_terminal(report->receipt, style, out);
    if (hec_receipt_proves(report->receipt, &why_not))
        put_keep(&page, report);
    else
        hec_page_row(&page, 0, "Kept", HEC_TONE_BOLD, "nothing: %s", why_not);
    return err < 0 ? err : hec_buf_error(out);
}

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
        hec_markdown_text(out, "| ", t->levers[0] ? t->levers : "as it is", "");
        hec_buf_printf(out, " | %s | %s | %s %s | %s | ", amount(joules, t->joules_per_unit, "J"),
                       amount(rate, t->units_per_second, ""), change, interval, words_of(t, proven));
        hec_markdown_text(out, "", t->text, " |\n");
    }
}
