/* The recorder: one thread a lane, each with its collectors. A lane that hangs in a driver is abandoned at the end:
 * its sink is cut off, so that the run file can be closed and the command's exit code returned in time. */
#pragma once

#include "observe/collector.h"

struct hec_recorder;

/* Start the lanes; collectors open in their threads. `all` (NULL-terminated), options and sink must outlive the
 * recorder. options->root may be set later through hec_recorder_set_root. */
int hec_recorder_start(const struct hec_collector *const *all, struct hec_observe_options *options,
                       const struct hec_sink *sink, struct hec_recorder **out, struct hec_why *why);

/* Wait until every lane has opened its collectors, at most timeout_ns for that of the driver. For the others, which open
 * nothing slow but may have to wait for a busy core, up to 2 s: a program that starts before its trace can be taken is
 * never traced. Returns how many lanes are not ready yet. */
int hec_recorder_wait_ready(struct hec_recorder *recorder, int64_t timeout_ns);

/* The command runs now: wakes the host lane, so that a short command is seen. */
void hec_recorder_set_root(struct hec_recorder *recorder, pid_t root);

/* The window ended at end_ns: take the last readings, close the collectors, join the threads; a lane that has not
 * finished after timeout_ns is abandoned with an event. Frees the recorder, unless a lane was abandoned (its thread
 * still refers to it): then it lives until the process exits. Returns the number of abandoned lanes. */
int hec_recorder_stop(struct hec_recorder *recorder, int64_t end_ns, int64_t timeout_ns);

/* A lane: collectors that share a thread, driven by their own due times. The threads are the recorder's;
 * a test or a simulated day drives a lane directly with its own clock. */
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
/* Take the last readings; records what each collector cost as the fact "self_cpu_seconds.NAME". */
void hec_lane_finish(struct hec_lane_set *set, const struct hec_sink *sink, int64_t end_ns);
void hec_lane_close(struct hec_lane_set *set);
