/* Inside diagnose/replay: what is usual, of calls of one shape. */
#ifndef HEC_DIAGNOSE_REPLAY_USUAL_H
#define HEC_DIAGNOSE_REPLAY_USUAL_H

#include "diagnose/replay/schedule.h"

#define HEC_USUAL_OF 65536u

/* Of each shape the first so many. */
struct hec_usual_sample {
    int64_t *list; /* malloc'ed: HEC_USUAL_OF each */
    size_t count[HEC_CALL_SHAPES];
};

int hec_usual_begin(struct hec_usual_sample *sample); /* 0 or HEC_ERR_NOMEM */
void hec_usual_free(struct hec_usual_sample *sample);

static inline void hec_usual_note(struct hec_usual_sample *sample, const struct hec_schedule_call *call,
                                  int64_t value) {
    enum hec_call_shape shape = hec_call_shape(call);
    if (sample->count[shape] < HEC_USUAL_OF)
        sample->list[shape * HEC_USUAL_OF + sample->count[shape]++] = value;
}

/* The mean without one in `cut` at either end: a median is less, since delays have a tail. Begins the next sample. otherwise: where there
 * are too few. */
int64_t hec_usual_mean(struct hec_usual_sample *sample, int shape, size_t cut, int64_t otherwise);

/* One figure of all shapes; of fewer calls of a shape than say something, that of kernels, which are the first. */
#define HEC_USUAL(schedule, sample, of, cut, otherwise)                                                                \
    for (int shape_ = 0; shape_ < HEC_CALL_SHAPES; shape_++)                                                           \
    (schedule)->usual[shape_].of = hec_usual_mean(sample, shape_, cut, shape_ ? (schedule)->usual[0].of : (otherwise))

#endif
