/* What is reported of calls, copies, late loads and chains: counted where they are due, in the span of the steps. */
#include "diagnose/states/calls.h"
#include "diagnose/states/state.h"
#include "diagnose/states/steady.h"
#include "timeline_run.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define S INT64_C(1000000000)
#define KIB 1024.0

static struct hec_calls *calls;
static uint32_t gemm;

static int setup(void **state) {
    timeline_begin(state);
    t.input.end_ns = 20 * S;
    gemm = fake_tl_kernel(&t, "ampere_sgemm_128x64_tn", 256);
    return 0;
}

static int take_piece(void *context, int device, const struct hec_state_piece *piece) {
    (void)context;
    hec_calls_piece(calls, device, piece);
    return 0;
}
static int take_activities(void *context, const struct hec_activity *activities, size_t count) {
    (void)context;
    hec_calls_activities(calls, activities, count);
    return 0;
}

static struct hec_call_facts gather(int device) {
    const struct hec_state_visitor visitor = {.piece = take_piece};
    const struct hec_pass_consumer beside = {NULL, HEC_ACTIVITY_ALL, take_activities};
    struct hec_call_facts facts;
    struct hec_device_steps steps;
    struct hec_pass pass;
    assert_int_equal(hec_pass_open(&t.input, &pass, NULL), 0);
    assert_int_equal(hec_device_steps_choose(&pass.survey, &pass.tables, &steps), 0);
    calls = hec_calls_begin(&pass.tables);
    hec_calls_steps(calls, &steps);
    assert_int_equal(fake_pass_states_of(&pass, NULL, &visitor, &beside, NULL), 0);
    hec_calls_end(calls);
    hec_calls_of(calls, device, &facts);
    hec_calls_free(calls);
    calls = NULL;
    hec_pass_close(&pass);
    assert_int_equal(facts.device, device);
    return facts;
}

/* Something on a device, started 10 us after its call of 4 us. */
static struct hec_activity *launch(enum hec_activity_kind kind, uint32_t on, int64_t start_ns, int64_t length_ns) {
    struct hec_activity *a = fake_tl_add(&t, kind, on, start_ns, start_ns + length_ns);
    fake_tl_launched(a, start_ns - 10 * US, start_ns - 6 * US, thread);
    return a;
}

static void kernel(uint32_t on, uint32_t id, int64_t start_ns, int64_t length_ns) {
    launch(HEC_ACTIVITY_KERNEL, on, start_ns, length_ns)->name = id;
}

static struct hec_activity *copy(enum hec_memory_kind from, enum hec_memory_kind to, double bytes, int64_t start_ns,
                                 int64_t length_ns) {
    struct hec_activity *a = launch(HEC_ACTIVITY_COPY, stream, start_ns, length_ns);
    a->from = (uint8_t)from;
    a->to = (uint8_t)to;
    a->amount = bytes;
    return a;
}

static void call(enum hec_api_class class, uint32_t on, int64_t start_ns, int64_t length_ns) {
    fake_tl_add(&t, HEC_ACTIVITY_API, on, start_ns, start_ns + length_ns)->detail = (uint8_t) class;
}

/* count steps of a second each, from `from` on. */
static void steps(int count, int64_t from_ns) {
    for (int i = 0; i < count; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_STEP, process, from_ns + i * S, from_ns + (i + 1) * S);
        a->detail = HEC_STEP_MARKED;
        a->amount = NAN;
    }
}

TEST(start_up_does_not_count) {
    steps(13, S);
    for (int i = 0; i < 14; i++) { /* one before the steps, one in each */
        kernel(stream, gemm, i * S + 500 * MS, 100 * MS);
        call(HEC_API_ALLOC, thread, i * S + 200 * MS, 2 * MS);
        call(HEC_API_ALLOC, thread, i * S + 300 * MS, 4 * MS);
        call(HEC_API_SYNC, thread, i * S + 400 * MS, MS);
    }
    call(HEC_API_FREE, thread, 15 * S, MS); /* clean-up */
    struct hec_call_facts f = gather(0);
    assert_near(f.steps, 10, 1e-6);
    assert_near(f.traced_s, 10, 1e-6);
    assert_int_equal(f.api[HEC_API_ALLOC].count, 20);
    assert_near(f.api[HEC_API_ALLOC].seconds, 0.06, 1e-9);
    assert_int_equal(f.api[HEC_API_SYNC].count, 10);
    assert_int_equal(f.api[HEC_API_FREE].count, 0);
    assert_int_equal(f.api[HEC_API_LAUNCH].count, 10);
    assert_near(f.api[HEC_API_LAUNCH].seconds, 40e-6, 1e-12);
}

