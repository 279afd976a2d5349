/* Inside src/report: the table of what `hec try` tried. Nothing where a receipt has none. */
#ifndef HEC_REPORT_RECEIPT_TRIED_H
#define HEC_REPORT_RECEIPT_TRIED_H

#include "report/page.h"
#include "report/receipt/receipt.h"

void hec_tried_page(struct hec_page *page, const struct hec_receipt *receipt);
void hec_tried_markdown(struct hec_buf *out, const struct hec_receipt *receipt);

#endif
