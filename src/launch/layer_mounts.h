/* The mounts of this process and the sockets of this system, as far as the layer needs them; for no other. */
#ifndef HEC_LAUNCH_LAYER_MOUNTS_H
#define HEC_LAUNCH_LAYER_MOUNTS_H

#include "base/error.h"

#include <stdbool.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>

struct hec_mount {
    int id;
    char *point, *type;
    unsigned long flags; /* nosuid, noexec ... for mount() */
    bool read_only;
    bool system; /* of the kernel's own kinds, which hold no files of a user */
};

struct hec_mounts {
    struct hec_mount *list;
    size_t count, capacity;
};

/* Those that can be seen: what lies beneath another is left out. */
int hec_mounts_read(struct hec_mounts *mounts, struct hec_why *why);
void hec_mounts_free(struct hec_mounts *mounts);

/* The mount that holds the file at path; NULL: not known. */
const struct hec_mount *hec_mounts_of(const struct hec_mounts *mounts, const char *path);

/* The next file of a list of sockets (/proc/net/unix) that exists and is one. */
bool hec_sockets_next(FILE *list, char path[PATH_MAX]);

#endif
