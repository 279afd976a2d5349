/* How well the mean of an autocorrelated series is known from the series itself. */
#ifndef HEC_PROVE_BLOCKS_H
#define HEC_PROVE_BLOCKS_H

#define HEC_BLOCKS_LEAST 8 /* a shorter series says nothing of its own autocorrelation */

struct hec_blocks {
    double variance; /* of the mean; NAN: too short */
    double freedom;  /* degrees of freedom that this variance is worth */
    int length;      /* of a block */
};

/* e[count]: in order of time; it is overwritten. */
struct hec_blocks hec_blocks_variance(double *e, int count);

#endif
