/* One gap a rule of state.h, with times as on a real device (microseconds), and the samples that fall into them. */
#include "diagnose/states/state.h"
#include "fake_timeline.h"
#include "unit.h"

#define US INT64_C(1000)

struct world {
    struct fake_timeline t;
    uint32_t stream, main, other;
    char text[4096]; /* "compute 0-10, host 10-20": microseconds; ~ not traced */
    char samples[512];
};

static void begin(struct world *w) {
    memset(w, 0, sizeof *w);
    fake_tl_init(&w->t);
    w->t.input.end_ns = 1000 * US;
    fake_tl_kernel(&w->t, "ampere_sgemm_128x128_tn", 128);
    fake_tl_kernel(&w->t, "ncclDevKernel_AllReduce", 128);
    w->stream = fake_tl_track(&w->t, HEC_TRACK_STREAM, 1, 0, 7);
    w->main = fake_tl_track(&w->t, HEC_TRACK_THREAD, 1, -1, 1);
    w->other = fake_tl_track(&w->t, HEC_TRACK_THREAD, 1, -1, 2);
}

/* A device activity launched by a thread (0: unknown) at `launch`, in 5 us. */
static struct hec_activity *device(struct world *w, enum hec_activity_kind kind, uint32_t kernel, int64_t start,
                                   int64_t end, uint32_t thread, int64_t launch) {
    struct hec_activity *a = fake_tl_add(&w->t, kind, w->stream, start * US, end * US);
    a->name = kernel;
    if (thread) {
        a->launch_ns = launch * US;
        a->launch_end_ns = (launch + 5) * US;
        a->launch_track = thread;
    }
    return a;
}

static void kernel(struct world *w, int64_t start, int64_t end, uint32_t thread, int64_t launch) {
    device(w, HEC_ACTIVITY_KERNEL, 1, start, end, thread, launch);
}

static void call(struct world *w, uint32_t thread, enum hec_api_class detail, int64_t start, int64_t end) {
    fake_tl_add(&w->t, HEC_ACTIVITY_API, thread, start * US, end * US)->detail = (uint8_t)detail;
}

static void phase(struct world *w, uint32_t thread, const char *name, int64_t start, int64_t end) {
    uint32_t id = fake_tl_name(&w->t, name);
    fake_tl_add(&w->t, HEC_ACTIVITY_PHASE, thread, start * US, end * US)->name = id;
}

static void sample(struct world *w, uint32_t thread, int64_t t, uint32_t frame) {
    fake_tl_add(&w->t, HEC_ACTIVITY_STACK, thread, t * US, (t + 20) * US)->name = frame;
}

static int take_piece(void *context, int index, const struct hec_state_piece *p) {
    struct world *w = context;
    size_t at = strlen(w->text);
    (void)index;
    snprintf(w->text + at, sizeof w->text - at, "%s%s%s%s %g-%g", at ? ", " : "", p->traced ? "" : "~",
             p->phase == HEC_STATE_PHASE_DATA ? "(data)" : "", hec_state_name(p->state), (double)p->start_ns / 1e3,
             (double)p->end_ns / 1e3);
    if (p->frame) {
        at = strlen(w->text);
        snprintf(w->text + at, sizeof w->text - at, " @%u", p->frame);
    }
    return 0;
}

static int take_sample(void *context, int index, const struct hec_state_sample *s) {
    struct world *w = context;
    size_t at = strlen(w->samples);
    (void)index;
    snprintf(w->samples + at, sizeof w->samples - at, "%s%s%s@%u %g", at ? ", " : "", hec_state_name(s->state),
             s->waiting ? "!" : "", s->frame, (double)s->t_ns / 1e3);
    return 0;
}

static void expect(struct world *w, const struct hec_state_limits *limits, const char *text) {
    struct hec_why why;
    const struct hec_state_visitor visitor = {.context = w, .piece = take_piece, .sample = take_sample};
    assert_int_equal(fake_pass_states(&w->t.input, limits, &visitor, &why), 0);
    assert_string_equal(w->text, text);
    fake_tl_free(&w->t);
}

TEST(busy_and_ends) {
    struct world w;
    begin(&w);
    kernel(&w, 100, 300, w.main, 90);
    device(&w, HEC_ACTIVITY_KERNEL, 2, 200, 400, w.main, 190);
    device(&w, HEC_ACTIVITY_COPY, 0, 350, 500, w.main, 340);
    device(&w, HEC_ACTIVITY_GRAPH, 0, 500, 600, w.main, 480);
    expect(&w, NULL, "startup 0-100, compute 100-300, comm 300-400, copy 400-500, compute 500-600, tail 600-1000");
}

