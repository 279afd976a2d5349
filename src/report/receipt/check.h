/* What `hec check` says: has a program become worse than its baseline? */
#pragma once

#include "prove/check.h"
#include "report/receipt/receipt.h"
#include "report/words/conditions.h"

struct hec_check_report {
    const struct hec_receipt *baseline, *now;
    struct hec_check check;
    struct hec_condition_differences unlikes; /* the grave ones first */
    bool unlike;                              /* compared all the same */
};

/* What the machines, versions and conditions of two receipts differ by. Of two sessions more must be alike than of runs that a user puts
 * side by side: the host's name and its cores too. */
void hec_receipt_unlikes(const struct hec_receipt *a, const struct hec_receipt *b,
                         struct hec_condition_differences *out);

/* HEC_CHECK_UNSURE also where the two are unlike. */
enum hec_check_state hec_check_report_state(const struct hec_check_report *report);
int hec_check_terminal(const struct hec_check_report *report, const struct hec_report_style *style,
                       struct hec_buf *out);
int hec_check_markdown(const struct hec_check_report *report, struct hec_buf *out);
