/* What calls show of a run, up to where it can be known by any variant. */
#ifndef TESTS_UNIT_FAKE_INFERRED_H
#define TESTS_UNIT_FAKE_INFERRED_H

#include "diagnose/states/inferred/inferred.h"
#include "fake_pass.h"

struct fake_inferred {
    struct hec_pass pass;
    struct hec_inferred *inferred;
};

/* False: nothing is inferred. */
static inline bool fake_inferred_begin(struct fake_inferred *w, struct hec_meter *meter,
                                       const struct hec_timeline_input *input) {
    struct hec_pass_consumer consumer;
    bool any = false;
    int err = hec_pass_open(input, &w->pass, NULL);
    if (!err)
        err = hec_inferred_begin(&w->pass, &w->inferred, &consumer);
    if (!err)
        err = hec_pass_run(&w->pass, &consumer, 1, NULL);
    if (!err)
        err = hec_inferred_decide(w->inferred, meter, 0, &any, NULL);
    return !err && any;
}

static inline void fake_inferred_free(struct fake_inferred *w) {
    hec_inferred_free(w->inferred);
    hec_pass_close(&w->pass);
}

#endif
