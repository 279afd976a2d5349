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

/* Whether the process is this user's and acts for nobody else: each of its four ids of a user is that. dir: /proc, open. */
bool hec_proc_is_users(int dir, int32_t pid, uid_t user);

/* Whether the process can be seen and none of its ids of a user is this one. */
bool hec_proc_is_of_others(int dir, int32_t pid, uid_t user);

/* Call visit for every entry of the directory whose name is a number. Returns 0 or -errno (what was seen before an
 * error was visited). */
int hec_proc_list_numbers(int dir, const char *path, void (*visit)(void *context, int32_t number), void *context);
/* Call visit for every number in a text of numbers, such as that of children. */
void hec_proc_each_number(const char *text, void (*visit)(void *context, int32_t number), void *context);

/* The text of /proc files, taken apart. Pure: text in, numbers out. Format: proc(5) and
 * Documentation/filesystems/proc.rst of Linux. Every function takes NUL-terminated text that may be cut off or
 * damaged. */

/* /proc/PID/stat. Times are in clock ticks (sysconf(_SC_CLK_TCK) a second). */
struct hec_proc_stat {
    int32_t pid, parent;
    char state;
    char name[64];        /* printable valid UTF-8: other bytes became '?' */
    int64_t own_ticks;    /* user and system, exited threads included */
    int64_t waited_ticks; /* of descendants that ended and were waited for */
    int64_t start_ticks;  /* since boot; with the pid, the identity of a process */
    int64_t threads;
    int64_t rss_pages;
};

/* /proc/PID/io, in bytes. The kernel adds the counts of children that were waited for to their parent's. */
struct hec_proc_io {
    int64_t read, written; /* through system calls */
    int64_t disk_read;     /* fetched from storage */
};

/* /proc/PID/task/TID/status */
struct hec_proc_status {
    char state;
    int64_t voluntary, involuntary; /* context switches; -1: unknown */
    int64_t rss_max_kib;            /* -1: unknown */
};

bool hec_proc_parse_stat(const char *text, struct hec_proc_stat *out);
bool hec_proc_parse_io(const char *text, struct hec_proc_io *out);
bool hec_proc_parse_status(const char *text, struct hec_proc_status *out);

/* The first line of /proc/stat, in ticks of all cores. Time stolen by a hypervisor and time waiting for I/O are in the
 * total, not in busy. */
bool hec_proc_parse_cpu(const char *text, int64_t *busy_ticks, int64_t *total_ticks);

/* The number after "\nKEY:" (or at the start of the text), as in meminfo and status; -1 when absent. key: with colon.
 * */
int64_t hec_proc_parse_field(const char *text, const char *key);
