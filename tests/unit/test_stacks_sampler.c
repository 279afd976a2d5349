/* How many times the memory of a program is read for its stacks, and whose turn it is: made interpreters of every version. */
#include "python_image.h"

#include "observe/stacks/sampler.h"

#include <unistd.h>

#define MAIN 0x7000
#define THREADS 21
#define PERIOD_NS (10 * HEC_NS_PER_MS)

static uint32_t next_id;
static int64_t samples[THREADS + 1], stood_ns[THREADS + 1]; /* by track */
static int reads;

static uint32_t name(void *context, const char *text) {
    (void)context;
    (void)text;
    return 1;
}
static uint32_t track(void *context, const struct hec_track *what) {
    (void)context;
    (void)what;
    return ++next_id;
}
static uint32_t frame(void *context, const struct hec_frame *what) {
    (void)context;
    (void)what;
    return 1;
}
static void activities(void *context, const struct hec_activity *list, size_t count) {
    (void)context;
    for (size_t i = 0; i < count; i++) {
        samples[list[i].track]++;
        stood_ns[list[i].track] += list[i].end_ns - list[i].start_ns;
    }
}

static const struct hec_sink sink = {
    .trace_name = name, .trace_track = track, .trace_frame = frame, .trace_activities = activities};

struct world {
    struct image image;
    struct hec_stacks_sampler sampler;
    struct hec_python_scratch scratch;
    struct hec_stacks_out out;
    uint64_t thread[THREADS], code, outer;
    int64_t now_ns;
};

static size_t counted(void *context, const struct iovec *pieces, size_t count, void *to) {
    reads++;
    return image_read(context, pieces, count, to);
}

/* A main thread and 20 others, two frames deep; all have this test's own number, so that they are there. */
static struct world *begin(int minor) {
    struct world *w = test_calloc(1, sizeof *w);
    next_id = 0;
    memset(samples, 0, sizeof samples);
    memset(stood_ns, 0, sizeof stood_ns);
    image_begin(&w->image, minor, MAIN);
    w->code = image_code(&w->image, "a.py", "wait", 5);
    for (int i = THREADS; i-- > 0;) { /* the newest is the first of the list */
        uint64_t outer = image_frame(&w->image, w->code, 4, 0);
        w->thread[i] = image_thread(&w->image, MAIN + (uint64_t)i, (uint64_t)getpid() + (i > 0 ? 1 : 0),
                                    image_frame(&w->image, w->code, 12, outer));
        w->outer = outer;
    }
    w->out.sink = &sink;
    hec_stacks_sampler_init(&w->sampler, &sink);
    w->sampler.process = (struct hec_python_process){
        .pid = getpid(), .inner_pid = getpid(), .python = w->image.python, .memory = {&w->image, counted}};
    w->now_ns = HEC_NS_PER_S;
    return w;
}

static void end(struct world *w) {
    hec_stacks_sampler_free(&w->sampler);
    test_free(w);
}

/* So many readings later; how many times memory was read for the last one. */
static int after(struct world *w, int readings) {
    for (int i = 0; i < readings; i++) {
        reads = 0;
        w->now_ns += PERIOD_NS;
        assert_true(hec_stacks_sample(&w->sampler, w->now_ns, PERIOD_NS, &w->scratch, &w->out));
        for (int t = 0; t < w->sampler.thread_count; t++)
            if (!w->sampler.threads[t].tid) { /* this test has no such threads */
                w->sampler.threads[t].tid = 1000 + t;
                w->sampler.threads[t].track = ++next_id;
            }
    }
    hec_stacks_flush(&w->out);
    return reads;
}

#define EACH_VERSION for (int minor = HEC_PYTHON_MINOR_FIRST; minor <= HEC_PYTHON_MINOR_LAST; minor++)

TEST(all_stacks_of_a_process_are_read_with_one_call) {
    EACH_VERSION {
        struct world *w = begin(minor);
        after(w, 50);
        assert_int_equal(w->sampler.thread_count, THREADS);
        int most = 0, lists = 0;
        for (int i = 0; i < 50; i++) {
            int count = after(w, 1);
            lists += count > 1; /* the list of threads: once in 100 ms, its own pieces at once as well */
            most = count > most ? count : most;
        }
        assert_int_equal(lists, 5);
        assert_true(most <= 4);
        end(w);
    }
}

TEST(threads_that_wait_are_read_seldom_and_none_is_forgotten) {
    EACH_VERSION {
        struct world *w = begin(minor);
        after(w, 150); /* for a second each counts as one that may work */
        int64_t before[THREADS + 1], stood[THREADS + 1];
        memcpy(before, samples, sizeof before);
        memcpy(stood, stood_ns, sizeof stood);
        after(w, 200);
        int64_t all = 0;
        for (int t = 1; t <= THREADS; t++) {
            assert_true(samples[t] > before[t]);
            assert_true(stood_ns[t] - stood[t] >=
                        14 * HEC_NS_PER_S / 10); /* of 2 s: they stand for all of the time but its end */
            all += samples[t] - before[t];
        }
        assert_int_equal(all, 200 + 200); /* the main one each time, and one of the others */
        /* one of them works again */
        for (int i = 0; i < 100; i++) {
            image_top(&w->image, w->thread[7], image_frame(&w->image, w->code, i % 2 ? 2 : 12, w->outer));
            after(w, 1);
        }
        int active = 0;
        for (int t = 0; t < w->sampler.thread_count; t++)
            active += w->sampler.threads[t].python.state == w->thread[7] && w->sampler.threads[t].read_ns == w->now_ns;
        assert_int_equal(active, 1);
        end(w);
    }
}

/* A frame that is not there ends the read of all behind it: they are read by themselves. */
TEST(one_that_is_torn_costs_no_other_its_sample) {
    EACH_VERSION {
        struct world *w = begin(minor);
        after(w, 20);
        int64_t before = w->out.counts.samples, torn = w->out.counts.torn;
        image_top(&w->image, w->thread[0], IMAGE_BASE + IMAGE_BYTES + 4096);
        after(w, 10);
        assert_true(w->out.counts.torn > torn);
        assert_true(w->out.counts.samples - before >= 10 * (HEC_STACKS_THREADS - 1));
        end(w);
    }
}

ALL_TESTS(NULL, NULL)
