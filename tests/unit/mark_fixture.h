/* For the tests of marks: a collector with a sink that keeps what it is given, and programs (forked children) that make
 * marks through libhec.so as the build made it, loaded by the header-only form of the API. */
#ifndef HEC_TESTS_MARK_FIXTURE_H
#define HEC_TESTS_MARK_FIXTURE_H

#define HEC_HEADER_ONLY
#include "hec/hec.h"

#include "base/clock.h"
#include "base/ring.h"
#include "observe/collector.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT 16384

struct kept_sample {
    int32_t pid;
    int64_t t_ns, value;
};

struct kept_event {
    enum hec_event_kind kind;
    char text[256];
};

struct kept_text {
    char text[320];
};

struct kept_activity {
    int64_t start_ns, end_ns;
    int32_t pid, tid; /* tid 0: on the track of the process */
    double amount;
    uint32_t frame;
    int detail, flags;
    char name[64];
};

/* What the sink was given. */
struct kept {
    struct kept_sample sample[KEPT];
    struct kept_activity span[KEPT]; /* phases */
    struct kept_activity step[KEPT], value[KEPT], stack[KEPT];
    struct hec_frame frame[KEPT]; /* by id - 1; file and function are indices of name */
    struct hec_track track[KEPT]; /* by id - 1 */
    struct kept_text name[KEPT];  /* by id - 1 */
    struct kept_text meta[KEPT];  /* "key=value" */
    struct kept_event event[KEPT];
    struct {
        char name[64];
        double count;
    } unit[100];
    int samples, spans, events, units, steps, values, stacks, frames, tracks, names, metas;
};

static struct kept kept;

static void keep_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    (void)context;
    assert_int_equal(metric, HEC_STEP_UNITS);
    assert_true(kept.samples < KEPT);
    kept.sample[kept.samples++] = (struct kept_sample){subject, t_ns, value};
}

static void keep_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)t_ns;
    assert_int_equal(device, HEC_DEVICE_NONE);
    assert_true(kept.events < KEPT);
    kept.event[kept.events].kind = kind;
    snprintf(kept.event[kept.events++].text, sizeof kept.event[0].text, "%s", text);
}

static uint32_t keep_name(void *context, const char *text) {
    (void)context;
    for (int i = 0; i < kept.names; i++)
        if (strcmp(kept.name[i].text, text) == 0)
            return (uint32_t)i + 1;
    assert_true(kept.names < KEPT);
    snprintf(kept.name[kept.names].text, sizeof kept.name[0].text, "%s", text);
    return (uint32_t)++kept.names;
}

static uint32_t keep_track(void *context, const struct hec_track *track) {
    (void)context;
    assert_true(track->kind != HEC_TRACK_STREAM && track->rank == -1 && track->device == HEC_DEVICE_NONE);
    for (int i = 0; i < kept.tracks; i++)
        if (kept.track[i].kind == track->kind && kept.track[i].pid == track->pid &&
            kept.track[i].stream == track->stream)
            return (uint32_t)i + 1;
    assert_true(kept.tracks < KEPT);
    kept.track[kept.tracks] = *track;
    return (uint32_t)++kept.tracks;
}

static uint32_t keep_frame(void *context, const struct hec_frame *frame) {
    (void)context;
    for (int i = 0; i < kept.frames; i++)
        if (kept.frame[i].parent == frame->parent && kept.frame[i].file == frame->file &&
            kept.frame[i].function == frame->function && kept.frame[i].line == frame->line)
            return (uint32_t)i + 1;
    assert_true(kept.frames < KEPT);
    kept.frame[kept.frames] = *frame;
    return (uint32_t)++kept.frames;
}

