/* The collector's understanding of records of the device and of the tracer: order, devices, what is left out, what is
 * hostile. Calls: test_trace_collector_calls.c; calls and what they launched: test_trace_collector_match.c. */
#include "tests/unit/trace_collector.h"

#define MS 1e3
#define S 1e6

static void kernel(struct process *process, double t_us, double us, uint32_t correlation, double now_us) {
    GIVE(process, HEC_TRACE_KERNEL, t_us, now_us, 0, hec_trace_kernel,
         {.duration_ns = (int64_t)(us * 1e3), .config = 5, .correlation = correlation, .stream = 7, .context = 1});
}

static void open_traced(struct process *process) {
    process_open(process, getpid());
    give_process(process);
    give_config(process, 5, "_Z6kernelPf");
}

/* What is not matched only waits for its neighbours. */
TEST(test_no_calls_no_waiting) {
    open_traced(&p);
    kernel(&p, 500, 20, 99, 10 * MS);
    release(&p, 5 * MS); /* the poll that read it had begun before */
    release(&p, 100 * MS);
    assert_int_equal(kept.activities, 0);
    release(&p, 300 * MS);
    assert_int_equal(kept.activities, 1);
    process_end(&p, 4 * S);
}

TEST(test_device_records) {
    open_traced(&p);
    kernel(&p, 100, 20, 11, 1 * MS);
    GIVE(&p, HEC_TRACE_COPY, 130, 1 * MS, 0, hec_trace_copy,
         {.duration_ns = 4000, .bytes = 1 << 20, .from = HEC_TRACE_MEMORY_PINNED, .to = HEC_TRACE_MEMORY_DEVICE});
    GIVE(&p, HEC_TRACE_COPY, 140, 1 * MS, HEC_TRACE_PEER, hec_trace_copy,
         {.bytes = 1, .from = HEC_TRACE_MEMORY_DEVICE, .to = HEC_TRACE_MEMORY_DEVICE, .peer = 1});
    GIVE(&p, HEC_TRACE_MEMSET, 150, 1 * MS, 0, hec_trace_copy,
         {.bytes = 64, .from = HEC_TRACE_MEMORY_PINNED, .to = HEC_TRACE_MEMORY_DEVICE});
    GIVE(&p, HEC_TRACE_GRAPH_LAUNCH, 160, 1 * MS, 0, hec_trace_graph, {.duration_ns = 7000, .graph = 3});
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, 5);
    const struct hec_activity *first = kept_nth(HEC_ACTIVITY_KERNEL, 0);
    const struct hec_track *stream = kept_track(first->track);
    assert_int_equal(stream->kind, HEC_TRACK_STREAM);
    assert_int_equal(stream->stream, 7);
    assert_int_equal(stream->context, 1);
    assert_int_equal(stream->device, 0);
    assert_int_equal(stream->pid, getpid());
    const struct hec_kernel *what = &kept.kernel[first->name - 1];
    assert_string_equal(kept_name(what->name), "_Z6kernelPf");
    assert_int_equal(what->grid[0], 8);
    assert_int_equal(what->block[0], 256);
    const struct hec_activity *copy = kept_nth(HEC_ACTIVITY_COPY, 0);
    assert_true(copy->amount == 1 << 20);
    assert_int_equal(copy->from, HEC_MEMORY_PINNED);
    assert_int_equal(copy->to, HEC_MEMORY_DEVICE);
    assert_int_equal(copy[1].flags, HEC_ACTIVITY_PEER);
    assert_true(kept_nth(HEC_ACTIVITY_MEMSET, 0)->amount == 64);
    assert_int_equal(kept_nth(HEC_ACTIVITY_MEMSET, 0)->from, HEC_MEMORY_UNKNOWN);
    assert_int_equal(kept_nth(HEC_ACTIVITY_MEMSET, 0)->to, HEC_MEMORY_DEVICE);
    assert_true(isnan(kept_nth(HEC_ACTIVITY_GRAPH, 0)->amount));
    for (int i = 0; i < kept.activities; i++) {
        assert_true(kept.activity[i].launch_ns == HEC_TIME_UNKNOWN);
        assert_true(kept.activity[i].launch_end_ns == HEC_TIME_UNKNOWN);
        assert_int_equal(kept.activity[i].launch_track, 0);
        assert_int_equal(kept.activity[i].device, 0); /* its track says it */
    }
}

