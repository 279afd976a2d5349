/* Calls are found for what the device did, without ids that both sides know: on whole, shuffled, dropped and graph-laden
 * streams. The truth is made up in match_world.h. */
#include "tests/unit/match_world.h"
#include "unit.h"

/* Shares in parts per million. */
struct expected {
    uint32_t right_min, wrong_max;
};

static bool is_met(const struct world_options *options, struct expected expected) {
    struct world world;
    world_make(&world, options);
    world_match(&world);
    bool met = world.again == 0 && world.call_again == 0 &&
               world.right * 1000000 >= world.matchable * expected.right_min &&
               world.wrong * 1000000 <= (uint64_t)world.record_count * expected.wrong_max;
    world_free(&world);
    return met;
}

static void table(const struct world_options *rows, size_t count, struct expected expected) {
    uint32_t failed = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t seed = 1; seed <= (getenv("HEC_TEST_RUNS") ? 1 : 3); seed++) {
            struct world_options options = rows[i];
            options.seed = seed + 100 * i;
            options.first_id = options.first_id ? options.first_id : 1;
            options.threads = options.threads ? options.threads : 1;
            if (!is_met(&options, expected)) {
                printf("  ^ not as expected (seed %u)\n", (unsigned)options.seed);
                failed++;
            }
        }
    assert_int_equal(failed, 0);
}

#define BASE .steps = 60, .layers = 24, .other = 1.5
#define AHEAD .queue_ns = 1e10, .first_ns = 100e6
#define TABLE(rows, right, wrong) table(rows, sizeof(rows) / sizeof *(rows), (struct expected){right, wrong})

TEST(nothing_lost) {
    static const struct world_options rows[] = {
        {.name = "whole, host-bound", BASE, .host_bound = true},
        {.name = "whole, device-bound", BASE},
        {.name = "whole, ids at random", BASE, .other_random = 2},
        {.name = "whole, ids without gaps", .steps = 60, .layers = 24},
        {.name = "whole, ids wrap", BASE, .first_id = UINT32_MAX - 50000},
        {.name = "whole, graphs", BASE, .graphs = true},
        {.name = "whole, two, host-bound, random ids", BASE, .threads = 2, .host_bound = true, .other_random = 1},
        {.name = "whole, buffers swapped", BASE, .swapped = true},
        {.name = "whole, buffers swapped, 12000 ahead",
         BASE,
         .swapped = true,
         .never_waits = true,
         .reported_since = true,
         AHEAD},
        {.name = "whole, told since, never waits", BASE, .never_waits = true, .reported_since = true},
        {.name = "whole, 194 equal, new", BASE, .equal = 194},
        {.name = "whole, 194 equal, new, host-bound", BASE, .equal = 194, .host_bound = true},
        {.name = "whole, 194 equal, new, often", BASE, .equal = 194, .often = true},
        {.name = "whole, 350 of three in turn, new", BASE, .equal = 350, .rotates = true},
        {.name = "whole, 350 in turn, new, often", BASE, .equal = 350, .rotates = true, .often = true},
        {.name = "whole, 12000 calls ahead", BASE, .never_waits = true, .reported_since = true, AHEAD},
        {.name = "whole, one function, told since", BASE, .one_function = true, .reported_since = true},
        {.name = "whole, one function, ahead",
         BASE,
         .one_function = true,
         .never_waits = true,
         .reported_since = true,
         AHEAD},
    };
    TABLE(rows, 999000, 0);
}

TEST(one_percent_lost) {
    static const struct world_options rows[] = {
        {.name = "1 % of records", BASE, .lost_records = 0.01},
        {.name = "1 % of records, host-bound", BASE, .lost_records = 0.01, .host_bound = true},
        {.name = "1 % of calls", BASE, .lost_calls = 0.01},
        {.name = "1 % of calls, host-bound", BASE, .lost_calls = 0.01, .host_bound = true},
        {.name = "1 % of both", BASE, .lost_calls = 0.01, .lost_records = 0.01},
        {.name = "1 % of both, graphs", BASE, .lost_calls = 0.01, .lost_records = 0.01, .graphs = true},
        {.name = "1 % of both, two threads", BASE, .lost_calls = 0.01, .lost_records = 0.01, .threads = 2},
        {.name = "1 % of both, ids at random", BASE, .lost_calls = 0.01, .lost_records = 0.01, .other_random = 2},
    };
    TABLE(rows, 850000, 12000);
}

TEST(some_have_none) {
    static const struct world_options rows[] = {
        {.name = "whole, 1 % of the launches fail", BASE, .failed = 0.01},
        {.name = "whole, two threads, two streams", BASE, .threads = 2},
        {.name = "whole, buffers swapped, two threads", BASE, .swapped = true, .threads = 2, .one_stream = true},
    };
    TABLE(rows, 930000, 500);
}

TEST(much_lost) {
    static const struct world_options rows[] = {
        {.name = "30 % of records", BASE, .lost_records = 0.3},
        {.name = "30 % of calls", BASE, .lost_calls = 0.3},
        {.name = "30 % of calls, host-bound", BASE, .lost_calls = 0.3, .host_bound = true},
        {.name = "30 % of both", BASE, .lost_calls = 0.3, .lost_records = 0.3},
        {.name = "30 % of both, two threads", BASE, .lost_calls = 0.3, .lost_records = 0.3, .threads = 2},
        {.name = "30 % of both, ids at random", BASE, .lost_calls = 0.3, .lost_records = 0.3, .other_random = 2},
        {.name = "two threads, one stream", BASE, .threads = 2, .one_stream = true},
    };
    TABLE(rows, 0, 5000);
}

