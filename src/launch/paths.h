/* Where hec finds its own parts, and where it puts a run file by default. */
#pragma once

#include "base/scratch.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* LIBDIR/name beside this binary: the build tree and the installed tree have the same shape. HEC_ERR_NOTFOUND with a
 * sentence when the file does not exist. */
int hec_path_lib(const char *name, char path[PATH_MAX], struct hec_why *why);

/* The same for a file or folder in the folder of data (share/). */
int hec_path_share(const char *name, char path[PATH_MAX], struct hec_why *why);

/* NAME.hec after the command: its base name, or that of the script an interpreter runs; NAME-2.hec ... when taken. */
void hec_path_run_file(char *const *argv, char path[PATH_MAX]);

/* NAME.hec after an imported trace, without .gz, .json, .sqlite ...; NAME-2.hec ... when taken. */
void hec_path_import_file(const char *trace, char path[PATH_MAX]);

/* The sockets in a private folder on which programs and the tracers in them reach hec. */
#define HEC_PATH_SOCKET "mark"
#define HEC_PATH_TRACE_SOCKET "trace"

/* A folder for them, in XDG_RUNTIME_DIR, TMPDIR or /tmp. */
int hec_path_scratch(struct hec_scratch *scratch, struct hec_why *why);

/* Remove those that killed processes left. */
void hec_path_sweep(void);

/* The file of that name among what hec remembers from run to run: in HEC_STATE_DIR, else $XDG_STATE_HOME/hec, else
 * ~/.local/state/hec. HEC_ERR_NOTFOUND, HEC_ERR_LIMIT with a sentence. */
int hec_path_state(const char *name, char path[PATH_MAX], struct hec_why *why);

/* A new folder for a run file that has no other place: number 0, 1, ... of those where one can be made, for this user
 * only. path is "" where that one cannot; false: there are no more. */
bool hec_path_kept_folder(int number, char path[PATH_MAX]);
