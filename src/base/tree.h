/* A folder with all that is in it. */
#ifndef HEC_BASE_TREE_H
#define HEC_BASE_TREE_H

#include "base/error.h"

/* Remove what is in the open folder, but for an entry of the name `keep` at its top (NULL: nothing is kept). Links are
 * removed and not followed, other mounts are left alone, folders that their owner may not enter are opened up first. Everything
 * is tried; 0, or the errno of the first failure. */
int hec_tree_empty(int folder, const char *keep);

#endif