TEST(test_order_on_a_track) {
    open_traced(&p);
    uint32_t seed = 1;
    double t_us[3000];
    for (int i = 0; i < 3000; i++) { /* three interleaved buffers, and some noise */
        seed = seed * 1664525u + 1013904223u;
        t_us[i] = 1000 + (i % 3) * 10 + (i / 3) * 30 + (seed % 100 == 0 ? 500 : 0);
    }
    for (int buffer = 0; buffer < 3; buffer++)
        for (int i = buffer; i < 3000; i += 3)
            kernel(&p, t_us[i], 1, 0, 200 * MS);
    release(&p, 500 * MS);
    assert_int_equal(kept.activities, 3000);
    for (int i = 1; i < kept.activities; i++)
        assert_true(kept.activity[i - 1].start_ns <= kept.activity[i].start_ns);
    process_end(&p, 1 * S);
}

TEST(test_windows) {
    open_traced(&p);
    GIVE(&p, HEC_TRACE_WINDOW, 100, 2 * S, HEC_TRACE_WINDOW_OPEN, hec_trace_window,
         {.duration_ns = 1000000, .number = 1, .mode = HEC_TRACE_AUTO, .records = 10});
    GIVE(&p, HEC_TRACE_WINDOW, 100, 2 * S, 0, hec_trace_window,
         {.duration_ns = 5000000, .number = 1, .mode = HEC_TRACE_AUTO, .records = 50});
    GIVE(&p, HEC_TRACE_WINDOW, 20000, 2 * S, HEC_TRACE_WINDOW_OPEN, hec_trace_window,
         {.duration_ns = 2000000, .number = 2, .mode = HEC_TRACE_AUTO, .records = 20}); /* never closed */
    struct hec_tracer row = hec_trace_peer_row(p.peer, at_us(&p, 2 * S));
    assert_int_equal(row.windows, 2);
    assert_int_equal(row.traced_ns, 7000000);
    process_end(&p, 2 * S);
    assert_int_equal(kept_count(HEC_ACTIVITY_WINDOW), 2);
    assert_true(kept.activity[0].amount == 50);
    assert_int_equal(kept.activity[0].detail, HEC_TRACE_AUTO);
    assert_int_equal(kept_track(kept.activity[0].track)->kind, HEC_TRACK_PROCESS);
    assert_int_equal(kept.activity[1].end_ns - kept.activity[1].start_ns, 2000000);
    assert_int_equal(kept.tracer[0].windows, 2);
}

/* A killed process cannot say how long its last window was open; what came from it does. */
TEST(test_window_of_a_killed_process) {
    open_traced(&p);
    GIVE(&p, HEC_TRACE_WINDOW, 100, 2 * S, HEC_TRACE_WINDOW_OPEN, hec_trace_window,
         {.duration_ns = 1000000, .number = 1, .mode = HEC_TRACE_FULL, .records = 10});
    kernel(&p, 3000, 20, 0, 2 * S);
    process_end(&p, 2 * S);
    assert_int_equal(kept_nth(HEC_ACTIVITY_WINDOW, 0)->end_ns, at_us(&p, 3020));
    assert_int_equal(kept.tracer[0].traced_ns, 2920000);
}

/* A ring that claims windows without end costs a few; the rest is counted and reported. */
TEST(test_windows_are_bounded) {
    open_traced(&p);
    for (uint32_t i = 1; i <= 100000; i++)
        GIVE(&p, HEC_TRACE_WINDOW, 100 + 10 * i, 2 * S, 0, hec_trace_window,
             {.duration_ns = 5000, .number = i, .mode = HEC_TRACE_AUTO, .records = 1});
    process_end(&p, 2 * S);
    assert_int_equal(kept_count(HEC_ACTIVITY_WINDOW), HEC_TRACE_WINDOWS_MAX);
    assert_int_equal(kept.tracer[0].windows, HEC_TRACE_WINDOWS_MAX);
    assert_int_equal(kept.tracer[0].traced_ns, HEC_TRACE_WINDOWS_MAX * 5000);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "windows of the trace left out"));
}

/* Rests are windows of mode off; one lasts until its end is reported, the next one begins, or the process ends. */
TEST(test_rests) {
    open_traced(&p);
    GIVE(&p, HEC_TRACE_REST, 100, 2 * S, HEC_TRACE_WINDOW_OPEN, hec_trace_rest, {0});
    GIVE(&p, HEC_TRACE_REST, 100, 2 * S, 0, hec_trace_rest, {.duration_ns = 500000});
    GIVE(&p, HEC_TRACE_REST, 2000, 2 * S, HEC_TRACE_WINDOW_OPEN, hec_trace_rest, {0}); /* its end is lost */
    GIVE(&p, HEC_TRACE_REST, 3000, 2 * S, HEC_TRACE_WINDOW_OPEN, hec_trace_rest,
         {0}); /* and this one is never closed */
    struct hec_tracer row = hec_trace_peer_row(p.peer, at_us(&p, 2 * S));
    assert_int_equal(row.windows, 0);
    assert_int_equal(row.traced_ns, 0);
    process_end(&p, 2 * S);
    static const int64_t us[][2] = {{100, 600}, {2000, 3000}, {3000, 2 * S}};
    assert_int_equal(kept_count(HEC_ACTIVITY_WINDOW), 3);
    for (int i = 0; i < 3; i++) {
        const struct hec_activity *rest = kept_nth(HEC_ACTIVITY_WINDOW, i);
        assert_int_equal(rest->detail, HEC_TRACE_OFF);
        assert_int_equal(rest->start_ns, at_us(&p, us[i][0]));
        assert_int_equal(rest->end_ns, at_us(&p, us[i][1]));
    }
}

