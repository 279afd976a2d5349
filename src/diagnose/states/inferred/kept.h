/* Inside src/diagnose: activities kept as a pass gives them, so that the run need not be read again. */
#pragma once

#include "model/trace.h"

#include <stdbool.h>
#include <stddef.h>

struct hec_kept { /* zeroed at first */
    struct hec_activity **blocks;
    size_t count, block_count;
    bool cut; /* there were more than may be kept: none is */
};

/* Those of these kinds (HEC_ACTIVITY_BIT). 0 or HEC_ERR_NOMEM. */
int hec_kept_add(struct hec_kept *kept, uint32_t kinds, const struct hec_activity *activities, size_t count);
/* All of them, in chunks, as they came; what visit returns other than 0 ends it and is returned. */
int hec_kept_visit(const struct hec_kept *kept,
                   int (*visit)(void *to, const struct hec_activity *activities, size_t count), void *to);
void hec_kept_free(struct hec_kept *kept); /* may be used again */