/* The program's steps are over while the device works on: what they launched is theirs. */
TEST(a_program_ahead_of_its_device) {
    for (int i = 0; i < 12; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_STEP, process, S + i * 10 * MS, S + (i + 1) * 10 * MS);
        a->detail = HEC_STEP_MODULE;
        a = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 2 * S + i * S / 2, 2 * S + (i + 1) * S / 2);
        a->name = gemm;
        fake_tl_launched(a, S + i * 10 * MS + 5 * MS, S + i * 10 * MS + 5 * MS + 5 * US, thread);
    }
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.api[HEC_API_LAUNCH].count, 9);
    assert_near(f.steps, 9, 1e-6);
    assert_near(f.traced_s, 4.5, 1e-6); /* of the device: from the end of the third step's kernel */
}

TEST(half_of_the_time_traced_is_half_of_the_steps) {
    steps(15, 0);
    for (int i = 0; i < 15; i++) {
        fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, i * S, i * S + 500 * MS);
        kernel(stream, gemm, i * S + 100 * MS, 300 * MS);
    }
    struct hec_call_facts f = gather(0);
    assert_near(f.steps, 6.5, 1e-6); /* 12 windows of a half, and what comes after the last one is known */
    assert_int_equal(f.api[HEC_API_LAUNCH].count, 12);
}

TEST(calls_count_on_the_devices_of_their_process) {
    uint32_t second = fake_tl_track(&t, HEC_TRACK_STREAM, PID, 1, 1);
    uint32_t other = fake_tl_track(&t, HEC_TRACK_STREAM, 8, 1, 1);
    uint32_t other_thread = fake_tl_track(&t, HEC_TRACK_THREAD, 8, -1, 8);
    kernel(stream, gemm, S, MS);
    kernel(second, gemm, S + 10 * MS, MS);
    kernel(other, gemm, S + 20 * MS, MS);
    call(HEC_API_ALLOC, thread, 2 * S, MS);
    call(HEC_API_ALLOC, other_thread, 2 * S, MS);
    call(HEC_API_ALLOC, thread, S / 2, MS); /* before the first activity */
    struct hec_call_facts first = gather(0), both = gather(1), none = gather(3);
    assert_int_equal(first.api[HEC_API_ALLOC].count, 1);
    assert_int_equal(first.api[HEC_API_LAUNCH].count, 1);
    assert_int_equal(both.api[HEC_API_ALLOC].count, 2);
    assert_int_equal(both.api[HEC_API_LAUNCH].count, 2);
    assert_int_equal(none.api[HEC_API_ALLOC].count, 0);
    assert_true(first.steps == 0 && isnan(first.chain_mean));
    assert_near(both.traced_s, 0.011, 1e-9);
}

TEST(copies_by_size_and_memory) {
    copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 64 * KIB - 1, S, 20 * US);
    copy(HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, 64 * KIB, S + MS, 30 * US);
    copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PINNED, 8, S + 2 * MS, US);
    copy(HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, 100, S + 3 * MS, 5 * US);
    copy(HEC_MEMORY_HOST, HEC_MEMORY_DEVICE, 1e6, S + 4 * MS, 40 * US);
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.reads, 1);
    assert_int_equal(f.small_copies, 1);
    assert_near(f.small_copy_s, 20e-6, 1e-12);
    assert_near(f.small_call_s, 4e-6, 1e-12);
    assert_near(f.pageable_bytes, 64 * KIB - 1, 0);
    assert_near(f.pinned_bytes, 64 * KIB + 8, 0);
    assert_near(f.pageable_s, 20e-6, 1e-12);
    assert_near(f.pinned_s, 31e-6, 1e-12);
    assert_int_equal(f.api[HEC_API_COPY].count, 5);
}

TEST(what_comes_back_is_a_round_trip) {
    copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 1e6, S, MS);
    copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 1e6, S + 5 * MS, 2 * MS); /* yes */
    copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 1e6, S + 8 * MS, 2 * MS); /* not twice */
    copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 1e6, 2 * S, MS);
    copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 1e6 + 1, 2 * S + 2 * MS, MS); /* other bytes */
    copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 1e6, 2 * S + 12 * MS, MS);    /* too late */
    copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 8, 3 * S, MS);
    copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 8, 3 * S + 2 * MS, MS); /* alike by chance */
    copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 1e6, 4 * S, MS);
    for (int i = 0; i < 64; i++)
        copy(HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, 1e6, 4 * S + MS + i * 20 * US, US);
    copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 1e6, 4 * S + 5 * MS, MS); /* 64 copies later */
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.round_trips, 1);
    assert_near(f.round_trip_bytes, 2e6, 0);
    assert_near(f.round_trip_s, 3e-3, 1e-12);
}

