/* A private folder for what lives no longer than the process: sockets, files that are not finished. Where the process is
 * killed, the next one that makes such a folder in the same place removes it: it knows it by a file in it, which bears a
 * mark, is this user's, was made on this host and is locked by nobody. A name alone proves nothing. */
#pragma once

#include "base/error.h"

#include <limits.h>

struct hec_scratch {
    char path[PATH_MAX]; /* "": there is none */
    int owner;           /* descriptor of the locked file: it shows that the process is alive */
};

/* A new folder in parent, for this user only. On failure path is "". */
int hec_scratch_make(struct hec_scratch *scratch, const char *parent, struct hec_why *why);

/* The same beside a file that is to be made. */
int hec_scratch_make_beside(struct hec_scratch *scratch, const char *path, struct hec_why *why);

/* Remove it and all that is in it. Nothing happens where there is none. */
void hec_scratch_remove(struct hec_scratch *scratch);

/* Remove what killed processes left in parent, as making a folder there does. */
void hec_scratch_sweep(const char *parent);

/* A folder with all that is in it. */

/* Remove what is in the open folder, but for an entry of the name `keep` at its top (NULL: nothing is kept). Links are
 * removed and not followed, other mounts are left alone, folders that their owner may not enter are opened up first. Everything
 * is tried; 0, or the errno of the first failure. */
int hec_tree_empty(int folder, const char *keep);
