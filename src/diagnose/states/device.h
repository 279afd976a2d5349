/* Inside src/diagnose: the pieces of one device, from its activities in the order of their start. */
#ifndef HEC_DIAGNOSE_STATES_DEVICE_H
#define HEC_DIAGNOSE_STATES_DEVICE_H

#include "diagnose/states/gap.h"
#include "diagnose/timeline/traced.h"

/* What can keep a device busy, in the order of rank: compute by class, communication, copies. */
#define HEC_STATE_LANE_COMM HEC_KERNEL_CLASS_COMM
#define HEC_STATE_LANE_COPY HEC_KERNEL_CLASS_COUNT /* and on: by enum hec_state_wait */
#define HEC_STATE_LANE_COUNT (HEC_KERNEL_CLASS_COUNT + HEC_STATE_WAIT_COUNT)
_Static_assert((int)HEC_KERNEL_CLASS_COMM == (int)HEC_KERNEL_CLASS_COUNT - 1, "ranks after all that compute");
_Static_assert(HEC_STATE_LANE_COUNT <= 32, "one bit each");

struct hec_state_device {
    int device;
    struct hec_intervals traced;
    size_t window; /* in traced: the first that ends after at_ns */
    const struct hec_state_limits *limits;
    const struct hec_state_visitor *visitor;
    bool started;
    int64_t at_ns; /* pieces are reported up to here */
    uint32_t open; /* bits of lanes that may still be busy at at_ns */
    int64_t open_end_ns[HEC_STATE_LANE_COUNT];
    struct hec_host_thread *main; /* of the process that used it last; NULL: none known */
    const struct hec_host_thread *sampled;
    size_t sample; /* of sampled: the next */
    uint32_t frame;
    const struct hec_state_gap *gap; /* at hand */
    int64_t busy_ns;                 /* since when; in a gap, before it */
    uint32_t hidden_us;              /* of the next piece */
    int64_t wait_end_ns;             /* of the call that waited when the gap at hand began */
    int64_t wait_sent_ns;            /* samples of waiting calls were sent up to here */
    int64_t blind_ns;                /* rule 1: in the gap at hand, what follows is not traced */
    struct hec_state_piece pending;  /* empty: start == end */
};

/* One activity, with what is known of its process. */
struct hec_state_event {
    int64_t start_ns, end_ns, launch_ns, launch_end_ns;
    int lane;
    bool first; /* of its process */
    bool kernel;
    struct hec_host_thread *thread, *main; /* launched it; main of the process. NULL unknown */
    const struct hec_host_thread *sampled; /* has the stack samples of the process */
};

void hec_state_device_init(struct hec_state_device *d, int device, const struct hec_state_limits *limits,
                           const struct hec_state_visitor *visitor);
void hec_state_device_free(struct hec_state_device *d);
/* from: where the first piece may begin. Advances the threads to the event's start. */
int hec_state_device_add(struct hec_state_device *d, const struct hec_state_event *event, int64_t from_ns);
/* No more activities. The threads have been advanced to the end. */
int hec_state_device_end(struct hec_state_device *d, int64_t end_ns);

#endif
