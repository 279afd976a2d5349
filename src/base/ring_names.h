/* The reader's side of interned names: puts the pieces of HEC_RING_NAME records together, per ring.
 * Bounded for anything the writer sends; a name that does not fit the bounds stays undefined. */
#pragma once

#include "base/ring.h"

#define HEC_RING_NAME_BYTES_MAX (255u * HEC_RING_NAME_PIECE)

struct hec_ring_name_entry;

struct hec_ring_names {
    struct hec_ring_name_entry *entries; /* open addressing by id */
    uint32_t count, capacity, maximum;
    uint32_t bytes_maximum; /* of one name */
};

/* At most `maximum` names of at most bytes_maximum bytes each (<= HEC_RING_NAME_BYTES_MAX). Allocates nothing yet. */
void hec_ring_names_init(struct hec_ring_names *names, uint32_t maximum, uint32_t bytes_maximum);
void hec_ring_names_free(struct hec_ring_names *names);

/* HEC_OK, HEC_ERR_CORRUPT (an impossible piece), HEC_ERR_LIMIT, HEC_ERR_NOMEM. */
int hec_ring_names_add(struct hec_ring_names *names, const struct hec_ring_name *piece);

/* The text of a complete name, control characters and malformed UTF-8 replaced by '?'; NULL while it is undefined.
 * Valid until the next add. */
const char *hec_ring_names_text(const struct hec_ring_names *names, uint32_t id);
