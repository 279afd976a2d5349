/* The collector of marks: what it makes of what programs tell it, and what it refuses. */
#include "tests/unit/mark_fixture.h"

#include "base/error.h"
#include "observe/marks/marks.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static int steps_and_units(void) {
    for (int i = 0; i < 4; i++) {
        hec_step(0.4); /* 1.6 in all: 0, 1, 1, 2 so far */
        usleep(21000);
    }
    hec_step_of("sample", 128);
    hec_units("token", 1e9 + 0.25);
    hec_units("token", 0.5);
    return 0;
}

TEST(steps_are_samples_and_units_are_exact) {
    marks_open();
    int64_t start_ns = hec_clock_mono_ns();
    pid_t pid = start(marks.socket, NULL, steps_and_units);
    marks_poll();
    assert_int_equal(result(pid), 0);
    marks_finish();
    assert_true(fabs(kept_units("unit") - 1.6) < 1e-12);
    assert_true(kept_units("sample") == 128);
    assert_true(kept_units("token") == 1e9 + 0.75);
    int64_t sum = 0;
    for (int i = 0; i < kept.samples; i++) {
        assert_int_equal(kept.sample[i].subject, pid);
        assert_true(kept.sample[i].t_ns > (i ? kept.sample[i - 1].t_ns : start_ns));
        assert_true(kept.sample[i].value >= 0);
        sum += kept.sample[i].value;
    }
    assert_int_equal(sum, 130); /* 129.6, rounded */
    assert_in_range(kept.samples, 4, 5);
    assert_null(kept_event(HEC_EVENT_MARKS_DROPPED, ""));
}

static int fast_steps(void) {
    for (int i = 0; i < 2000; i++) {
        hec_step(1);
        hec_phase_begin("inner");
        hec_phase_end("inner");
    }
    return 0;
}

TEST(steps_that_follow_closely_are_folded_into_samples) {
    marks_open();
    int64_t start_ns = hec_clock_mono_ns();
    pid_t pid = start(marks.socket, NULL, fast_steps);
    assert_int_equal(result(pid), 0);
    double seconds = (double)(hec_clock_mono_ns() - start_ns) / 1e9;
    marks_finish();
    assert_true(kept_units("unit") == 2000);
    assert_true(kept.samples <= 2 + seconds / 0.02);
    int64_t sum = 0;
    for (int i = 0; i < kept.samples; i++)
        sum += kept.sample[i].value;
    assert_int_equal(sum, 2000);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "folded"));
    assert_int_equal(PHASES, 2000);
    assert_int_equal(STEPS, 2000); /* the timeline has each, without a hole between them */
    for (int i = 0; i < STEPS; i++) {
        assert_string_equal(kept_name(STEP(i)->name), "unit");
        assert_true(STEP(i)->amount == 1 && is_of(STEP(i), pid, 0));
        assert_int_equal(STEP(i)->detail, HEC_STEP_MARKED);
        assert_true(i == 0 || STEP(i)->start_ns == STEP(i - 1)->end_ns);
    }
}

static int nested_phases(void) {
    hec_phase_end("nothing open");
    hec_phase_begin("outer");
    hec_phase_begin("inner");
    hec_phase_end("inner");
    hec_phase_begin("left open by an exception");
    hec_phase_end("outer");
    hec_phase_end("outer"); /* once too often */
    hec_phase_begin("a");
    hec_phase_begin(NULL);
    hec_phase_end(NULL);
    hec_phase_end(""); /* the innermost, which is a */
    hec_phase_begin("open at the end");
    raise(SIGKILL);
    return 0;
}

TEST(phases_nest_and_unbalanced_ends_are_harmless) {
    marks_open();
    pid_t pid = start(marks.socket, NULL, nested_phases);
    assert_int_equal(result(pid), 128 + SIGKILL);
    marks_poll(); /* sees the process, and that it is dead */
    marks_poll();
    static const char *const expected[] = {"inner",          "left open by an exception", "outer", "phase", "a",
                                           "open at the end"};
    assert_int_equal(PHASES, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(kept_name(PHASE(i)->name), expected[i]);
        assert_true(is_of(PHASE(i), pid, pid));
    }
    assert_true(PHASE(0)->start_ns >= PHASE(2)->start_ns && PHASE(0)->end_ns <= PHASE(2)->end_ns);
    assert_int_equal(PHASE(1)->end_ns, PHASE(2)->end_ns);
    marks_finish();
    assert_int_equal(PHASES, 6);
    assert_int_equal(kept.events, 0);
}

