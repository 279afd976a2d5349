/* A file that several processes map. Each holds a shared flock on it as long as it has it mapped, so that what killed
 * processes left behind can be told from what is in use, and removed. */
#ifndef HEC_SIM_FILE_H
#define HEC_SIM_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_file {
    int fd;
    void *memory; /* the first 8 bytes are the magic number, written last by whoever creates the file */
    size_t size;
    char path[256];
};

/* A new file of zeros, allocated in full, readable by its owner only, in TMPDIR, else in /dev/shm, else in /tmp. Removes
 * from that folder the caller's files of that magic number that nobody uses. */
int sim_file_create(size_t size, uint64_t magic, struct sim_file *file, struct hec_why *why);

/* HEC_ERR_NOTFOUND, PERMISSION, or CORRUPT when it is no regular file of at least that size. */
int sim_file_open(const char *path, size_t minimum_size, struct sim_file *file, struct hec_why *why);

void sim_file_close(struct sim_file *file, bool remove_it);

#endif
