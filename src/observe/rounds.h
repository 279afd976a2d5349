/* When the driver's lane reads its devices. A lane that was given no time (on a busy machine, on a virtual one that was paused)
 * reads late: no device is silent for that. The lane writes, any thread may ask. */
#pragma once

#include <stdint.h>

struct hec_rounds {  /* atomic */
    int64_t due_ns;  /* the next round; INT64_MAX: one is under way, or none is due */
    int64_t late_ns; /* by how much rounds were late so far, summed up */
};

void hec_rounds_due(struct hec_rounds *rounds, int64_t due_ns);
void hec_rounds_begin(struct hec_rounds *rounds, int64_t now_ns);

/* By how much rounds were late until now_ns, with one that is due. */
int64_t hec_rounds_late_ns(const struct hec_rounds *rounds, int64_t now_ns);
