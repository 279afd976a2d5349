/* What a program sees of libhec.so: it works, it does nothing without HEC, and it leaves no trace. */
#include "tests/unit/mark_fixture.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <signal.h>

static int lowest_free_descriptor(void) {
    int fd = dup(2);
    close(fd);
    return fd;
}

static int all_calls(void) {
    int before = lowest_free_descriptor();
    for (int i = 0; i < 3; i++) {
        errno = 4242;
        hec_step(1);
        EXPECT(errno == 4242);
        hec_step_of("sample", 2.5);
        hec_units("token", 3);
        hec_phase_begin("data");
        hec_phase_end("data");
        EXPECT(hec_knob_int("batch", 7) == 7);
        EXPECT(hec_knob_double("lr", 0.5) == 0.5);
        EXPECT(strcmp(hec_knob_text("mode", "fast"), "fast") == 0);
        EXPECT(hec_knob_text("mode", NULL) == NULL);
        EXPECT(hec_knob_int_in("batch", 7, 1, 9) == 7 && hec_knob_double_in("lr", 0.5, 0, 1) == 0.5);
        hec_step(NAN), hec_step(-1), hec_step(INFINITY), hec_units(NULL, 1), hec_units("", 1);
        hec_phase_begin(NULL), hec_phase_end(NULL), hec_phase_end("never begun");
        EXPECT(hec_knob_int(NULL, 5) == 5 && hec_knob_int("", 5) == 5);
        EXPECT(errno == 4242);
        EXPECT(lowest_free_descriptor() == before);
    }
    return hec_active();
}

TEST(without_hec_nothing_happens) {
    assert_int_equal(result(start(NULL, NULL, all_calls)), 0);
}

TEST(with_nobody_listening_it_turns_itself_off) {
    assert_int_equal(result(start(marks.socket, NULL, all_calls)), 0); /* no such path */
    int fd = open(marks.socket, O_CREAT | O_WRONLY, 0600);             /* not a socket */
    close(fd);
    assert_int_equal(result(start(marks.socket, NULL, all_calls)), 0);
    unlink(marks.socket);
    marks_open();
    marks_finish();
    assert_int_equal(result(start(marks.socket, NULL, all_calls)), 0); /* was there, has gone */
    char path[200];
    memset(path, 'x', sizeof path - 1);
    path[0] = '/', path[sizeof path - 1] = '\0';
    assert_int_equal(result(start(path, NULL, all_calls)), 0); /* too long for a socket */
}

TEST(observed_it_leaves_errno_and_descriptors_alone) {
    marks_open();
    assert_int_equal(result(start(marks.socket, NULL, all_calls)), 1);
    marks_finish();
    assert_true(kept_units("sample") == 7.5);
    assert_true(kept_units("token") == 9);
    assert_true(kept_units("unit") == 9);
}

static int library_missing(void) {
    setenv("HEC_LIB", "/nowhere/libhec.so.0", 1);
    hec_step(1);
    return hec_active() || hec_knob_int("batch", 3) != 3;
}

TEST(a_missing_library_is_no_error) {
    assert_int_equal(result(start("/nowhere/marks", "batch=9", library_missing)), 0);
}

static int until_off(void) {
    EXPECT(hec_active());
    hec_step(1);
    kill(getppid(), SIGUSR1);
    while (hec_active())
        usleep(1000);
    return 0;
}

static volatile sig_atomic_t reported;

static void on_signal(int number) {
    (void)number;
    reported = 1;
}

TEST(marks_stop_when_hec_goes) {
    marks_open();
    signal(SIGUSR1, on_signal);
    pid_t pid = start(marks.socket, NULL, until_off);
    while (!reported)
        usleep(1000);
    marks_finish();
    assert_int_equal(result(pid), 0);
    assert_true(kept_units("unit") == 1);
}

/* ---- knobs ---- */

