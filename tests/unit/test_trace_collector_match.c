/* Calls and what they launched, from records to activities: each kernel leaves once, with its call where that is known,
 * and each call is reported once, by what it launched or by itself. How calls are found: test_trace_match.c. */
#include "tests/unit/trace_collector.h"

#define MS 1e3
#define S 1e6
#define FUNCTIONS 8u

static void open_matching(struct process *process, pid_t pid, int64_t attached_ns) {
    process_open(process, pid);
    give_attached(process, attached_ns ? attached_ns : process->t0_ns + 1);
    give_name(process, 9, "cuLaunchKernel");
    give_name(process, 10, "cuMemcpyAsync");
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        char name[32];
        snprintf(name, sizeof name, "_Z6kernel%uPf", i);
        give_config(process, 50 + i, name);
    }
}

static void launch(struct process *process, double t_us, uint32_t function, double now_us) {
    GIVE(process, HEC_TRACE_CALL, t_us, now_us, 0, hec_trace_call,
         {.duration_ns = 4000, .amount = 0x1000 + function, .function = 9, .call_class = HEC_TRACE_CALL_LAUNCH});
}

static void kernel(struct process *process, double t_us, uint32_t function, uint32_t correlation, double now_us) {
    GIVE(process, HEC_TRACE_KERNEL, t_us, now_us, 0, hec_trace_kernel,
         {.duration_ns = 5000, .config = 50 + function, .correlation = correlation, .stream = 7, .context = 1});
}

/* Work that does not repeat itself, so that there is one right answer. */
static uint32_t function_of(uint32_t i) {
    return (i * 2654435761u >> 13) % FUNCTIONS;
}

/* How many calls are reported, by themselves or by what they launched; all of them are different ones. */
static size_t calls_reported(void) {
    int64_t last_ns = INT64_MIN;
    size_t reported = 0;
    for (int i = 0; i < kept.activities; i++) {
        const struct hec_activity *a = &kept.activity[i];
        if (a->kind == HEC_ACTIVITY_API)
            reported++;
        else if ((HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)) && a->launch_ns != HEC_TIME_UNKNOWN) {
            reported += a->launch_ns != last_ns; /* nodes of a graph follow each other */
            last_ns = a->launch_ns;
        }
    }
    return reported;
}

static size_t with_launch(void) {
    size_t count = 0;
    for (int i = 0; i < kept.activities; i++)
        count += (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(kept.activity[i].kind)) &&
                 kept.activity[i].launch_ns != HEC_TIME_UNKNOWN;
    return count;
}

/* Launches every 10 us from start_us on, kernels 100 us later; both arrive at now_us, in either order. */
static void steps(struct process *process, uint32_t first, uint32_t count, double start_us, double now_us,
                  bool device_first) {
    for (int half = 0; half < 2; half++)
        for (uint32_t i = first; i < first + count; i++)
            if ((half == 0) == device_first)
                kernel(process, start_us + 100 + 10 * i, function_of(i), 3 * i + 1, now_us);
            else
                launch(process, start_us + 10 * i, function_of(i), now_us);
}

TEST(test_kernels_get_their_calls) {
    for (int device_first = 0; device_first < 2; device_first++) {
        kept_clear();
        open_matching(&p, getpid(), 0);
        steps(&p, 0, 300, 1000, 100 * MS, device_first != 0);
        for (double t = 200 * MS; t <= 6 * S; t += 100 * MS)
            release(&p, t);
        assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 300); /* before the process ends */
        process_end(&p, 20 * S);
        assert_int_equal(kept.activities, 300);
        for (uint32_t i = 0; i < 300; i++) {
            const struct hec_activity *a = &kept.activity[i];
            assert_int_equal(a->start_ns, at_us(&p, 1100 + 10 * i));
            assert_int_equal(a->launch_ns, at_us(&p, 1000 + 10 * i));
            assert_int_equal(a->launch_end_ns, a->launch_ns + 4000);
            const struct hec_track *thread = kept_track(a->launch_track);
            assert_int_equal(thread->kind, HEC_TRACK_THREAD);
            assert_int_equal(thread->stream, 77);
        }
        assert_int_equal(kept.tracer[0].records, 600);
        assert_int_equal(kept.tracer[0].bad, 0);
    }
}

/* The first come in quick succession, then one for each that is done. */
static double launch_us(uint32_t i, uint32_t ahead) {
    return i < ahead ? 1000 + 10 * (double)i / 2 : 1000 + 10 * (double)i;
}

