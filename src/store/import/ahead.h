/* Reading ahead in a thread: unpacking and parsing of a compressed trace take about as long as each other. */
#ifndef HEC_STORE_IMPORT_AHEAD_H
#define HEC_STORE_IMPORT_AHEAD_H

#include "base/error.h"

#include <stddef.h>

struct hec_import_ahead;

/* Shaped like hec_import_input_read; called from the thread only. */
typedef long (*hec_import_ahead_source)(void *context, void *bytes, size_t size, struct hec_why *why);

/* HEC_ERR_NOMEM or, where no thread can be made, HEC_ERR_BUSY. */
int hec_import_ahead_start(hec_import_ahead_source source, void *context, struct hec_import_ahead **out);
long hec_import_ahead_read(struct hec_import_ahead *ahead, void *bytes, size_t size, struct hec_why *why);
void hec_import_ahead_stop(struct hec_import_ahead *ahead); /* NULL is fine */

#endif
