/* What a rank that waits in collectives loses: no more than its host leaves. */
#include "diagnose/replay/parts.h"
#include "unit.h"

#include <string.h>

#define MS INT64_C(1000000)
#define CALLS 11
#define MET_MS 10
#define CALL (MS / 25)

static struct hec_schedule_call calls[CALLS];
static struct hec_schedule s;

/* One call each ms, of a 25th of it; its operation ends so many tenths of one after its begin. */
static void launches(int64_t tenths) {
    memset(&s, 0, sizeof s);
    memset(calls, 0, sizeof calls);
    for (uint32_t i = 0; i < CALLS; i++)
        calls[i] = (struct hec_schedule_call){.begin_ns = i * MS,
                                              .end_ns = i * MS + CALL,
                                              .start_ns = i * MS + CALL,
                                              .finish_ns = i * MS + tenths * MS / 10,
                                              .after = i ? i - 1 : HEC_SCHEDULE_NONE,
                                              .behind = HEC_SCHEDULE_NONE,
                                              .awaits = HEC_SCHEDULE_NONE};
    s.calls = calls;
    s.count = CALLS;
    s.process_count = 1;
    s.met_to_ns = MET_MS * MS;
    s.waits[0].waited_ns = 8 * MS;
}

static int64_t lost(void) {
    hec_schedule_hosts(&s);
    assert_true(s.waits[0].lost_ns >= 0 && s.waits[0].lost_ns <= s.waits[0].waited_ns);
    return s.waits[0].lost_ns;
}

/* Its queue is never empty, and it launches all the time: the device waits, and the step would take as long. */
TEST(test_a_host_that_is_busy) {
    launches(15);
    assert_int_equal(lost(), MS - CALL); /* before the first call nothing is known */
}

/* Each piece of code outlasts the device's work: it may be a wait that no call tells of. What comes after is its own. */
TEST(test_a_host_that_may_wait) {
    launches(6);
    assert_int_equal(lost(), MET_MS * (MS - CALL) - 9 * MS * 4 / 10);
    launches(6);
    for (int i = 1; i < CALLS; i++) {
        calls[i].begin_ns = calls[i - 1].end_ns + CALL;
        calls[i].end_ns = calls[i].begin_ns + CALL;
    }
    assert_int_equal(lost(), 8 * MS); /* brief pieces are its own, and few */
}

/* Waits for the device are as long as it makes them; a loader's are not. */
TEST(test_a_host_that_waits) {
    launches(15);
    for (int i = 1; i < CALLS; i += 2) {
        calls[i].kind = HEC_CALL_WAIT;
        calls[i].begin_ns = calls[i - 1].end_ns;
        calls[i].end_ns = calls[i + 1].begin_ns;
    }
    assert_int_equal(lost(), 8 * MS);
    for (int i = 0; i + 1 < CALLS; i += 2)
        calls[i].data_ns = (uint32_t)(MS / 2);
    assert_int_equal(lost(), MET_MS * MS - 5 * CALL - 5 * MS / 2);
}

/* Nobody recorded its calls. */
TEST(test_a_host_that_is_not_known) {
    launches(15);
    for (int i = 0; i < CALLS; i++)
        calls[i].flags = HEC_CALL_GUESSED;
    assert_int_equal(lost(), 8 * MS);
}
