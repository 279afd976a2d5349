/* The end of a command after so much work: which steps count. */
#include "launch/stopper.h"

#include "base/clock.h"
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PID 7

static pid_t sleeper(void) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

static void give(struct hec_stopper *s, enum hec_step_source source, int count) {
    for (int i = 0; i < count; i++)
        hec_stopper_step(s, PID, source);
}

/* So many calls of a module, and so many steps of an optimizer afterwards, end a command of 10 steps by `by`, or do not. */
static void check(enum hec_step_source by, int calls, int steps, bool ends) {
    const struct hec_stop stop = {.steps = 10, .by = by};
    struct hec_why why;
    struct hec_stopper *s;
    int status;
    pid_t command = sleeper();
    assert_int_equal(hec_stopper_create(&stop, &s, &why), HEC_OK);
    assert_int_equal(hec_stopper_begin(s, command, 0, &why), HEC_OK);
    give(s, HEC_STEP_MODULE, calls);
    give(s, HEC_STEP_OPTIMIZER, steps);
    if (!ends) {
        usleep(50000); /* what should not come has the time to */
        kill(command, SIGKILL);
    }
    assert_int_equal(waitpid(command, &status, 0), command);
    assert_int_equal(WTERMSIG(status), ends ? SIGTERM : SIGKILL);
    assert_int_equal(hec_stopper_end(s), ends ? HEC_STOPPED_STEPS : HEC_STOPPED_NOT);
    hec_stopper_free(s);
}

TEST(test_calls_of_inference) {
    check(HEC_STEP_NONE, 9, 0, false);
    check(HEC_STEP_NONE, 10, 0, true);
    check(HEC_STEP_MODULE, 10, 0, true);
}

/* It starts for 0.6 s, and is to work for 0.2 s: what ended it was the time, and its first step came before. */
static int64_t started_slowly(int64_t after_ns, int64_t working_ns, int64_t latest_ns, bool steps) {
    const struct hec_stop stop = {.after_ns = after_ns, .working_ns = working_ns, .latest_ns = latest_ns};
    struct hec_why why;
    struct hec_stopper *s;
    int status;
    pid_t command = sleeper();
    int64_t start_ns = hec_clock_mono_ns();
    assert_int_equal(hec_stopper_create(&stop, &s, &why), HEC_OK);
    assert_int_equal(hec_stopper_begin(s, command, start_ns, &why), HEC_OK);
    usleep(600000);
    if (steps)
        give(s, HEC_STEP_OPTIMIZER, 3);
    give(s, HEC_STEP_MODULE, 3); /* of a worse source: it moves nothing */
    assert_int_equal(waitpid(command, &status, 0), command);
    assert_true(WTERMSIG(status) == SIGTERM);
    int64_t took_ns = hec_clock_mono_ns() - start_ns;
    assert_int_equal(hec_stopper_end(s), HEC_STOPPED_TIME);
    hec_stopper_free(s);
    return took_ns / 1000000;
}

TEST(test_a_command_that_starts_slowly) {
    const int64_t ms = 1000000;
    assert_true(started_slowly(100 * ms, 200 * ms, 600000 * ms, true) >= 800);
    assert_true(started_slowly(1000 * ms, 100 * ms, 600000 * ms, true) >= 1000);
    assert_true(started_slowly(100 * ms, 200 * ms, 1200 * ms, false) >= 800);  /* no optimizer: by what there is */
    assert_true(started_slowly(100 * ms, 600000 * ms, 700 * ms, true) >= 700); /* it works for too long */
    assert_true(started_slowly(700 * ms, 200 * ms, 300 * ms, true) >= 700);    /* the latest is no earlier than that */
}

/* nanoGPT calls its model 400 times to evaluate it before the first step of training. */
TEST(test_an_evaluation_before_a_training) {
    check(HEC_STEP_OPTIMIZER, 400, 0, false);
    check(HEC_STEP_OPTIMIZER, 400, 9, false);
    check(HEC_STEP_OPTIMIZER, 400, 10, true);
    check(HEC_STEP_MARKED, 400, 400, false);
}
