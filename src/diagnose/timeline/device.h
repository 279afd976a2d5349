/* Inside src/diagnose: what one device did, from its activities in the order of their start. */
#ifndef HEC_DIAGNOSE_TIMELINE_DEVICE_H
#define HEC_DIAGNOSE_TIMELINE_DEVICE_H

#include "diagnose/meter/quantile.h"
#include "diagnose/timeline/queue_depth.h"
#include "diagnose/timeline/tables.h"
#include "diagnose/timeline/union.h"

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
    double sum_ns;
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

#endif