TEST(loads_are_late_after_the_start_up) {
    kernel(stream, gemm, S, MS);
    call(HEC_API_MODULE, thread, 2 * S, MS);
    call(HEC_API_MODULE, thread, 3 * S + MS, 2 * MS);
    call(HEC_API_MODULE, thread, 6 * S, 4 * MS);
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.late_loads, 2);
    assert_near(f.late_load_s, 6e-3, 1e-12);
    steps(12, S);
    f = gather(0);
    assert_int_equal(f.late_loads, 1);
    assert_near(f.late_load_s, 4e-3, 1e-12);
}

TEST(chains_are_of_one_stream) {
    uint32_t add = fake_tl_kernel(&t, "vectorized_elementwise_kernel", 256);
    uint32_t fill = fake_tl_kernel(&t, "triton_poi_fused_copy_1", 256);
    uint32_t norm = fake_tl_kernel(&t, "triton_per_fused_native_layer_norm_0", 256);
    for (int i = 0; i < 3; i++) { /* a chain of three on the first stream, one of six on the second between them */
        kernel(stream, i == 1 ? fill : add, S + i * 100 * US, 20 * US);
        kernel(second_stream, add, S + i * 100 * US + 30 * US, 10 * US);
        kernel(second_stream, add, S + i * 100 * US + 60 * US, 10 * US);
    }
    kernel(stream, norm, S + MS, 10 * US);
    kernel(stream, add, S + 2 * MS, 10 * US); /* two are no chain */
    kernel(stream, add, S + 3 * MS, 10 * US);
    kernel(stream, norm, S + 4 * MS, 10 * US);
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.chains, 2);
    assert_near(f.chain_s, 120e-6, 1e-12);
    assert_near(f.chain_mean, 4.5, 1e-12);
}

/* What CuPy assigns to an array is not fused with what made it; a conversion is. */
TEST(an_assignment_ends_a_chain) {
    static const struct {
        const char *copy;
        int64_t chains;
        double mean;
    } cases[] = {{"cupy_copy__float32_float32", 4, 3},
                 {"cupy_copy__float32_float16", 1, 16},
                 {"cupy_copy__float16_float32", 1, 16},
                 {"cupy_copy__", 1, 16},
                 {"cupy_copy__int8_int", 1, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setup(NULL);
        uint32_t add = fake_tl_kernel(&t, "cupy_add__float32_float32_float32", 256);
        uint32_t copy = fake_tl_kernel(&t, cases[i].copy, 256);
        for (int k = 0; k < 16; k++)
            kernel(stream, k % 4 == 3 ? copy : add, S + k * 100 * US, 20 * US);
        struct hec_call_facts f = gather(0);
        assert_int_equal(f.chains, cases[i].chains);
        assert_near(f.chain_mean, cases[i].mean, 1e-12);
    }
}

TEST(the_nodes_of_a_graph_have_one_call) {
    for (int graph = 0; graph < 2; graph++)
        for (int node = 0; node < 5; node++) {
            /* those of the second begin between those of the first */
            struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, S + node * MS + graph * 300 * US,
                                                 S + node * MS + graph * 300 * US + 10 * US);
            a->name = gemm;
            a->flags = HEC_ACTIVITY_IN_GRAPH;
            fake_tl_launched(a, S - MS + graph * 100 * US, S - MS + graph * 100 * US + 20 * US, thread);
        }
    struct hec_activity *whole = launch(HEC_ACTIVITY_GRAPH, stream, 2 * S, MS);
    whole->amount = NAN;
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.graph_launches, 3);
    assert_int_equal(f.api[HEC_API_GRAPH].count, 3);
    assert_near(f.api[HEC_API_GRAPH].seconds, 44e-6, 1e-12);
    assert_int_equal(f.api[HEC_API_LAUNCH].count, 0);
}

