/* An empty run file at a path, complete from the first moment it can be seen there. */
#ifndef HEC_STORE_CREATE_H
#define HEC_STORE_CREATE_H

#include "base/error.h"

#include <stdbool.h>

/* Without overwrite the path must not exist. With it, only a run file or an empty file is replaced, so that
 * `-o train.py` does not cost anybody a program: HEC_ERR_USAGE. */
int hec_create_file(const char *path, bool overwrite, struct hec_why *why);

#endif
