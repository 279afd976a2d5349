#include "diagnose/timeline/device.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int hec_timeline_device_init(struct hec_timeline_device *d, int device, size_t kernels) {
    memset(d, 0, sizeof *d);
    d->device = device;
    d->traced.everywhere = true;
    for (int i = 0; i < HEC_UNION_COUNT; i++)
        hec_union_init(&d->unions[i]);
    hec_union_init(&d->all);
    d->queue.behind_ns = INT64_MIN;
    d->from_ns = INT64_MAX;
    d->latest_ns = INT64_MIN;
    d->to_ns = INT64_MIN;
    d->kernel_count = kernels + 1; /* the entry 0: kernels without a definition */
    d->kernels = calloc(d->kernel_count, sizeof *d->kernels);
    int err = hec_durations_init(&d->gap) | hec_durations_init(&d->launch_delay) | hec_durations_init(&d->kernel);
    return err || !d->kernels ? HEC_ERR_NOMEM : 0;
}

void hec_timeline_device_free(struct hec_timeline_device *d) {
    hec_intervals_free(&d->traced);
    hec_durations_free(&d->gap);
    hec_durations_free(&d->launch_delay);
    hec_durations_free(&d->kernel);
    free(d->kernels);
    memset(d, 0, sizeof *d);
}

/* ---- copies ---- */

enum side { SIDE_UNKNOWN, SIDE_HOST, SIDE_DEVICE };

static enum side side_of(uint8_t memory) {
    static const enum side sides[HEC_MEMORY_KIND_COUNT] = {
        [HEC_MEMORY_PAGEABLE] = SIDE_HOST, [HEC_MEMORY_PINNED] = SIDE_HOST,    [HEC_MEMORY_DEVICE] = SIDE_DEVICE,
        [HEC_MEMORY_ARRAY] = SIDE_DEVICE,  [HEC_MEMORY_MANAGED] = SIDE_DEVICE, [HEC_MEMORY_HOST] = SIDE_HOST,
    };
    return memory < HEC_MEMORY_KIND_COUNT ? sides[memory] : SIDE_UNKNOWN;
}

static enum hec_copy_host host_of(uint8_t memory) {
    return memory == HEC_MEMORY_PAGEABLE ? HEC_COPY_PAGEABLE
           : memory == HEC_MEMORY_PINNED ? HEC_COPY_PINNED
                                         : HEC_COPY_HOST_OTHER;
}

static struct hec_copy_total *total_of(struct hec_timeline_device *d, const struct hec_activity *a) {
    enum side from = side_of(a->from), to = side_of(a->to);
    if (a->flags & HEC_ACTIVITY_PEER)
        return &d->copied[HEC_COPY_PEER][HEC_COPY_HOST_OTHER];
    if (from == SIDE_HOST && to == SIDE_DEVICE)
        return &d->copied[HEC_COPY_HOST_TO_DEVICE][host_of(a->from)];
    if (from == SIDE_DEVICE && to == SIDE_HOST)
        return &d->copied[HEC_COPY_DEVICE_TO_HOST][host_of(a->to)];
    if (from == SIDE_DEVICE && to == SIDE_DEVICE)
        return &d->copied[HEC_COPY_DEVICE_TO_DEVICE][HEC_COPY_HOST_OTHER];
    return &d->copied[HEC_COPY_OTHER][HEC_COPY_HOST_OTHER];
}

/* ---- unions ---- */

static void add_gap(void *context, int64_t start_ns, int64_t end_ns) {
    hec_durations_add(&((struct hec_timeline_device *)context)->gap, end_ns - start_ns);
}

static void add_busy(struct hec_timeline_device *d, int64_t start_ns, int64_t end_ns) {
    struct hec_union *busy = &d->unions[HEC_UNION_BUSY];
    int64_t before_start = busy->start_ns, before_end = busy->end_ns;
    if (!hec_union_add(busy, &d->traced, start_ns, end_ns) || before_start > before_end)
        return;
    hec_intervals_pieces(&d->traced, before_end, start_ns, add_gap, d);
    if (d->busy)
        d->busy(d->context, before_start, before_end);
}

static void add_to(struct hec_timeline_device *d, enum hec_union_kind kind, const struct hec_activity *a) {
    hec_union_add(&d->unions[kind], &d->traced, a->start_ns, a->end_ns);
}

/* ---- launches ---- */

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