static int deep_phases(void) {
    for (int i = 0; i < 200; i++)
        hec_phase_begin("deep");
    for (int i = 0; i < 200; i++)
        hec_phase_end("deep");
    return 0;
}

TEST(open_phases_are_bounded) {
    observe(NULL, deep_phases);
    assert_int_equal(PHASES, 128);
    assert_non_null(kept_event(HEC_EVENT_NOTE, ": 72 phases left out: more than 128 were open at once"));
}

static int too_many(void) {
    for (int i = 0; i < 50000; i++)
        hec_units("token", 1);
    return 0;
}

TEST(what_was_dropped_is_reported) {
    observe(NULL, too_many);
    const char *event = kept_event(HEC_EVENT_MARKS_DROPPED, "marks lost so far");
    assert_non_null(event);
    assert_int_equal(kept.events, 1);
    int lost = atoi(strchr(event, ':') + 1);
    assert_true(lost > 0);
    assert_true(kept_units("token") + lost == 50000);
}

static int knob_reads(void) {
    for (int i = 0; i < 100; i++)
        hec_knob_int("batch", 1);
    hec_knob_int("depth", 1);
    for (int i = 2; i < 5; i++)
        hec_knob_int("depth", i / 2); /* 1, 1, 2 */
    hec_knob_double("lr", 0.1);
    hec_knob_text("mode", NULL);
    return 0;
}

TEST(a_knob_is_reported_when_its_value_is_new) {
    observe("batch=64;lr=wrong", knob_reads);
    static const char *const expected[] = {"batch=64", "depth=1", "depth=2", "lr=0.1", "", "mode="};
    assert_int_equal(kept.events, 6);
    for (int i = 0; i < 6; i++)
        if (i != 4) {
            assert_int_equal(kept.event[i].kind, HEC_EVENT_KNOB);
            assert_string_equal(kept.event[i].text, expected[i]);
        }
    assert_int_equal(kept.event[4].kind, HEC_EVENT_KNOB_REFUSED);
    assert_string_equal(kept.event[4].text,
                        "lr: \"wrong\" was set, which is not a finite number: the program keeps its own, 0.1");
}

static volatile sig_atomic_t go_on;

static void on_signal(int number) {
    (void)number;
    go_on = 1;
}

static int survives(void) {
    signal(SIGUSR1, on_signal);
    hec_units("before", 1);
    hec_phase_begin("long");
    while (!go_on)
        usleep(1000);
    hec_units("after", 1);
    return hec_active() ? 0 : 1;
}

TEST(marks_after_the_window_do_not_count) {
    marks_open();
    pid_t pid = start(marks.socket, NULL, survives);
    while (kept.units == 0)
        marks_poll();
    int64_t end_ns = hec_clock_mono_ns();
    kill(pid, SIGUSR1);
    assert_int_equal(result(pid), 0);
    marks_finish_at(end_ns);
    assert_true(kept_units("before") == 1);
    assert_true(kept_units("after") == -1);
    assert_int_equal(PHASES, 1);
    assert_int_equal(PHASE(0)->end_ns, end_ns);
    assert_non_null(kept_event(HEC_EVENT_NOTE, ": 1 marks after the end of the run left out"));
}

static int unit_names(void) {
    char name[32];
    for (int i = 0; i < 70; i++) {
        snprintf(name, sizeof name, "unit%d", i);
        hec_units(name, 1);
    }
    return 0;
}

TEST(unit_names_are_bounded) {
    observe(NULL, unit_names);
    assert_int_equal(kept.units, 64);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "6 counts of units left out"));
}

static int one_mark(void) {
    hec_step(1);
    return 0;
}

TEST(many_processes_come_and_go) {
    marks_open();
    int before = dup(2);
    close(before);
    for (int round = 0; round < 4; round++) {
        pid_t pid[30];
        for (int i = 0; i < 30; i++)
            pid[i] = start(marks.socket, NULL, one_mark);
        for (int i = 0; i < 30; i++)
            assert_int_equal(result(pid[i]), 0);
        marks_poll();
        marks_poll();
        int after = dup(2);
        close(after);
        assert_int_equal(after, before); /* the dead leave nothing behind */
    }
    marks_finish();
    assert_true(kept_units("unit") == 120);
    assert_int_equal(kept.samples, 120);
}

/* ---- hostile ---- */

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