TEST(test_rests_are_bounded) {
    open_traced(&p);
    for (uint32_t i = 1; i <= 100000; i++)
        GIVE(&p, HEC_TRACE_REST, 100 + 10 * i, 2 * S, 0, hec_trace_rest, {.duration_ns = 5000});
    process_end(&p, 2 * S);
    assert_int_equal(kept_count(HEC_ACTIVITY_WINDOW), HEC_TRACE_RESTS_MAX);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "windows of the trace left out"));
}

TEST(test_tracer_row_and_holder) {
    open_traced(&p);
    GIVE(&p, HEC_TRACE_COUNTS, 100, 2 * S, 0, hec_trace_counts,
         {.dropped = 3, .bad = 2, .threads_left_out = 9, .records = 1000, .self_ns = 12345, .estimate_ppm = 4000});
    give_name(&p, 30, "torch.profiler");
    GIVE(&p, HEC_TRACE_HOLDER, 1 * S, 2 * S, 0, hec_trace_holder, {.name = 30, .code = 39});
    assert_int_equal(hec_trace_peer_row(p.peer, at_us(&p, 1.5 * S)).holder_ns, 500000000);
    GIVE(&p, HEC_TRACE_HOLDER, 2 * S, 3 * S, 0, hec_trace_holder, {.name = 0});
    hec_ring_drop(&p.ring, 7);
    kernel(&p, 500, 20, 0, 3 * S);
    process_end(&p, 3 * S);
    assert_int_equal(kept.tracers, 1);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "calls of 9 threads left out"));
    const struct hec_tracer *row = &kept.tracer[0];
    assert_int_equal(row->pid, getpid());
    assert_int_equal(row->mode, HEC_TRACE_FULL);
    assert_int_equal(row->cupti_version, 130000);
    assert_int_equal(row->driver_version, 13000);
    assert_string_equal(row->library, "/usr/lib/libcupti.so.13");
    assert_string_equal(row->why, "");
    assert_string_equal(row->holder, "torch.profiler");
    assert_int_equal(row->holder_ns, 1000000000);
    assert_int_equal(row->records, 1);
    assert_int_equal(row->dropped, 3);
    assert_int_equal(row->bad, 2);
    assert_int_equal(row->lost, 7);
    assert_int_equal(row->self_ns, 12345);
    assert_int_equal(row->estimate_ppm, 4000);
    assert_non_null(kept_event(HEC_EVENT_TRACE_HOLDER, "torch.profiler has CUPTI"));
    assert_non_null(kept_event(HEC_EVENT_TRACE_HOLDER, "has left CUPTI"));
    assert_non_null(kept_event(HEC_EVENT_TRACE_LOST, ": 7 records"));
}

TEST(test_another_version) {
    process_open(&p, 4242);
    GIVE(&p, HEC_TRACE_PROCESS, 1, 10, 0, hec_trace_process, {.abi = HEC_TRACE_ABI + 1, .mode = HEC_TRACE_AUTO});
    kernel(&p, 500, 20, 0, 1 * MS);
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, 0);
    assert_non_null(strstr(kept.tracer[0].why, "speaks version 6 of the records, this hec version 5"));
}