static int read_knobs(void) {
    EXPECT(hec_knob_int("batch", 1) == 64);
    EXPECT(hec_knob_int("hex", 1) == 0x10);
    EXPECT(hec_knob_int("ten", 1) == 10); /* 010 is not octal */
    EXPECT(hec_knob_int("yes", 0) == 1 && hec_knob_int("no", 1) == 0);
    EXPECT(hec_knob_int("negative", 1) == -5);
    EXPECT(hec_knob_int("lr", 3) == 3);
    EXPECT(hec_knob_int("big", 3) == 3);
    EXPECT(hec_knob_int("empty", 3) == 3);
    EXPECT(hec_knob_double("lr", 1) == 0.25);
    EXPECT(hec_knob_double("batch", 1) == 64);
    EXPECT(hec_knob_double("nan", 1) == 1);
    EXPECT(hec_knob_double("odd", 1) == 1);
    EXPECT(strcmp(hec_knob_text("odd", "d"), "a;b\\c=d") == 0);
    EXPECT(strcmp(hec_knob_text("twice", "d"), "second") == 0);
    EXPECT(strcmp(hec_knob_text("empty", "d"), "") == 0);
    EXPECT(strcmp(hec_knob_text("unset", "d"), "d") == 0);
    EXPECT(strcmp(hec_knob_text("no-value", "d"), "d") == 0);
    return 0;
}

static const char knob_list[] =
    "batch=64;hex=0x10;ten=010;yes=true;no=false;negative=-5;lr=0.25;big=9223372036854775808;"
    "empty=;nan=nan;odd=a\\;b\\\\c=d;twice=first;;=x;no-value;twice=second";

TEST(knobs_are_parsed_with_and_without_an_observer) {
    assert_int_equal(result(start(NULL, knob_list, read_knobs)), 0);
    observe(knob_list, read_knobs);
    assert_non_null(kept_event(HEC_EVENT_KNOB, "batch=64"));
    assert_non_null(kept_event(HEC_EVENT_KNOB, "lr=0.25"));
    assert_non_null(kept_event(HEC_EVENT_KNOB, "odd=a;b\\c=d"));
    assert_non_null(kept_event(HEC_EVENT_KNOB, "unset=d"));
    assert_non_null(kept_event(HEC_EVENT_KNOB_REFUSED,
                               "lr: \"0.25\" was set, which is not an integer: the program keeps its own, 3"));
    assert_null(kept_event(HEC_EVENT_KNOB_REFUSED, "batch"));
}

static int read_ranges(void) {
    for (int i = 0; i < 3; i++) { /* a program may read one at each step */
        EXPECT(hec_knob_int_in("batch", 128, 32, 512) == 64);
        EXPECT(hec_knob_int_in("high", 128, 32, 512) == 128 && hec_knob_int_in("low", 128, 32, 512) == 128);
    }
    EXPECT(hec_knob_int_in("least", 128, 32, 512) == 32 && hec_knob_int_in("most", 128, 32, 512) == 512);
    EXPECT(hec_knob_int_in("unset", -7, -9, INT64_MAX) == -7);
    EXPECT(hec_knob_int_in("word", 5, 1, 9) == 5);
    EXPECT(hec_knob_double_in("rate", 0.5, 0.25, 1) == 0.3);
    EXPECT(hec_knob_double_in("beyond", 0.5, 0.25, 1) == 0.5);
    /* no ranges: what is set counts */
    EXPECT(hec_knob_int_in("upside", 3, 9, 1) == 64 && hec_knob_int_in("outside", 3, 4, 9) == 64);
    EXPECT(hec_knob_double_in("nan", 3, NAN, 9) == 64 && hec_knob_double_in("inf", 3, 1, INFINITY) == 64);
    EXPECT(hec_knob_int_in(NULL, 5, 1, 9) == 5 && hec_knob_int_in("", 5, 1, 9) == 5);
    return 0;
}

