/* Inside diagnose/replay: how fast a program goes where its graphs' nodes are recorded, and where they are not. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HEC_CADENCE_MOST (1u << 20) /* launches: half an hour of 500 a second */

/* Begins of the launches of graphs, in their order. */
struct hec_cadence {
    int64_t *begin_ns; /* malloc'ed; the owner frees it */
    size_t count, capacity;
};

/* Beyond HEC_CADENCE_MOST they are passed over. 0 or HEC_ERR_NOMEM. */
int hec_cadence_add(struct hec_cadence *launches, int64_t begin_ns);
/* How far apart launches are elsewhere, by how far apart they are here, where nodes are recorded: the usual distance over sixteen of them.
 * NAN: not known, as there are too few, or the distance is not the same throughout: a host that is ahead of its device launches in
 * bursts. 0 or HEC_ERR_NOMEM. */
int hec_cadence_ratio(const struct hec_cadence *elsewhere, const struct hec_cadence *here, double *ratio);