/* The host is as far ahead as CUDA lets it, 1000 launches, and never waits. */
TEST(test_deep_queue) {
    const uint32_t count = 20000, ahead = 1000;
    open_matching(&p, getpid(), 0);
    for (uint32_t i = 0; i < count; i++)
        launch(&p, launch_us(i, ahead), function_of(i), 200 * MS);
    for (uint32_t i = 0; i < count; i++) /* one behind the other */
        GIVE(&p, HEC_TRACE_KERNEL, 1100 + 10 * (double)(ahead + i), 300 * MS, 0, hec_trace_kernel,
             {.duration_ns = 9000, .config = 50 + function_of(i), .correlation = i + 1, .stream = 7, .context = 1});
    process_end(&p, 1 * S);
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), count);
    assert_int_equal(calls_reported(), count);
    assert_int_equal(with_launch(), count);
    for (int i = 0; i < kept.activities; i++) {
        const struct hec_activity *a = &kept.activity[i];
        uint32_t number = (uint32_t)((a->start_ns - at_us(&p, 1100)) / 10000) - ahead;
        if (a->kind == HEC_ACTIVITY_KERNEL && a->launch_ns != HEC_TIME_UNKNOWN)
            assert_int_equal(a->launch_ns, at_us(&p, launch_us(number, ahead)));
    }
}

/* Nothing is waited for longer than match.h says; a call alone is reported as the call that it is. */
TEST(test_without_partner) {
    open_matching(&p, getpid(), 0);
    GIVE(&p, HEC_TRACE_CALL, 100, 1 * MS, 0, hec_trace_call,
         {.duration_ns = 4000, .amount = 5, .function = 9, .call_class = HEC_TRACE_CALL_LAUNCH, .device = 3});
    GIVE(&p, HEC_TRACE_CALL, 200, 1 * MS, 0, hec_trace_call,
         {.duration_ns = 300, .amount = 64, .function = 9, .call_class = HEC_TRACE_CALL_MEMSET});
    GIVE(&p, HEC_TRACE_CALL, 300, 1 * MS, 0, hec_trace_call,
         {.duration_ns = 4000, .amount = UINT64_MAX, .function = 9, .call_class = HEC_TRACE_CALL_MEMSET});
    GIVE(&p, HEC_TRACE_CALL, 400, 1 * MS, 0, hec_trace_call, /* nothing was launched by it: reported at once */
         {.duration_ns = 4000, .function = 9, .call_class = HEC_TRACE_CALL_LAUNCH, .result = 2});
    kernel(&p, 50, 0, 99, 1 * MS); /* before every call */
    release(&p, 500 * MS);
    assert_int_equal(kept.activities, 0);
    for (double t = 600 * MS; t <= 5.5 * S; t += 100 * MS)
        release(&p, t);
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 1);
    assert_true(kept_nth(HEC_ACTIVITY_KERNEL, 0)->launch_ns == HEC_TIME_UNKNOWN);
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 0)->launch_track, 0);
    assert_int_equal(kept_count(HEC_ACTIVITY_API), 1);
    assert_int_equal(kept_nth(HEC_ACTIVITY_API, 0)->start_ns, at_us(&p, 400));
    int before = kept.activities;
    for (double t = 5.6 * S; t <= 14 * S; t += 100 * MS)
        release(&p, t);
    assert_int_equal(kept_count(HEC_ACTIVITY_API), 4);
    const struct hec_activity *call = &kept.activity[before];
    assert_int_equal(call[0].start_ns, at_us(&p, 100));
    assert_int_equal(call[0].end_ns, at_us(&p, 104));
    assert_int_equal(call[0].detail, HEC_API_LAUNCH);
    assert_int_equal(call[0].device, 4);
    assert_true(call[0].amount == 0);
    assert_string_equal(kept_name(call[0].name), "cuLaunchKernel");
    assert_int_equal(kept_track(call[0].track)->stream, 77);
    assert_int_equal(call[1].detail, HEC_API_MEMSET);
    assert_true(call[1].amount == 64);
    assert_true(call[2].amount == 0); /* more than there is */
    process_end(&p, 20 * S);
    assert_int_equal(kept.activities, 5);
}

