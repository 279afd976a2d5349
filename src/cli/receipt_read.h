/* Receipts read back: from anybody, so nothing in them is trusted. */
#ifndef HEC_CLI_RECEIPT_READ_H
#define HEC_CLI_RECEIPT_READ_H

#include "report/receipt/receipt.h"

#include <jansson.h>

/* text: JSON of docs/receipt.schema.json. root (json_decref): all of it, as it stands there. The result is judged anew, from plan and
 * trials: that of the file is in root alone. HEC_ERR_CORRUPT, HEC_ERR_VERSION (another format) and HEC_ERR_LIMIT with a sentence; both are
 * empty then. */
int hec_receipt_read(const char *text, size_t length, struct hec_receipt *receipt, json_t **root, struct hec_why *why);
/* The same of a file; HEC_ERR_NOTFOUND and so on. */
int hec_receipt_load(const char *path, struct hec_receipt *receipt, json_t **root, struct hec_why *why);

#endif