/* CUDA's numbers are the process's own: the bus id or the UUID says which device it is. */
TEST(test_devices) {
    struct hec_device_table table;
    hec_device_table_init(&table);
    open_traced(&p);
    p.run->devices = &table;
    GIVE(&p, HEC_TRACE_DEVICE, 1, 10, 0, hec_trace_device, {.ordinal = 0, .pci_bus_id = "0000:0f:00.0"});
    GIVE(&p, HEC_TRACE_DEVICE, 1, 10, 0, hec_trace_device,
         {.ordinal = 1,
          .uuid = {0x89, 0x32, 0xf9, 0x37, 0xd7, 0x2c, 0x41, 0x06, 0xc1, 0x2f, 0x20, 0xbd, 0x9f, 0xae, 0xd9, 0xf6}});
    GIVE(&p, HEC_TRACE_DEVICE, 1, 10, 0, hec_trace_device, {.ordinal = 5, .pci_bus_id = "0000:77:00.0"});
    for (uint16_t device = 0; device < 6; device += device == 1 ? 4 : 1)
        GIVE(&p, HEC_TRACE_KERNEL, 500, 1 * MS, 0, hec_trace_kernel,
             {.duration_ns = 5000, .config = 5, .stream = 7, .context = 1, .device = device});
    release(&p, 5 * S);
    assert_int_equal(kept.activities, 0); /* NVML may still be opening a device */
    struct hec_device listed = {.index = 3, .pci_bus_id = "00000000:0F:00.0"};
    hec_device_table_add(&table, &listed);
    listed = (struct hec_device){.index = 2, .uuid = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"};
    hec_device_table_add(&table, &listed);
    release(&p, 6 * S);
    assert_int_equal(kept.activities, 2);
    assert_int_equal(kept_track(kept.activity[0].track)->device, 3);
    assert_int_equal(kept_track(kept.activity[1].track)->device, 2);
    hec_device_table_complete(&table);
    release(&p, 7 * S);
    assert_int_equal(kept.activities, 3);
    assert_int_equal(kept_track(kept.activity[2].track)->device, 5);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "CUDA device 5"));
    process_end(&p, 8 * S);
    hec_device_table_free(&table);
}

TEST(test_nonsense_is_counted) {
    process_open(&p, 4242);
    kernel(&p, 500, 20, 0, 1 * MS); /* before its process */
    give_process(&p);
    give_config(&p, 5, "k");
    kernel(&p, -5 * S, 20, 0, 1 * MS); /* before the run */
    kernel(&p, 500, -1, 0, 1 * MS);    /* ends before it starts */
    kernel(&p, 500, 1e9, 0, 1 * MS);   /* ends in the future */
    kernel(&p, 9e9, 1, 0, 1 * MS);     /* starts there */
    GIVE(&p, HEC_TRACE_KERNEL, 500, 1 * MS, 0, hec_trace_kernel, {.duration_ns = 5000, .device = 64});
    GIVE(&p, HEC_TRACE_COPY, 500, 1 * MS, 0, hec_trace_copy, {.duration_ns = 5000, .from = 99});
    GIVE(&p, HEC_TRACE_COPY, 500, 1 * MS, 0, hec_trace_copy, {.duration_ns = 5000, .bytes = UINT64_MAX});
    GIVE(&p, HEC_TRACE_WINDOW, 500, 1 * MS, 0, hec_trace_window, {.duration_ns = 5000, .mode = 99});
    GIVE(&p, HEC_TRACE_CONFIG, 500, 1 * MS, 0, hec_trace_config, {.id = 8, .name = 8888});
    GIVE(&p, HEC_TRACE_DEVICE, 500, 1 * MS, 0, hec_trace_device, {.ordinal = 64});
    GIVE(&p, HEC_TRACE_HOLDER, 500, 1 * MS, 0, hec_trace_holder, {.name = 8888});
    GIVE(&p, HEC_TRACE_COUNTS, 500, 1 * MS, 0, hec_trace_counts, {.dropped = UINT64_MAX});
    GIVE(&p, HEC_TRACE_LIMIT, 500, 1 * MS, 0, hec_trace_counts, {.dropped = 1});
    GIVE(&p, HEC_RING_STEP, 500, 1 * MS, 0, hec_trace_counts, {.dropped = 1});
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, 0);
    assert_int_equal(kept.tracer[0].bad, 15);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "15 invalid records"));
}

/* A kernel whose definition was lost kept the device busy all the same. */
TEST(test_kernel_without_definition) {
    process_open(&p, 4242);
    give_process(&p);
    kernel(&p, 500, 20, 0, 1 * MS);
    process_end(&p, 1 * S);
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 1);
    assert_int_equal(kept.activity[0].name, 0);
}

TEST(test_after_the_end) {
    open_traced(&p);
    p.run->end_ns = at_us(&p, 1000);
    kernel(&p, 900, 20, 0, 1 * MS);
    kernel(&p, 1100, 20, 0, 2 * MS);
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, 1);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "1 records of the trace after the end"));
}

/* More than may be held leaves early; nothing is lost by it, and everything given out again is freed. */
TEST(test_bounded_hold) {
    open_traced(&p);
    p.run->held = HEC_TRACE_HELD_MAX - 100; /* as if other processes held so many */
    for (int i = 0; i < 1000; i++)
        kernel(&p, 1000 + i * 10, 1, 0, 200 * MS);
    hec_trace_flush(p.run);
    assert_true(kept.activities >= 900);
    p.run->held -= HEC_TRACE_HELD_MAX - 100;
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, 1000);
}
