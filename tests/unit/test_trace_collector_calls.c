/* Calls and bursts of launches as the collector reports them, where nothing of the device is matched with them. */
#include "tests/unit/trace_collector.h"

#define MS 1e3
#define S 1e6
#define BYTES_MAX (UINT64_C(1) << 60)

static void open_traced(struct process *process) {
    process_open(process, getpid());
    give_process(process);
    give_name(process, 9, "cuCall");
}

static void call(struct process *process, double t_us, struct hec_trace_call call) {
    give(process, HEC_TRACE_CALL, t_us, &call, sizeof call, 0, 1 * MS);
}

static void burst(struct process *process, double t_us, struct hec_trace_burst burst) {
    give(process, HEC_TRACE_BURST, t_us, &burst, sizeof burst, 0, 1 * MS);
}

static uint64_t bad(const struct process *process) {
    return (uint64_t)hec_trace_peer_row(process->peer, at_us(process, 1 * S)).bad;
}

#define CALL(class, ns, ...)                                                                                           \
    { .duration_ns = ns, .function = 9, .call_class = HEC_TRACE_CALL_##class, __VA_ARGS__ }

TEST(test_every_class) {
    static const struct {
        struct hec_trace_call call;
        int kind, detail;
        double amount;
        int from, to;
    } rows[] = {
        {CALL(OTHER, 5000, .amount = 7), HEC_ACTIVITY_API, HEC_API_OTHER, 0, 0, 0},
        {CALL(LAUNCH, 60000, .amount = 0xabcd0), HEC_ACTIVITY_API, HEC_API_LAUNCH, 0, 0, 0},
        {CALL(LAUNCH, 100, .amount = 0xabcd0), HEC_ACTIVITY_API, HEC_API_LAUNCH, 0, 0, 0},
        {CALL(GRAPH, 5000, .amount = 0xabcd0), HEC_ACTIVITY_API, HEC_API_GRAPH, 0, 0, 0},
        {CALL(COPY, 5000, .amount = 4096, .from = HEC_TRACE_MEMORY_PINNED, .to = HEC_TRACE_MEMORY_DEVICE),
         HEC_ACTIVITY_API, HEC_API_COPY, 4096, HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE},
        {CALL(MEMSET, 5000, .amount = 64, .from = 1, .to = 3), HEC_ACTIVITY_API, HEC_API_MEMSET, 64, 0, 0},
        {CALL(SYNC, 5000, .from = HEC_TRACE_WAIT_EVENT), HEC_ACTIVITY_SYNC, HEC_SYNC_EVENT, 0, 0, 0},
        {CALL(SYNC, 5000, .from = HEC_TRACE_WAIT_STREAM), HEC_ACTIVITY_SYNC, HEC_SYNC_STREAM, 0, 0, 0},
        {CALL(SYNC, 0, .from = HEC_TRACE_WAIT_CONTEXT), HEC_ACTIVITY_SYNC, HEC_SYNC_CONTEXT, 0, 0, 0},
        {CALL(ALLOC, 5000, .amount = 1 << 20), HEC_ACTIVITY_API, HEC_API_ALLOC, 1 << 20, 0, 0},
        {CALL(FREE, 5000, .amount = 1 << 20), HEC_ACTIVITY_API, HEC_API_FREE, 0, 0, 0},
        {CALL(MODULE, 5000, .amount = 3), HEC_ACTIVITY_API, HEC_API_MODULE, 0, 0, 0},
    };
    size_t count = sizeof rows / sizeof rows[0];
    open_traced(&p);
    for (size_t i = 0; i < count; i++) {
        struct hec_trace_call with_device = rows[i].call;
        with_device.device = 1;
        call(&p, 100 + 100 * (double)i, with_device);
    }
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, count);
    assert_int_equal(kept.tracer[0].records, count);
    assert_int_equal(kept.tracer[0].bad, 0);
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &kept.activity[i];
        assert_int_equal(a->start_ns, at_us(&p, 100 + 100 * (double)i));
        assert_int_equal(a->end_ns - a->start_ns, rows[i].call.duration_ns);
        assert_int_equal(a->kind, rows[i].kind);
        assert_int_equal(a->detail, rows[i].detail);
        assert_true(a->amount == rows[i].amount);
        assert_int_equal(a->from, rows[i].from);
        assert_int_equal(a->to, rows[i].to);
        assert_int_equal(a->device, 2); /* NVML is not there: CUDA's number is taken */
        assert_int_equal(a->flags, 0);
        if (a->kind == HEC_ACTIVITY_SYNC)
            assert_int_equal(a->name, 0);
        else
            assert_string_equal(kept_name(a->name), "cuCall");
        const struct hec_track *thread = kept_track(a->track);
        assert_int_equal(thread->kind, HEC_TRACK_THREAD);
        assert_int_equal(thread->stream, 77);
        assert_int_equal(thread->pid, getpid());
        assert_int_equal(thread->device, -1);
    }
}

