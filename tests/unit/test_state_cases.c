/* One gap a rule of state.h, with times as on a real device (microseconds), and the samples that fall into them. */
#include "diagnose/states/state.h"
#include "timeline_run.h"

#define US INT64_C(1000)

static char text[4096]; /* "compute 0-10, host 10-20": microseconds; ~ not traced */
static char samples[512];

static int begin(void **state) {
    timeline_begin(state);
    t.input.end_ns = 1000 * US;
    fake_tl_kernel(&t, "ampere_sgemm_128x128_tn", 128);
    fake_tl_kernel(&t, "ncclDevKernel_AllReduce", 128);
    return 0;
}

/* A device activity launched by a thread (0: unknown) at `launch`, in 5 us. */
static struct hec_activity *device(enum hec_activity_kind kind, uint32_t kernel, int64_t start, int64_t end,
                                   uint32_t by, int64_t launch) {
    struct hec_activity *a = fake_tl_add(&t, kind, stream, start * US, end * US);
    a->name = kernel;
    if (by) {
        fake_tl_launched(a, launch * US, (launch + 5) * US, by);
    }
    return a;
}

static void kernel(int64_t start, int64_t end, uint32_t by, int64_t launch) {
    device(HEC_ACTIVITY_KERNEL, 1, start, end, by, launch);
}

static void call(uint32_t on, enum hec_api_class detail, int64_t start, int64_t end) {
    fake_tl_add(&t, HEC_ACTIVITY_API, on, start * US, end * US)->detail = (uint8_t)detail;
}

static void phase(uint32_t on, const char *name, int64_t start, int64_t end) {
    uint32_t id = fake_tl_name(&t, name);
    fake_tl_add(&t, HEC_ACTIVITY_PHASE, on, start * US, end * US)->name = id;
}

static void sample(uint32_t on, int64_t at, uint32_t frame) {
    fake_tl_add(&t, HEC_ACTIVITY_STACK, on, at * US, (at + 20) * US)->name = frame;
}

static int take_piece(void *context, int index, const struct hec_state_piece *p) {
    size_t at = strlen(text);
    (void)context, (void)index;
    snprintf(text + at, sizeof text - at, "%s%s%s%s %g-%g", at ? ", " : "", p->traced ? "" : "~",
             p->phase == HEC_STATE_PHASE_DATA ? "(data)" : "", hec_state_name(p->state), (double)p->start_ns / 1e3,
             (double)p->end_ns / 1e3);
    if (p->frame) {
        at = strlen(text);
        snprintf(text + at, sizeof text - at, " @%u", p->frame);
    }
    return 0;
}

static int take_sample(void *context, int index, const struct hec_state_sample *s) {
    size_t at = strlen(samples);
    (void)context, (void)index;
    snprintf(samples + at, sizeof samples - at, "%s%s%s@%u %g", at ? ", " : "", hec_state_name(s->state),
             s->waiting ? "!" : "", s->frame, (double)s->t_ns / 1e3);
    return 0;
}

/* Of what was added; the next begins anew. */
static void expect(const struct hec_state_limits *limits, const char *expected) {
    const struct hec_state_visitor visitor = {.piece = take_piece, .sample = take_sample};
    text[0] = samples[0] = '\0';
    assert_int_equal(fake_pass_states(&t.input, limits, &visitor, NULL), 0);
    assert_string_equal(text, expected);
    begin(NULL);
}

TEST(busy_and_ends) {
    kernel(100, 300, thread, 90);
    device(HEC_ACTIVITY_KERNEL, 2, 200, 400, thread, 190);
    device(HEC_ACTIVITY_COPY, 0, 350, 500, thread, 340);
    device(HEC_ACTIVITY_GRAPH, 0, 500, 600, thread, 480);
    expect(NULL, "startup 0-100, compute 100-300, comm 300-400, copy 400-500, compute 500-600, tail 600-1000");
}

