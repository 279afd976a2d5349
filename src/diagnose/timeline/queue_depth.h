/* Inside src/diagnose: how much work was launched and not finished, at most. Activities come in the order of their
 * start, launches and ends do not: both wait in a sorted window of HEC_QUEUE_WINDOW events, so that the answer is exact
 * unless more than half as many launches lie between a launch and its start (the driver holds about a thousand; the nodes
 * of a large graph may be more). Then it is too low, but at least half of the window. */
#ifndef HEC_DIAGNOSE_TIMELINE_QUEUE_DEPTH_H
#define HEC_DIAGNOSE_TIMELINE_QUEUE_DEPTH_H

#include <stddef.h>
#include <stdint.h>

#define HEC_QUEUE_WINDOW 4096

struct hec_queue_depth {
    int64_t launches[HEC_QUEUE_WINDOW], ends[HEC_QUEUE_WINDOW]; /* ascending */
    size_t launch_count, end_count;
    int64_t behind_ns; /* everything up to here is counted */
    int64_t depth, deepest;
};

void hec_queue_depth_init(struct hec_queue_depth *queue);
/* launch_ns <= end_ns. An end at the instant of a launch comes first. */
void hec_queue_depth_add(struct hec_queue_depth *queue, int64_t launch_ns, int64_t end_ns);
int64_t hec_queue_depth_result(struct hec_queue_depth *queue);

#endif
