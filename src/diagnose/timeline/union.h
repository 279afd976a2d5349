/* Inside src/diagnose: the length of a union of intervals that come in the order of their start, in constant memory.
 * Intersections follow from unions: |A and B| = |A| + |B| - |A or B|. */
#ifndef HEC_DIAGNOSE_TIMELINE_UNION_H
#define HEC_DIAGNOSE_TIMELINE_UNION_H

#include "diagnose/timeline/traced.h"

/* One union: its open end, and the length of what is behind. */
struct hec_union {
    int64_t start_ns, end_ns; /* the piece that may still grow; start > end: none yet */
    int64_t length_ns;        /* of the pieces that are done, inside the traced time */
};

static inline void hec_union_init(struct hec_union *u) {
    *u = (struct hec_union){.start_ns = INT64_MAX, .end_ns = INT64_MIN};
}
/* The piece is done. */
static inline void hec_union_close(struct hec_union *u, struct hec_intervals *traced) {
    if (u->start_ns > u->end_ns)
        return;
    u->length_ns += traced->everywhere ? u->end_ns - u->start_ns : hec_intervals_within(traced, u->start_ns, u->end_ns);
    u->start_ns = INT64_MAX;
    u->end_ns = INT64_MIN;
}

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
