/* What the Python hooks tell through libhec.so, and what the collector makes of it. */
#include "tests/unit/mark_fixture.h"

#include "base/error.h"
#include "mark/hooks.h"
#include "observe/marks/peer.h"

#include <dlfcn.h>
#include <math.h>
#include <sys/socket.h>

static int (*hook_step)(const char *, double, uint32_t, int64_t);
static int (*hook_value)(const char *, double, int64_t);
static int (*hook_interval)(const char *, int64_t, int64_t);
static int (*hook_frame)(uint32_t, uint32_t, uint32_t, const char *, const char *, uint32_t);
static int (*hook_stack)(uint32_t, uint32_t, uint32_t, uint32_t);
static int (*hook_fact)(const char *, const char *);
static int (*hook_window)(void);

/* In a program: the functions, as the hooks bind them. */
static void load(void) {
    void *library = dlopen(getenv("HEC_LIB"), RTLD_NOW | RTLD_LOCAL);
    EXPECT(library);
    struct {
        const char *name;
        void *to;
    } wanted[] = {{"hec_hook_step", &hook_step},         {"hec_hook_value", &hook_value},
                  {"hec_hook_interval", &hook_interval}, {"hec_hook_frame", &hook_frame},
                  {"hec_hook_stack", &hook_stack},       {"hec_hook_fact", &hook_fact},
                  {"hec_hook_window", &hook_window}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *symbol = dlvsym(library, wanted[i].name, "HEC_PRIVATE");
        EXPECT(symbol);
        memcpy(wanted[i].to, &symbol, sizeof symbol);
    }
}

static int hooked(void) {
    load();
    int64_t start_ns = hec_clock_mono_ns();
    EXPECT(hook_fact("torch", "2.11.0"));
    EXPECT(hook_fact("sizes.model", "parameters=4"));
    EXPECT(hook_fact("hooks_off", "the loss: planted"));
    EXPECT(hook_frame(0, 1, 0, "/home/a/train.py", "<module>", 12));
    EXPECT(hook_frame(0, 2, 1, "/home/a/train.py", "caf\xc3\xa9", 30));
    EXPECT(hook_stack(0, (uint32_t)getpid(), 2, 10));
    for (int i = 0; i < 3; i++) {
        EXPECT(hook_interval("data", start_ns, 1000 + i));
        EXPECT(hook_value("loss", i == 1 ? NAN : 0.5 * i, 0));
        EXPECT(hook_step("sample", 32, HEC_RING_STEP_OPTIMIZER, 0));
    }
    EXPECT(hook_step("sample", 8, HEC_RING_STEP_MODULE, 0));
    return 0;
}

