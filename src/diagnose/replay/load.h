/* Inside diagnose/replay: for how long each device does what, as its operations come, nearly in order. */
#ifndef HEC_DIAGNOSE_REPLAY_LOAD_H
#define HEC_DIAGNOSE_REPLAY_LOAD_H

#include "diagnose/replay/replay.h"

/* A union, and up to where it has been counted. */
struct hec_load_union {
    int64_t ns, until_ns;
};

struct hec_load_device {
    struct hec_load_union busy, kernels, active, work;
    int64_t transfer_ns[2]; /* of a collective that waited first: operations that come later may begin before it */
};

struct hec_load {
    struct hec_load_device of[HEC_DEVICE_MAX];
};

void hec_load_begin(struct hec_load *load);
/* The operation of a call, which runs from start_ns to finish_ns. */
void hec_load_add(struct hec_load *load, const struct hec_schedule *schedule, const struct hec_schedule_call *call,
                  int64_t start_ns, int64_t finish_ns);
void hec_load_end(struct hec_load *load, struct hec_replay *out);

#endif
