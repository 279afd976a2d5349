/* Where -o and --html=FILE point. */
#pragma once

#include "cli/cli.h"
#include "launch/kept_file.h"

#include <stdio.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The path of --output, or "" when it was not given. Without --force through no link. With it links are followed, also one to a file that
 * does not exist yet: what is written or replaced is the file that a link points at, never the link; a link of another user is refused.
 * HEC_ERR_USAGE with a sentence for an empty name, a folder, and "-" unless a stream will do (then the path is "-"). */
int hec_output_path(const struct hec_args *args, bool stream, char path[PATH_MAX], struct hec_why *why);

/* The path of the page that --html of ab and try asks for, or "": its own, or beside the receipt. Before the work: an error where it
 * cannot be written there, is the receipt, or exists without --force. */
int hec_output_page(const struct hec_args *args, const char *receipt, char path[PATH_MAX], struct hec_why *why);
/* The path that --first-run of try asks for, or "". Before the work, as the page's. */
int hec_output_first_run(const struct hec_args *args, const char *receipt, char path[PATH_MAX], struct hec_why *why);
/* The path that --md of check asks for, or "". *grows: it is GitHub's, to which each step of a job appends. Before the work. */
int hec_output_summary(const struct hec_args *args, char path[PATH_MAX], bool *grows, struct hec_why *why);

/* Before the work: hec_output_open can write there, and replaces nothing without --force. */
int hec_output_new(const struct hec_args *args, const char *path, struct hec_why *why);
/* Before the work: --html is not for a terminal, and -o has to be a name that can be written, and none of the files that are read (the
 * operands). An error message is out. */
int hec_output_check(const struct hec_args *args);

/* A file that a verb writes; all but run files (store/create.h, which keeps the same rules). A plain file is replaced by the whole of it or
 * not at all; a terminal, /dev/null, a pipe of this user's own and a descriptor that hec was given (/dev/stdout) are written into. Without
 * force nothing is that was there: HEC_ERR_EXISTS. No link is followed, and a pipe that nobody reads is an error. */
struct hec_output {
    const char *path; /* the caller's */
    bool force;
    FILE *file;
    struct hec_new_file new;
};
int hec_output_open(struct hec_output *output, const char *path, bool force, struct hec_why *why);
/* Without whole nothing is left of it. */
int hec_output_close(struct hec_output *output, bool whole, struct hec_why *why);

int hec_output_write(const char *path, const struct hec_buf *text, bool force, struct hec_why *why);
/* The descriptor of hec's own that a path names: "/dev/stdout", "/dev/fd/63"; -1: none. The user has opened it. */
int hec_output_own(const char *path);
/* Whether it is a device that nothing is lost in: a terminal, or one that takes all (/dev/null). */
bool hec_output_is_sink(const struct stat *there);
/* What is there, or with O_CREAT may be, to write into: a file or a pipe of this user, or such a device, with O_NONBLOCK: a pipe that
 * nobody reads is an error, and another user who reads may stop. -1 with errno, ELOOP for a link. */
int hec_output_there(const char *path, int flags);
/* At the end of a plain file, which the environment names; no link is followed, and no pipe waited for. */
int hec_output_append(const char *path, const struct hec_buf *text, struct hec_why *why);
/* What a verb prints, to --output or to standard output. An error message is out on failure. */
int hec_output_print(const struct hec_args *args, const struct hec_buf *text);

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
