/* The fingerprint of a receipt: of what it holds, not of how that is laid out in a file. */
#pragma once

#include "base/sha256.h"

#include <jansson.h>

/* SHA-256 of the receipt without its "digest". Each value is written as
 *   n t f           null, true, false
 *   #NUMBER;        as %.17g prints it
 *   "LENGTH:BYTES   a text, LENGTH bytes of UTF-8
 *   [VALUES]        an array
 *   {TEXT VALUE...} an object, keys in ascending order of their bytes
 * HEC_ERR_NOMEM. */
int hec_receipt_digest(const json_t *receipt, char digest[HEC_SHA256_TEXT]);
