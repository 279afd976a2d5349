/* The tables of a run file, as text, and an empty file made of them. Meaning of every column: docs/run-file.md. */
#pragma once

#include "base/error.h"
#include "store/image.h"

#include <stdbool.h>
#include <stddef.h>

#define HEC_SCHEMA_APPLICATION_ID 0x48454352 /* "HECR", at byte 68 of the file */
#define HEC_SCHEMA_VERSION 2                 /* PRAGMA user_version; every older one is read, from 1 on */
#define HEC_SCHEMA_PAGE_BYTES 4096

/* A reader runs nothing but tables and indices whose text is exactly this; views are for people. */
struct hec_schema_object {
    const char *type; /* "table", "index", "view" */
    const char *name;
    const char *sql;
    unsigned from, to; /* the versions that have it; 0: from the first, to the last */
};

/* Of all versions, in the order in which they are created; the last has a NULL name. */
const struct hec_schema_object *hec_schema_objects(void);
bool hec_schema_has(unsigned version, const struct hec_schema_object *object);

/* The bytes of an empty run file, already marked as in write-ahead mode, so that a file appears complete or not at
 * all and needs no conversion that a kill could interrupt. *image is malloc'ed (free it). */
int hec_schema_image(unsigned char **image, size_t *length, struct hec_why *why);

/* Mark the bytes of a run file as in write-ahead mode, or as closed. */
void hec_schema_mark(struct hec_image *image, bool write_ahead);