TEST(what_the_hooks_find_is_reported) {
    int64_t start_ns = hec_clock_mono_ns();
    pid_t pid = observe(NULL, hooked);
    assert_true(kept_units("sample") == 96); /* the call of the module is no work of its own beside an optimizer */
    assert_int_equal(kept.units, 1);
    assert_int_equal(kept.samples, 0);
    assert_int_equal(STEPS, 4);
    for (int i = 0; i < 4; i++) {
        assert_true(is_of(STEP(i), pid, 0));
        assert_string_equal(kept_name(STEP(i)->name), "sample");
        assert_true(STEP(i)->start_ns >= start_ns);
        assert_true(STEP(i)->amount == (i < 3 ? 32 : 8));
        assert_int_equal(STEP(i)->detail, i < 3 ? HEC_STEP_OPTIMIZER : HEC_STEP_MODULE);
    }
    assert_int_equal(STEP(1)->start_ns, STEP(0)->end_ns);
    assert_int_equal(STEP(2)->start_ns, STEP(1)->end_ns);
    assert_int_equal(kept_count(HEC_ACTIVITY_VALUE), 3);
    for (int i = 0; i < 3; i++) {
        const struct hec_activity *value = kept_nth(HEC_ACTIVITY_VALUE, i);
        assert_string_equal(kept_name(value->name), "loss");
        assert_true(i == 1 ? isnan(value->amount) : value->amount == 0.5 * i);
    }
    assert_int_equal(PHASES, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(kept_name(PHASE(i)->name), "data");
        assert_int_equal(PHASE(i)->end_ns - PHASE(i)->start_ns, 1000 + i);
        assert_int_equal(PHASE(i)->flags, HEC_ACTIVITY_FOUND);
        assert_true(is_of(PHASE(i), pid, pid));
    }
    assert_int_equal(kept_count(HEC_ACTIVITY_STACK), 1);
    const struct hec_activity *stack = kept_nth(HEC_ACTIVITY_STACK, 0);
    assert_true(is_of(stack, pid, pid));
    assert_int_equal(stack->end_ns - stack->start_ns, 10000);
    const struct hec_frame *inner = &kept.frame[stack->name - 1];
    assert_int_equal(inner->line, 30);
    assert_string_equal(kept_name(inner->function), "caf\xc3\xa9");
    assert_string_equal(kept_name(inner->file), "/home/a/train.py");
    const struct hec_frame *outer = &kept.frame[inner->parent - 1];
    assert_true(outer->parent == 0 && outer->line == 12 && outer->file == inner->file);
    assert_int_equal(kept.metas, 3);
    assert_string_equal(kept_meta("python.torch"), "2.11.0");
    char sizes[64];
    snprintf(sizes, sizeof sizes, "sizes.%d.model", (int)pid);
    assert_string_equal(kept_meta(sizes), "parameters=4");
    assert_non_null(kept_event(HEC_EVENT_NOTE, ": the loss: planted"));
    assert_int_equal(kept.events, 1);
}

static int marked_and_found(void) {
    load();
    for (int i = 0; i < 5; i++) {
        EXPECT(hook_step("sample", 32, HEC_RING_STEP_OPTIMIZER, 0));
        hec_step_of("image", 32);
    }
    return 0;
}

TEST(a_program_that_marks_its_steps_is_believed) {
    observe(NULL, marked_and_found);
    assert_true(kept_units("image") == 160);
    assert_int_equal(kept.units, 1);
    assert_int_equal(STEPS, 10);
}

static int partly_known(void) {
    load();
    for (int i = 0; i < 5; i++)
        EXPECT(hook_step("sample", i == 2 ? (double)NAN : 32, HEC_RING_STEP_MODULE, 0));
    return 0;
}

TEST(samples_that_are_not_all_known_are_not_summed) {
    observe(NULL, partly_known);
    assert_true(kept_units("step") == 5);
    assert_int_equal(kept.units, 1);
    assert_true(isnan(STEP(2)->amount));
}

static int written[2], drained[2]; /* pipes: so many frames are in the ring; the collector has them */

static int many_texts(void) {
    close(written[0]);
    close(drained[1]);
    load();
    EXPECT(hec_active());
    char text[400];
    int frames = 0;
    for (uint32_t i = 1; i <= 9000; i++) {
        snprintf(text, sizeof text, "/a/long/path/in/some/place/that/differs/%u.py", i);
        frames += hook_frame(0, i, 0, text, NULL, i);
        char byte;
        if (i % 250 == 0) /* no more than the ring holds, however slow the collector is */
            EXPECT(write(written[1], &frames, sizeof frames) == sizeof frames && read(drained[0], &byte, 1) == 1);
    }
    EXPECT(frames == 8192);
    EXPECT(!hook_frame(0, 9001, 0, "one more", NULL, 1));
    EXPECT(hook_frame(0, 9002, 0, "/a/long/path/in/some/place/that/differs/7.py", NULL, 1)); /* known ones go on */
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    EXPECT(!hook_fact("key", text));
    return 0;
}

