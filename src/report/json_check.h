/* Is JSON from outside what its schema says? */
#pragma once

#include "base/error.h"

#include <jansson.h>

/* schema: as hec_json_schema prints it (type, enum, items, minItems, maxItems, minimum, maximum, properties, required,
 * additionalProperties false, $ref; a pattern is for who reads the value). HEC_ERR_CORRUPT, and why names the place:
 * "trials[3].steady.joules is not a number or null". */
int hec_json_check(const json_t *schema, const json_t *value, struct hec_why *why);
