#include "report/receipt/try.h"

#include "base/shell.h"
#include "report/page.h"
#include "report/receipt/words.h"
#include "report/receipt/tried.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

/* A set that saves, and is slower than is allowed; NULL: there is none. */
static const struct hec_receipt_tried *too_slow(const struct hec_receipt *r) {
    const struct hec_receipt_tried *found = NULL;
    for (int i = 0; i < r->tried_count; i++)
        if (r->tried[i].outcome == HEC_TRIED_SLOWER && r->tried[i].joules[1] < 1 &&
            (!found || r->tried[i].joules[1] < found->joules[1]))
            found = &r->tried[i];
    return found;
}

/* The set that the search found best, which saves less than is worth a proof; NULL: there is none. */
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
        hec_page_row(page, 2, "", HEC_TONE_DIM, "%s%s%s", report->keep[i].lever, report->keep[i].value[0] ? "=" : "",
                     report->keep[i].value);
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
