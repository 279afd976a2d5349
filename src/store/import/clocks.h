/* Clocks of several files. PyTorch numbers the collectives of a process group (`Seq`), and those in which each rank needs something of
 * all others end on all of them at once: the same ones show how far two clocks are apart, whatever a file leaves out at its begin. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define HEC_IMPORT_MEETINGS_MAX (4u << 20) /* kept, of all files: 96 MiB */

struct hec_import;

struct hec_import_meetings {
    struct hec_import_meeting {
        uint64_t key; /* of the collective: its process group, and its number in that */
        int64_t end_ns;
        int file; /* index */
    } * list;
    size_t count, capacity;
};

/* Of a collective that ends in a file, by its clock. */
int hec_import_meetings_add(struct hec_import_meetings *meetings, uint64_t key, int file, int64_t end_ns,
                            struct hec_why *why);

/* All clocks to that of the lowest rank with which they have collectives in common, or by way of others. Ranks are known. */
void hec_import_clocks_set(struct hec_import *import);