TEST(host_and_launch) {
    kernel(10, 20, thread, 2);
    kernel(120, 200, thread, 110);  /* long after the launch before it: own code, then the call and its delay */
    kernel(220, 230, thread, 210);  /* the launch before ended at 115: own code until 210 */
    kernel(250, 1000, thread, 230); /* 15 us after the end of that one: launching is the limit */
    expect(NULL,
           "startup 0-10, compute 10-20, host 20-110, launch 110-120, compute 120-200, host 200-210, launch 210-220, "
           "compute 220-230, launch 230-250, compute 250-1000");
}

TEST(loading) {
    t.input.end_ns = 5000 * US;
    kernel(10, 20, thread, 2);
    device(HEC_ACTIVITY_KERNEL, 1, 2050, 2100, thread, 120)->launch_end_ns = 2045 * US;
    device(HEC_ACTIVITY_COPY, 0, 4000, 5000, thread, 2200)->launch_end_ns = 5000 * US; /* of pageable memory */
    expect(NULL, "startup 0-10, compute 10-20, host 20-120, startup 120-2045, launch 2045-2050, compute 2050-2100, "
                 "host 2100-2200, launch 2200-4000, copy 4000-5000");
}

TEST(queued) {
    kernel(10, 100, thread, 0);
    kernel(102, 200, thread, 6); /* queued behind it */
    kernel(300, 1000, thread, 12);
    expect(NULL, "startup 0-10, compute 10-100, launch 100-102, compute 102-200, unknown 200-300, compute 300-1000");
}

/* From the wait's return to the next launch it is the wait's where that is brief, else the program's own code. */
TEST(synchronised) {
    for (int brief = 0; brief < 2; brief++) {
        const struct hec_state_limits limits = {
            .close_ns = 20 * US, .load_ns = 1000 * US, .brief_ns = (190 + brief) * US};
        kernel(10, 100, thread, 0);
        call(thread, HEC_API_SYNC, 60, 110);
        phase(thread, "data", 120, 140);
        kernel(310, 1000, thread, 300);
        expect(&limits,
               brief ? "startup 0-10, compute 10-100, sync 100-120, data 120-140, sync 140-300, launch 300-310, "
                       "compute 310-1000"
                     : "startup 0-10, compute 10-100, sync 100-110, host 110-120, data 120-140, host 140-300, launch "
                       "300-310, compute 310-1000");
    }
}

TEST(synchronous_copy) {
    device(HEC_ACTIVITY_COPY, 0, 10, 100, thread, 0)->launch_end_ns = 110 * US; /* returns after the copy */
    kernel(210, 1000, thread, 200);
    expect(NULL, "startup 0-10, copy 10-100, sync 100-200, launch 200-210, compute 210-1000");
}

TEST(calls_and_phases) {
    kernel(10, 100, thread, 0);
    call(thread, HEC_API_ALLOC, 90, 150);
    call(thread, HEC_API_SYNC, 120, 130); /* inside of the allocation */
    call(thread, HEC_API_MODULE, 200, 250);
    phase(thread, "data", 300, 450);
    phase(thread, "checkpoint", 400, 500);
    phase(thread, "evaluation", 500, 600); /* says nothing */
    call(thread, HEC_API_OTHER, 600, 650);
    kernel(710, 800, thread, 700);
    phase(thread, "checkpoint", 900, 950);
    expect(NULL,
           "startup 0-10, compute 10-100, alloc 100-150, host 150-200, startup 200-250, host 250-300, data 300-400, "
           "checkpoint 400-500, host 500-700, launch 700-710, compute 710-800, tail 800-900, checkpoint 900-950, "
           "tail 950-1000");
}

/* The backward pass has a thread of its own; what the main thread does counts where that one does nothing. */
TEST(two_threads) {
    kernel(10, 100, thread, 0);
    phase(thread, "data", 120, 140);
    call(second_thread, HEC_API_ALLOC, 130, 160);
    kernel(210, 1000, second_thread, 200);
    expect(NULL,
           "startup 0-10, compute 10-100, host 100-120, data 120-130, alloc 130-160, host 160-200, launch 200-210, "
           "compute 210-1000");
}

