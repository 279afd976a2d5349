/* Where -o and --html=FILE point. */
#pragma once

#include "cli/cli.h"

#include <stdio.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* The path of --output, or "" when it was not given. Links are followed, also one to a file that does not exist yet: what
 * is written or replaced is the file that a link points at, never the link. HEC_ERR_USAGE with a sentence for an empty
 * name, a folder, and "-" unless a stream will do (then the path is "-"). */
int hec_output_path(const struct hec_args *args, bool stream, char path[PATH_MAX], struct hec_why *why);

/* The path of the page that --html of ab and try asks for, or "": its own, or beside the receipt. Before the work: an error where it
 * cannot be written there, is the receipt, or exists without --force. */
int hec_output_page(const struct hec_args *args, const char *receipt, char path[PATH_MAX], struct hec_why *why);

/* The path that --first-run of try asks for, or "". Before the work, as the page's. */
int hec_output_first_run(const struct hec_args *args, const char *receipt, char path[PATH_MAX], struct hec_why *why);

/* Before the work: hec_output_write can write there, and replaces no plain file without --force. */
int hec_output_new(const struct hec_args *args, const char *path, struct hec_why *why);
/* A file to write, with more of open's flags; a pipe that nobody reads is an error (ENXIO) and not waited for. NULL with errno. */
FILE *hec_output_open(const char *path, int flags);
/* A plain file is replaced by the whole of it or not at all, and a device or a pipe is written into. */
int hec_output_write(const char *path, const struct hec_buf *text, struct hec_why *why);
/* What a verb prints, to --output or to standard output. An error message is out on failure. */
int hec_output_print(const struct hec_args *args, const struct hec_buf *text);
/* Before the work: --html is not for a terminal, and -o has to be a name that can be written, and none of the files that are read (the
 * operands). An error message is out. */
int hec_output_check(const struct hec_args *args);

struct hec_progress {
    int64_t begin_ns, shown_ns;
    bool terminal, shown;
};

/* Standard error decides, for that is where it is shown. */
void hec_progress_begin(struct hec_progress *progress);
/* what: what is being done; share: 0..1 of it all, NAN when nobody knows. Cheap enough to call often. */
void hec_progress_show(struct hec_progress *progress, const char *what, double share);
/* The same at once: something begins that lasts. */
void hec_progress_now(struct hec_progress *progress, const char *what);
/* Wipe the line. */
void hec_progress_end(struct hec_progress *progress);
