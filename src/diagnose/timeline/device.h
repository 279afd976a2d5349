/* Inside src/diagnose: what one device did, from its activities in the order of their start. */
#pragma once

#include "diagnose/timeline/tables.h"

/* The length of a union of intervals that come in the order of their start, in constant memory.
 * Intersections follow from unions: |A and B| = |A| + |B| - |A or B|. */

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

/* How much work was launched and not finished, at most. Activities come in the order of their
 * start, launches and ends do not: both wait in a sorted window of HEC_QUEUE_WINDOW events, so that the answer is exact
 * unless more than half as many launches lie between a launch and its start (the driver holds about a thousand; the nodes
 * of a large graph may be more). Then it is too low, but at least half of the window. */
#define HEC_QUEUE_WINDOW 4096

struct hec_queue_depth {
    int64_t launches[HEC_QUEUE_WINDOW], ends[HEC_QUEUE_WINDOW]; /* ascending */
    size_t launch_count, end_count;
    int64_t behind_ns; /* everything up to here is counted */
    int64_t depth, deepest;
};

enum hec_union_kind {
    HEC_UNION_BUSY,
    HEC_UNION_COMPUTE,
    HEC_UNION_COMM,
    HEC_UNION_COPY,
    HEC_UNION_COMPUTE_COMM,
    HEC_UNION_COMPUTE_COPY,
    HEC_UNION_COUNT
};

/* One kernel with one launch configuration, on one device. */
struct hec_kernel_count {
    int64_t count, minimum_ns, maximum_ns;
    double sum_ns, bytes;
};

struct hec_timeline_device {
    int device;
    bool brief; /* kernels, delays and the queue are not asked for */
    struct hec_intervals traced;
    struct hec_union unions[HEC_UNION_COUNT];
    struct hec_union all;              /* for the caller: BUSY whether traced or not */
    int64_t from_ns, to_ns, latest_ns; /* latest: start of the activity before */
    int64_t count[HEC_ACTIVITY_KIND_COUNT];
    struct hec_durations gap, launch_delay, kernel;
    double kernel_sum_ns;
    struct hec_queue_depth queue;
    int64_t queued;
    double queued_ns; /* sum of launch to end, inside the traced time and the device's window */
    struct hec_copy_total copied[HEC_COPY_DIRECTION_COUNT][HEC_COPY_HOST_COUNT];
    double memset_bytes;
    struct hec_kernel_count *kernels; /* by kernel id */
    size_t kernel_count;
    /* Called with every piece of the busy union when it is done, in order; may be NULL. */
    void (*busy)(void *context, int64_t start_ns, int64_t end_ns);
    void *context;
};

/* One stream: where its last graph launch was. */
struct hec_timeline_stream {
    struct hec_timeline_device *device; /* NULL: no device's stream */
    int64_t graph_launch_ns;
    bool used;
};

/* `kernels`: number of kernel ids. 0 or HEC_ERR_NOMEM (free it all the same). The traced time is set by the caller. */
int hec_timeline_device_init(struct hec_timeline_device *d, int device, size_t kernels);
void hec_timeline_device_free(struct hec_timeline_device *d);
/* An activity of HEC_ACTIVITY_DEVICE with plausible times; comm: a kernel that communicates. */
void hec_timeline_device_add(struct hec_timeline_device *d, struct hec_timeline_stream *stream,
                             const struct hec_activity *a, bool comm);
/* No more activities. */
void hec_timeline_device_end(struct hec_timeline_device *d);
void hec_timeline_device_result(struct hec_timeline_device *d, struct hec_device_timeline *out);

/* The table of kernels, one row a name and device (kernels.c). The rows of one device are appended to *rows
 * (malloc'ed), most seconds first; capability: of that device, or NULL where unknown; devices: so many share the room
 * for rows. 0 or HEC_ERR_NOMEM. */
int hec_timeline_kernel_rows(const struct hec_timeline_device *d, const struct hec_timeline_tables *tables,
                             const struct hec_device *capability, size_t devices, struct hec_kernel_row **rows,
                             int *count);
