/* The collector of stacks, on a Python of its own: it says who reads the stacks, also where it looked before others had listed the
 * process. */
#include "base/clock.h"
#include "observe/collector.h"
#include "observe/processes.h"
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int samples;

static uint32_t one(void *context, const void *what) {
    (void)context;
    (void)what;
    return 1;
}
static uint32_t name(void *context, const char *text) {
    return one(context, text);
}
static uint32_t track(void *context, const struct hec_track *what) {
    return one(context, what);
}
static uint32_t frame(void *context, const struct hec_frame *what) {
    return one(context, what);
}
static void activities(void *context, const struct hec_activity *list, size_t count) {
    (void)context;
    (void)list;
    samples += (int)count;
}
static void event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context;
    (void)kind;
    (void)device;
    (void)t_ns;
    print_message("%s\n", text);
}
static void meta(void *context, const char *key, const char *value) {
    (void)context;
    (void)key;
    (void)value;
}

static const struct hec_sink sink = {.trace_name = name,
                                     .trace_track = track,
                                     .trace_frame = frame,
                                     .trace_activities = activities,
                                     .event = event,
                                     .meta = meta};

static pid_t python(void) {
    pid_t pid = fork();
    if (pid == 0) {
        execlp("python3", "python3", "-c", "import time\nfor i in range(600): time.sleep(0.1)", (char *)NULL);
        _exit(9);
    }
    return pid;
}

TEST(who_reads_is_said_however_late_a_process_is_listed) {
    struct hec_process_table table;
    struct hec_why why = {""};
    struct timespec pause = {.tv_nsec = 10000000};
    void *collector = NULL;
    pid_t pid = python();
    hec_process_table_init(&table);
    struct hec_observe_options options = {.root = pid, .processes = &table};
    assert_int_equal(hec_collector_stacks.open(&options, &sink, &collector, &why), 0);
    while (samples == 0 && waitpid(pid, NULL, WNOHANG) == 0) {
        hec_collector_stacks.poll(collector, hec_clock_mono_ns());
        nanosleep(&pause, NULL);
    }
    assert_true(samples > 0);
    hec_process_table_add(&table, &(struct hec_process){.pid = pid, .parent = 1, .start_ns = 5, .end_ns = -1});
    assert_int_equal(hec_process_table_stacks(&table, pid), HEC_STACKS_UNKNOWN);
    hec_collector_stacks.poll(collector, hec_clock_mono_ns());
    assert_int_equal(hec_process_table_stacks(&table, pid), HEC_STACKS_OUTSIDE);
    hec_collector_stacks.close(collector);
    hec_process_table_free(&table);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
