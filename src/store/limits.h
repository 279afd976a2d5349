/* What a reader takes of overlapping and of identical values, and so what a writer writes: one table for both. */
#pragma once

#include "model/trace.h"

#include <stddef.h>
#include <stdint.h>

#ifndef HEC_LIMITS_SHIFT
#define HEC_LIMITS_SHIFT 0 /* a test makes the limits smaller by so many bits */
#endif

/* Blocks of activities that overlap wait in memory for their turn: the first ones unpacked, 256 KiB each where they are
 * full. In an import of many ranks some thousand full blocks overlap: beyond the first 80 MiB a block waits packed, beside
 * a piece of it. These, of all that overlap, take 160 MiB at most, which three thousand full blocks of kernels do not
 * reach. */
#define HEC_LIMITS_UNPACKED_BYTES (INT64_C(80) << 20 >> HEC_LIMITS_SHIFT)
#define HEC_LIMITS_OVERLAP_BYTES (INT64_C(160) << 20 >> HEC_LIMITS_SHIFT)
#define HEC_LIMITS_PIECE 256     /* activities */
#define HEC_LIMITS_RUN_BYTES 128 /* what describes a block that waits */

/* What a block that overlaps with others counts. */
static inline int64_t hec_limits_block_bytes(size_t n, size_t packed_bytes) {
    size_t piece = n < HEC_LIMITS_PIECE ? n : HEC_LIMITS_PIECE;
    return (int64_t)(HEC_LIMITS_RUN_BYTES + piece * sizeof(struct hec_activity) +
                     (n > HEC_LIMITS_PIECE ? packed_bytes : 0));
}

/* Of the writer: open blocks in memory (262144 activities, 64 streams with full ones; where there are more, blocks are
 * closed before they are full), and chains of blocks: two kinds on each of as many tracks as there can be. A block of
 * random numbers counts at most twice its size in memory, so what is closed leaves that much to what is open. */
#define HEC_LIMITS_OPEN_BYTES ((size_t)16 << 20 >> HEC_LIMITS_SHIFT)
#define HEC_LIMITS_CHAINS (131072 >> HEC_LIMITS_SHIFT)
#define HEC_LIMITS_CLOSED_OVERLAP_BYTES                                                                                \
    (HEC_LIMITS_OVERLAP_BYTES - 2 * (int64_t)HEC_LIMITS_OPEN_BYTES - HEC_LIMITS_CHAINS * HEC_LIMITS_RUN_BYTES)

/* Real activities take 3 to 7 bytes each. Blocks that are all alike hold thousands in a byte, and each has to be looked
 * at: beyond the first ones there is one a byte of the file at most. */
#define HEC_LIMITS_ACTIVITIES_FREE (INT64_C(4) << 20 >> HEC_LIMITS_SHIFT)

/* Values of one series in blocks that overlap, 4.5 MB; and series. */
#define HEC_LIMITS_SERIES_VALUES (262144 >> HEC_LIMITS_SHIFT)
#define HEC_LIMITS_SERIES 1048576
