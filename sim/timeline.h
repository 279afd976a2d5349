/* What one device did and does: segments of activity, and the intervals in which a context was on it. Lives in shared
 * memory; nothing here locks (world.h does) or reads a clock. Everything is answered in closed form from prefix sums:
 *
 *   power(t)  = base(t) + excess(t)
 *   base(t)   = the profile's "with context" power while at least one context is on the device, else its idle power
 *   excess(t) = power of the segment that covers t (after the cap) minus "with context"; 0 in gaps
 *
 * Segments are ordered and disjoint: the device serves one at a time, in the order in which they were appended.
 * The rings forget the oldest; energy stays exact, but questions about forgotten instants get the oldest answer. */
#pragma once

#include "sim/dvfs.h"

#include <sys/types.h>

#define SIM_SEGMENT_MAX 16384
#define SIM_PRESENCE_MAX 1024
#define SIM_MILESTONE_EVERY 64

struct sim_segment {
    int64_t start_ns, end_ns;
    int64_t excess_before_nj; /* sum over the earlier segments */
    int64_t over_ns;          /* of the cap controller at its end; 0: not over the cap */
    int32_t power_mw;
    int32_t pid;
    int16_t activity;
    int16_t held;
    int32_t pace_ppm; /* sim_pace */
};

struct sim_presence {
    int64_t start_ns, end_ns; /* INT64_MAX: still there */
    int64_t present_before_ns;
};

struct sim_timeline {
    int64_t epoch_ns;
    uint64_t head; /* segments ever appended; the ring holds the last SIM_SEGMENT_MAX */
    uint64_t presence_head;
    struct sim_controller controller;
    struct sim_presence presence[SIM_PRESENCE_MAX];
    struct sim_active milestone[SIM_SEGMENT_MAX / SIM_MILESTONE_EVERY]; /* before one segment in SIM_MILESTONE_EVERY */
    struct sim_segment segment[SIM_SEGMENT_MAX];
};

void sim_timeline_init(struct sim_timeline *timeline, int64_t epoch_ns);

/* The first context came at t / the last one went at t. Calls alternate, with increasing t. */
void sim_timeline_arrive(struct sim_timeline *timeline, int64_t t_ns);
void sim_timeline_leave(struct sim_timeline *timeline, int64_t t_ns);

/* Append an activity; start_ns is moved behind the last segment if it lies before its end. Returns the pieces (see
 * sim_power_split) as they were placed. duration_ns > 0. */
int sim_timeline_append(struct sim_timeline *timeline, const struct sim_profile *profile,
                        const struct sim_limits *limits, pid_t pid, enum sim_activity activity, int64_t start_ns,
                        int64_t duration_ns, struct sim_piece pieces[2]);

/* The same for the many short pieces of a program: what follows the last segment of the same process within
 * SIM_EXTEND_GAP_NS lengthens it, the pause included, instead of taking a place in the ring, if it is the same activity,
 * or is short: shorter than SIM_EXTEND_SHORT_NS, and the segment than SIM_EXTEND_LONG_NS. So power does not follow
 * microseconds, as on a real board, and the ring holds at least 2.4 s, which is what the power history asks for. At most
 * such a pause of the past changes. */
#define SIM_EXTEND_GAP_NS INT64_C(150000)
#define SIM_EXTEND_SHORT_NS INT64_C(1000000)
#define SIM_EXTEND_LONG_NS INT64_C(10000000)
int sim_timeline_extend(struct sim_timeline *timeline, const struct sim_profile *profile,
                        const struct sim_limits *limits, pid_t pid, enum sim_activity activity, int64_t start_ns,
                        int64_t duration_ns, struct sim_piece pieces[2]);

/* Take back what pid would do from t on. */
void sim_timeline_cut(struct sim_timeline *timeline, const struct sim_profile *profile, pid_t pid, int64_t t_ns);

/* Energy in nJ from the epoch to t; before the epoch the device was idle, which gives a negative value. */
int64_t sim_timeline_energy_nj(const struct sim_timeline *timeline, const struct sim_profile *profile, int64_t t_ns);

/* Of that, what activities added to the power of a device with a context. */
int64_t sim_timeline_excess_nj(const struct sim_timeline *timeline, const struct sim_profile *profile, int64_t t_ns);

/* Time spent in each activity (IDLE and CONTEXT for the gaps) from the epoch to t, and the work done in it. */
void sim_timeline_active(const struct sim_timeline *timeline, int64_t t_ns, struct sim_active *active);

/* What is going on at t. */
struct sim_instant {
    enum sim_activity activity;
    int32_t power_mw;
    bool held, present;
};
struct sim_instant sim_timeline_at(const struct sim_timeline *timeline, const struct sim_profile *profile,
                                   int64_t t_ns);

/* Time in [t0, t1) in which pid kept the device working with kernels (activities with non-zero util). */
int64_t sim_timeline_busy_ns(const struct sim_timeline *timeline, pid_t pid, int64_t t0_ns, int64_t t1_ns);
