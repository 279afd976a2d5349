/* Does a receipt hold? Its verdict against its own plan and trials. */
#ifndef HEC_CLI_RECEIPT_VERIFY_H
#define HEC_CLI_RECEIPT_VERIFY_H

#include "report/receipt/receipt.h"

#include <jansson.h>

/* A line for each thing that does not hold (the first 20 of many): digest, order of trials, figures, words. Words of another version of
 * hec do not count; of its figures a line says that they may be others. The number of things; HEC_ERR_NOMEM. */
int hec_receipt_verify(const struct hec_receipt *receipt, const json_t *root, struct hec_buf *out);

#endif