/* A call that began after the kernel did is not its own: those count by the mean of the known ones. */
TEST(unknown_calls_count_by_the_mean) {
    for (int i = 0; i < 6; i++) {
        struct hec_activity *a = launch(HEC_ACTIVITY_KERNEL, stream, S + i * MS, 100 * US);
        a->name = gemm;
        if (i >= 4)
            a->launch_ns = HEC_TIME_UNKNOWN;
        else if (i >= 2)
            a->launch_end_ns = (a->launch_ns = a->start_ns + 400 * US) + 4 * US;
    }
    struct hec_activity *a = launch(HEC_ACTIVITY_MEMSET, stream, 2 * S, US);
    a->launch_ns = HEC_TIME_UNKNOWN;
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.api[HEC_API_LAUNCH].count, 6);
    assert_near(f.api[HEC_API_LAUNCH].seconds, 24e-6, 1e-12);
    assert_int_equal(f.api[HEC_API_MEMSET].count, 1);
    assert_true(isnan(f.api[HEC_API_MEMSET].seconds));
}

/* Times and ids that a damaged file may hold. */
TEST(nonsense_is_passed_over) {
    struct hec_activity *a = launch(HEC_ACTIVITY_KERNEL, stream, S, MS);
    a->name = 4000000000u;
    a->launch_track = 4000000000u;
    a = launch(HEC_ACTIVITY_COPY, stream, 2 * S, MS);
    a->from = a->to = 250;
    a->launch_ns = INT64_MIN + 1;
    a->launch_end_ns = INT64_MAX;
    a = copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, NAN, 3 * S, MS);
    call(HEC_API_CLASS_COUNT, thread, 3 * S, MS);
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.small_copies, 0);
    assert_int_equal(f.api[HEC_API_LAUNCH].count, 1);
    assert_int_equal(f.api[HEC_API_COPY].count, 2);
}

/* Launches that only their number is known of, in pieces of time: as many as lie in the span, and of that time the part in calls. */
TEST(bursts_count_by_their_part) {
    static const struct {
        int64_t start, end;
        double launches;
    } bursts[] = {{3900, 4100, 100}, {5000, 5100, 40}, {13950, 14050, 60}, {14100, 14200, 7}, {3000, 3500, 9},
                  {6000, 6000, 3},   {4000, 4000, 2},  {3999, 3999, 50},   {7000, 7100, 0.5}, {8000, 8100, 2e7}};
    for (int spans = 0; spans < 2; spans++) {
        setup(NULL);
        if (spans)
            steps(13, S); /* 4 to 14 s */
        kernel(stream, gemm, 3 * S, MS);
        kernel(stream, gemm, 4500 * MS, MS);
        for (size_t i = 0; i < sizeof bursts / sizeof bursts[0]; i++) {
            struct hec_activity *a =
                fake_tl_add(&t, HEC_ACTIVITY_BURST, thread, bursts[i].start * MS, bursts[i].end * MS);
            a->amount = bursts[i].launches;
            a->to = 51; /* a fifth */
        }
        struct hec_call_facts f = gather(0);
        /* what CUPTI saw is not among them */
        double in_span = 100 / 2.0 + 40 + 60 / 2.0 + 3 + 2, all = 100 + 40 + 60 + 7 + 9 + 3 + 2 + 50;
        double in_span_s = (100 + 100 + 50) * 1e-3 / 5, all_s = (200 + 100 + 100 + 100 + 500) * 1e-3 / 5;
        assert_int_equal(f.api[HEC_API_LAUNCH].count, llround(spans ? in_span : all) + (spans ? 1 : 2));
        assert_near(f.api[HEC_API_LAUNCH].seconds, (spans ? in_span_s : all_s) + (spans ? 4e-6 : 8e-6), 1e-9);
    }
}

/* Launches that were drawn, by the names of their kernels: of the span alone. */
TEST(drawn_launches) {
    static const struct {
        const char *name;
        bool point_wise;
    } names[] = {{"cupy_multiply__float32_float32_float32", true},
                 {"cupy_copy__float64_float32", true},
                 {"cupy_copy__float32_float32", false},
                 {"cupy_sum", false},
                 {"volta_sgemm_128x64_nn", false},
                 {"?", false},
                 {"triton_poi_fused_add_mul_0", false},
                 {"loop_add_fusion_1", false}};
    enum { NAMES = sizeof names / sizeof names[0] };
    steps(13, S); /* 4 to 14 s */
    kernel(stream, gemm, 4500 * MS, MS);
    for (int i = 0; i < 3 * NAMES; i++) {
        int64_t at = (i < NAMES ? 2000 : 5000) * MS + 100 * MS * i;
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_BURST, thread, at, at + MS);
        a->amount = 10;
        a->name = fake_tl_name(&t, names[i % NAMES].name);
    }
    fake_tl_add(&t, HEC_ACTIVITY_BURST, thread, 9 * S, 9 * S + MS)->amount = 10; /* none was drawn */
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.drawn, 2 * NAMES);
    assert_int_equal(f.drawn_named, 2 * (NAMES - 1));
    assert_int_equal(f.drawn_point_wise, 2 * 2);
}

