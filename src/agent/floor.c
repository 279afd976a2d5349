#include "agent/floor.h"

#include "base/clock.h"

#include <math.h>

#define WINDOW_NS (3 * HEC_NS_PER_S) /* power settles within a second or two of the last kernel */
#define AGREES 0.03
#define MEMORY_NS (3600 * HEC_NS_PER_S)

static void take_lower(double *lowest_mw, double mw) {
    if (*lowest_mw <= 0 || mw < *lowest_mw)
        *lowest_mw = mw;
}

void hec_floor_add(struct hec_floor *floor, int64_t power_mw, int64_t duration_ns) {
    floor->window_ns += duration_ns;
    floor->window_mw_ns += (double)power_mw * (double)duration_ns;
    floor->seen_ns += duration_ns;
    if (floor->window_ns < WINDOW_NS)
        return;
    double mean_mw = floor->window_mw_ns / (double)floor->window_ns;
    if (mean_mw > 0 && fabs(mean_mw - floor->before_mw) <= AGREES * floor->before_mw)
        take_lower(&floor->lowest_mw[0], (mean_mw + floor->before_mw) / 2);
    floor->before_mw = mean_mw;
    floor->window_ns = 0;
    floor->window_mw_ns = 0;
    if (floor->seen_ns >= MEMORY_NS && floor->lowest_mw[0] > 0) {
        floor->lowest_mw[1] = floor->lowest_mw[0];
        floor->lowest_mw[0] = 0;
        floor->seen_ns = 0;
    }
}

void hec_floor_set(struct hec_floor *floor, int64_t mw) {
    *floor = (struct hec_floor){.lowest_mw = {mw > 0 ? (double)mw : 0, 0}};
}

int64_t hec_floor_mw(const struct hec_floor *floor) {
    double mw = floor->lowest_mw[0];
    if (floor->lowest_mw[1] > 0)
        take_lower(&mw, floor->lowest_mw[1]);
    return mw > 0 ? (int64_t)llround(mw) : -1;
}
