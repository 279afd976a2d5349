/* The collector of marks: what it makes of what programs tell it, and what it refuses. */
#include "unit/mark_fixture.h"

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
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    int64_t start_ns = hec_clock_mono_ns();
    pid_t pid = start(fixture.socket, NULL, steps_and_units);
    fixture_poll(&fixture);
    assert_int_equal(result(pid), 0);
    fixture_finish(&fixture);
    assert_true(fabs(kept_units("unit") - 1.6) < 1e-12);
    assert_true(kept_units("sample") == 128);
    assert_true(kept_units("token") == 1e9 + 0.75);
    int64_t sum = 0;
    for (int i = 0; i < kept.samples; i++) {
        assert_int_equal(kept.sample[i].pid, pid);
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
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    int64_t start_ns = hec_clock_mono_ns();
    pid_t pid = start(fixture.socket, NULL, fast_steps);
    assert_int_equal(result(pid), 0);
    double seconds = (double)(hec_clock_mono_ns() - start_ns) / 1e9;
    fixture_finish(&fixture);
    assert_true(kept_units("unit") == 2000);
    assert_true(kept.samples <= 2 + seconds / 0.02);
    int64_t sum = 0;
    for (int i = 0; i < kept.samples; i++)
        sum += kept.sample[i].value;
    assert_int_equal(sum, 2000);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "folded"));
    assert_int_equal(kept.spans, 2000);
    assert_int_equal(kept.steps, 2000); /* the timeline has each, without a hole between them */
    for (int i = 0; i < kept.steps; i++) {
        assert_string_equal(kept.step[i].name, "unit");
        assert_true(kept.step[i].amount == 1 && kept.step[i].tid == 0 && kept.step[i].pid == pid);
        assert_int_equal(kept.step[i].detail, HEC_STEP_MARKED);
        assert_true(i == 0 || kept.step[i].start_ns == kept.step[i - 1].end_ns);
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
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    pid_t pid = start(fixture.socket, NULL, nested_phases);
    assert_int_equal(result(pid), 128 + SIGKILL);
    fixture_poll(&fixture); /* sees the process, and that it is dead */
    fixture_poll(&fixture);
    static const char *const expected[] = {"inner",          "left open by an exception", "outer", "phase", "a",
                                           "open at the end"};
    assert_int_equal(kept.spans, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(kept.span[i].name, expected[i]);
        assert_int_equal(kept.span[i].pid, pid);
        assert_int_equal(kept.span[i].tid, pid);
    }
    assert_true(kept.span[0].start_ns >= kept.span[2].start_ns && kept.span[0].end_ns <= kept.span[2].end_ns);
    assert_int_equal(kept.span[1].end_ns, kept.span[2].end_ns);
    fixture_finish(&fixture);
    assert_int_equal(kept.spans, 6);
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
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    assert_int_equal(result(start(fixture.socket, NULL, deep_phases)), 0);
    fixture_finish(&fixture);
    assert_int_equal(kept.spans, 128);
    assert_non_null(kept_event(HEC_EVENT_NOTE, ": 72 phases left out: more than 128 were open at once"));
}

static int too_many(void) {
    for (int i = 0; i < 50000; i++)
        hec_units("token", 1);
    return 0;
}

TEST(what_was_dropped_is_reported) {
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    assert_int_equal(result(start(fixture.socket, NULL, too_many)), 0);
    fixture_finish(&fixture);
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
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    assert_int_equal(result(start(fixture.socket, "batch=64;lr=wrong", knob_reads)), 0);
    fixture_finish(&fixture);
    static const char *const expected[] = {"batch=64", "depth=1", "depth=2", "lr=0.1", "", "mode="};
    assert_int_equal(kept.events, 6);
    for (int i = 0; i < 6; i++)
        if (i != 4) {
            assert_int_equal(kept.event[i].kind, HEC_EVENT_KNOB);
            assert_string_equal(kept.event[i].text, expected[i]);
        }
    assert_string_equal(kept.event[4].text,
                        "knob lr: the value set is not a finite number; the program keeps its own, 0.1");
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
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    pid_t pid = start(fixture.socket, NULL, survives);
    while (kept.units == 0)
        fixture_poll(&fixture);
    int64_t end_ns = hec_clock_mono_ns();
    kill(pid, SIGUSR1);
    assert_int_equal(result(pid), 0);
    hec_collector_marks.finish(fixture.self, end_ns);
    hec_collector_marks.close(fixture.self);
    rmdir(fixture.folder);
    assert_true(kept_units("before") == 1);
    assert_true(kept_units("after") == -1);
    assert_int_equal(kept.spans, 1);
    assert_int_equal(kept.span[0].end_ns, end_ns);
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
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    assert_int_equal(result(start(fixture.socket, NULL, unit_names)), 0);
    fixture_finish(&fixture);
    assert_int_equal(kept.units, 64);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "6 counts of units left out"));
}

