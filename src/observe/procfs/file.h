/* Reading files of /proc: small, generated on read, and gone at any moment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read the file at path, relative to the open directory dir, into text and end it with NUL; what does not fit is cut.
 * Returns the length or -errno. */
ssize_t hec_proc_read(int dir, const char *path, char *text, size_t size);
/* The same through a descriptor that is already open: half the cost, and immune to a pid being used again. */
ssize_t hec_proc_reread(int fd, char *text, size_t size);

/* True when -errno means that the process has ended, not that reading failed. */
bool hec_proc_error_is_gone(ssize_t error);
/* True when -errno means that reading is not allowed. */
bool hec_proc_error_is_denied(ssize_t error);

/* Call visit for every entry of the directory whose name is a number. Returns 0 or -errno (what was seen before an
 * error was visited). */
int hec_proc_list_numbers(int dir, const char *path, void (*visit)(void *context, int32_t number), void *context);
/* Call visit for every number in a text of numbers, such as that of children. */
void hec_proc_each_number(const char *text, void (*visit)(void *context, int32_t number), void *context);