TEST(long_names_are_bounded) {
    marks_open();
    assert_int_equal(pipe(written), 0);
    assert_int_equal(pipe(drained), 0);
    pid_t pid = start(marks.socket, NULL, many_texts);
    close(written[1]);
    close(drained[0]);
    for (int frames, polls = 0; read(written[0], &frames, sizeof frames) == sizeof frames;) {
        for (; kept.frames < frames; polls++) {
            assert_true(polls < 1000000); /* what was lost never comes */
            marks_poll();
        }
        assert_int_equal(write(drained[1], "", 1), 1);
    }
    close(written[0]);
    close(drained[1]);
    assert_int_equal(result(pid), 0);
    marks_finish();
    assert_int_equal(kept.frames, 8193);
    assert_non_null(kept_event(HEC_EVENT_MARKS_DROPPED, ": 810 marks lost"));
}

static int long_text(void) {
    load();
    char text[400];
    memset(text, 'x', sizeof text);
    memcpy(text + 300, "/end.py", 8);
    memcpy(text + 307 - 255, "\xc3\xa9", 2); /* the cut falls before it */
    EXPECT(hook_fact("whole", text));
    memcpy(text + 306 - 255, "\xc3\xa9x", 3); /* and amid it */
    EXPECT(hook_fact("cut", text));
    return 0;
}

TEST(long_names_keep_their_end) {
    observe(NULL, long_text);
    assert_int_equal(kept.metas, 2);
    for (int i = 0; i < 2; i++) {
        const char *text = kept.meta[i].value;
        assert_int_equal(strlen(text), i ? 254 : 255);
        assert_string_equal(text + strlen(text) - 7, "/end.py");
    }
}

static int forks(void) {
    load();
    EXPECT(hook_frame(0, 1, 0, "parent.py", "f", 1));
    pid_t child = fork();
    if (child == 0) {
        EXPECT(hook_frame(0, 1, 0, "parent.py", "g", 2)); /* the same text again, in another ring */
        EXPECT(hook_stack(0, (uint32_t)getpid(), 1, 1000));
        _exit(0);
    }
    return result(child);
}

TEST(a_child_defines_anew) {
    observe(NULL, forks);
    assert_int_equal(kept_count(HEC_ACTIVITY_STACK), 1);
    assert_int_equal(kept.frame[kept_nth(HEC_ACTIVITY_STACK, 0)->name - 1].line, 2);
    assert_int_equal(kept.events, 0);
}

static int turn[2], done[2]; /* pipes: a window has begun; what belongs into it is written */

static void wait_for_window(void) {
    char byte;
    EXPECT(read(turn[0], &byte, 1) == 1);
}

static int held_up(void) {
    load();
    EXPECT(hec_active());
    wait_for_window();
    uint32_t me = (uint32_t)getpid(), first = (uint32_t)hook_window();
    EXPECT(hook_frame(first, 1, 0, "first.py", "f", 1) && hook_stack(first, me, 1, 1000));
    int64_t of_first_ns = hec_clock_mono_ns();
    EXPECT(write(done[1], "", 1) == 1);
    wait_for_window();
    uint32_t second = (uint32_t)hook_window();
    EXPECT(second != first);
    EXPECT(hook_stack(first, me, 1, 1000) &&
           hook_frame(first, 2, 1, "first.py", "g", 2)); /* as a thread would that slept */
    EXPECT(hook_frame(second, 1, 0, "second.py", "f", 3) && hook_stack(second, me, 1, 1000));
    EXPECT(hook_step("sample", 1, HEC_RING_STEP_OPTIMIZER, of_first_ns) && hook_value("loss", 1, of_first_ns));
    EXPECT(hook_step("sample", 2, HEC_RING_STEP_OPTIMIZER, hec_clock_mono_ns()));
    EXPECT(write(done[1], "", 1) == 1);
    return 0;
}

