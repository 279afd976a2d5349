/* A step of a replay as two lanes of columns: what the host and the device do most in each. */
#pragma once

#include "diagnose/replay/replay.h"

#define HEC_LANE_COLUMNS_MOST 240
#define HEC_LANE_CALLS_MOST (1u << 20)

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

/* A step that is to be drawn, and the times of the calls around it in two replays. */
struct hec_lanes_step {
    size_t from, to; /* its calls */
    uint8_t process;
    int device;                            /* -1: there is nothing to draw */
    struct hec_replay_times before, after; /* for the two replays */
    int64_t *room;
};

/* The step of mean length; the stretch, where no steps are known. Nothing is drawn of more than HEC_LANE_CALLS_MOST calls. 0 or
 * HEC_ERR_NOMEM, with nothing to end. */
int hec_lanes_begin(const struct hec_schedule *schedule, struct hec_lanes_step *out);
/* The step as it was recorded and with edits, after the two replays: what one process and one device do for as long as a step
 * takes, at one scale, in so many columns. */
void hec_lanes_draw(const struct hec_schedule *schedule, const struct hec_lanes_step *step,
                    const struct hec_replay *unchanged, const struct hec_replay *edited, int columns,
                    struct hec_step_lanes *recorded, struct hec_step_lanes *replayed);
void hec_lanes_end(struct hec_lanes_step *step);
/* "code", "kernel"...: stable. */
const char *hec_lane_name(enum hec_lane lane);
