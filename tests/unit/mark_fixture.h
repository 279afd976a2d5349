/* For the tests of marks: a collector, and programs (forked children) that make marks through libhec.so as the build made
 * it, loaded by the header-only form of the API. */
#pragma once

#define HEC_HEADER_ONLY
#include "hec/hec.h"

#include "base/clock.h"
#include "base/ring.h"
#include "observe/collector.h"
#include "tests/unit/folder.h"
#include "tests/unit/kept.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    char socket[300];
    struct hec_observe_options options;
    void *collector;
} marks;

static int marks_begin(void **state) {
    kept_clear();
    memset(&marks, 0, sizeof marks);
    int err = folder_make(state);
    snprintf(marks.socket, sizeof marks.socket, "%s/marks", folder);
    return err;
}

static int marks_end(void **state) {
    (void)state;
    return rmdir(folder); /* nothing is left in it */
}
EACH_TEST(marks_begin, marks_end)

static inline void marks_open(void) {
    struct hec_why why;
    marks.options.mark_socket = marks.socket;
    assert_int_equal(hec_collector_marks.open(&marks.options, &keeping, &marks.collector, &why), HEC_OK);
}

static inline void marks_poll(void) {
    int64_t now_ns = hec_clock_mono_ns();
    int64_t next_ns = hec_collector_marks.poll(marks.collector, now_ns);
    assert_true(next_ns > now_ns && next_ns <= now_ns + HEC_NS_PER_S);
}

/* The window ends then: everything that programs told is in `kept` afterwards, and it is what marks can be. */
static inline void marks_finish_at(int64_t end_ns) {
    hec_collector_marks.finish(marks.collector, end_ns);
    hec_collector_marks.close(marks.collector);
    assert_int_equal(access(marks.socket, F_OK), -1);
    for (int i = 0; i < kept.samples; i++)
        assert_true(kept.sample[i].metric == HEC_STEP_UNITS && !kept.sample[i].missing);
    for (int i = 0; i < kept.events; i++)
        assert_int_equal(kept.event[i].device, HEC_DEVICE_NONE);
    for (int i = 0; i < kept.tracks; i++) {
        assert_int_not_equal(kept.track[i].kind, HEC_TRACK_STREAM);
        assert_int_equal(kept.track[i].rank, -1);
        assert_int_equal(kept.track[i].device, HEC_DEVICE_NONE);
    }
    for (int i = 0; i < kept.activities; i++) {
        const struct hec_activity *a = &kept.activity[i];
        assert_true(a->kind == HEC_ACTIVITY_PHASE || a->kind == HEC_ACTIVITY_STEP || a->kind == HEC_ACTIVITY_VALUE ||
                    a->kind == HEC_ACTIVITY_STACK);
        assert_true(a->name >= 1 && a->launch_ns == 0 && a->launch_track == 0);
    }
}

static inline void marks_finish(void) {
    marks_finish_at(hec_clock_mono_ns());
}

#define PHASES kept_count(HEC_ACTIVITY_PHASE)
#define PHASE(n) kept_nth(HEC_ACTIVITY_PHASE, n)
#define STEPS kept_count(HEC_ACTIVITY_STEP)
#define STEP(n) kept_nth(HEC_ACTIVITY_STEP, n)

/* Whether it is on the track of that thread; 0: on that of the process. */
static inline bool is_of(const struct hec_activity *activity, int32_t pid, int32_t tid) {
    const struct hec_track *track = kept_track(activity->track);
    return track->pid == pid && track->stream == tid;
}

/* Start a program: `body` in a child whose environment is that of an observed command. Its result is the exit code. */
static inline pid_t start(const char *socket, const char *knobs, int (*body)(void)) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    setenv("HEC_LIB", HEC_BINARY_DIR "/lib/libhec.so.0", 1);
    if (socket)
        setenv("HEC_SOCKET", socket, 1);
    else
        unsetenv("HEC_SOCKET");
    if (knobs)
        setenv("HEC_KNOBS", knobs, 1);
    else
        unsetenv("HEC_KNOBS");
    _exit(body());
}

static inline int result(pid_t pid) {
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A program that ends well, with a collector around it; what its pid was. */
static inline pid_t observe(const char *knobs, int (*body)(void)) {
    marks_open();
    pid_t pid = start(marks.socket, knobs, body);
    assert_int_equal(result(pid), 0);
    marks_finish();
    return pid;
}

/* A ring that the test writes itself. */
static inline struct hec_ring ring_to_marks(enum hec_ring_role role, uint32_t records) {
    struct hec_ring ring;
    int fd;
    assert_int_equal(hec_ring_create(records, role, &ring, &fd), HEC_OK);
    assert_int_equal(hec_ring_send(marks.socket, role, 0, fd), HEC_OK);
    close(fd);
    return ring;
}

/* In a program: end it with the line number when something is not as it should be. */
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)