TEST(what_hooks_bring_too_late_is_not_of_the_next_window) {
    struct hec_ring_hello hello;
    struct hec_observe_ring ring;
    int listener;
    assert_int_equal(hec_ring_listen(marks.socket, &listener), HEC_OK);
    assert_int_equal(pipe(turn), 0);
    assert_int_equal(pipe(done), 0);
    ring.pid = start(marks.socket, NULL, held_up);
    int connection, err;
    while ((connection = accept(listener, NULL, NULL)) < 0)
        usleep(1000);
    while ((err = hec_ring_receive(connection, &hello, &ring.fd)) == HEC_ERR_BUSY)
        usleep(1000);
    assert_int_equal(err, HEC_OK);
    marks.options = (struct hec_observe_options){.rings = &ring, .ring_count = 1};
    for (int window = 0; window < 2; window++) {
        struct hec_why why;
        char byte;
        kept_clear();
        assert_int_equal(hec_collector_marks.open(&marks.options, &keeping, &marks.collector, &why), HEC_OK);
        marks_poll();
        assert_int_equal(write(turn[1], "", 1), 1);
        assert_int_equal(read(done[0], &byte, 1), 1);
        hec_collector_marks.finish(marks.collector, hec_clock_mono_ns());
        hec_collector_marks.close(marks.collector);
        assert_int_equal(kept.frames, 1);
        assert_int_equal(kept_count(HEC_ACTIVITY_STACK), 1);
        assert_int_equal(kept.frame[kept_nth(HEC_ACTIVITY_STACK, 0)->name - 1].line, window ? 3 : 1);
        assert_int_equal(STEPS, window);
        assert_int_equal(kept_count(HEC_ACTIVITY_VALUE), 0);
        assert_int_equal(kept.events, 0);
    }
    assert_int_equal(result(ring.pid), 0);
    const int opened[] = {listener, connection, ring.fd, turn[0], turn[1], done[0], done[1]};
    for (size_t i = 0; i < sizeof opened / sizeof opened[0]; i++)
        close(opened[i]);
    unlink(marks.socket);
}

static int refused(void) {
    load();
    EXPECT(!hook_step("sample", -1, HEC_RING_STEP_MODULE, 0));
    EXPECT(!hook_step("sample", (double)INFINITY, HEC_RING_STEP_MODULE, 0));
    EXPECT(!hook_value(NULL, 1, 0) && !hook_value("", 1, 0));
    EXPECT(!hook_interval("data", 0, 5) && !hook_interval("data", 5, -1) && !hook_interval(NULL, 5, 5));
    EXPECT(!hook_frame(0, 0, 0, "a", "b", 1) && !hook_frame(0, 3, 3, "a", "b", 1));
    EXPECT(!hook_stack(0, 1, 0, 1000));
    EXPECT(!hook_fact(NULL, "x") && !hook_fact("", "x"));
    return 0;
}

TEST(what_makes_no_sense_is_not_written) {
    observe(NULL, refused);
    assert_int_equal(kept.events, 0);
    assert_int_equal(result(start(NULL, NULL, refused)), 0); /* and without HEC nothing is */
}

static void name_in(struct hec_ring *ring, uint32_t id, const char *text) {
    struct hec_ring_record record = {.kind = HEC_RING_NAME};
    record.u.name.id = id;
    record.u.name.length = (uint16_t)strlen(text);
    record.u.name.pieces = (uint8_t)((strlen(text) + HEC_RING_NAME_PIECE - 1) / HEC_RING_NAME_PIECE);
    for (size_t at = 0; at < strlen(text); at += HEC_RING_NAME_PIECE, record.u.name.piece++) {
        size_t left = strlen(text) - at;
        memcpy(record.u.name.text, text + at, left < HEC_RING_NAME_PIECE ? left : HEC_RING_NAME_PIECE);
        hec_ring_write(ring, &record);
    }
}

