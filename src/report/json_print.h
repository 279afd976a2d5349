/* Inside src/report: JSON as text. */
#ifndef HEC_REPORT_JSON_PRINT_H
#define HEC_REPORT_JSON_PRINT_H

#include "base/buf.h"

#include <jansson.h>

/* Takes root away from the caller. HEC_ERR_NOMEM also for a root that is NULL. */
int hec_json_print(json_t *root, struct hec_buf *out);

#endif
