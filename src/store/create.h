/* An empty run file at a path, complete from the first moment it can be seen there. */
#ifndef HEC_STORE_CREATE_H
#define HEC_STORE_CREATE_H

#include "base/error.h"

#include <stdbool.h>

/* May a run file be made at path? Without overwrite it must not exist. With it, only a run file or an empty file is replaced, so that
 * `-o train.py` does not cost anybody a program: HEC_ERR_USAGE. */
int hec_create_check(const char *path, bool overwrite, struct hec_why *why);

/* The same, then the file. */
int hec_create_file(const char *path, bool overwrite, struct hec_why *why);

/* Give a finished file its name; without overwrite nothing is replaced. The log of an earlier run there is removed. */
int hec_create_place(const char *temporary, const char *path, bool overwrite, struct hec_why *why);

/* Remove a file and what SQLite may have left beside it. */
void hec_create_remove(const char *path);

#endif