static const char range_list[] =
    "batch=64;high=513;low=31;least=32;most=512;word=x;rate=0.3;beyond=1.5;upside=64;outside=64;"
    "nan=64;inf=64";

TEST(knobs_with_a_range_stay_in_it) {
    static const struct {
        enum hec_event_kind kind;
        const char *text;
    } expected[] = {
        {HEC_EVENT_KNOB_RANGE, "batch=128 int [32, 512]"},
        {HEC_EVENT_KNOB, "batch=64"},
        {HEC_EVENT_KNOB, "high=128"},
        {HEC_EVENT_KNOB_REFUSED, "high: 513 was set, outside of 32 to 512: the program keeps its own, 128"},
        {HEC_EVENT_KNOB_REFUSED, "low: 31 was set, outside of 32 to 512: the program keeps its own, 128"},
        {HEC_EVENT_KNOB, "least=32"},
        {HEC_EVENT_KNOB, "most=512"},
        {HEC_EVENT_KNOB_RANGE, "unset=-7 int [-9, 9223372036854775807]"},
        {HEC_EVENT_KNOB_REFUSED, "word: \"x\" was set, which is not an integer: the program keeps its own, 5"},
        {HEC_EVENT_KNOB_RANGE, "rate=0.5 double [0.25, 1]"},
        {HEC_EVENT_KNOB, "rate=0.3"},
        {HEC_EVENT_KNOB_REFUSED, "beyond: 1.5 was set, outside of 0.25 to 1: the program keeps its own, 0.5"},
        {HEC_EVENT_KNOB_REFUSED, "upside: 9 to 1 around 3 is no range: it counts as not given"},
        {HEC_EVENT_KNOB_REFUSED, "outside: 4 to 9 around 3 is no range: it counts as not given"},
        {HEC_EVENT_KNOB_REFUSED, "nan: nan to 9 around 3 is no range: it counts as not given"},
        {HEC_EVENT_KNOB_REFUSED, "inf: 1 to inf around 3 is no range: it counts as not given"},
        {HEC_EVENT_KNOB, "upside=64"},
    };
    assert_int_equal(result(start(NULL, range_list, read_ranges)), 0);
    observe(range_list, read_ranges);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        int times = 0;
        for (int e = 0; e < kept.events; e++)
            times += kept.event[e].kind == expected[i].kind && strcmp(kept.event[e].text, expected[i].text) == 0;
        assert_int_equal(times, 1);
    }
    assert_null(kept_event(HEC_EVENT_KNOB_RANGE, "upside"));
    assert_null(kept_event(HEC_EVENT_KNOB_RANGE, "nan"));
}

static int read_in_an_old_library(void) {
    /* a table of version 1: its size says that it has no ranges */
    static struct hec_mark_functions old;
    EXPECT(hec_knob_int("batch", 1) == 64);
    old = *hec_table_v1_;
    old.version = 1;
    old.size = offsetof(struct hec_mark_functions, knob_int_in);
    old.knob_int_in = NULL;
    old.knob_double_in = NULL;
    hec_table_v1_ = &old;
    EXPECT(hec_knob_int_in("batch", 128, 32, 512) == 64 && hec_knob_int_in("high", 128, 32, 512) == 128);
    EXPECT(hec_knob_double_in("rate", 0.5, 0.25, 1) == 0.3 && hec_knob_double_in("beyond", 0.5, 0.25, 1) == 0.5);
    EXPECT(hec_knob_double_in("nan", 3, NAN, 9) == 64 && hec_knob_int_in("upside", 3, 9, 1) == 64);
    return 0;
}

TEST(an_older_library_keeps_to_the_range_too) {
    assert_int_equal(result(start(NULL, range_list, read_in_an_old_library)), 0);
}

static int comma_locale(void) {
    /* a program in a locale with a decimal comma; where none is installed this says nothing new */
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        setlocale(LC_ALL, "C");
    return hec_knob_double("lr", 1) != 0.25;
}

