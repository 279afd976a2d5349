/* Run files of one job, of several hosts or of several `hec run` beside each other, as one run file for a while. */
#pragma once

#include "base/error.h"
#include "base/scratch.h"

#include <limits.h>
#include <stdbool.h>

struct hec_joined {
    struct hec_scratch folder;
    char path[PATH_MAX]; /* of the joined run; "": there is none */
    char files[512];     /* of which it is made */
    bool *is_part;       /* by file: whether it is in it; malloc'ed */
    char apart
        [512]; /* of two that are not of one job, though they have other ranks of as many: why, in words; "": none */
};

/* Of these files those that are one job: they say that it has as many ranks, have other ones of them, and lie in the same time. *out is to
 * be freed; its path is empty where there are no two such files. A file that cannot be read is in no job. */
int hec_joined_make(char *const *files, int count, struct hec_joined *out, struct hec_why *why);
void hec_joined_free(struct hec_joined *joined);
