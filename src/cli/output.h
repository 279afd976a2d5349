/* Where -o points. */
#ifndef HEC_CLI_OUTPUT_H
#define HEC_CLI_OUTPUT_H

#include "cli/cli.h"

#include <limits.h>

/* The path of --output, or "" when it was not given. Links are followed, also one to a file that does not exist yet: what
 * is written or replaced is the file that a link points at, never the link. HEC_ERR_USAGE with a sentence for an empty
 * name, a folder, and "-" unless a stream will do (then the path is "-"). */
int hec_output_path(const struct hec_args *args, bool stream, char path[PATH_MAX], struct hec_why *why);

#endif
