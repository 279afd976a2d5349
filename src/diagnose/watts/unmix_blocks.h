/* Normal equations per block of time, in bounded memory: when the blocks run out, each two become one of twice the
 * time. */
#ifndef HEC_DIAGNOSE_WATTS_UNMIX_BLOCKS_H
#define HEC_DIAGNOSE_WATTS_UNMIX_BLOCKS_H

#include <stdint.h>

#define HEC_BLOCKS_MAX 64
#define HEC_GRAM_CLASSES 32
/* Longer than residuals stay correlated: those of the H200's samples are below 0.3 after 0.1 s (docs/decisions/0007).
 * */
#define HEC_BLOCKS_FIRST_NS INT64_C(250000000)
/* Standard error of when a class began and ended against when a reading did: two clocks, and pieces that are not
 * exact. */
#define HEC_TIMING_NS INT64_C(1000000)

struct hec_gram {
    int columns;   /* unknowns, then y */
    int packed;    /* columns * (columns + 1) / 2 */
    double *block; /* HEC_BLOCKS_MAX x packed: upper triangle by rows of the sum of q^2 row row' */
    int64_t count[HEC_BLOCKS_MAX];
    double weight[HEC_BLOCKS_MAX];   /* sum of q^2 */
    double seconds;                  /* of all readings */
    int classes;                     /* of the columns; 0 after init */
    double seen_s[HEC_GRAM_CLASSES]; /* of the readings' seconds, by class */
    /* Sum of the squares that an error of time of HEC_TIMING_NS at each end of a reading makes in the shares, by
     * classes. */
    double timing[HEC_GRAM_CLASSES * HEC_GRAM_CLASSES];
    double reading2; /* sum of q^2 sigma^2: known errors of reading */
};

int hec_gram_init(struct hec_gram *gram, int columns); /* 0 or HEC_ERR_NOMEM */
void hec_gram_free(struct hec_gram *gram);
/* weight: q^2, the inverse of the relative variance of y. */
void hec_gram_add(struct hec_gram *gram, int block, const double *row, double weight, double seconds);
/* from, to: shares of the classes about the start and the end of a reading of seconds. */
void hec_gram_time(struct hec_gram *gram, int classes, const double *from, const double *to, double weight,
                   double seconds);
/* Blocks 2i and 2i+1 become block i. */
void hec_gram_halve(struct hec_gram *gram);

#endif