TEST(bursts_and_repeats) {
    static const struct world_options rows[] = {
        {.name = "bursts of 700 records", BASE, .burst = 700},
        {.name = "bursts of 5000 records", BASE, .burst = 5000},
        {.name = "one function, 30 % of both", BASE, .one_function = true, .lost_calls = 0.3, .lost_records = 0.3},
    };
    TABLE(rows, 0, 30000);
}

TEST(late_starts) {
    static const struct world_options rows[] = {
        {.name = "calls before records", BASE, .records_from = 0.3},
        {.name = "calls before records, told", BASE, .records_from = 0.3, .reported_since = true},
        {.name = "records before calls", BASE, .calls_from = 0.3},
        {.name = "records before calls, host-bound", BASE, .calls_from = 0.3, .host_bound = true},
        {.name = "calls first, never waits", BASE, .records_from = 0.3, .never_waits = true},
        {.name = "records first, never waits", BASE, .calls_from = 0.3, .never_waits = true},
        {.name = "calls first, told, never waits",
         BASE,
         .records_from = 0.3,
         .never_waits = true,
         .reported_since = true},
    };
    TABLE(rows, 0, 500);
}

static void count_device(void *context, uint64_t cookie, const struct hec_trace_match_call *call) {
    (void)cookie;
    (void)call;
    ((uint64_t *)context)[0]++;
}

/* Those with a call. */
static void count_launched(void *context, uint64_t cookie, const struct hec_trace_match_call *call) {
    uint64_t *counts = context;
    (void)cookie;
    counts[0] += call != NULL;
}

static void count_call(void *context, const struct hec_trace_match_call *call) {
    (void)call;
    ((uint64_t *)context)[1]++;
}

/* Whatever is sent, each activity comes back once, and memory stays within the budget. */
TEST(forged) {
    struct hec_trace_budget budget = {(size_t)32 << 20};
    struct hec_trace_match *match = hec_trace_match_new(&budget);
    struct world world = {.random = 88172645463325252u};
    uint64_t counts[2] = {0, 0}, taken = 0;
    struct hec_trace_match_sink sink = {counts, count_device, count_call};
    assert_non_null(match);
    for (int64_t i = 0; i < 300000; i++) {
        double r = world_random(&world);
        uint64_t wild = (uint64_t)(r * 1e18);
        struct hec_trace_match_call call = {.start_ns = i * 1000 + (int64_t)(wild % 100000),
                                            .end_ns = (int64_t)(wild % 7 ? wild : 0),
                                            .func = wild % 11,
                                            .stream = wild % 400,
                                            .bytes = wild % 3,
                                            .device = (uint16_t)(wild % 2),
                                            .match_class = (uint8_t)(wild % 5)};
        hec_trace_match_call(match, &call);
        struct hec_trace_match_device device = {.start_ns = (int64_t)(wild % 3 ? wild : (uint64_t)i * 1000),
                                                .correlation = (uint32_t)(wild % 13 ? wild : 5),
                                                .stream = (uint32_t)(wild % 1500),
                                                .name = (uint32_t)(wild % 11),
                                                .device = (uint16_t)(wild % 2),
                                                .match_class = (uint8_t)(wild % 5),
                                                .in_graph = wild % 17 == 0};
        taken += hec_trace_match_device(match, &device, wild, i * 1000 * (i % 3));
        if (i % 5000 == 0)
            hec_trace_match_advance(match, i * 100000, false, &sink);
    }
    hec_trace_match_advance(match, INT64_C(300000) * 100000, true, &sink);
    hec_trace_match_free(match);
    assert_int_equal(counts[0], taken);
    assert_true(taken > 100000);
    assert_int_equal(budget.left, (size_t)32 << 20);
}

/* One image at a time through a graph of 41 nodes, 20000 in 2.5 s, whose records come in bursts: a node for which there is no room would be
 * without its launch. */
TEST(many_nodes) {
    enum { GRAPHS = 20000, NODES = 41, EACH_NS = 127000, BURST_NS = 1000000000 };
    uint64_t counts[2] = {0}, launched = 0;
    struct hec_trace_budget budget = {(size_t)256 << 20};
    struct hec_trace_match *match = hec_trace_match_new(&budget);
    struct hec_trace_match_sink sink = {counts, count_launched, count_call};
    int64_t now_ns = INT64_C(1000000000);
    assert_non_null(match);
    hec_trace_match_since(match, now_ns - 100000);
    for (int64_t g = 0; g < GRAPHS; g++) {
        int64_t start_ns = INT64_C(1000000000) + g * EACH_NS;
        struct hec_trace_match_call call = {.start_ns = start_ns - 20000,
                                            .end_ns = start_ns - 15000,
                                            .device = HEC_TRACE_MATCH_NO_DEVICE,
                                            .match_class = HEC_TRACE_MATCH_GRAPH};
        assert_true(hec_trace_match_call(match, &call));
        for (int64_t n = 0; n < NODES; n++) {
            struct hec_trace_match_device node = {.start_ns = start_ns + n * 3000,
                                                  .end_ns = start_ns + n * 3000 + 2500,
                                                  .stream = 7,
                                                  .correlation = (uint32_t)(1 + 3 * g),
                                                  .name = (uint32_t)(n ? n : NODES),
                                                  .match_class = HEC_TRACE_MATCH_KERNEL,
                                                  .in_graph = true};
            launched += hec_trace_match_device(match, &node, 1, start_ns / BURST_NS * BURST_NS + BURST_NS);
        }
        for (; now_ns < start_ns; now_ns += 50000000)
            hec_trace_match_advance(match, now_ns, false, &sink);
    }
    hec_trace_match_advance(match, now_ns, true, &sink);
    hec_trace_match_free(match);
    assert_int_equal(launched, GRAPHS * NODES);
    assert_int_equal(counts[0], GRAPHS * NODES);
}
