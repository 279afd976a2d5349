/* The mounts of this process, as far as the layer needs them; for no other. */
#ifndef HEC_LAUNCH_LAYER_MOUNTS_H
#define HEC_LAUNCH_LAYER_MOUNTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

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

#endif
