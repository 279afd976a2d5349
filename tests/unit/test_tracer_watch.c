/* Whether mode auto has its look at the device, and whether it stays: programs as rows. */
#include "tracer/tracer.h"
#include "unit.h"

#define MS HEC_NS_PER_MS
#define S HEC_NS_PER_S
#define PARTS 3

/* One part of a program's life. */
struct part {
    int ms;
    double launches, graphs, copies; /* a second */
    double waited;                   /* share */
    double stolen;                   /* of it, maybe */
    uint64_t nodes;                  /* of the largest graph */
    double waits;                    /* a second */
};

struct player {
    struct hec_watch watch;
    struct hec_callers_totals now;
    double launches, graphs, copies, waited_ns, waits;
};

/* Samples as the tracer's thread takes them. Returns when it may look, ms after the start; 0: never. */
static int64_t play(struct player *p, const struct part *part, int64_t start_ns) {
    int64_t tick = HEC_WATCH_SAMPLE_NS, end = p->now.t_ns + part->ms * MS;
    while (p->now.t_ns < end) {
        double s = (double)tick * 1e-9;
        p->now.t_ns += tick;
        p->now.launches = (uint64_t)(p->launches += part->launches * s);
        p->now.graphs = (uint64_t)(p->graphs += part->graphs * s);
        p->now.copies = (uint64_t)(p->copies += part->copies * s);
        p->now.waited_ns = (int64_t)(p->waited_ns += part->waited * (double)tick);
        p->now.waits = (uint64_t)(p->waits += part->waits * s);
        p->now.graph_nodes = part->nodes;
        hec_watch_sample(&p->watch, &p->now);
        if (hec_watch_may_look(&p->watch, p->now.t_ns, part->stolen))
            return (p->now.t_ns - start_ns) / MS;
    }
    return 0;
}

static const struct {
    const char *what;
    struct part parts[PARTS];
    int from_ms, to_ms; /* when it looks; 0: never */
} rows[] = {
    {"launch-bound", {{60000, 200000, 0, 0, 0}}, 0, 0},
    {"it waits half of the time", {{60000, 1000, 0, 0, 0.5}}, 2000, 2100},
    {"it waits for a twentieth", {{60000, 1000, 0, 0, 0.05}}, 0, 0},
    {"it waits for a little over a tenth", {{60000, 1000, 0, 0, 0.11}}, 2000, 2100},
    {"so many launches that the wait hides no more", {{60000, 120000, 0, 0, 0.15}}, 0, 0},
    {"nearly as many", {{60000, 110000, 0, 0, 0.15}}, 2000, 2100},
    {"copies count as launches", {{60000, 60000, 0, 60000, 0.15}}, 0, 0},
    {"graphs of many small kernels, each waited for, are slower for good",
     {{60000, 0, 1500, 0, 0.9, 0, 200, 1500}},
     0,
     0},
    {"and where none is, the device would be slower meanwhile", {{60000, 0, 1500, 0, 0.9, 0, 200, 0}}, 0, 0},
    {"so are larger ones, where one in five is waited for", {{60000, 0, 600, 0, 0.9, 0, 200, 120}}, 0, 0},
    {"one in ten: the device has enough to do meanwhile", {{60000, 0, 600, 0, 0.9, 0, 200, 60}}, 2000, 2100},
    {"but the host waits too little to hide the launches", {{60000, 0, 600, 0, 0.2, 0, 200, 60}}, 0, 0},
    {"graphs of large kernels bear it", {{60000, 0, 70, 0, 0.9, 0, 200, 1000}}, 2000, 2100},
    {"a few more do not", {{60000, 0, 75, 0, 0.9, 0, 200, 1000}}, 0, 0},
    {"graphs of which nobody knows how large they are", {{60000, 1000, 10, 0, 0.9, 0, 0, 10}}, 0, 0},
    {"graphs that are made, and not launched yet", {{60000, 1000, 0, 0, 0.9, 0, 1, 10}}, 0, 0},
    {"graphs that are launched later",
     {{9000, 1000, 0, 0, 0.9, 0, 50, 10}, {9000, 1000, 100, 0, 0.9, 0, 50, 10}},
     9000,
     9100},
    {"a full queue", {{60000, 20000, 0, 0, 0.97}}, 2000, 2100},
    {"nothing is launched", {{60000, 0, 0, 0, 0.5}}, 0, 0},
    {"a late start", {{30000, 0, 0, 0, 0}, {9000, 1000, 0, 0, 0.5}}, 32000, 32100},
    {"it only waited at first", {{900, 1000, 0, 0, 0.9}, {60000, 200000, 0, 0, 0}}, 0, 0},
    {"it waits later", {{20000, 200000, 0, 0, 0}, {9000, 1000, 0, 0, 0.9}}, 20100, 21100},
    {"its core was stolen", {{60000, 1000, 0, 0, 0.3, 0.21}}, 0, 0},
    {"it waited for longer than that", {{60000, 1000, 0, 0, 0.35, 0.21}}, 2000, 2100},
    {"nobody knows yet", {{60000, 1000, 0, 0, 1, 1}}, 0, 0},
    {"it ends before", {{1900, 1000, 0, 0, 0.9}}, 0, 0},
};