/* A copy may block the host, so its call is reported as well, unless it was short. */
TEST(test_copies_are_reported_twice) {
    open_matching(&p, getpid(), 0);
    for (uint32_t i = 0; i < 100; i++) {
        GIVE(&p, HEC_TRACE_CALL, 1000 + 20 * i, 100 * MS, 0, hec_trace_call,
             {.duration_ns = i % 2 ? 9000 : 900,
              .amount = 4096 + 512 * (uint64_t)function_of(i),
              .function = 10,
              .call_class = HEC_TRACE_CALL_COPY,
              .from = HEC_TRACE_MEMORY_PINNED,
              .to = HEC_TRACE_MEMORY_DEVICE});
        GIVE(&p, HEC_TRACE_COPY, 1100 + 20 * i, 100 * MS, 0, hec_trace_copy,
             {.duration_ns = 4000,
              .bytes = 4096 + 512 * (uint64_t)function_of(i),
              .correlation = i + 1,
              .stream = 7,
              .context = 1,
              .from = HEC_TRACE_MEMORY_PINNED,
              .to = HEC_TRACE_MEMORY_DEVICE});
    }
    GIVE(&p, HEC_TRACE_CALL, 5000, 100 * MS, 0, hec_trace_call, /* its copy is never seen: reported once all the same */
         {.duration_ns = 9000, .amount = 1, .function = 10, .call_class = HEC_TRACE_CALL_COPY});
    process_end(&p, 1 * S);
    assert_int_equal(kept_count(HEC_ACTIVITY_COPY), 100);
    assert_int_equal(with_launch(), 100);
    assert_int_equal(kept_count(HEC_ACTIVITY_API), 51);
    const struct hec_activity *call = kept_nth(HEC_ACTIVITY_API, 0);
    assert_int_equal(call->start_ns, at_us(&p, 1020));
    assert_int_equal(call->detail, HEC_API_COPY);
    assert_int_equal(call->from, HEC_MEMORY_PINNED);
    assert_int_equal(call->to, HEC_MEMORY_DEVICE);
    assert_true(call->amount == 4096 + 512 * (double)function_of(1));
}

TEST(test_graph_nodes_share_one_launch) {
    open_matching(&p, getpid(), 0);
    for (uint32_t i = 0; i < 50; i++) {
        GIVE(&p, HEC_TRACE_CALL, 1000 + 200 * i, 100 * MS, 0, hec_trace_call,
             {.duration_ns = 9000, .amount = 0x77, .function = 9, .call_class = HEC_TRACE_CALL_GRAPH});
        for (uint32_t node = 0; node < 10; node++)
            GIVE(&p, HEC_TRACE_KERNEL, 1020 + 200 * i + 10 * node, 100 * MS, 0, hec_trace_kernel,
                 {.duration_ns = 5000,
                  .config = 50 + node % FUNCTIONS,
                  .correlation = 2 * i + 1,
                  .stream = 7,
                  .context = 1,
                  .graph = 3,
                  .graph_node = 1 + node});
    }
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, 500);
    for (uint32_t i = 0; i < 500; i++) {
        assert_int_equal(kept.activity[i].launch_ns, at_us(&p, 1000 + 200 * (i / 10)));
        assert_true(kept.activity[i].flags & HEC_ACTIVITY_IN_GRAPH);
    }
}

/* Order says little where something is missing: nothing is matched from then on, and all is reported. */
TEST(test_nothing_matched_after_a_loss) {
    for (int dropped_by_cupti = 0; dropped_by_cupti < 2; dropped_by_cupti++) {
        kept_clear();
        open_matching(&p, getpid(), 0);
        steps(&p, 0, 300, 1000, 100 * MS, false); /* waits to be matched when the loss is seen */
        if (dropped_by_cupti)
            GIVE(&p, HEC_TRACE_COUNTS, 100, 100 * MS, 0, hec_trace_counts, {.dropped = 1});
        else
            hec_ring_drop(&p.ring, 7);
        hec_peer_drain(&p.peers, &p.peer->process, at_us(&p, 200 * MS), false);
        uint32_t waiting = p.peer->tracks.pending.count;
        steps(&p, 300, 300, 1000, 300 * MS, false);
        assert_int_equal(p.peer->tracks.pending.count, waiting); /* no more wait for their other half */
        process_end(&p, 20 * S);
        assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 600);
        assert_int_equal(with_launch(), 0);
        assert_int_equal(kept_count(HEC_ACTIVITY_API), 600);
    }
}

/* What was decided before stays. */
TEST(test_matched_before_a_loss) {
    open_matching(&p, getpid(), 0);
    steps(&p, 0, 300, 1000, 100 * MS, false);
    for (double t = 200 * MS; t <= 6 * S; t += 100 * MS)
        release(&p, t);
    assert_int_equal(with_launch(), 300);
    hec_ring_drop(&p.ring, 7);
    hec_peer_drain(&p.peers, &p.peer->process, at_us(&p, 6 * S), false);
    steps(&p, 300, 300, 1000, 6 * S, false);
    process_end(&p, 20 * S);
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 600);
    assert_int_equal(with_launch(), 300);
    assert_int_equal(calls_reported(), 600);
}

