/* The names of a trace and their ids: asked for with every event, of the same few hundred names. A small cache in front
 * of the sink, which has a lock and a table of its own. */
#ifndef HEC_STORE_IMPORT_NAMES_H
#define HEC_STORE_IMPORT_NAMES_H

#include "model/run.h"

#define HEC_IMPORT_NAME_MAX 16384
#define HEC_IMPORT_NAMES 1024 /* a power of two */

struct hec_import_names {
    struct hec_import_known_name {
        uint64_t hash;
        size_t length;
        char *text; /* NULL: free */
        uint32_t id;
    } known[HEC_IMPORT_NAMES];
    char clean[HEC_IMPORT_NAME_MAX + 1];
};

/* The sink's id of a name: cut to HEC_IMPORT_NAME_MAX bytes, cleaned. */
uint32_t hec_import_names_id(struct hec_import_names *names, const struct hec_sink *sink, const char *text,
                             size_t length);
void hec_import_names_free(struct hec_import_names *names);

#endif