TEST(garbage_and_silence_are_refused_and_reported) {
    marks_open();
    struct stat info;
    assert_int_equal(stat(marks.socket, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    int silent[40];
    for (int i = 0; i < 40; i++)
        silent[i] = connect_to(marks.socket);
    int garbage = connect_to(marks.socket);
    assert_int_equal(send(garbage, "GET / HTTP/1.1\r\n", 16, 0), 16);
    struct hec_ring trace = ring_to_marks(HEC_RING_TRACE, 64); /* another collector's */
    struct hec_ring huge = ring_to_marks(HEC_RING_MARKS, 1 << 17);
    marks_poll();
    for (int i = 0; i < 40; i++)
        close(silent[i]);
    close(garbage);
    marks_poll();
    marks_poll();
    assert_true(hec_ring_closed(&trace)); /* asked to stop */
    assert_true(hec_ring_closed(&huge));
    hec_ring_unmap(&trace);
    hec_ring_unmap(&huge);
    assert_int_equal(result(start(marks.socket, NULL, one_mark)), 0); /* others are still served */
    marks_finish();
    assert_true(kept_units("unit") == 1);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "marks of 3 processes left out"));
    assert_non_null(kept_event(HEC_EVENT_NOTE, "8 connections were given up"));
}

#define SILENT 600

/* So many connect and say nothing, then one program makes a mark. */
static void connect_silent(int silent[SILENT]) {
    marks_open();
    for (int i = 0; i < SILENT; i++)
        silent[i] = connect_to(marks.socket);
    assert_int_equal(result(start(marks.socket, NULL, one_mark)), 0);
}

