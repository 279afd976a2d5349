#include "diagnose/timeline_union.h"

void hec_union_init(struct hec_union *u) {
    *u = (struct hec_union){.start_ns = INT64_MAX, .end_ns = INT64_MIN};
}

void hec_union_close(struct hec_union *u, struct hec_intervals *traced) {
    if (u->start_ns > u->end_ns)
        return;
    u->length_ns += traced->everywhere ? u->end_ns - u->start_ns : hec_intervals_within(traced, u->start_ns, u->end_ns);
    u->start_ns = INT64_MAX;
    u->end_ns = INT64_MIN;
}
