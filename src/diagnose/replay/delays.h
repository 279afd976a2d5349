/* Inside diagnose/replay: delays of calls by their shape, and the usual one: a trimmed mean. */
#ifndef HEC_DIAGNOSE_REPLAY_DELAYS_H
#define HEC_DIAGNOSE_REPLAY_DELAYS_H

#include "diagnose/replay/schedule.h"

#define HEC_DELAYS_KEPT 65536u

/* Of each shape the first HEC_DELAYS_KEPT. */
struct hec_delays {
    int64_t *list; /* malloc'ed: HEC_DELAYS_KEPT each */
    size_t count[HEC_CALL_SHAPES];
};

int hec_delays_begin(struct hec_delays *sample); /* 0 or HEC_ERR_NOMEM */
void hec_delays_free(struct hec_delays *sample);

static inline void hec_delays_add(struct hec_delays *sample, const struct hec_schedule_call *call, int64_t value) {
    enum hec_call_shape shape = hec_call_shape(call);
    if (sample->count[shape] < HEC_DELAYS_KEPT)
        sample->list[shape * HEC_DELAYS_KEPT + sample->count[shape]++] = value;
}

/* The mean without one in `cut` at either end: a median is less, since delays have a tail. Begins the next sample. otherwise: where there
 * are too few. */
int64_t hec_delays_mean(struct hec_delays *sample, int shape, size_t cut, int64_t otherwise);

/* One figure of all shapes; of fewer calls of a shape than say something, that of kernels, which are the first. */
#define HEC_DELAYS_USUAL(schedule, sample, of, cut, otherwise)                                                         \
    for (int shape_ = 0; shape_ < HEC_CALL_SHAPES; shape_++)                                                           \
    (schedule)->usual[shape_].of = hec_delays_mean(sample, shape_, cut, shape_ ? (schedule)->usual[0].of : (otherwise))

#endif
