/* Columns of whole numbers in few bytes: the part of a block of activities that repeats (docs/run-file.md, "Blocks of
 * activities"). Encoding never fails on valid input; decoding takes nothing for granted. */
#ifndef HEC_STORE_NUMBERS_H
#define HEC_STORE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#define HEC_NUMBERS_MAX 4096 /* of one column */
/* The most that a column takes: a width, a base, and eight planes that do not get smaller. */
#define HEC_NUMBERS_BYTES_MAX (1 + 10 + 8 * (1 + HEC_NUMBERS_MAX))

struct hec_encoder {
    unsigned char *out; /* room is the caller's care */
    size_t length;
    ZSTD_CCtx *zstd;
    int level;
};

struct hec_decoder {
    const unsigned char *at, *end;
    ZSTD_DCtx *zstd;
};

void hec_encode_byte(struct hec_encoder *encoder, unsigned value);
/* 1 <= count <= HEC_NUMBERS_MAX. Only the differences to the least number are stored. */
void hec_encode_numbers(struct hec_encoder *encoder, const int64_t *values, size_t count);

/* false: the bytes end too early or say something impossible */
bool hec_decode_byte(struct hec_decoder *decoder, unsigned below, unsigned *value);
/* *constant: all numbers are values[0], and the others are not set. */
bool hec_decode_numbers(struct hec_decoder *decoder, int64_t *values, size_t count, bool *constant);

#endif
