#include "report/try.h"

#include "report/page.h"
#include "report/receipt_words.h"
#include "report/tried.h"

static void put_keep(struct hec_page *page, const struct hec_try_report *report) {
    hec_page_blank(page);
    if (report->path)
        hec_page_row(page, 0, "Keep it", HEC_TONE_PLAIN,
                     "hec run --with @%s -- COMMAND, or in the program itself:", report->path);
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
        hec_page_row(&page, 2, "", HEC_TONE_WARN,
                     "the budget of %.0f s ran out before all was tried (--budget-seconds)", report->budget_s);
    if (hec_receipt_is_baseline(report->receipt)) { /* nothing to prove */
        hec_page_row(&page, 0, "Kept", HEC_TONE_BOLD, "nothing: %s",
                     report->interrupted                ? "it was interrupted before anything was proven"
                     : report->receipt->tried_count > 1 ? "no lever that was tried saves joules here"
                                                        : "no lever answers what was found here");
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
