/* Where the compilers of PyTorch, Triton and CUDA keep what they made, during trials. */
#ifndef HEC_ACT_CACHES_H
#define HEC_ACT_CACHES_H

#include "base/error.h"
#include "launch/environ.h"

enum hec_caches {
    HEC_CACHES_TRIALS, /* one set for all trials of an experiment, empty at its start and thrown away at its end */
    HEC_CACHES_FRESH,  /* every trial begins with empty ones */
    HEC_CACHES_USER,   /* the user's own, as they are; in a scratch layer what is added is thrown away */
    HEC_CACHES_COUNT
};

enum hec_caches hec_caches_find(const char *name); /* HEC_CACHES_COUNT: there is none of that name */

/* Make the folders below `folder` and name them in the environment. */
int hec_caches_set(const char *folder, struct hec_environ *environ, struct hec_why *why);

#endif