TEST(host_and_launch) {
    struct world w;
    begin(&w);
    kernel(&w, 10, 20, w.main, 2);
    kernel(&w, 120, 200, w.main, 110);  /* long after the launch before it: own code, then the call and its delay */
    kernel(&w, 220, 230, w.main, 210);  /* the launch before ended at 115: own code until 210 */
    kernel(&w, 250, 1000, w.main, 230); /* 15 us after the end of that one: launching is the limit */
    expect(&w, NULL,
           "startup 0-10, compute 10-20, host 20-110, launch 110-120, compute 120-200, host 200-210, launch 210-220, "
           "compute 220-230, launch 230-250, compute 250-1000");
}

TEST(loading) {
    struct world w;
    begin(&w);
    w.t.input.end_ns = 5000 * US;
    kernel(&w, 10, 20, w.main, 2);
    device(&w, HEC_ACTIVITY_KERNEL, 1, 2050, 2100, w.main, 120)->launch_end_ns = 2045 * US;
    device(&w, HEC_ACTIVITY_COPY, 0, 4000, 5000, w.main, 2200)->launch_end_ns = 5000 * US; /* of pageable memory */
    expect(&w, NULL,
           "startup 0-10, compute 10-20, host 20-120, startup 120-2045, launch 2045-2050, compute 2050-2100, "
           "host 2100-2200, launch 2200-4000, copy 4000-5000");
}

TEST(queued) {
    struct world w;
    begin(&w);
    kernel(&w, 10, 100, w.main, 0);
    kernel(&w, 102, 200, w.main, 6); /* queued behind it */
    kernel(&w, 300, 1000, w.main, 12);
    expect(&w, NULL,
           "startup 0-10, compute 10-100, launch 100-102, compute 102-200, unknown 200-300, compute 300-1000");
}

/* From the wait's return to the next launch it is the wait's where that is brief, else the program's own code. */
TEST(synchronised) {
    struct world w;
    for (int brief = 0; brief < 2; brief++) {
        const struct hec_state_limits limits = {
            .close_ns = 20 * US, .load_ns = 1000 * US, .brief_ns = (190 + brief) * US};
        begin(&w);
        kernel(&w, 10, 100, w.main, 0);
        call(&w, w.main, HEC_API_SYNC, 60, 110);
        phase(&w, w.main, "data", 120, 140);
        kernel(&w, 310, 1000, w.main, 300);
        expect(&w, &limits,
               brief ? "startup 0-10, compute 10-100, sync 100-120, data 120-140, sync 140-300, launch 300-310, "
                       "compute 310-1000"
                     : "startup 0-10, compute 10-100, sync 100-110, host 110-120, data 120-140, host 140-300, launch "
                       "300-310, compute 310-1000");
    }
}

TEST(synchronous_copy) {
    struct world w;
    begin(&w);
    device(&w, HEC_ACTIVITY_COPY, 0, 10, 100, w.main, 0)->launch_end_ns = 110 * US; /* returns after the copy */
    kernel(&w, 210, 1000, w.main, 200);
    expect(&w, NULL, "startup 0-10, copy 10-100, sync 100-200, launch 200-210, compute 210-1000");
}

TEST(calls_and_phases) {
    struct world w;
    begin(&w);
    kernel(&w, 10, 100, w.main, 0);
    call(&w, w.main, HEC_API_ALLOC, 90, 150);
    call(&w, w.main, HEC_API_SYNC, 120, 130); /* inside of the allocation */
    call(&w, w.main, HEC_API_MODULE, 200, 250);
    phase(&w, w.main, "data", 300, 450);
    phase(&w, w.main, "checkpoint", 400, 500);
    phase(&w, w.main, "evaluation", 500, 600); /* says nothing */
    call(&w, w.main, HEC_API_OTHER, 600, 650);
    kernel(&w, 710, 800, w.main, 700);
    phase(&w, w.main, "checkpoint", 900, 950);
    expect(&w, NULL,
           "startup 0-10, compute 10-100, alloc 100-150, host 150-200, startup 200-250, host 250-300, data 300-400, "
           "checkpoint 400-500, host 500-700, launch 700-710, compute 710-800, tail 800-900, checkpoint 900-950, "
           "tail 950-1000");
}

/* The backward pass has a thread of its own; what the main thread does counts where that one does nothing. */
TEST(two_threads) {
    struct world w;
    begin(&w);
    kernel(&w, 10, 100, w.main, 0);
    phase(&w, w.main, "data", 120, 140);
    call(&w, w.other, HEC_API_ALLOC, 130, 160);
    kernel(&w, 210, 1000, w.other, 200);
    expect(&w, NULL,
           "startup 0-10, compute 10-100, host 100-120, data 120-130, alloc 130-160, host 160-200, launch 200-210, "
           "compute 210-1000");
}

TEST(nothing_reports) {
    struct world w;
    begin(&w);
    kernel(&w, 10, 100, 0, 0);
    kernel(&w, 200, 1000, 0, 0);
    expect(&w, NULL, "startup 0-10, compute 10-100, unknown 100-200, compute 200-1000");
    begin(&w);
    w.t.input.end_ns = 0; /* unknown: the ends too */
    kernel(&w, 10, 100, 0, 0);
    kernel(&w, 200, 900, 0, 0);
    call(&w, w.main, HEC_API_SYNC, 60, 110);
    expect(&w, NULL, "compute 10-100, sync 100-200, compute 200-900");
}