static void keep_activity(const struct hec_activity *activity) {
    bool stack = activity->kind == HEC_ACTIVITY_STACK;
    struct kept_activity *list = activity->kind == HEC_ACTIVITY_PHASE   ? kept.span
                                 : activity->kind == HEC_ACTIVITY_STEP  ? kept.step
                                 : activity->kind == HEC_ACTIVITY_VALUE ? kept.value
                                                                        : kept.stack;
    int *count = activity->kind == HEC_ACTIVITY_PHASE   ? &kept.spans
                 : activity->kind == HEC_ACTIVITY_STEP  ? &kept.steps
                 : activity->kind == HEC_ACTIVITY_VALUE ? &kept.values
                                                        : &kept.stacks;
    assert_true(stack || list != kept.stack);
    assert_true(activity->start_ns <= activity->end_ns);
    assert_in_range(activity->track, 1, kept.tracks);
    assert_in_range(activity->name, 1, stack ? kept.frames : kept.names);
    assert_int_equal(activity->launch_ns, 0);
    assert_int_equal(activity->launch_track, 0);
    assert_true(*count < KEPT);
    struct kept_activity *to = &list[(*count)++];
    const struct hec_track *track = &kept.track[activity->track - 1];
    *to = (struct kept_activity){.start_ns = activity->start_ns,
                                 .end_ns = activity->end_ns,
                                 .pid = track->pid,
                                 .tid = (int32_t)track->stream,
                                 .amount = activity->amount,
                                 .frame = stack ? activity->name : 0,
                                 .detail = activity->detail,
                                 .flags = activity->flags};
    if (!stack)
        snprintf(to->name, sizeof to->name, "%.63s", kept.name[activity->name - 1].text);
}

static void keep_activities(void *context, const struct hec_activity *activities, size_t count) {
    (void)context;
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        keep_activity(&activities[i]);
}

static void keep_meta(void *context, const char *key, const char *value) {
    (void)context;
    assert_true(kept.metas < KEPT);
    snprintf(kept.meta[kept.metas++].text, sizeof kept.meta[0].text, "%s=%s", key, value);
}

static void keep_units(void *context, const char *name, double count) {
    (void)context;
    int i = 0;
    while (i < kept.units && strcmp(kept.unit[i].name, name) != 0)
        i++;
    assert_true(i < 100);
    kept.units += i == kept.units;
    snprintf(kept.unit[i].name, sizeof kept.unit[i].name, "%s", name);
    kept.unit[i].count += count;
}

static const struct hec_sink keeping = {
    .sample = keep_sample,
    .event = keep_event,
    .units = keep_units,
    .meta = keep_meta,
    .trace_name = keep_name,
    .trace_track = keep_track,
    .trace_frame = keep_frame,
    .trace_activities = keep_activities,
};

__attribute__((unused)) static double kept_units(const char *name) {
    for (int i = 0; i < kept.units; i++)
        if (strcmp(kept.unit[i].name, name) == 0)
            return kept.unit[i].count;
    return -1;
}

/* The first event of that kind whose text contains `part`; NULL when there is none. */
__attribute__((unused)) static const char *kept_event(enum hec_event_kind kind, const char *part) {
    for (int i = 0; i < kept.events; i++)
        if (kept.event[i].kind == kind && strstr(kept.event[i].text, part))
            return kept.event[i].text;
    return NULL;
}

struct fixture {
    char folder[32], socket[64];
    struct hec_observe_options options;
    void *self;
};

__attribute__((unused)) static struct fixture fixture_new(void) {
    struct fixture fixture = {.folder = "/tmp/hec-test-XXXXXX"};
    memset(&kept, 0, sizeof kept);
    assert_non_null(mkdtemp(fixture.folder));
    snprintf(fixture.socket, sizeof fixture.socket, "%s/marks", fixture.folder);
    return fixture;
}

__attribute__((unused)) static void fixture_open(struct fixture *fixture) {
    struct hec_why why;
    fixture->options.mark_socket = fixture->socket;
    assert_int_equal(hec_collector_marks.open(&fixture->options, &keeping, &fixture->self, &why), HEC_OK);
}

__attribute__((unused)) static void fixture_poll(struct fixture *fixture) {
    int64_t now_ns = hec_clock_mono_ns();
    int64_t next_ns = hec_collector_marks.poll(fixture->self, now_ns);
    assert_true(next_ns > now_ns && next_ns <= now_ns + HEC_NS_PER_S);
}

/* The window ends now: everything that programs told is in `kept` afterwards. */
__attribute__((unused)) static void fixture_finish(struct fixture *fixture) {
    hec_collector_marks.finish(fixture->self, hec_clock_mono_ns());
    hec_collector_marks.close(fixture->self);
    assert_int_equal(access(fixture->socket, F_OK), -1);
    assert_int_equal(rmdir(fixture->folder), 0);
}

/* Start a program: `body` in a child whose environment is that of an observed command. Its result is the exit code. */
__attribute__((unused)) static pid_t start(const char *socket, const char *knobs, int (*body)(void)) {
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

__attribute__((unused)) static int result(pid_t pid) {
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In a program: end it with the line number when something is not as it should be. */
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)

#endif
