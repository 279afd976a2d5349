/* A step of a replay as two lanes of columns: what the host and the device do most in each. */
#ifndef HEC_DIAGNOSE_REPLAY_LANES_H
#define HEC_DIAGNOSE_REPLAY_LANES_H

#include "diagnose/replay/replay.h"

#define HEC_LANE_COLUMNS 60

enum hec_lane {
    HEC_LANE_NOTHING, /* the device waits; the host is before or after the step */
    HEC_LANE_CODE,    /* the program's own */
    HEC_LANE_DATA,
    HEC_LANE_CHECKPOINT,
    HEC_LANE_CALL,
    HEC_LANE_WAIT,
    HEC_LANE_KERNEL,
    HEC_LANE_COPY,
    HEC_LANE_COMM,
    HEC_LANE_COUNT
};

struct hec_lanes {
    int device;     /* -1: there is nothing to show */
    double seconds; /* of the step; the lanes are longer where the device goes on after the host */
    uint8_t host[HEC_LANE_COLUMNS], on_device[HEC_LANE_COLUMNS]; /* enum hec_lane */
};

/* The step of mean length (the stretch, where no steps are known), as it was recorded and with edits: the same calls, of one process
 * and device, at the same scale. 0 or HEC_ERR_NOMEM. */
int hec_lanes_of(const struct hec_schedule *schedule, const struct hec_replay_edit *edits, size_t edit_count,
                 struct hec_lanes *recorded, struct hec_lanes *replayed);

#endif