TEST(samples_cut_gaps) {
    struct world w;
    begin(&w);
    kernel(&w, 10, 100, w.main, 0);
    sample(&w, w.main, 50, 4); /* the device is busy */
    sample(&w, w.main, 120, 5);
    sample(&w, w.main, 140, 6);
    sample(&w, w.main, 200, 7); /* the gap has ended */
    kernel(&w, 200, 1000, w.main, 190);
    expect(&w, NULL,
           "startup 0-10, compute 10-100, host 100-120, host 120-140 @5, host 140-190 @6, launch 190-200 @6, "
           "compute 200-1000");
    assert_string_equal(w.samples, "host@5 120, host@6 140");
}

/* What waited is the line in the call, also from before the device ran dry; for a copy the line in the copying call. */
TEST(samples_in_calls) {
    struct world w;
    begin(&w);
    kernel(&w, 10, 100, w.main, 0);
    sample(&w, w.main, 40, 3); /* not yet in the call */
    call(&w, w.main, HEC_API_SYNC, 60, 110);
    sample(&w, w.main, 80, 4);
    sample(&w, w.main, 105, 5);
    sample(&w, w.main, 125, 6);
    kernel(&w, 210, 300, w.main, 200);
    sample(&w, w.main, 250, 7);
    device(&w, HEC_ACTIVITY_COPY, 0, 300, 500, w.main, 290)->launch_end_ns = 510 * US;
    sample(&w, w.main, 400, 8);
    device(&w, HEC_ACTIVITY_COPY, 0, 600, 1000, w.main, 590);
    sample(&w, w.main, 700, 9); /* the call has long returned */
    expect(&w, NULL,
           "startup 0-10, compute 10-100, sync 100-105, sync 105-125 @5, sync 125-200 @6, launch 200-210 @6, "
           "compute 210-300, copy 300-500, sync 500-590, launch 590-600, copy 600-1000");
    assert_string_equal(w.samples, "sync!@4 80, sync!@5 105, sync@6 125, copy!@8 400, sync!@8 400");
}

/* Traced from 50 to 300 and from 500 to 900. */
TEST(windows) {
    struct world w;
    begin(&w);
    uint32_t process = fake_tl_track(&w.t, HEC_TRACK_PROCESS, 1, -1, 0);
    fake_tl_add(&w.t, HEC_ACTIVITY_WINDOW, process, 50 * US, 300 * US);
    fake_tl_add(&w.t, HEC_ACTIVITY_WINDOW, process, 500 * US, 900 * US);
    kernel(&w, 100, 250, w.main, 90);
    phase(&w, w.main, "data", 400, 520);
    kernel(&w, 560, 900, w.main, 550);
    expect(
        &w, NULL,
        "startup 0-100, compute 100-250, host 250-300, ~unknown 300-400, ~(data)unknown 400-500, (data)data 500-520, "
        "host 520-550, launch 550-560, compute 560-900, tail 900-1000");
    /* the first kernel of the second window waited for 100 us: the device still had work from before the window */
    begin(&w);
    process = fake_tl_track(&w.t, HEC_TRACK_PROCESS, 1, -1, 0);
    fake_tl_add(&w.t, HEC_ACTIVITY_WINDOW, process, 50 * US, 300 * US);
    fake_tl_add(&w.t, HEC_ACTIVITY_WINDOW, process, 500 * US, 900 * US);
    kernel(&w, 100, 300, w.main, 90);
    kernel(&w, 600, 900, w.main, 495);
    expect(&w, NULL, "startup 0-100, compute 100-300, ~unknown 300-600, compute 600-900, tail 900-1000");
}

static int stop(void *context, int index, const struct hec_state_piece *p) {
    (void)context, (void)index, (void)p;
    return 7;
}

TEST(failures) {
    struct hec_why why;
    for (int pass = 1; pass <= 2; pass++) {
        struct world w;
        const struct hec_state_visitor visitor = {.context = &w, .piece = take_piece};
        begin(&w);
        kernel(&w, 10, 20, w.main, 0);
        w.t.fail_pass = pass;
        assert_int_equal(fake_pass_states(&w.t.input, NULL, &visitor, &why), HEC_ERR_CORRUPT);
        fake_tl_free(&w.t);
    }
    struct world w;
    const struct hec_state_visitor stopping = {.piece = stop};
    begin(&w);
    kernel(&w, 10, 20, w.main, 0);
    assert_int_equal(fake_pass_states(&w.t.input, NULL, &stopping, &why), 7);
    fake_tl_free(&w.t);
    struct hec_timeline_input none = {0};
    const struct hec_state_visitor nobody = {0};
    assert_int_equal(fake_pass_states(&none, NULL, &nobody, &why), 0);
}