/* They keep no program out, and are reported. */
TEST(silence_keeps_nobody_out) {
    int silent[SILENT];
    connect_silent(silent);
    marks_poll();
    assert_true(kept_units("unit") == 1);
    marks_finish();
    assert_non_null(kept_event(HEC_EVENT_NOTE, "600 connections were given up: they said nothing"));
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

/* Nor who hands over six hundred rings, of which the last ones go on. */
TEST(rings_keep_nobody_out) {
    enum { RINGS = 600, KEPT_RINGS = 16 };
    marks_open();
    static struct hec_ring rings[RINGS];
    for (int i = 0; i < RINGS; i++) {
        rings[i] = ring_to_marks(HEC_RING_MARKS, 64);
        struct hec_ring_record record = {.t_ns = hec_clock_mono_ns(), .tid = 1, .kind = HEC_RING_UNITS};
        record.u.mark.value = 1;
        hec_ring_write(&rings[i], &record);
    }
    assert_int_equal(result(start(marks.socket, NULL, one_mark)), 0);
    marks_poll();
    assert_true(kept_units("unit") == RINGS + 1); /* what was in them is read before they are ended */
    for (int i = 0; i < RINGS; i++) {
        assert_int_equal(hec_ring_closed(&rings[i]), i < RINGS - KEPT_RINGS);
        hec_ring_unmap(&rings[i]);
    }
    marks_finish();
    assert_non_null(kept_event(HEC_EVENT_NOTE, "584 rings were ended early"));
}

/* Silence that comes just before the end. */
TEST(silence_at_the_end_keeps_nobody_out) {
    int silent[SILENT];
    connect_silent(silent);
    marks_finish();
    assert_true(kept_units("unit") == 1);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

/* A program that has connected and is slow to speak does not have to go for another's silence. */
TEST(silent_connections_go_first) {
    marks_open();
    int reported[2], asked[2], silent[100];
    char byte = 0;
    assert_int_equal(pipe(reported) | pipe(asked), 0);
    pid_t slow = fork();
    if (slow == 0) {
        int connection = connect_to(marks.socket);
        EXPECT(write(reported[1], "c", 1) == 1 && read(asked[0], &byte, 1) == 1);
        EXPECT(recv(connection, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN); /* still open */
        _exit(0);
    }
    assert_int_equal(read(reported[0], &byte, 1), 1);
    for (int i = 0; i < 100; i++)
        silent[i] = connect_to(marks.socket);
    marks_poll();
    assert_int_equal(write(asked[1], "?", 1), 1);
    assert_int_equal(result(slow), 0);
    marks_finish();
    for (int i = 0; i < 100; i++)
        close(silent[i]);
    for (int i = 0; i < 2; i++)
        close(reported[i]), close(asked[i]);
}

TEST(impossible_records_are_counted) {
    marks_open();
    struct hec_ring ring = ring_to_marks(HEC_RING_MARKS, 64);
    const int64_t now_ns = hec_clock_mono_ns();
    const double values[] = {-1, NAN, INFINITY, 1e300};
    for (int i = 0; i < 4; i++) {
        struct hec_ring_record record = {.t_ns = now_ns, .kind = HEC_RING_STEP};
        record.u.mark.value = values[i];
        hec_ring_write(&ring, &record);
    }
    const int64_t times[] = {0, -1, INT64_MAX, 1};
    for (int i = 0; i < 4; i++) {
        struct hec_ring_record record = {.t_ns = times[i], .kind = HEC_RING_STEP};
        hec_ring_write(&ring, &record);
    }
    struct hec_ring_record undefined = {.t_ns = now_ns, .kind = HEC_RING_PHASE_BEGIN, .u.mark = {.name = 77}};
    hec_ring_write(&ring, &undefined);
    struct hec_ring_record unknown = {.t_ns = now_ns, .kind = 250};
    hec_ring_write(&ring, &unknown);
    marks_finish();
    hec_ring_unmap(&ring);
    assert_int_equal(kept.samples, 0);
    assert_int_equal(PHASES, 0);
    assert_int_equal(kept.units, 0);
    assert_non_null(kept_event(HEC_EVENT_NOTE, ": 10 invalid marks left out"));
}

TEST(a_slot_left_uncommitted_delays_but_does_not_stop) {
    marks_open();
    struct hec_ring ring = ring_to_marks(HEC_RING_MARKS, 64);
    ring.header->head++; /* a thread of this live process was cancelled amid a mark */
    struct hec_ring_record record = {.t_ns = hec_clock_mono_ns(), .kind = HEC_RING_STEP};
    record.u.mark.value = 5;
    hec_ring_write(&ring, &record);
    int64_t now_ns = hec_clock_mono_ns();
    hec_collector_marks.poll(marks.collector, now_ns);
    hec_collector_marks.poll(marks.collector, now_ns + 9 * HEC_NS_PER_S);
    assert_int_equal(kept.samples, 0);
    hec_collector_marks.poll(marks.collector, now_ns + 11 * HEC_NS_PER_S);
    assert_int_equal(kept.samples, 1);
    assert_non_null(kept_event(HEC_EVENT_MARKS_DROPPED, ": 1 marks lost"));
    marks_finish();
    hec_ring_unmap(&ring);
}

TEST(opening_fails_with_a_sentence) {
    struct hec_observe_options options = {0};
    struct hec_why why;
    void *self;
    assert_int_equal(hec_collector_marks.open(&options, &keeping, &self, &why), HEC_ERR_UNSUPPORTED);
    options.mark_socket = "/nowhere/at/all";
    assert_int_equal(hec_collector_marks.open(&options, &keeping, &self, &why), HEC_ERR_NOTFOUND);
    assert_non_null(strstr(why.text, "/nowhere/at/all"));
    char path[200] = "/tmp/";
    memset(path + 5, 'x', sizeof path - 6);
    options.mark_socket = path;
    assert_int_equal(hec_collector_marks.open(&options, &keeping, &self, &why), HEC_ERR_LIMIT);
}

/* ---- the command line's part ---- */

TEST(knob_assignments_are_checked_and_escaped) {
    struct hec_buf knobs;
    struct hec_why why;
    hec_buf_init(&knobs, HEC_MARKS_KNOBS_MAX + 1);
    assert_int_equal(hec_marks_knob_add(&knobs, "batch=64", &why), HEC_OK);
    assert_int_equal(hec_marks_knob_add(&knobs, "odd=a;b\\c=d", &why), HEC_OK);
    assert_int_equal(hec_marks_knob_add(&knobs, "empty=", &why), HEC_OK);
    assert_string_equal(hec_buf_text(&knobs), "batch=64;odd=a\\;b\\\\c=d;empty=");
    static const char *const wrong[] = {"", "batch", "=1", "a b=1", "a;b=1", "new=line\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(hec_marks_knob_add(&knobs, wrong[i], &why), HEC_ERR_USAGE);
    char text[400];
    snprintf(text, sizeof text, "x=%0256d", 0);
    assert_int_equal(hec_marks_knob_add(&knobs, text, &why), HEC_ERR_USAGE);
    assert_string_equal(hec_buf_text(&knobs), "batch=64;odd=a\\;b\\\\c=d;empty=");
    snprintf(text, sizeof text, "x=%0255d", 0);
    int err = HEC_OK;
    for (int i = 0; i < 40 && !err; i++)
        err = hec_marks_knob_add(&knobs, text, &why);
    assert_int_equal(err, HEC_ERR_LIMIT);
    hec_buf_clear(&knobs);
    for (int i = 0; i < 256; i++)
        assert_int_equal(hec_marks_knob_add(&knobs, "x=;", &why), HEC_OK); /* an escaped ';' is none */
    assert_int_equal(hec_marks_knob_add(&knobs, "x=1", &why), HEC_ERR_LIMIT);
    hec_buf_free(&knobs);
}
