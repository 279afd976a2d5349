/* How much of what is written covers each instant, so that a writer knows what a reader has to keep at one time. A step
 * function in bounded memory: where there are too many steps, the earlier ones are joined to the higher of two, so that it
 * is never too low. */
#ifndef HEC_STORE_OVERLAP_H
#define HEC_STORE_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_OVERLAP_STEPS_MAX 8192 /* 128 KiB */

struct hec_overlap_step {
    int64_t from, amount;
};

struct hec_overlap { /* all zero: nothing is covered */
    struct hec_overlap_step *steps;
    size_t count, capacity;
};

/* Cover first to last, both included (last < INT64_MAX), with an amount, unless that makes more than most somewhere, or
 * there is no memory: then nothing changes, and the answer is false. */
bool hec_overlap_add(struct hec_overlap *overlap, int64_t first, int64_t last, int64_t amount, int64_t most);
void hec_overlap_free(struct hec_overlap *overlap);

#endif
