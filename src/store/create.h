/* A run file at a path, complete from the first moment it can be seen there. */
#pragma once

#include "base/error.h"
#include "store/image.h"

#include <stdbool.h>

/* May a run file be made at path? Without overwrite it must not exist: HEC_ERR_EXISTS. With it, only a run file or an
 * empty file is replaced, so that `-o train.py` does not cost anybody a program (HEC_ERR_USAGE), and none that is being
 * written (HEC_ERR_BUSY). */
int hec_create_check(const char *path, bool overwrite, struct hec_why *why);

/* The same, then an empty run file and an empty log beside it, both new and this user's: SQLite takes what it finds
 * there for its own, and in a shared folder others could have put it there (HEC_ERR_PERMISSION). *file_fd is a descriptor
 * of the file, which marks it as being written until it is closed. */
int hec_create_file(const char *path, bool overwrite, int *file_fd, struct hec_why *why);

/* The log anew. */
int hec_create_claim(const char *path, struct hec_why *why);

/* After SQLite has opened the file: what it does not use goes. shared: it shares the index of the log with readers. */
void hec_create_opened(const char *path, bool shared);

/* Is the file at path the one that file_fd is of? It may have been removed, renamed or replaced. */
bool hec_create_is_there(const char *path, int file_fd);

/* A file of these bytes. */
int hec_create_write(const char *path, bool overwrite, const struct hec_image *image, struct hec_why *why);

/* Give a finished file its name; without overwrite nothing is replaced. The log of an earlier run there is removed. */
int hec_create_place(const char *temporary, const char *path, bool overwrite, struct hec_why *why);

/* Remove a file and what SQLite may have left beside it. */
void hec_create_remove(const char *path);
