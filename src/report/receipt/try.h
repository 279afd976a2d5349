/* What `hec try` says at its end: what the first trial showed, what was tried, what is proven, and how to keep it. */
#pragma once

#include "report/page.h"
#include "report/receipt/receipt.h"

struct hec_try_keep {
    char words[192]; /* "loader_workers=8", "knob batch=256 (was 128)" */
    char code[512];  /* what to paste */
};

struct hec_try_report {
    const struct hec_receipt *receipt; /* a baseline: nothing helped */
    const char *headline;              /* of the first trial; "": it found nothing */
    const char *path;                  /* of the receipt; NULL: it is kept nowhere */
    bool interrupted, unproven;        /* before a pair of the proof ended; it ended so for another reason */
    const char *old, *pytorch;         /* levers that the program's PyTorch, of that version, is too old for; "" */
    bool foreign;                      /* what answers the finding is of a framework that the program does not use */
    bool spent;                        /* the time ran out before all was tried */
    double slowdown_most;              /* 0.05: units of work a second may fall by so much */
    double search_s, budget_s;         /* of the search at most; of all */
    bool of_device;                    /* power or clocks are among what is kept */
    struct hec_try_keep keep[24];
    int keep_count;
};

int hec_try_terminal(const struct hec_try_report *report, const struct hec_report_style *style, struct hec_buf *out);

/* ---- the table of what `hec try` tried. Nothing where a receipt has none ---- */

void hec_tried_page(struct hec_page *page, const struct hec_receipt *receipt);
void hec_tried_markdown(struct hec_buf *out, const struct hec_receipt *receipt);
