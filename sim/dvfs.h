/* Voltage and clock of the simulated device: what work takes, and what it draws, below its clock. Pure.
 *
 * With x = clock / the profile's highest, x0 that of the activity's row, s the SHARE of its row:
 *
 *   V(x)     = 0.64 up to x = 0.45, then straight to 1 at x = 1
 *   speed(x) = 1 / (s x0 / x + 1 - s)                                         of what it does at x0
 *   power(x) = context + (power(x0) - context) (g x V(x)^2 / (x0 V(x0)^2) + (1 - g) speed(x)),  g = 0.6 + 0.4 s
 *
 * What waits (s = 0: copies, pauses) neither slows nor draws less. The form is the usual one of CMOS (dynamic power goes
 * with f V^2) and of a roofline (time = work of the cores + work of the memory); all numbers are modelled. */
#pragma once

#include "sim/model.h"

struct sim_limits {
    int32_t cap_mw;    /* the power limit that holds */
    int32_t own_mw;    /* durations are written for a device under this one; 0: under the profile's default */
    int32_t clock_mhz; /* the SM clock is locked to at most this; 0: it is not */
};

/* Power of an activity that no limit of power holds. */
int32_t sim_wanted_mw(const struct sim_profile *profile, const struct sim_limits *limits, enum sim_activity activity);

/* The SM clock at which an activity draws so much: that of its row where it draws all it would. */
double sim_clock_mhz(const struct sim_profile *profile, enum sim_activity activity, int32_t power_mw);

/* What it does in a second, of what it does under the limit that durations are written for: 1 where that holds, at most 1.
 * `held`: while the limit of power holds it (struct sim_piece), otherwise in a burst or below the limit. */
double sim_pace(const struct sim_profile *profile, const struct sim_limits *limits, enum sim_activity activity,
                bool held);

/* How long it takes, from start_ns on, what is written as duration_ns: a burst above the limit goes at full speed. */
int64_t sim_lasts_ns(const struct sim_profile *profile, const struct sim_limits *limits,
                     const struct sim_controller *controller, enum sim_activity activity, int64_t start_ns,
                     int64_t duration_ns);
