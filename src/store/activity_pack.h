/* Activities of one kind on one track, in order of start, as a few bytes each. Layout: docs/run-file.md; why this one,
 * with what it measures: docs/decisions/0004-trace-blocks.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#include "model/trace.h"

/* Columns of whole numbers in few bytes: the part of a block of activities that repeats (docs/run-file.md, "Blocks of
 * activities"). Encoding never fails on valid input; decoding takes nothing for granted. */
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

/* 1 <= count <= HEC_NUMBERS_MAX. Only the differences to the least number are stored. */
void hec_encode_numbers(struct hec_encoder *encoder, const int64_t *values, size_t count);
/* *constant: all numbers are values[0], and the others are not set. */
bool hec_decode_numbers(struct hec_decoder *decoder, int64_t *values, size_t count, bool *constant);

#define HEC_ACTIVITY_BLOCK HEC_NUMBERS_MAX /* activities of a block, at most */
#define HEC_ACTIVITY_BLOCK_COLUMNS 13
#define HEC_ACTIVITY_BLOCK_BYTES (64 + HEC_ACTIVITY_BLOCK_COLUMNS * HEC_NUMBERS_BYTES_MAX) /* the most a block takes */

/* Times of activities, as recorded and in a file, are within +-18 years and +-36 years: no difference overflows. */
#define HEC_ACTIVITY_TIME_MAX_NS (INT64_C(1) << 59)

struct hec_packer;                       /* working memory, some 700 kB; for one thread at a time */
struct hec_packer *hec_packer_new(void); /* NULL: no memory */
void hec_packer_free(struct hec_packer *packer);

/* 1 <= count <= HEC_ACTIVITY_BLOCK; sorted by start, of one kind and track. t0_ns is the start of the first. The bytes
 * live until the next call; their number is returned. */
size_t hec_packer_pack(struct hec_packer *packer, const struct hec_activity *activities, size_t count,
                       const unsigned char **bytes);

/* The highest ids that may appear. */
struct hec_activity_limits {
    uint32_t name[HEC_ACTIVITY_KIND_COUNT]; /* by kind: of names, kernels or frames */
    uint32_t tracks;
};

/* What a row says beside the bytes. */
struct hec_activity_head {
    uint32_t track;
    enum hec_activity_kind kind;
    int64_t t0_ns;
    size_t n;
};

/* The bytes as head->n activities. NULL, or what is wrong with them; nothing is promised about the activities then. */
const char *hec_packer_unpack(struct hec_packer *packer, const void *bytes, size_t length,
                              const struct hec_activity_head *head, const struct hec_activity_limits *limits,
                              struct hec_activity *activities);
