/* Small files that hec keeps for later runs: whole or not at all when written, and anything when read. */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The text, and a newline where it has none, for this user only. Replaces the file in one step, so that a reader sees the old one or the
 * new one, and a link in its place is replaced and not followed. Makes its folders, for this user only. */
int hec_kept_file_write(const char *path, const char *text, struct hec_why *why);

/* Make the folders of path, for this user only. 0, or -1 with errno. */
int hec_kept_file_folders(const char *path);

/* *text is malloc'ed (not NUL-terminated), NULL on failure. HEC_ERR_NOTFOUND: there is none; CORRUPT: no plain file, or
 * more than bytes_max; PERMISSION also where others may write to it or to its folder (base/own.h), as when it is written. */
int hec_kept_file_read(const char *path, size_t bytes_max, char **text, size_t *length, struct hec_why *why);
/* The same of a file from anybody. */
int hec_small_file_read(const char *path, size_t bytes_max, char **text, size_t *length, struct hec_why *why);

/* A file that is written beside its path, and gets that name once it is whole. */
#define HEC_NEW_FILE_NAME (PATH_MAX + 16)
struct hec_new_file {
    const char *path;                  /* the caller's */
    int fd;                            /* -1: there is none any more */
    char temporary[HEC_NEW_FILE_NAME]; /* its name until then; "": it has none */
};

/* for_others: with the rights that new files have, else for this user only. 0, or -1 with errno. */
int hec_new_file_open(struct hec_new_file *file, const char *path, bool for_others);
/* On the disk, and under its name; without replace not where the name is taken (EEXIST). 0, or -1 with errno, and nothing is left. */
int hec_new_file_place(struct hec_new_file *file, bool replace);
/* Nothing is left of it. */
void hec_new_file_drop(struct hec_new_file *file);