/* CUPTI's beginning is the process's word. */
TEST(test_attached_at_any_time) {
    int64_t now_ns = hec_clock_mono_ns();
    const int64_t times_ns[] = {INT64_MIN, -1, 1, now_ns, now_ns + 3600 * HEC_NS_PER_S, INT64_MAX};
    for (size_t i = 0; i < sizeof times_ns / sizeof times_ns[0]; i++) {
        kept_clear();
        open_matching(&p, getpid(), times_ns[i]);
        steps(&p, 0, 300, 1000, 100 * MS, false);
        give_attached(&p, ~times_ns[i]); /* a later word changes nothing that hurts */
        steps(&p, 300, 300, 1000, 200 * MS, false);
        process_end(&p, 20 * S);
        assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 600);
        assert_int_equal(calls_reported(), 600);
        if (times_ns[i] > hec_clock_mono_ns()) /* every call was before it */
            assert_int_equal(with_launch(), 0);
        for (int k = 0; k < kept.activities; k++)
            if (kept.activity[k].kind == HEC_ACTIVITY_KERNEL && kept.activity[k].launch_ns != HEC_TIME_UNKNOWN)
                assert_int_equal(kept.activity[k].start_ns - kept.activity[k].launch_ns, 100000);
    }
}

/* The same ids, streams and handles in two processes: each finds its own. */
TEST(test_two_processes) {
    static struct process both[2];
    for (int i = 0; i < 2; i++)
        open_matching(&both[i], 5000 + i, 0);
    for (uint32_t from = 0; from < 300; from += 50) /* by turns */
        for (int i = 0; i < 2; i++)
            steps(&both[i], from, 50, 1000 + 3 * i, 100 * MS + from, i == 1);
    for (int i = 0; i < 2; i++)
        process_end(&both[i], 20 * S);
    assert_int_equal(kept.activities, 600);
    assert_int_equal(with_launch(), 600);
    for (int i = 0; i < kept.activities; i++) {
        const struct hec_activity *a = &kept.activity[i];
        assert_int_equal(a->start_ns - a->launch_ns, 100000);
        assert_int_equal(kept_track(a->track)->pid, kept_track(a->launch_track)->pid);
        assert_int_equal(kept_track(a->track)->pid, i < 300 ? 5000 : 5001);
    }
}

/* The end comes while all of it waits. */
TEST(test_ends_with_much_pending) {
    const uint32_t count = 60000;
    open_matching(&p, getpid(), 0);
    for (uint32_t i = 0; i < count; i++) {
        if (i % 7) /* some of either have no other half */
            launch(&p, 1000 + 10 * i, function_of(i), 700 * MS);
        if (i % 11)
            kernel(&p, 1100 + 10 * i, function_of(i), i + 1, 700 * MS);
    }
    release(&p, 800 * MS);
    assert_int_equal(kept.activities, 0);
    process_end(&p, 900 * MS);
    static bool seen[60000];
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < kept.activities; i++) {
        if (kept.activity[i].kind != HEC_ACTIVITY_KERNEL)
            continue;
        size_t at = (size_t)(kept.activity[i].start_ns - at_us(&p, 1100)) / 10000;
        assert_true(at < count && !seen[at]);
        seen[at] = true;
    }
    size_t launches = count - (count + 6) / 7, kernels = count - (count + 10) / 11;
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), kernels);
    assert_int_equal(calls_reported(), launches);
}

/* Memory runs out in between: what cannot wait goes on at once. */
TEST(test_no_memory_to_wait_in) {
    open_matching(&p, getpid(), 0);
    size_t all = p.run->budget.left;
    steps(&p, 0, 3000, 1000, 100 * MS, false);
    size_t taken = p.run->budget.left;
    p.run->budget.left = 0;
    steps(&p, 3000, 3000, 1000, 200 * MS, false);
    p.run->budget.left += taken;
    assert_true(taken < all);
    process_end(&p, 20 * S);
    size_t left_out = 12000 - kept_count(HEC_ACTIVITY_KERNEL) - calls_reported();
    char text[64];
    snprintf(text, sizeof text, ": %zu records of the trace left out", left_out);
    assert_true(left_out == 0 || kept_event(HEC_EVENT_NOTE, text)); /* counted, not lost */
}