static int one_mark(void) {
    hec_step(1);
    return 0;
}

TEST(many_processes_come_and_go) {
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    int before = dup(2);
    close(before);
    for (int round = 0; round < 4; round++) {
        pid_t pid[30];
        for (int i = 0; i < 30; i++)
            pid[i] = start(fixture.socket, NULL, one_mark);
        for (int i = 0; i < 30; i++)
            assert_int_equal(result(pid[i]), 0);
        fixture_poll(&fixture);
        fixture_poll(&fixture);
        int after = dup(2);
        close(after);
        assert_int_equal(after, before); /* the dead leave nothing behind */
    }
    fixture_finish(&fixture);
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
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    struct stat info;
    assert_int_equal(stat(fixture.socket, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    int silent[40];
    for (int i = 0; i < 40; i++)
        silent[i] = connect_to(fixture.socket);
    int garbage = connect_to(fixture.socket);
    assert_int_equal(send(garbage, "GET / HTTP/1.1\r\n", 16, 0), 16);
    struct hec_ring trace;
    int fd;
    assert_int_equal(hec_ring_create(64, HEC_RING_TRACE, &trace, &fd), HEC_OK);
    assert_int_equal(hec_ring_send(fixture.socket, HEC_RING_TRACE, 0, fd), HEC_OK); /* another collector's */
    close(fd);
    struct hec_ring huge;
    assert_int_equal(hec_ring_create(1 << 17, HEC_RING_MARKS, &huge, &fd), HEC_OK);
    assert_int_equal(hec_ring_send(fixture.socket, HEC_RING_MARKS, 0, fd), HEC_OK);
    close(fd);
    fixture_poll(&fixture);
    for (int i = 0; i < 40; i++)
        close(silent[i]);
    close(garbage);
    fixture_poll(&fixture);
    fixture_poll(&fixture);
    assert_true(hec_ring_closed(&trace)); /* asked to stop */
    assert_true(hec_ring_closed(&huge));
    hec_ring_unmap(&trace);
    hec_ring_unmap(&huge);
    assert_int_equal(result(start(fixture.socket, NULL, one_mark)), 0); /* others are still served */
    fixture_finish(&fixture);
    assert_true(kept_units("unit") == 1);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "marks of 3 processes left out"));
    assert_non_null(kept_event(HEC_EVENT_NOTE, "8 connections were given up"));
}

#define SILENT 600

/* So many connect and say nothing, then one program makes a mark. */
static void connect_silent(struct fixture *fixture, int silent[SILENT]) {
    fixture_open(fixture);
    for (int i = 0; i < SILENT; i++)
        silent[i] = connect_to(fixture->socket);
    assert_int_equal(result(start(fixture->socket, NULL, one_mark)), 0);
}

/* They keep no program out, and are reported. */
TEST(silence_keeps_nobody_out) {
    int silent[SILENT];
    struct fixture fixture = fixture_new();
    connect_silent(&fixture, silent);
    fixture_poll(&fixture);
    assert_true(kept_units("unit") == 1);
    fixture_finish(&fixture);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "600 connections were given up: they said nothing"));
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

/* Nor who hands over six hundred rings, of which the last ones go on. */
TEST(rings_keep_nobody_out) {
    enum { RINGS = 600, KEPT_RINGS = 16 };
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    static struct hec_ring rings[RINGS];
    for (int i = 0; i < RINGS; i++) {
        int fd;
        assert_int_equal(hec_ring_create(64, HEC_RING_MARKS, &rings[i], &fd), HEC_OK);
        assert_int_equal(hec_ring_send(fixture.socket, HEC_RING_MARKS, 0, fd), HEC_OK);
        close(fd);
        struct hec_ring_record record = {.t_ns = hec_clock_mono_ns(), .tid = 1, .kind = HEC_RING_UNITS};
        record.u.mark.value = 1;
        hec_ring_write(&rings[i], &record);
    }
    assert_int_equal(result(start(fixture.socket, NULL, one_mark)), 0);
    fixture_poll(&fixture);
    assert_true(kept_units("unit") == RINGS + 1); /* what was in them is read before they are ended */
    for (int i = 0; i < RINGS; i++) {
        assert_int_equal(hec_ring_closed(&rings[i]), i < RINGS - KEPT_RINGS);
        hec_ring_unmap(&rings[i]);
    }
    fixture_finish(&fixture);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "584 rings were ended early"));
}

