/* A lane: collectors that share a thread, driven by their own due times. The threads are the recorder's
 * (observe/recorder.h); a test or a simulated day drives a lane directly with its own clock. */
#ifndef HEC_OBSERVE_LANE_H
#define HEC_OBSERVE_LANE_H

#include "observe/collector.h"

#define HEC_LANE_COLLECTORS_MAX 8

struct hec_lane_set {
    const struct hec_collector *collector[HEC_LANE_COLLECTORS_MAX];
    void *self[HEC_LANE_COLLECTORS_MAX];
    int64_t due_ns[HEC_LANE_COLLECTORS_MAX];
    int64_t cpu_ns[HEC_LANE_COLLECTORS_MAX]; /* spent in open, poll and finish */
    int count;
};

/* Open every collector of `all` (NULL-terminated) that belongs to the lane. One that does not exist here is reported
 * to the sink as a SOURCE_UNAVAILABLE event "NAME: sentence" and left out. */
void hec_lane_open(struct hec_lane_set *set, enum hec_lane lane, const struct hec_collector *const *all,
                   const struct hec_observe_options *options, const struct hec_sink *sink);
/* Poll what is due at now_ns; returns the next due time (INT64_MAX: nothing to do ever). */
int64_t hec_lane_poll(struct hec_lane_set *set, int64_t now_ns);
/* Something changed (the command started): every collector is due at the next poll. */
void hec_lane_wake(struct hec_lane_set *set);
/* Take the last readings; records what each collector cost as the fact "self_cpu_seconds.NAME". */
void hec_lane_finish(struct hec_lane_set *set, const struct hec_sink *sink, int64_t end_ns);
void hec_lane_close(struct hec_lane_set *set);

#endif
