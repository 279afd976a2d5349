#include "tracer/tracer.h"

#include <pthread.h>
#include <string.h>

/* A slope further than this from the one before is no drift: the clock was set, or is another one. NTP slews by at most
 * 0.05 %, and a pair of readings is good to 100 ns, so that over 1 ms the slope is known to 0.02 %. */
#define SLOPE_CHANGE_MAX 0.01
/* The slowest and fastest clock that is believed: 50 MHz to 20 GHz. Kineto registers one that counts the processor's
 * time stamps. */
#define SLOPE_MIN 0.05
#define SLOPE_MAX 20.0
/* Pairs closer than this replace each other: they say nothing about the slope. */
#define PAIR_DISTANCE_NS HEC_NS_PER_MS
#define READINGS 5

static struct hec_clock process_clock;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void hec_clock_reset(struct hec_clock *clock) {
    memset(clock, 0, sizeof *clock);
    clock->slope = 1; /* CUPTI's own clock counts ns */
}

void hec_clock_add(struct hec_clock *clock, uint64_t theirs, int64_t ours) {
    if (clock->count > 0) {
        uint64_t last = clock->theirs[clock->count - 1];
        int64_t distance = ours - clock->ours[clock->count - 1];
        if (distance < PAIR_DISTANCE_NS && theirs >= last && (double)(theirs - last) * clock->slope < 2e6)
            return;
        double slope = theirs > last ? (double)distance / (double)(theirs - last) : -1;
        bool first = clock->count == 1;
        if (first ? slope < SLOPE_MIN || slope > SLOPE_MAX
                  : slope < clock->slope * (1 - SLOPE_CHANGE_MAX) || slope > clock->slope * (1 + SLOPE_CHANGE_MAX)) {
            hec_clock_reset(clock);
        } else {
            clock->slope = slope;
            if (clock->count == HEC_CLOCK_PAIRS) {
                clock->count--;
                memmove(clock->theirs, clock->theirs + 1, clock->count * sizeof clock->theirs[0]);
                memmove(clock->ours, clock->ours + 1, clock->count * sizeof clock->ours[0]);
            }
        }
    }
    clock->theirs[clock->count] = theirs;
    clock->ours[clock->count] = ours;
    clock->count++;
}

int64_t hec_clock_map(const struct hec_clock *clock, uint64_t theirs) {
    if (clock->count == 0)
        return INT64_MIN;
    uint32_t last = clock->count - 1;
    double slope = clock->slope;
    uint32_t from = last;
    if (theirs < clock->theirs[last] && last > 0) {
        for (from = last - 1; from > 0 && theirs < clock->theirs[from];)
            from--;
        slope = (double)(clock->ours[from + 1] - clock->ours[from]) /
                (double)(clock->theirs[from + 1] - clock->theirs[from]);
    }
    double ticks = theirs >= clock->theirs[from] ? (double)(theirs - clock->theirs[from])
                                                 : -(double)(clock->theirs[from] - theirs);
    double ns = ticks * slope;
    if (ns > 4e18 || ns < -4e18)
        return INT64_MIN;
    return clock->ours[from] + (int64_t)ns;
}

void hec_clock_read(const struct hec_cupti *cupti) {
    uint64_t best_theirs = 0;
    int64_t best_ours = 0, best_width = INT64_MAX;
    for (int i = 0; i < READINGS; i++) {
        uint64_t theirs = 0;
        int64_t before = hec_out_now_ns();
        if (cupti->GetTimestamp(&theirs) != HEC_CUPTI_SUCCESS || theirs == 0)
            return;
        int64_t width = hec_out_now_ns() - before;
        if (width >= 0 && width < best_width) {
            best_width = width;
            best_theirs = theirs;
            best_ours = before + width / 2;
        }
    }
    pthread_mutex_lock(&lock);
    if (process_clock.count == 0)
        hec_clock_reset(&process_clock);
    hec_clock_add(&process_clock, best_theirs, best_ours);
    pthread_mutex_unlock(&lock);
}

void hec_clock_copy(struct hec_clock *out) {
    pthread_mutex_lock(&lock);
    *out = process_clock;
    pthread_mutex_unlock(&lock);
}

void hec_clock_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}

void hec_clock_fork_parent(void) {
    pthread_mutex_unlock(&lock);
}

void hec_clock_forget(void) {
    pthread_mutex_init(&lock, NULL);
    hec_clock_reset(&process_clock);
}
