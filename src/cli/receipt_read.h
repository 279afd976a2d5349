/* Receipts read back, and whether they hold: the verdict against their own plan and trials. */
#pragma once

#include "report/receipt/receipt.h"

#include <jansson.h>

/* A line for each thing that does not hold (the first 20 of many): digest, order of trials, figures, words. Words of another version of
 * hec do not count; of its figures a line says that they may be others. The number of things; HEC_ERR_NOMEM. */
int hec_receipt_verify(const struct hec_receipt *receipt, const json_t *root, struct hec_buf *out);

/* text: JSON of docs/receipt.schema.json. root (json_decref): all of it, as it stands there. The result is judged anew, from plan and
 * trials: that of the file is in root alone. HEC_ERR_CORRUPT, HEC_ERR_VERSION (another format) and HEC_ERR_LIMIT with a sentence; both are
 * empty then. */
int hec_receipt_read(const char *text, size_t length, struct hec_receipt *receipt, json_t **root, struct hec_why *why);
/* The same of a file; HEC_ERR_NOTFOUND and so on. */
int hec_receipt_load(const char *path, struct hec_receipt *receipt, json_t **root, struct hec_why *why);