TEST(a_hostile_process_is_bounded) {
    marks_open();
    struct hec_ring ring = ring_to_marks(HEC_RING_MARKS, 64);
    int64_t now_ns = hec_clock_mono_ns();
    name_in(&ring, 1, "known");
    name_in(&ring, 2, "a name that is longer than the sixty-three bytes that a mark's name may have");
    name_in(&ring, 3, "NOT A KEY");
#define REC(kind_, ...)                                                                                                \
    { .t_ns = now_ns, .tid = 7, .kind = (kind_), __VA_ARGS__ }
    const struct hec_ring_record wrong[] = {
        REC(HEC_RING_STEP_FOUND, .flags = 0),
        REC(HEC_RING_STEP_FOUND, .flags = 3),
        REC(HEC_RING_STEP_FOUND, .flags = 1, .u.mark = {.value = -1}),
        REC(HEC_RING_STEP_FOUND, .flags = 1, .u.mark = {.value = 1e300}),
        REC(HEC_RING_STEP_FOUND, .flags = 1, .u.mark = {.name = 2}),
        REC(HEC_RING_VALUE, .u.mark = {.name = 0}),
        REC(HEC_RING_VALUE, .u.mark = {.name = 2}),
        REC(HEC_RING_INTERVAL, .u.interval = {.name = 0}),
        REC(HEC_RING_INTERVAL, .u.interval = {.name = 1, .duration_ns = -1}),
        REC(HEC_RING_INTERVAL, .u.interval = {.name = 1, .duration_ns = INT64_MAX}),
        REC(HEC_RING_FRAME, .u.frame = {.id = 0}),
        REC(HEC_RING_FRAME, .u.frame = {.id = UINT32_MAX}),
        REC(HEC_RING_FRAME, .u.frame = {.id = HEC_MARKS_FRAMES_MAX}),
        REC(HEC_RING_FRAME, .u.frame = {.id = 9, .parent = 9}),
        REC(HEC_RING_FRAME, .u.frame = {.id = 9, .parent = 8}), /* not defined */
        REC(HEC_RING_FRAME, .u.frame = {.id = 9, .file = 44}),
        REC(HEC_RING_STACK, .u.stack = {.frame = 9, .period_us = 1}),
        REC(HEC_RING_STACK, .u.stack = {.frame = UINT32_MAX, .period_us = 1}),
        REC(HEC_RING_FACT, .u.fact = {.key = 3}),
        REC(HEC_RING_FACT, .u.fact = {.key = 44}),
        REC(HEC_RING_FACT, .u.fact = {.key = 1, .text = 44}),
    };
    const int count = (int)(sizeof wrong / sizeof wrong[0]);
    for (int i = 0; i < count; i++)
        assert_true(hec_ring_write(&ring, &wrong[i]));
    const struct hec_ring_record right[] = {
        REC(HEC_RING_FRAME, .u.frame = {.id = HEC_MARKS_FRAMES_MAX - 1, .line = UINT32_MAX, .file = 2}),
        REC(HEC_RING_STACK, .u.stack = {.frame = HEC_MARKS_FRAMES_MAX - 1, .period_us = 5}),
        REC(HEC_RING_INTERVAL, .u.interval = {.name = 1}),
    };
    for (int i = 0; i < 3; i++)
        assert_true(hec_ring_write(&ring, &right[i]));
    marks_finish();
    hec_ring_unmap(&ring);
    char text[80];
    snprintf(text, sizeof text, ": %d invalid marks left out", count);
    assert_non_null(kept_event(HEC_EVENT_NOTE, text));
    assert_true(STEPS == 0 && kept_count(HEC_ACTIVITY_VALUE) == 0 && kept.units == 0 && kept.metas == 0);
    assert_true(PHASES == 1 && kept_count(HEC_ACTIVITY_STACK) == 1 && kept.frames == 1 && kept.frame[0].line == 0);
}

static void count_activities(void *context, const struct hec_activity *activities, size_t count) {
    (void)activities;
    *(size_t *)context += count;
}
static uint32_t only_track(void *context, const struct hec_track *track) {
    (void)context, (void)track;
    return 1;
}