/* Of waits for a stream inside of the device nobody waits; inferred calls are none; recorded ones count where they are more. */
TEST(waits_and_recorded_calls) {
    kernel(stream, gemm, S, MS);
    for (int i = 0; i < 4; i++)
        fake_tl_add(&t, HEC_ACTIVITY_SYNC, thread, 2 * S + i * MS, 2 * S + i * MS + 100 * US)->detail =
            i == 3 ? HEC_SYNC_STREAM_WAIT : HEC_SYNC_STREAM;
    call(HEC_API_SYNC, thread, 3 * S, MS);
    call(HEC_API_SYNC, thread, 4 * S, MS);
    for (int i = 0; i < 5; i++)
        call(HEC_API_COPY, thread, 5 * S + i * MS, 10 * US);
    struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_API, thread, 6 * S, 6 * S + MS);
    a->detail = HEC_API_ALLOC;
    a->flags = HEC_ACTIVITY_INFERRED;
    copy(HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, 1e6, 7 * S, 10 * US);
    call(HEC_API_COPY, thread, 6500 * MS, 50 * US); /* waits */
    call(HEC_API_LAUNCH, thread, 6600 * MS, 49 * US);
    call(HEC_API_LAUNCH, thread, 6700 * MS, 60 * US);
    call(HEC_API_GRAPH, thread, 6800 * MS, 70 * US);
    struct hec_call_facts f = gather(0);
    assert_near(f.waited_s, 300e-6 + 2e-3 + 180e-6, 1e-9);
    assert_int_equal(f.api[HEC_API_SYNC].count, 3); /* of two that were recorded and three that were seen */
    assert_near(f.api[HEC_API_SYNC].seconds, 300e-6, 1e-12);
    assert_int_equal(f.api[HEC_API_COPY].count, 6);
    assert_near(f.api[HEC_API_COPY].seconds, 100e-6, 1e-12);
    assert_int_equal(f.api[HEC_API_ALLOC].count, 0);
    assert_int_equal(f.graph_launches, 0);
}

/* Of a device without steps the loop is the span. */
TEST(calls_of_a_loop) {
    const struct hec_steady loop = {.known = true, .from_ns = 4 * S, .to_ns = 6 * S, .steps = 8};
    struct hec_call_facts f;
    struct hec_pass pass;
    for (int i = 0; i < 10; i++)
        kernel(stream, gemm, i * S + 500 * MS, 100 * MS);
    assert_int_equal(hec_pass_open(&t.input, &pass, NULL), 0);
    calls = hec_calls_begin(&pass.tables);
    hec_calls_loop(calls, 3, &loop); /* there is no such device */
    hec_calls_loop(calls, 0, &loop);
    const struct hec_state_piece all = {.start_ns = 0, .end_ns = 10 * S, .state = HEC_STATE_COMPUTE, .traced = true};
    assert_int_equal(hec_calls_piece(calls, 0, &all), 0);
    hec_calls_activities(calls, t.activities, t.count);
    hec_calls_end(calls);
    hec_calls_of(calls, 0, &f);
    assert_int_equal(f.api[HEC_API_LAUNCH].count, 2);
    /* from the end of what was launched before to that of what was launched in it */
    assert_near(f.traced_s, 2, 1e-9);
    assert_near(f.steps, 8, 1e-9);
    hec_calls_free(calls);
    calls = NULL;
    hec_pass_close(&pass);
}

/* Of small copies whose call is not known each counts as the mean of the others. */
TEST(calls_of_small_copies) {
    for (int i = 0; i < 4; i++) {
        struct hec_activity *a = copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 1000, S + i * MS, 10 * US);
        if (i >= 2)
            a->launch_ns = HEC_TIME_UNKNOWN;
    }
    struct hec_call_facts f = gather(0);
    assert_int_equal(f.small_copies, 4);
    assert_near(f.small_copy_s, 40e-6, 1e-12);
    assert_near(f.small_call_s, 16e-6, 1e-12);
    setup(NULL);
    copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 1000, S, 10 * US)->launch_ns = HEC_TIME_UNKNOWN;
    assert_true(isnan(gather(0).small_call_s));
}

EACH_TEST(setup, NULL)
