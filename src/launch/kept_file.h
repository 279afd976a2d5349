/* Small files that hec keeps for later runs: whole or not at all when written, and anything when read. */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The text, and a newline where it has none; for_others: with the rights that new files have, else for this user only. Replaces the file in
 * one step, so that a reader sees the old one or the new one, and a link in its place is replaced and not followed. Makes its folders, for
 * this user only. */
int hec_kept_file_write(const char *path, const char *text, bool for_others, struct hec_why *why);

/* Make the folders of path, for this user only. 0, or -1 with errno. */
int hec_kept_file_folders(const char *path);

/* *text is malloc'ed (not NUL-terminated), NULL on failure. HEC_ERR_NOTFOUND: there is none; CORRUPT: no plain file, or
 * more than bytes_max. */
int hec_kept_file_read(const char *path, size_t bytes_max, char **text, size_t *length, struct hec_why *why);