TEST(nothing_reports) {
    kernel(10, 100, 0, 0);
    kernel(200, 1000, 0, 0);
    expect(NULL, "startup 0-10, compute 10-100, unknown 100-200, compute 200-1000");
    t.input.end_ns = 0; /* unknown: the ends too */
    kernel(10, 100, 0, 0);
    kernel(200, 900, 0, 0);
    call(thread, HEC_API_SYNC, 60, 110);
    expect(NULL, "compute 10-100, sync 100-200, compute 200-900");
}

TEST(samples_cut_gaps) {
    kernel(10, 100, thread, 0);
    sample(thread, 50, 4); /* the device is busy */
    sample(thread, 120, 5);
    sample(thread, 140, 6);
    sample(thread, 200, 7); /* the gap has ended */
    kernel(200, 1000, thread, 190);
    expect(NULL, "startup 0-10, compute 10-100, host 100-120, host 120-140 @5, host 140-190 @6, launch 190-200 @6, "
                 "compute 200-1000");
    assert_string_equal(samples, "host@5 120, host@6 140");
}

/* What waited is the line in the call, also from before the device ran dry; for a copy the line in the copying call. */
TEST(samples_in_calls) {
    kernel(10, 100, thread, 0);
    sample(thread, 40, 3); /* not yet in the call */
    call(thread, HEC_API_SYNC, 60, 110);
    sample(thread, 80, 4);
    sample(thread, 105, 5);
    sample(thread, 125, 6);
    kernel(210, 300, thread, 200);
    sample(thread, 250, 7);
    device(HEC_ACTIVITY_COPY, 0, 300, 500, thread, 290)->launch_end_ns = 510 * US;
    sample(thread, 400, 8);
    device(HEC_ACTIVITY_COPY, 0, 600, 1000, thread, 590);
    sample(thread, 700, 9); /* the call has long returned */
    expect(NULL, "startup 0-10, compute 10-100, sync 100-105, sync 105-125 @5, sync 125-200 @6, launch 200-210 @6, "
                 "compute 210-300, copy 300-500, sync 500-590, launch 590-600, copy 600-1000");
    assert_string_equal(samples, "sync!@4 80, sync!@5 105, sync@6 125, copy!@8 400, sync!@8 400");
}

/* Traced from 50 to 300 and from 500 to 900. */
TEST(windows) {
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 50 * US, 300 * US);
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 500 * US, 900 * US);
    kernel(100, 250, thread, 90);
    phase(thread, "data", 400, 520);
    kernel(560, 900, thread, 550);
    expect(
        NULL,
        "startup 0-100, compute 100-250, host 250-300, ~unknown 300-400, ~(data)unknown 400-500, (data)data 500-520, "
        "host 520-550, launch 550-560, compute 560-900, tail 900-1000");
    /* the first kernel of the second window waited for 100 us: the device still had work from before the window */
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 50 * US, 300 * US);
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 500 * US, 900 * US);
    kernel(100, 300, thread, 90);
    kernel(600, 900, thread, 495);
    expect(NULL, "startup 0-100, compute 100-300, ~unknown 300-600, compute 600-900, tail 900-1000");
}

static int stop(void *context, int index, const struct hec_state_piece *p) {
    (void)context, (void)index, (void)p;
    return 7;
}

TEST(failures) {
    const struct hec_state_visitor visitor = {.piece = take_piece}, stopping = {.piece = stop};
    kernel(10, 20, thread, 0);
    for (int pass = 1; pass <= 2; pass++) {
        t.passes = 0;
        t.fail_pass = pass;
        assert_int_equal(fake_pass_states(&t.input, NULL, &visitor, NULL), HEC_ERR_CORRUPT);
    }
    t.fail_pass = 0;
    assert_int_equal(fake_pass_states(&t.input, NULL, &stopping, NULL), 7);
    struct hec_timeline_input none = {0};
    const struct hec_state_visitor nobody = {0};
    assert_int_equal(fake_pass_states(&none, NULL, &nobody, NULL), 0);
}

EACH_TEST(begin, NULL)
