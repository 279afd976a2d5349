#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id) {
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

static int64_t real_mono_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t real_wall_ns(void) {
    return read_clock(CLOCK_REALTIME);
}

static const struct hec_clock_source real_source = {real_mono_ns, real_wall_ns};
static const struct hec_clock_source *current = &real_source;

int64_t hec_clock_mono_ns(void) {
    return current->mono_ns();
}

int64_t hec_clock_wall_ns(void) {
    return current->wall_ns();
}

int64_t hec_clock_wall_offset_ns(void) {
    /* the wall read between two monotonic ones: the error is half their distance */
    int64_t before = current->mono_ns();
    int64_t wall = current->wall_ns();
    int64_t after = current->mono_ns();
    return wall - (before + (after - before) / 2);
}

void hec_clock_set_source(const struct hec_clock_source *source) {
    current = source ? source : &real_source;
}