TEST(knobs_do_not_depend_on_the_locale) {
    assert_int_equal(result(start(NULL, "lr=0.25", comma_locale)), 0);
}

/* ---- forks, threads, signals ---- */

static int forks(void) {
    hec_step(1);
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            hec_phase_begin("child");
            hec_step_of("sample", 10);
            hec_phase_end("child");
            _exit(hec_active() ? 0 : 1);
        }
        int status;
        waitpid(pid, &status, 0);
        EXPECT(status == 0);
    }
    hec_step(1);
    return 0;
}

TEST(forked_children_are_processes_of_their_own) {
    pid_t pid = observe(NULL, forks);
    assert_true(kept_units("unit") == 2);
    assert_true(kept_units("sample") == 30);
    assert_int_equal(PHASES, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(kept_name(PHASE(i)->name), "child");
        int32_t child = kept_track(PHASE(i)->track)->pid;
        assert_int_not_equal(child, pid);
        assert_true(is_of(PHASE(i), child, child)); /* the thread id is the child's, not the parent's */
        for (int j = 0; j < i; j++)
            assert_int_not_equal(kept_track(PHASE(j)->track)->pid, child);
    }
    int of_parent = 0;
    for (int i = 0; i < kept.samples; i++)
        of_parent += kept.sample[i].subject == pid;
    assert_true(of_parent >= 1 && of_parent <= 2);
}

static void *mark_much(void *argument) {
    char name[16];
    snprintf(name, sizeof name, "thread%d", (int)(intptr_t)argument % 2);
    for (int i = 0; i < 100; i++) {
        hec_phase_begin(name);
        hec_units("token", 1);
        hec_phase_end(name);
    }
    return NULL;
}

static int threads(void) {
    pthread_t thread[4];
    for (intptr_t i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, mark_much, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    return 0;
}

TEST(threads_have_phases_of_their_own) {
    observe(NULL, threads);
    if (!kept_event(HEC_EVENT_MARKS_DROPPED, "")) { /* marks made while another thread connects may be dropped */
        assert_true(kept_units("token") == 400);
        assert_int_equal(PHASES, 400);
    }
    assert_true(kept_units("token") >= 100);
    for (int i = 0; i < PHASES; i++)
        assert_memory_equal(kept_name(PHASE(i)->name), "thread", 6);
}

static int handled;

static void mark_in_handler(int number) {
    (void)number;
    hec_units("signal", 1);
    handled++;
}

static int signals(void) {
    struct sigaction action = {.sa_handler = mark_in_handler};
    hec_active();
    sigaction(SIGALRM, &action, NULL);
    ualarm(200, 200);
    while (handled < 50) {
        hec_phase_begin("loop");
        hec_phase_end("loop");
        usleep(10);
    }
    ualarm(0, 0);
    hec_units("expected", handled);
    return 0;
}

TEST(signal_handlers_may_make_marks) {
    marks_open();
    pid_t pid = start(marks.socket, NULL, signals);
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0)
        marks_poll();
    assert_int_equal(status, 0);
    marks_finish();
    assert_null(kept_event(HEC_EVENT_MARKS_DROPPED, ""));
    assert_true(kept_units("signal") >= 50);
    assert_true(kept_units("signal") == kept_units("expected"));
}

static int many_names(void) {
    char name[100];
    memset(name, 'n', sizeof name);
    for (int i = 0; i < 600; i++) {
        snprintf(name + 50, sizeof name - 50, "%03d%030d", i % 1000, 0); /* longer than is kept */
        hec_phase_begin(name);
        hec_phase_end(name);
    }
    return 0;
}

TEST(names_are_bounded) {
    observe(NULL, many_names);
    assert_int_equal(PHASES, 512);
    assert_int_equal(strlen(kept_name(PHASE(0)->name)), HEC_NAME_MAX);
    assert_non_null(kept_event(HEC_EVENT_MARKS_DROPPED, ": 176 marks lost")); /* 88 begins and 88 ends */
}
