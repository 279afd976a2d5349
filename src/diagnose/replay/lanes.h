/* A step of a replay as two lanes of columns: what the host and the device do most in each. */
#ifndef HEC_DIAGNOSE_REPLAY_LANES_H
#define HEC_DIAGNOSE_REPLAY_LANES_H

#include "diagnose/replay/replay.h"

#define HEC_LANE_COLUMNS_MOST 240

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

struct hec_step_lanes {
    int device;     /* -1: there is nothing to show */
    int columns;    /* that are filled in */
    double seconds; /* of the step */
    double column_s;
    uint8_t host[HEC_LANE_COLUMNS_MOST], on_device[HEC_LANE_COLUMNS_MOST]; /* enum hec_lane: what is done most */
    uint8_t device_percent[HEC_LANE_COLUMNS_MOST]; /* of the column in which the device does anything, rounded up */
};

/* The step of mean length (the stretch, where no steps are known), as it was recorded and with edits: what one process and one device
 * do for as long as a step takes, at one scale, in so many columns. 0 or HEC_ERR_NOMEM. */
int hec_lanes_of(const struct hec_schedule *schedule, const struct hec_replay_edit *edits, size_t edit_count,
                 int columns, struct hec_step_lanes *recorded, struct hec_step_lanes *replayed);
/* "code", "kernel"...: stable. */
const char *hec_lane_name(enum hec_lane lane);

#endif
