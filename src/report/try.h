/* What `hec try` says at its end: what the first trial showed, what was tried, what is proven, and how to keep it. */
#ifndef HEC_REPORT_TRY_H
#define HEC_REPORT_TRY_H

#include "report/receipt.h"

struct hec_try_keep {
    const char *lever, *value; /* "" where it has none */
    char code[512];            /* what to paste */
};

struct hec_try_report {
    const struct hec_receipt *receipt; /* a baseline: nothing helped */
    const char *headline;              /* of the first trial; "": it found nothing */
    const char *path;                  /* of the receipt; NULL: it is kept nowhere */
    bool interrupted;                  /* before anything was proven */
    bool spent;                        /* the time ran out before all was tried */
    double budget_s;
    struct hec_try_keep keep[16];
    int keep_count;
};

int hec_try_terminal(const struct hec_try_report *report, const struct hec_report_style *style, struct hec_buf *out);

#endif