/* launch_ns <= end_ns. An end at the instant of a launch comes first. */
static void add_queued(struct hec_queue_depth *queue, int64_t launch_ns, int64_t end_ns) {
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

static int64_t deepest(struct hec_queue_depth *queue) {
    drain(queue, INT64_MAX);
    return queue->deepest;
}

static void add_launch(struct hec_timeline_device *d, struct hec_timeline_stream *stream,
                       const struct hec_activity *a) {
    int64_t launch = a->launch_ns;
    if (launch < -HEC_TIMELINE_TIME_MAX || launch > a->start_ns)
        return; /* unknown, or after the start: the clocks of host and device did not agree */
    bool node = (a->flags & HEC_ACTIVITY_IN_GRAPH) != 0;
    if (!node || launch != stream->graph_launch_ns) /* of a graph, the first node alone waits for the launch */
        hec_durations_add(&d->launch_delay, a->start_ns - launch);
    if (node)
        stream->graph_launch_ns = launch;
    add_queued(&d->queue, launch, a->end_ns);
    d->queued++;
    int64_t from = launch > d->from_ns ? launch : d->from_ns;
    d->queued_ns +=
        d->traced.everywhere ? (double)(a->end_ns - from) : (double)hec_intervals_within(&d->traced, from, a->end_ns);
}

static void add_kernel(struct hec_timeline_device *d, const struct hec_activity *a) {
    int64_t length = a->end_ns - a->start_ns;
    struct hec_kernel_count *k = &d->kernels[a->name < d->kernel_count ? a->name : 0];
    if (!k->count || length < k->minimum_ns)
        k->minimum_ns = length;
    if (!k->count || length > k->maximum_ns)
        k->maximum_ns = length;
    k->count++;
    k->sum_ns += (double)length;
    k->bytes += a->amount;
    d->kernel_sum_ns += (double)length;
    hec_durations_add(&d->kernel, length);
}

void hec_timeline_device_add(struct hec_timeline_device *d, struct hec_timeline_stream *stream,
                             const struct hec_activity *a, bool comm) {
    struct hec_activity late;
    if (a->start_ns < d->latest_ns) { /* out of order, from a damaged file: what lies behind is counted already */
        late = *a;
        late.start_ns = d->latest_ns;
        late.end_ns = a->end_ns > late.start_ns ? a->end_ns : late.start_ns;
        a = &late;
    }
    d->latest_ns = a->start_ns;
    if (a->start_ns < d->from_ns)
        d->from_ns = a->start_ns;
    if (a->end_ns > d->to_ns)
        d->to_ns = a->end_ns;
    d->count[a->kind]++;
    add_busy(d, a->start_ns, a->end_ns);
    if (a->kind == HEC_ACTIVITY_KERNEL && !d->brief)
        add_kernel(d, a);
    if (a->kind == HEC_ACTIVITY_COPY || a->kind == HEC_ACTIVITY_MEMSET) {
        add_to(d, HEC_UNION_COPY, a);
        add_to(d, HEC_UNION_COMPUTE_COPY, a);
        double bytes = isfinite(a->amount) && a->amount > 0 ? a->amount : 0;
        if (a->kind == HEC_ACTIVITY_MEMSET) {
            d->memset_bytes += bytes;
        } else {
            struct hec_copy_total *total = total_of(d, a);
            total->count++;
            total->bytes += bytes;
            total->seconds += (double)(a->end_ns - a->start_ns) / HEC_NS_PER_S;
        }
    } else if (comm) {
        add_to(d, HEC_UNION_COMM, a);
        add_to(d, HEC_UNION_COMPUTE_COMM, a);
    } else {
        add_to(d, HEC_UNION_COMPUTE, a);
        add_to(d, HEC_UNION_COMPUTE_COMM, a);
        add_to(d, HEC_UNION_COMPUTE_COPY, a);
    }
    if (!d->brief)
        add_launch(d, stream, a);
}

void hec_timeline_device_end(struct hec_timeline_device *d) {
    const struct hec_union *busy = &d->unions[HEC_UNION_BUSY];
    if (d->busy && busy->start_ns <= busy->end_ns)
        d->busy(d->context, busy->start_ns, busy->end_ns);
    for (int i = 0; i < HEC_UNION_COUNT; i++)
        hec_union_close(&d->unions[i], &d->traced);
}

static double seconds(double ns) {
    return ns / HEC_NS_PER_S;
}

void hec_timeline_device_result(struct hec_timeline_device *d, struct hec_device_timeline *out) {
    int64_t length[HEC_UNION_COUNT];
    for (int i = 0; i < HEC_UNION_COUNT; i++)
        length[i] = d->unions[i].length_ns;
    int64_t window = d->to_ns - d->from_ns, traced = hec_intervals_within(&d->traced, d->from_ns, d->to_ns);
    int64_t with_comm = length[HEC_UNION_COMPUTE] + length[HEC_UNION_COMM] - length[HEC_UNION_COMPUTE_COMM];
    int64_t with_copy = length[HEC_UNION_COMPUTE] + length[HEC_UNION_COPY] - length[HEC_UNION_COMPUTE_COPY];
    *out = (struct hec_device_timeline){
        .device = d->device,
        .from_s = seconds((double)d->from_ns),
        .to_s = seconds((double)d->to_ns),
        .window_s = seconds((double)window),
        .traced_s = seconds((double)traced),
        .busy_s = seconds((double)length[HEC_UNION_BUSY]),
        .idle_s = seconds((double)(traced - length[HEC_UNION_BUSY])),
        .compute_s = seconds((double)length[HEC_UNION_COMPUTE]),
        .non_compute_s = seconds((double)(length[HEC_UNION_BUSY] - length[HEC_UNION_COMPUTE])),
        .comm_s = seconds((double)length[HEC_UNION_COMM]),
        .copy_s = seconds((double)length[HEC_UNION_COPY]),
        .comm_overlap = length[HEC_UNION_COMM] ? (double)with_comm / (double)length[HEC_UNION_COMM] : NAN,
        .copy_overlap = length[HEC_UNION_COPY] ? (double)with_copy / (double)length[HEC_UNION_COPY] : NAN,
        .kernels = d->count[HEC_ACTIVITY_KERNEL],
        .copies = d->count[HEC_ACTIVITY_COPY],
        .memsets = d->count[HEC_ACTIVITY_MEMSET],
        .graphs = d->count[HEC_ACTIVITY_GRAPH],
        .kernel_sum_s = seconds(d->kernel_sum_ns),
        .gap = hec_durations_result(&d->gap),
        .launch_delay = hec_durations_result(&d->launch_delay),
        .kernel = hec_durations_result(&d->kernel),
        .queue_mean = d->queued && traced > 0 ? d->queued_ns / (double)traced : NAN,
        .queue_max = d->queued ? (double)deepest(&d->queue) : NAN,
        .memset_bytes = d->memset_bytes,
    };
    memcpy(out->copied, d->copied, sizeof out->copied);
}
