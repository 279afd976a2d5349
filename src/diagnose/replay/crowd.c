#include "diagnose/replay/crowd.h"

#include <math.h>

#define SHARE_MOST 0.9

static int device_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    int device = s->streams[c->stream].device;
    return device >= 0 && device < HEC_DEVICE_MAX ? device : -1;
}

void hec_crowd_add(struct hec_crowd *crowd, const struct hec_schedule *s, const struct hec_schedule_call *c,
                   int64_t lasts_ns) {
    int device = device_of(s, c);
    double share = c->flags & HEC_CALL_COLLECTIVE ? s->groups[c->what].share : hec_schedule_kernel(s, c->what).share;
    if (device < 0 || !(share > 0))
        return;
    crowd->any = true;
    crowd->left_ns[device] += lasts_ns;
    crowd->share[device] = fmin(share, SHARE_MOST);
    if (c->finish_ns > crowd->recorded_until_ns[device])
        crowd->recorded_until_ns[device] = c->finish_ns;
}

/* Rounds of blocks on what is left of the device, over those on all of it; where nothing is known of the kernel it has many. */
static double slowdown(double fill, double share) {
    return isfinite(fill) ? ceil(fill / (1 - share)) / fmax(1, ceil(fill)) : 1 / (1 - share);
}

int64_t hec_crowd_slows(struct hec_crowd *crowd, const struct hec_schedule *s, const struct hec_schedule_call *c,
                        int64_t lasts_ns) {
    int device = device_of(s, c);
    if (device < 0 || crowd->left_ns[device] <= 0)
        return 0;
    int64_t until_ns =
        crowd->recorded_until_ns[device] < c->finish_ns ? crowd->recorded_until_ns[device] : c->finish_ns;
    if (until_ns > c->start_ns) { /* it is as slow already */
        crowd->left_ns[device] -= until_ns - c->start_ns;
        return 0;
    }
    double slow = slowdown(hec_schedule_kernel(s, c->what).fill, crowd->share[device]);
    double beside_ns = fmin((double)crowd->left_ns[device], (double)lasts_ns * slow);
    crowd->left_ns[device] -= (int64_t)beside_ns;
    return (int64_t)(beside_ns * (1 - 1 / slow));
}