/* Silence that comes just before the end. */
TEST(silence_at_the_end_keeps_nobody_out) {
    int silent[SILENT];
    struct fixture fixture = fixture_new();
    connect_silent(&fixture, silent);
    fixture_finish(&fixture);
    assert_true(kept_units("unit") == 1);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

/* A program that has connected and is slow to speak does not have to go for another's silence. */
TEST(silent_connections_go_first) {
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    int reported[2], asked[2], silent[100];
    char byte = 0;
    assert_int_equal(pipe(reported) | pipe(asked), 0);
    pid_t slow = fork();
    if (slow == 0) {
        int connection = connect_to(fixture.socket);
        EXPECT(write(reported[1], "c", 1) == 1 && read(asked[0], &byte, 1) == 1);
        EXPECT(recv(connection, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN); /* still open */
        _exit(0);
    }
    assert_int_equal(read(reported[0], &byte, 1), 1);
    for (int i = 0; i < 100; i++)
        silent[i] = connect_to(fixture.socket);
    fixture_poll(&fixture);
    assert_int_equal(write(asked[1], "?", 1), 1);
    assert_int_equal(result(slow), 0);
    fixture_finish(&fixture);
    for (int i = 0; i < 100; i++)
        close(silent[i]);
    for (int i = 0; i < 2; i++)
        close(reported[i]), close(asked[i]);
}

TEST(impossible_records_are_counted) {
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    struct hec_ring ring;
    int fd;
    assert_int_equal(hec_ring_create(64, HEC_RING_MARKS, &ring, &fd), HEC_OK);
    assert_int_equal(hec_ring_send(fixture.socket, HEC_RING_MARKS, 0, fd), HEC_OK);
    close(fd);
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
    struct hec_ring_record undefined = {.t_ns = now_ns, .kind = HEC_RING_PHASE_BEGIN};
    undefined.u.mark.name = 77;
    hec_ring_write(&ring, &undefined);
    struct hec_ring_record unknown = {.t_ns = now_ns, .kind = 9999};
    hec_ring_write(&ring, &unknown);
    fixture_finish(&fixture);
    hec_ring_unmap(&ring);
    assert_int_equal(kept.samples, 0);
    assert_int_equal(kept.spans, 0);
    assert_int_equal(kept.units, 0);
    assert_non_null(kept_event(HEC_EVENT_NOTE, ": 10 invalid marks left out"));
}

TEST(a_slot_left_uncommitted_delays_but_does_not_stop) {
    struct fixture fixture = fixture_new();
    fixture_open(&fixture);
    struct hec_ring ring;
    int fd;
    assert_int_equal(hec_ring_create(64, HEC_RING_MARKS, &ring, &fd), HEC_OK);
    assert_int_equal(hec_ring_send(fixture.socket, HEC_RING_MARKS, 0, fd), HEC_OK);
    close(fd);
    ring.header->head++; /* a thread of this live process was cancelled amid a mark */
    struct hec_ring_record record = {.t_ns = hec_clock_mono_ns(), .kind = HEC_RING_STEP};
    record.u.mark.value = 5;
    hec_ring_write(&ring, &record);
    int64_t now_ns = hec_clock_mono_ns();
    hec_collector_marks.poll(fixture.self, now_ns);
    hec_collector_marks.poll(fixture.self, now_ns + 9 * HEC_NS_PER_S);
    assert_int_equal(kept.samples, 0);
    hec_collector_marks.poll(fixture.self, now_ns + 11 * HEC_NS_PER_S);
    assert_int_equal(kept.samples, 1);
    assert_non_null(kept_event(HEC_EVENT_MARKS_DROPPED, ": 1 marks lost"));
    fixture_finish(&fixture);
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
