/* Clocks of several hosts: collectives end on all ranks at once, so that their ends say how far apart the clocks of two recordings are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_ALIGN_WITHIN_NS                                                                                            \
    INT64_C(500000000)      /* clocks that a network sets differ by milliseconds; without one by more */
#define HEC_ALIGN_MOST 4096 /* ends that are looked at, of each */

struct hec_alignment {
    int64_t shift_ns; /* to be added to the other's times */
    int64_t matched;  /* ends that fall together then */
};

/* Ends of collectives of two recordings, ascending; guess_ns: the shift that wall clocks give. Of shifts that bring nearly as many ends
 * together the one nearest to the guess is taken: steps that are alike fit one step later as well. False, and *out is the guess: there are
 * too few, or less than half of them fall together. HEC_ERR_NOMEM is false too. */
bool hec_align(const int64_t *one, size_t one_count, const int64_t *other, size_t other_count, int64_t guess_ns,
               struct hec_alignment *out);
