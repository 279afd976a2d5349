/* A command as one line that a shell would read back. */
#ifndef HEC_BASE_SHELL_H
#define HEC_BASE_SHELL_H

#include "base/buf.h"

void hec_shell_line(char *const *argv, struct hec_buf *out);

#endif