/* A call of up to 1 us explains no gap; it is received all the same. */
TEST(test_short_calls) {
    static const struct hec_trace_call rows[] = {
        CALL(OTHER, 1000),  CALL(ALLOC, 900), CALL(FREE, 0),
        CALL(MODULE, 1000), CALL(COPY, 1000), CALL(ALLOC, 1001), /* this one is reported */
    };
    open_traced(&p);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        call(&p, 100 + 10 * (double)i, rows[i]);
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, 1);
    assert_int_equal(kept.activity[0].end_ns - kept.activity[0].start_ns, 1001);
}

TEST(test_bursts) {
    static const struct {
        struct hec_trace_burst burst;
        int pauses, in_calls;
    } rows[] = {
        {{.duration_ns = 1000000, .launches = 100, .device = 3}, 0, 0},
        {{.duration_ns = 1000000, .pauses_ns = 1000000, .in_calls_ns = 500000, .launches = 7, .graphs = 7}, 255, 128},
        {{.duration_ns = 1000000, .pauses_ns = 1961, .in_calls_ns = 1960, .launches = 1}, 1, 0}, /* 0.5 of 255 */
        {{.duration_ns = 1000000, .pauses_ns = 998039, .in_calls_ns = 998040, .launches = 2}, 254, 255},
        {{.duration_ns = 0, .pauses_ns = 5, .in_calls_ns = 5, .launches = 1}, 0, 0},
        {{.duration_ns = 1000000, .pauses_ns = -1, .in_calls_ns = INT64_MIN, .launches = 9}, 0, 0},
        {{.duration_ns = 1000000, .pauses_ns = 1000001, .in_calls_ns = INT64_MAX, .launches = UINT32_MAX}, 255, 255},
    };
    size_t count = sizeof rows / sizeof rows[0];
    open_traced(&p);
    for (size_t i = 0; i < count; i++)
        burst(&p, 10 * MS * (double)i, rows[i].burst);
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, count);
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &kept.activity[i];
        assert_int_equal(a->kind, HEC_ACTIVITY_BURST);
        assert_int_equal(a->end_ns - a->start_ns, rows[i].burst.duration_ns);
        assert_true(a->amount == rows[i].burst.launches);
        assert_int_equal(a->from, rows[i].pauses);
        assert_int_equal(a->to, rows[i].in_calls);
        assert_int_equal(a->device, rows[i].burst.device + 1);
        assert_int_equal(a->name, 0);
        assert_int_equal(kept_track(a->track)->kind, HEC_TRACK_THREAD);
    }
}

TEST(test_burst_of_a_kernel) {
    open_traced(&p);
    burst(&p, 0, (struct hec_trace_burst){.duration_ns = 1000, .launches = 1, .name = 9});
    burst(&p, 10 * MS,
          (struct hec_trace_burst){.duration_ns = 1000, .launches = 1, .name = 77}); /* nobody defined it */
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, 2);
    assert_string_equal(kept.name[kept.activity[0].name - 1], "cuCall");
    assert_int_equal(kept.activity[1].name, 0);
    assert_int_equal(kept.tracer[0].bad, 0);
}

/* One record at a time: counted as bad, or told with what cannot be believed left out. */
TEST(test_hostile_calls) {
    static const struct {
        struct hec_trace_call call;
        bool bad;
        double amount;
        int device;
    } rows[] = {
        {CALL(CLASS_COUNT, 5000), true, 0, 0},
        {{.duration_ns = 5000, .call_class = UINT16_MAX}, true, 0, 0},
        {CALL(COPY, 5000, .amount = BYTES_MAX), false, (double)BYTES_MAX, 1},
        {CALL(COPY, 5000, .amount = BYTES_MAX + 1), true, 0, 0},
        {CALL(COPY, 5000, .from = HEC_TRACE_MEMORY_COUNT), true, 0, 0},
        {CALL(COPY, 5000, .to = UINT8_MAX), true, 0, 0},
        {CALL(SYNC, 5000, .from = HEC_SYNC_TYPE_COUNT), true, 0, 0},
        {CALL(SYNC, 5000, .amount = UINT64_MAX, .to = UINT8_MAX), false, 0, 1},
        {CALL(ALLOC, 5000, .amount = UINT64_MAX), false, 0, 1},
        {CALL(MEMSET, 5000, .amount = UINT64_MAX), false, 0, 1},
        {CALL(OTHER, 5000, .device = HEC_TRACE_DEVICE_UNKNOWN), false, 0, 0},
        {CALL(OTHER, 5000, .device = HEC_TRACE_ORDINALS_MAX), false, 0, 0},
        {CALL(OTHER, 5000, .device = HEC_TRACE_ORDINALS_MAX - 1), false, 0, HEC_TRACE_ORDINALS_MAX},
        {CALL(OTHER, -1), true, 0, 0},
        {CALL(SYNC, INT64_MIN), true, 0, 0},
        {CALL(LAUNCH, INT64_MAX), true, 0, 0},
        {{.duration_ns = 5000, .function = 12345}, false, 0, 1}, /* no such name */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kept_clear();
        open_traced(&p);
        call(&p, 100, rows[i].call);
        assert_int_equal(bad(&p), rows[i].bad);
        process_end(&p, 1 * S);
        assert_int_equal(kept.activities, !rows[i].bad);
        if (rows[i].bad)
            continue;
        assert_true(kept.activity[0].amount == rows[i].amount);
        assert_int_equal(kept.activity[0].device, rows[i].device);
        if (rows[i].call.function == 12345)
            assert_int_equal(kept.activity[0].name, 0);
    }
}

