/* Inside src/diagnose: the length of a union of intervals that come in the order of their start, in constant memory.
 * Intersections follow from unions: |A and B| = |A| + |B| - |A or B|. */
#ifndef HEC_DIAGNOSE_TIMELINE_UNION_H
#define HEC_DIAGNOSE_TIMELINE_UNION_H

#include "diagnose/traced.h"

/* One union: its open end, and the length of what is behind. */
struct hec_union {
    int64_t start_ns, end_ns; /* the piece that may still grow; start > end: none yet */
    int64_t length_ns;        /* of the pieces that are done, inside the traced time */
};

void hec_union_init(struct hec_union *u);
/* The piece is done. */
void hec_union_close(struct hec_union *u, struct hec_intervals *traced);

/* True when the interval begins a new piece: the one before it, if any, has been closed. */
static inline bool hec_union_add(struct hec_union *u, struct hec_intervals *traced, int64_t start_ns, int64_t end_ns) {
    if (start_ns <= u->end_ns) {
        if (end_ns > u->end_ns)
            u->end_ns = end_ns;
        return false;
    }
    hec_union_close(u, traced);
    u->start_ns = start_ns;
    u->end_ns = end_ns;
    return true;
}

#endif
