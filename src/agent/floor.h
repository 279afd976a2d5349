/* The idle floor of a device: what it draws while no kernel runs, found in its own readings. */
#ifndef HEC_AGENT_FLOOR_H
#define HEC_AGENT_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

/* One state of the device: with a context on it, or without. A level is the mean of a window of idle time; one that agrees with
 * the window before is stable, and the lowest stable one of the last two hours of idle time is the floor: a device that has
 * just worked idles higher, and copies, which are no kernels, draw a little. */
struct hec_floor {
    int64_t window_ns; /* so far */
    double window_mw_ns;
    int64_t seen_ns;     /* idle time in the present hour */
    double before_mw;    /* mean of the window before; 0: none */
    double lowest_mw[2]; /* in this hour of idle time and in the one before; 0: none */
};

void hec_floor_add(struct hec_floor *floor, int64_t power_mw, int64_t duration_ns);
void hec_floor_set(struct hec_floor *floor, int64_t mw);
int64_t hec_floor_mw(const struct hec_floor *floor); /* -1: not known yet */

#endif
