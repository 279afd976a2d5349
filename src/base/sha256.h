/* SHA-256 (FIPS 180-4): the fingerprint of a file that others are to recognise. */
#pragma once

#include <stddef.h>

#define HEC_SHA256_TEXT 65 /* 64 hexadecimal digits */

char *hec_sha256(char text[HEC_SHA256_TEXT], const void *bytes, size_t length);
