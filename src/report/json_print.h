/* Inside src/report: JSON as text. */
#pragma once

#include "base/buf.h"

#include <jansson.h>

/* Takes root away from the caller. HEC_ERR_NOMEM also for a root that is NULL. */
int hec_json_print(json_t *root, struct hec_buf *out);
/* On one line, as an object of a stream. */
int hec_json_print_line(json_t *root, struct hec_buf *out);
/* Numbers exactly, and what holds plain values alone on one line: a table of trials is a line each. root stays the caller's. */
int hec_json_print_rows(json_t *root, struct hec_buf *out);
