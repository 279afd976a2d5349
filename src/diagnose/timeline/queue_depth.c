#include "diagnose/timeline/queue_depth.h"

#include <string.h>

void hec_queue_depth_init(struct hec_queue_depth *queue) {
    queue->launch_count = queue->end_count = 0;
    queue->behind_ns = INT64_MIN;
    queue->depth = queue->deepest = 0;
}

/* Near the end of the list as a rule. */
static void insert(int64_t *list, size_t *count, int64_t t_ns) {
    size_t at = *count;
    if (at && list[at - 1] > t_ns) {
        size_t low = 0, high = at;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (list[middle] <= t_ns)
                low = middle + 1;
            else
                high = middle;
        }
        memmove(&list[low + 1], &list[low], (at - low) * sizeof *list);
        at = low;
    }
    list[at] = t_ns;
    ++*count;
}

static void drain(struct hec_queue_depth *queue, int64_t until_ns) {
    size_t l = 0, e = 0;
    for (;;) {
        int64_t launch = l < queue->launch_count ? queue->launches[l] : INT64_MAX;
        int64_t end = e < queue->end_count ? queue->ends[e] : INT64_MAX;
        if ((launch < end ? launch : end) > until_ns || (l == queue->launch_count && e == queue->end_count))
            break;
        if (end <= launch) {
            queue->depth--;
            e++;
        } else {
            if (++queue->depth > queue->deepest)
                queue->deepest = queue->depth;
            l++;
        }
    }
    queue->launch_count -= l;
    queue->end_count -= e;
    memmove(queue->launches, &queue->launches[l], queue->launch_count * sizeof queue->launches[0]);
    memmove(queue->ends, &queue->ends[e], queue->end_count * sizeof queue->ends[0]);
    queue->behind_ns = until_ns;
}

void hec_queue_depth_add(struct hec_queue_depth *queue, int64_t launch_ns, int64_t end_ns) {
    if (end_ns <= queue->behind_ns || end_ns <= launch_ns)
        return; /* begun and done within what is counted: it waited for nothing that still matters */
    if (queue->launch_count == HEC_QUEUE_WINDOW)
        drain(queue, queue->launches[HEC_QUEUE_WINDOW / 2]);
    if (queue->end_count == HEC_QUEUE_WINDOW) /* still, where many were launched at once */
        drain(queue, queue->ends[HEC_QUEUE_WINDOW / 2]);
    if (end_ns <= queue->behind_ns)
        return;
    insert(queue->launches, &queue->launch_count, launch_ns > queue->behind_ns ? launch_ns : queue->behind_ns);
    insert(queue->ends, &queue->end_count, end_ns);
}

int64_t hec_queue_depth_result(struct hec_queue_depth *queue) {
    drain(queue, INT64_MAX);
    return queue->deepest;
}
