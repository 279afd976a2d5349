/* Which devices CUDA_VISIBLE_DEVICES lets a program use: a pure function, so that it can be tested as a table.
 *
 * CUDA's rules, as its documentation and behaviour have them:
 *  - unset: every device; empty: none.
 *  - a comma-separated list whose first entry decides the form of all: ordinals ("0,2"), device UUIDs or unique prefixes
 *    of them ("GPU-8932f937"), MIG UUIDs or unique prefixes, or the older "MIG-GPU-UUID/gi/ci".
 *  - reading stops at the first entry that names nothing ("0,-1,1" is device 0; "NoDevFiles" is none).
 *  - an entry named twice makes the whole list name nothing.
 *  - an ordinal is read like strtoul does: "1gpu" is 1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hec_visible_mig {
    int parent; /* index of the physical device */
    char uuid[96];
    int gpu_instance, compute_instance;
};

struct hec_visible_input {
    const char *text;        /* NULL: unset */
    const char (*uuids)[96]; /* of the physical devices, by index; empty where the driver would not say */
    int count;
    const struct hec_visible_mig *migs;
    int mig_count;
};

/* Fills visible[0..count-1]; a MIG device makes its physical device visible. *by_ordinal (may be NULL): the list names
 * devices by number, whose meaning depends on CUDA_DEVICE_ORDER where the devices differ. Returns the number visible. */
int hec_visible_parse(const struct hec_visible_input *input, bool *visible, bool *by_ordinal);
