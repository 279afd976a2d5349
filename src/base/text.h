/* Text that came from outside: a command line, a process name, a damaged file. It may hold anything, terminal escapes too. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Length of the UTF-8 character at text, of which `left` bytes may be read (left > 0); 0 when it is malformed, overlong
 * or a surrogate. */
size_t hec_text_character(const unsigned char *text, size_t left);

/* Copy the first `length` bytes of from into out (size > 0), never cutting a character; control characters (C1 too),
 * format characters (overrides of the direction, characters of no width) and what is no UTF-8 become '?', and everything beyond
 * ASCII where utf8 is false. Returns out, NUL-terminated. */
char *hec_text_clean(char *out, size_t size, const char *from, size_t length, bool utf8);

/* Lines that came from outside, such as what a command printed, cleaned: control sequences of terminals (colours too) are left out, a
 * carriage return ends a line, tabs stay. Ends with a newline where there is anything. */
void hec_text_lines(struct hec_buf *out, const char *from);
/* The same to a stream, with what hec says before them. */
void hec_text_print(FILE *to, const char *from);

/* A command as one line that a shell would read back. */
void hec_shell_line(char *const *argv, struct hec_buf *out);