/* A process that hands over one ring after the other begins each with what a process may have; the run has an end. */
TEST(rates_of_a_run_are_bounded) {
    enum { RINGS = 30, EACH = 10000 }; /* values that one may send at once */
    static struct hec_marks_timeline timeline;
    struct hec_marks_bucket all[HEC_MARKS_RATE_COUNT];
    size_t given = 0;
    const struct hec_sink sink = {.context = &given, .trace_track = only_track, .trace_activities = count_activities};
    const int64_t now_ns = HEC_NS_PER_S;
    const struct hec_activity value = {.start_ns = now_ns, .end_ns = now_ns, .kind = HEC_ACTIVITY_VALUE};
    uint64_t left_out = 0;
    hec_marks_rates_init(all, now_ns);
    for (int i = 0; i < RINGS; i++) {
        memset(&timeline, 0, sizeof timeline);
        hec_marks_timeline_init(&timeline, i + 1, all, now_ns);
        timeline.sink = &sink;
        for (int k = 0; k < EACH; k++)
            hec_marks_timeline_add(&timeline, HEC_MARKS_RATE_VALUES, 0, NULL, &value);
        hec_marks_timeline_flush(&timeline);
        left_out += timeline.rate[HEC_MARKS_RATE_VALUES].left_out;
    }
    assert_int_equal(given, HEC_MARKS_RATE_PROCESSES * EACH);
    assert_int_equal(given + left_out, RINGS * EACH);
}

TEST(rates_and_threads_are_bounded) {
    marks_open();
    struct hec_ring ring = ring_to_marks(HEC_RING_MARKS, 16384);
    name_in(&ring, 1, "loss");
    int64_t now_ns = hec_clock_mono_ns();
    for (int i = 0; i < 12000; i++) {
        struct hec_ring_record record = REC(HEC_RING_VALUE, .u.mark = {.name = 1, .value = i});
        hec_ring_write(&ring, &record);
    }
    for (uint32_t i = 1; i <= 600; i++) {
        struct hec_ring_record record = REC(HEC_RING_INTERVAL, .u.interval = {.name = 1});
        record.tid = i * 4096; /* a bad hash would make them meet */
        hec_ring_write(&ring, &record);
    }
    marks_finish();
    hec_ring_unmap(&ring);
    assert_int_equal(kept_count(HEC_ACTIVITY_VALUE), 10000);
    assert_non_null(kept_event(HEC_EVENT_NOTE, ": 2000 values (0.000 s in all) left out: more than 1000 a second"));
    assert_int_equal(PHASES, 512);
    assert_non_null(kept_event(HEC_EVENT_NOTE, ": 88 marks left out of the timeline: more than 512 threads"));
}

/* Each process may tell many facts, all of them together no more than a run file holds; a key told again counts once. */
TEST(facts_of_a_run_are_bounded) {
    marks_open();
    struct hec_ring ring[6];
    for (uint32_t i = 0; i < 6; i++) {
        ring[i] = ring_to_marks(HEC_RING_MARKS, 8192);
        for (uint32_t key = 1; key <= 500; key++) {
            char text[32];
            snprintf(text, sizeof text, "key%u.%u", key <= 10 ? 0 : i, key);
            name_in(&ring[i], key, text);
            struct hec_ring_record record = {
                .t_ns = hec_clock_mono_ns(), .tid = 7, .kind = HEC_RING_FACT, .u.fact = {.key = key}};
            assert_true(hec_ring_write(&ring[i], &record));
        }
    }
    marks_finish();
    for (int i = 0; i < 6; i++)
        hec_ring_unmap(&ring[i]);
    assert_int_equal(kept.metas, HEC_MARKS_FACTS_MAX + 5 * 10);
    char text[80];
    snprintf(text, sizeof text, "%d facts left out: more than %d of a run", 10 + 6 * 490 - HEC_MARKS_FACTS_MAX,
             HEC_MARKS_FACTS_MAX);
    assert_non_null(kept_event(HEC_EVENT_NOTE, text));
}