TEST(test_hostile_bursts) {
    static const struct hec_trace_burst rows[] = {
        {.duration_ns = 5000, .launches = 0},
        {.duration_ns = 5000, .launches = 3, .graphs = 4},
        {.duration_ns = -1, .launches = 1},
        {.duration_ns = INT64_MAX, .launches = 1},
    };
    open_traced(&p);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        burst(&p, 100, rows[i]);
    burst(&p, -5 * S, (struct hec_trace_burst){.duration_ns = 1, .launches = 1});
    assert_int_equal(bad(&p), 5);
    burst(&p, 100, (struct hec_trace_burst){.launches = 1, .device = HEC_TRACE_DEVICE_UNKNOWN});
    assert_int_equal(bad(&p), 5);
    process_end(&p, 1 * S);
    assert_int_equal(kept.activities, 1);
    assert_int_equal(kept.activity[0].device, 0);
}

/* CUDA's number of a device is the process's own; calls wait until it is known which of NVML's it is. */
TEST(test_devices_listed_late) {
    struct hec_device_table table;
    hec_device_table_init(&table);
    open_traced(&p);
    p.run->devices = &table;
    call(&p, 100, (struct hec_trace_call)CALL(ALLOC, 5000, .device = HEC_TRACE_DEVICE_UNKNOWN)); /* waits for nobody */
    call(&p, 200, (struct hec_trace_call)CALL(SYNC, 5000, .device = 1));
    burst(&p, 300, (struct hec_trace_burst){.duration_ns = 5000, .launches = 3, .device = 0});
    release(&p, 1 * S);
    assert_int_equal(kept.activities, 1);
    assert_int_equal(kept.activity[0].device, 0);
    /* the device records come after the calls, on a machine that is busy */
    hec_device_table_add(&table, &(struct hec_device){.index = 4, .pci_bus_id = "00000000:AF:00.0"});
    release(&p, 2 * S);
    assert_int_equal(kept.activities, 1);
    GIVE(&p, HEC_TRACE_DEVICE, 1, 2 * S, 0, hec_trace_device, {.ordinal = 1, .pci_bus_id = "0000:0f:00.0"});
    GIVE(&p, HEC_TRACE_DEVICE, 1, 2 * S, 0, hec_trace_device, {.ordinal = 0, .pci_bus_id = "0000:af:00.0"});
    release(&p, 3 * S);
    assert_int_equal(kept.activities, 1);
    hec_device_table_add(&table, &(struct hec_device){.index = 6, .pci_bus_id = "00000000:0F:00.0"});
    release(&p, 4 * S);
    assert_int_equal(kept.activities, 3);
    assert_int_equal(kept_nth(HEC_ACTIVITY_SYNC, 0)->device, 7);
    assert_int_equal(kept_nth(HEC_ACTIVITY_BURST, 0)->device, 5);
    process_end(&p, 5 * S);
    assert_null(kept_event(HEC_EVENT_NOTE, "CUDA device"));
    hec_device_table_free(&table);
}

/* Who never tells its devices, or names none of NVML's, does not hold its calls back for ever. */
TEST(test_devices_never_listed) {
    struct hec_device_table table;
    hec_device_table_init(&table);
    hec_device_table_add(&table, &(struct hec_device){.index = 0, .pci_bus_id = "00000000:AF:00.0"});
    open_traced(&p);
    p.run->devices = &table;
    call(&p, 100, (struct hec_trace_call)CALL(SYNC, 5000, .device = 2));
    release(&p, HEC_TRACE_DEVICES_MS * MS - 1 * S);
    assert_int_equal(kept.activities, 0);
    release(&p, HEC_TRACE_DEVICES_MS * MS + 1 * S);
    assert_int_equal(kept.activities, 1);
    assert_int_equal(kept.activity[0].device, 3);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "CUDA device 2"));
    process_end(&p, 20 * S);
    hec_device_table_free(&table);
}
