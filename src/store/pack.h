/* A block: up to 512 values of one series as two short texts, so that plain SQL can take them apart.
 *
 * Number k of a text of width w is  sum over j < w of 90^j * (byte[k*w + j] - '#'), added to the base: values in the
 * metric's unit; for times the difference, in us, from evenly spaced ones:
 *     t[k] = t0 + k*(t1 - t0)/(n - 1)  (integer division)  + r_base + r[k].
 * Width 0: every number is the base (a constant; even spacing). A missing value is '~' in all its places.
 * Three bytes span 729000, so that a GPU's power in mW takes 3 instead of the 7 bytes of decimal text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_BLOCK_VALUES 512
#define HEC_BLOCK_WIDTH_MAX 6
/* Both texts together, aimed at: five such rows, with their heads of about 45 bytes, fill a page of 4096. */
#define HEC_BLOCK_TEXT_BYTES 760
/* 90^6 - 1: what the widest number holds. */
#define HEC_BLOCK_RANGE INT64_C(531440999999)
/* Times in a file are within +-142 years, so that no sum of them overflows. */
#define HEC_BLOCK_TIME_MAX_US (INT64_C(1) << 52)

struct hec_block {
    int64_t t0_us, t1_us;
    int n;
    int64_t v_base, r_base;
    int v_width, r_width;
    char v[HEC_BLOCK_VALUES * HEC_BLOCK_WIDTH_MAX]; /* n * v_width bytes, not terminated */
    char r[HEC_BLOCK_VALUES * HEC_BLOCK_WIDTH_MAX];
};

/* Digits needed for 0..range; range is at most HEC_BLOCK_RANGE. */
int hec_pack_width(int64_t range);

/* n in 1..512, times ascending, spread of times and of valid values at most HEC_BLOCK_RANGE. exact: keep each
 * microsecond; otherwise even spacing is assumed where no time is more than 1 ms or 1/20 of the spacing from it. */
void hec_pack(const int64_t *t_us, const int64_t *v, const uint8_t *valid, int n, bool exact, struct hec_block *block);

/* Take a block from an untrusted file apart. The texts are v and r with their lengths in bytes; the block's own
 * arrays are not used. NULL on success, otherwise what is wrong, a static text. */
const char *hec_unpack(const struct hec_block *head, const char *v, size_t v_length, const char *r, size_t r_length,
                       int64_t *t_us, int64_t *value, uint8_t *valid);
