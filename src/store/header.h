/* The first 100 bytes of a run file, read without SQLite (sqlite.org/fileformat2.html, "The Database Header").
 * Opening and closing a file drops this process's POSIX locks on it: not for a file that this process is writing. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hec_header {
    int64_t file_bytes;
    int64_t expected_bytes; /* page size x pages; 0 when the header does not say */
    bool is_sqlite;
    bool is_run_file;  /* is_sqlite, with the application id of run files */
    uint32_t version;  /* user_version */
    int64_t log_bytes; /* of the write-ahead log and journal beside it */
    bool live;         /* its writer is at work */
};

/* The same of bytes in memory. */
void hec_header_parse(const unsigned char *bytes, size_t length, struct hec_header *header);

/* HEC_OK for any readable regular file, regardless of what is in it; otherwise why it cannot be read.
 * HEC_ERR_PERMISSION: a log of another user lies beside it, which SQLite would take for a part of it. */
int hec_header_read(const char *path, struct hec_header *header, struct hec_why *why);
