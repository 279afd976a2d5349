/* The timeline of a test: one process with two threads and two streams on device 0, and what the analysis makes of it. */
#pragma once

#include "fake_timeline.h"
#include "unit.h"

#define PID 10

static struct fake_timeline t;
static struct hec_timeline made;
static uint32_t process, thread, second_thread, stream, second_stream;

/* Before each test. */
static inline int timeline_begin(void **state) {
    (void)state;
    hec_timeline_free(&made);
    memset(&made, 0, sizeof made);
    fake_tl_free(&t);
    fake_tl_init(&t);
    process = fake_tl_track(&t, HEC_TRACK_PROCESS, PID, -1, 0);
    thread = fake_tl_track(&t, HEC_TRACK_THREAD, PID, -1, PID);
    second_thread = fake_tl_track(&t, HEC_TRACK_THREAD, PID, -1, PID + 2);
    stream = fake_tl_track(&t, HEC_TRACK_STREAM, PID, 0, 7);
    second_stream = fake_tl_track(&t, HEC_TRACK_STREAM, PID, 0, 8);
    return 0;
}

/* `made` anew; of its first device. */
static inline const struct hec_device_timeline *build(void) {
    hec_timeline_free(&made);
    assert_int_equal(fake_pass_timeline(&t.input, &made, NULL), 0);
    return made.device_count ? &made.devices[0] : NULL;
}

static inline void near(double found, double expected) {
    assert_near(found, expected, 1e-12 + 1e-9 * fabs(expected));
}
