#include "sim/dvfs.h"

#include <math.h>

#define FLOOR_CLOCK 0.45
#define FLOOR_VOLTAGE 0.64
#define LOWEST_CLOCK 0.1
#define SHARED_POWER                                                                                                   \
    0.6 /* of what an activity draws, even one that only waits for memory: it goes with the cores' clock */

static double voltage(double x) {
    return x <= FLOOR_CLOCK ? FLOOR_VOLTAGE
                            : FLOOR_VOLTAGE + (1 - FLOOR_VOLTAGE) * (x - FLOOR_CLOCK) / (1 - FLOOR_CLOCK);
}

static double share_of(enum sim_activity activity) {
    return sim_activity_info(activity)->clock_share_permille / 1000.0;
}

static double row_clock(enum sim_activity activity) {
    return sim_activity_info(activity)->sm_clock_permille / 1000.0;
}

static double speed(enum sim_activity activity, double x) {
    double share = share_of(activity);
    return 1 / (share * row_clock(activity) / x + 1 - share);
}

static double power_mw(const struct sim_profile *profile, enum sim_activity activity, double x) {
    double share = share_of(activity), full = sim_activity_power_mw(profile, activity), x0 = row_clock(activity);
    if (share <= 0 || x >= x0)
        return full;
    double cores = SHARED_POWER + (1 - SHARED_POWER) * share;
    double clocked = x * voltage(x) * voltage(x) / (x0 * voltage(x0) * voltage(x0));
    return profile->context_mw + (full - profile->context_mw) * (cores * clocked + (1 - cores) * speed(activity, x));
}

/* Power rises with the clock, so halving finds it; the lowest clock where even that draws more. */
static double clock_of(const struct sim_profile *profile, enum sim_activity activity, double wanted_mw) {
    double low = LOWEST_CLOCK, high = row_clock(activity);
    if (power_mw(profile, activity, high) <= wanted_mw)
        return high;
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        if (power_mw(profile, activity, middle) > wanted_mw)
            high = middle;
        else
            low = middle;
    }
    return low;
}

static double locked(const struct sim_profile *profile, const struct sim_limits *limits, enum sim_activity activity) {
    double x0 = row_clock(activity), lock = (double)limits->clock_mhz / profile->sm_clock_mhz;
    return limits->clock_mhz > 0 && lock < x0 ? fmax(lock, LOWEST_CLOCK) : x0;
}

int32_t sim_wanted_mw(const struct sim_profile *profile, const struct sim_limits *limits, enum sim_activity activity) {
    return (int32_t)(power_mw(profile, activity, locked(profile, limits, activity)) + 0.5);
}

double sim_clock_mhz(const struct sim_profile *profile, enum sim_activity activity, int32_t drawn_mw) {
    return profile->sm_clock_mhz * clock_of(profile, activity, drawn_mw);
}

/* The clock under a limit that has acted. */
static double held_clock(const struct sim_profile *profile, enum sim_activity activity, int32_t cap_mw,
                         double highest) {
    if (power_mw(profile, activity, highest) <= cap_mw)
        return highest;
    return fmin(highest, clock_of(profile, activity, sim_held_power_mw(profile, cap_mw)));
}

double sim_pace(const struct sim_profile *profile, const struct sim_limits *limits, enum sim_activity activity,
                bool held) {
    int32_t written_mw = limits->own_mw ? limits->own_mw : profile->power_default_mw;
    double highest = locked(profile, limits, activity), x0 = row_clock(activity);
    if (share_of(activity) <= 0 || (limits->cap_mw >= written_mw && highest >= x0))
        return 1;
    /* a duration is that of the activity where the written limit holds it, in a burst as well */
    double written = speed(activity, held_clock(profile, activity, written_mw, x0));
    double clock = held ? held_clock(profile, activity, limits->cap_mw, highest) : highest;
    return fmin(1, speed(activity, clock) / written);
}

int64_t sim_lasts_ns(const struct sim_profile *profile, const struct sim_limits *limits,
                     const struct sim_controller *controller, enum sim_activity activity, int64_t start_ns,
                     int64_t duration_ns) {
    double free_pace = sim_pace(profile, limits, activity, false);
    double held_pace = sim_pace(profile, limits, activity, true);
    if (held_pace >= 1)
        return duration_ns;
    int64_t burst_ns = 0;
    if (sim_wanted_mw(profile, limits, activity) > limits->cap_mw)
        burst_ns = sim_burst_left_ns(profile, controller, start_ns);
    double in_burst = (double)burst_ns * free_pace;
    if (in_burst >= (double)duration_ns || held_pace >= free_pace)
        return (int64_t)ceil((double)duration_ns / free_pace);
    return burst_ns + (int64_t)ceil(((double)duration_ns - in_burst) / held_pace);
}