TEST(test_looks) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct player player = {.now.t_ns = 1000 * S};
        int64_t ms = 0;
        for (size_t part = 0; part < PARTS && rows[i].parts[part].ms && ms == 0; part++)
            ms = play(&player, &rows[i].parts[part], 1000 * S);
        if (ms < rows[i].from_ms || ms > rows[i].to_ms)
            fail_msg("%s: after %d ms", rows[i].what, (int)ms);
    }
}

/* A program waits for a core for half of each second, at once; the tracer's thread does too, between its reading of the waits and that
 * of the delays, whenever that is. */
TEST(test_a_core_is_not_the_device) {
    enum { TICKS = 20 };
    for (int late = 0; late < TICKS; late++) {
        struct hec_watch watch = {0};
        for (int i = 0; i < 10 * TICKS; i++) {
            int64_t seconds = i / TICKS, over = i % TICKS >= late, seen = i % TICKS >= late - 1;
            struct hec_callers_totals now = {.t_ns = 1000 * S + i * HEC_WATCH_SAMPLE_NS,
                                             .launches = (uint64_t)(1000 * i + 1)};
            now.waited_ns = (seconds + over) * 500 * MS;
            now.delay_ns = (seconds + seen) * 500 * MS;
            hec_watch_sample(&watch, &now);
            assert_false(hec_watch_may_look(&watch, now.t_ns, 0));
        }
    }
}

typedef bool watch_question(const struct hec_watch *watch, int64_t opened_ns, int64_t now_ns);

/* Launches a second in each of the intervals of 50 ms before CUPTI came and after, with a zigzag of so many. */
static bool asked(watch_question *question, double before, double after, double zigzag, int intervals) {
    struct hec_watch watch = {0};
    struct hec_callers_totals now = {.t_ns = 1000 * S};
    double launches = 1;
    int64_t opened = now.t_ns + intervals * HEC_WATCH_SAMPLE_NS;
    for (int i = 0; i <= 2 * intervals; i++) {
        now.launches = (uint64_t)launches;
        hec_watch_sample(&watch, &now);
        double rate = (now.t_ns < opened ? before : after) + (i % 2 ? zigzag : -zigzag);
        launches += rate * (double)HEC_WATCH_SAMPLE_NS * 1e-9;
        now.t_ns += HEC_WATCH_SAMPLE_NS;
    }
    return question(&watch, opened, opened + intervals * HEC_WATCH_SAMPLE_NS);
}

static bool stays(double before, double after, double zigzag, int intervals) {
    return asked(hec_watch_free, before, after, zigzag, intervals);
}

static bool slower(double before, double after, double zigzag, int intervals) {
    return asked(hec_watch_slower, before, after, zigzag, intervals);
}

TEST(test_stays) {
    assert_true(stays(1000000, 1000000, 0, 40));
    assert_true(stays(1000000, 1100000, 0, 40)); /* faster */
    assert_true(stays(1000000, 996000, 0, 40));  /* by 0.4 % slower */
    assert_false(stays(1000000, 994000, 0, 40)); /* by 0.6 % */
    assert_false(stays(1000000, 500000, 0, 40));
    /* the interval counts: +-1 % a sample is +-0.3 % of 40 and +-0.8 % of 8 */
    assert_true(stays(1000000, 1000000, 10000, 40));
    assert_false(stays(1000000, 997500, 10000, 40));
    assert_false(stays(1000000, 1000000, 100000, 40));
    /* too little to tell */
    assert_false(stays(1000000, 1000000, 0, HEC_WATCH_FREE_SAMPLES - 1));
    assert_true(stays(1000000, 1000000, 0, HEC_WATCH_FREE_SAMPLES));
    assert_false(stays(0, 0, 0, 40));
}

TEST(test_leaves_early) {
    assert_true(slower(1000000, 900000, 0, HEC_WATCH_FREE_SAMPLES));
    assert_false(slower(1000000, 900000, 0, HEC_WATCH_FREE_SAMPLES - 1));
    assert_true(slower(1000000, 945000, 0, 40)); /* 5.8 % later */
    assert_false(slower(1000000, 960000, 0, 40));
    assert_false(slower(1000000, 1100000, 0, 40));
    /* surely: +-30 % a sample is +-9.7 % of 10 and +-4.8 % of 40, for one side of the two */
    assert_false(slower(1000000, 800000, 300000, HEC_WATCH_FREE_SAMPLES));
    assert_true(slower(1000000, 700000, 300000, 40));
    assert_false(slower(0, 0, 0, 40));
}

TEST(test_samples) {
    struct hec_watch watch = {0};
    struct hec_callers_totals now = {.t_ns = 1000 * S};
    hec_watch_sample(&watch, &now);
    now.t_ns += HEC_WATCH_SAMPLE_NS - 1;
    now.launches = 1;
    hec_watch_sample(&watch, &now);
    assert_int_equal(watch.count, 1); /* too close, but the first launch is noted */
    assert_true(watch.first_ns == now.t_ns);
    now.t_ns++;
    hec_watch_sample(&watch, &now);
    assert_int_equal(watch.count, 2);
    for (uint32_t i = 0; i < 3 * HEC_WATCH_SAMPLES; i++) {
        now.t_ns += HEC_WATCH_SAMPLE_NS;
        hec_watch_sample(&watch, &now);
        hec_watch_may_look(&watch, now.t_ns, 0); /* stays within the ring */
        hec_watch_free(&watch, now.t_ns - 20 * S, now.t_ns);
    }
    assert_int_equal(watch.count, 2 + 3 * HEC_WATCH_SAMPLES);
}
