/* Inside diagnose/replay: communication that goes beside kernels takes multiprocessors from them, a block each. Kernels whose blocks
 * just fill the device then run in two rounds: twice as long. */
#ifndef HEC_DIAGNOSE_REPLAY_CROWD_H
#define HEC_DIAGNOSE_REPLAY_CROWD_H

#include "diagnose/replay/schedule.h"

/* Of each device: communication that went beside, and that no kernel has been slowed by yet. */
struct hec_crowd {
    bool any; /* on some device, so far */
    int64_t left_ns[HEC_DEVICE_MAX];
    double share[HEC_DEVICE_MAX];              /* of the multiprocessors, that it takes */
    int64_t recorded_until_ns[HEC_DEVICE_MAX]; /* what ran before that had it beside them as it was recorded */
};

/* The call's operation communicates beside kernels for lasts_ns. */
void hec_crowd_add(struct hec_crowd *crowd, const struct hec_schedule *schedule, const struct hec_schedule_call *call,
                   int64_t lasts_ns);
/* By how much longer a kernel takes than lasts_ns. */
int64_t hec_crowd_slows(struct hec_crowd *crowd, const struct hec_schedule *schedule,
                        const struct hec_schedule_call *call, int64_t lasts_ns);

#endif
