/* From buffers of CUPTI, as three versions of it fill them, to records in the ring. The records are laid out by hand
 * here, not by the tracer's own table; tests/abi compares that with NVIDIA's headers. */
#include "tracer/tracer.h"

#include "trace_ring.h"
#include "unit.h"

/* A CUPTI whose records have a size of their own, and whose clock is ours plus 1e18 ns. */
static uint32_t kernel_bytes = 216, copy_bytes = 96, memset_bytes = 88;
#define OFFSET UINT64_C(1000000000000000000)

static size_t bytes_of(const uint8_t *record) {
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    switch (kind) {
    case 10:
        return kernel_bytes;
    case 1:
        return copy_bytes;
    case 22:
        return 96;
    case 2:
        return memset_bytes;
    case 5:
        return 40;
    case 51:
        return 56;
    }
    return 8;
}

static uint32_t next_record(uint8_t *buffer, size_t valid, uint8_t **record) {
    uint8_t *next = *record ? *record + bytes_of(*record) : buffer;
    if (next >= buffer + valid)
        return HEC_CUPTI_MAX_LIMIT_REACHED;
    *record = next;
    return HEC_CUPTI_SUCCESS;
}

static uint32_t get_timestamp(uint64_t *timestamp) {
    *timestamp = (uint64_t)hec_out_now_ns() + OFFSET;
    return HEC_CUPTI_SUCCESS;
}

static const struct hec_cupti cupti = {.ActivityGetNextRecord = next_record, .GetTimestamp = get_timestamp};

static uint8_t buffer[1 << 20] __attribute__((aligned(8)));
static size_t filled;

static uint8_t *append(uint32_t kind, size_t bytes) {
    uint8_t *record = buffer + filled;
    memset(record, 0, bytes);
    memcpy(record, &kind, sizeof kind);
    filled += bytes;
    return record;
}

#define PUT(record, offset, type, value)                                                                               \
    do {                                                                                                               \
        type put_ = (type)(value);                                                                                     \
        memcpy((record) + (offset), &put_, sizeof put_);                                                               \
    } while (0)

static void put_times(uint8_t *record, int64_t start_ns, int64_t end_ns) {
    PUT(record, 16, uint64_t, (uint64_t)start_ns + OFFSET);
    PUT(record, 24, uint64_t, (uint64_t)end_ns + OFFSET);
}

static uint8_t *kernel(const char *name, uint32_t correlation, int64_t start_ns, int64_t end_ns) {
    uint8_t *record = append(10, kernel_bytes);
    PUT(record, 6, uint16_t, 40);
    put_times(record, start_ns, end_ns);
    PUT(record, 40, uint32_t, 1);
    PUT(record, 44, uint32_t, 2);
    PUT(record, 48, uint32_t, 7);
    PUT(record, 52, int32_t, 100);
    PUT(record, 56, int32_t, 3);
    PUT(record, 60, int32_t, 1);
    PUT(record, 64, int32_t, 256);
    PUT(record, 68, int32_t, 2);
    PUT(record, 72, int32_t, 1);
    PUT(record, 76, int32_t, 2048);
    PUT(record, 80, int32_t, 4096);
    PUT(record, 84, uint32_t, 16);
    PUT(record, 92, uint32_t, correlation);
    PUT(record, 104, const char *, name);
    return record;
}

static void parse(void) {
    hec_records_parse(&cupti, buffer, filled);
    filled = 0;
    read_ring();
}

static int set_up(void **state) {
    (void)state;
    ring_open();
    hec_clock_forget();
    hec_clock_read(&cupti);
    hec_lead_reset(0);
    filled = 0;
    kernel_bytes = 216;
    copy_bytes = 96;
    memset_bytes = 88;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hec_records_forget();
    hec_clock_forget();
    ring_close();
    return 0;
}

TEST_WITH(test_kernels_of_versions, set_up, tear_down) {
    static const uint32_t sizes[] = {200, 208, 216, 224, 232, 248}; /* 11.8, 12.0, 13.0, 13.1, 13.3, 13.4 */
    int64_t now = hec_out_now_ns();
    for (size_t v = 0; v < sizeof sizes / sizeof sizes[0]; v++) {
        kernel_bytes = sizes[v];
        for (uint32_t i = 0; i < 10; i++)
            kernel("void gemm<float>(int)", 100 + i, now + i * 1000, now + i * 1000 + 500);
        PUT(kernel("in a graph", 200, now, now + 1), 144, uint64_t, 77);
        parse();
        assert_int_equal(count(HEC_TRACE_KERNEL), 11);
        assert_int_equal(count(HEC_TRACE_CONFIG), v == 0 ? 2 : 0); /* defined once */
        union hec_trace_payload u = payload(nth(HEC_TRACE_KERNEL, 9));
        assert_in_range(nth(HEC_TRACE_KERNEL, 9)->t_ns - now, 9000 - 2000, 9000 + 2000); /* pairs of readings */
        assert_in_range(u.kernel.duration_ns, 499, 501);
        assert_int_equal(u.kernel.correlation, 109);
        assert_int_equal(u.kernel.device, 1);
        assert_int_equal(u.kernel.context, 2);
        assert_int_equal(u.kernel.stream, 7);
        assert_int_equal(nth(HEC_TRACE_KERNEL, 9)->flags, 0);
        u = payload(nth(HEC_TRACE_KERNEL, 10));
        assert_int_equal(u.kernel.graph_node, 77);
        assert_int_equal(nth(HEC_TRACE_KERNEL, 10)->flags, HEC_TRACE_IN_GRAPH);
        if (v > 0)
            continue;
        union hec_trace_payload config = payload(nth(HEC_TRACE_CONFIG, 0));
        assert_int_equal(config.config.grid[0], 100);
        assert_int_equal(config.config.grid[1], 3);
        assert_int_equal(config.config.block[0], 256);
        assert_int_equal(config.config.block[1], 2);
        assert_int_equal(config.config.registers, 40);
        assert_int_equal(config.config.static_shared_bytes, 2048);
        assert_int_equal(config.config.dynamic_shared_bytes, 4096);
        assert_int_equal(config.config.local_bytes, 16);
        assert_string_equal(name_of(config.config.name), "void gemm<float>(int)");
    }
    struct hec_records_totals totals = hec_records_totals();
    assert_int_equal(totals.device, 66);
    assert_int_equal(totals.kept, 60); /* nodes of graphs cost CUPTI no memory */
    assert_int_equal(totals.bad, 0);
}

TEST_WITH(test_copies, set_up, tear_down) {
    static const uint32_t sizes[] = {88, 96, 112};
    int64_t now = hec_out_now_ns();
    for (size_t v = 0; v < 3; v++) {
        copy_bytes = sizes[v];
        uint8_t *record = append(1, copy_bytes);
        PUT(record, 5, uint8_t, 2);
        PUT(record, 6, uint8_t, 3);
        PUT(record, 8, uint64_t, 1 << 20);
        put_times(record, now, now + 40000);
        PUT(record, 40, uint32_t, 13);
        PUT(record, 44, uint32_t, 9);
        record = append(22, 96);
        PUT(record, 5, uint8_t, 3);
        PUT(record, 6, uint8_t, 3);
        PUT(record, 8, uint64_t, 5);
        put_times(record, now, now + 1);
        PUT(record, 52, uint32_t, 3);
        PUT(record, 60, uint32_t, 11);
        record = append(2, memset_bytes);
        PUT(record, 8, uint64_t, 64);
        put_times(record, now, now + 2000);
        PUT(record, 50, uint16_t, 6);
        parse();
        union hec_trace_payload u = payload(nth(HEC_TRACE_COPY, 0));
        assert_int_equal(u.copy.bytes, 1 << 20);
        assert_int_equal(u.copy.from, HEC_TRACE_MEMORY_PINNED);
        assert_int_equal(u.copy.to, HEC_TRACE_MEMORY_DEVICE);
        assert_int_equal(u.copy.stream, 13);
        assert_int_equal(u.copy.correlation, 9);
        u = payload(nth(HEC_TRACE_COPY, 1));
        assert_int_equal(nth(HEC_TRACE_COPY, 1)->flags, HEC_TRACE_PEER);
        assert_int_equal(u.copy.peer, 3);
        assert_int_equal(u.copy.correlation, 11);
        u = payload(nth(HEC_TRACE_MEMSET, 0));
        assert_int_equal(u.copy.bytes, 64);
        assert_int_equal(u.copy.to, HEC_TRACE_MEMORY_DEVICE); /* static device memory is device memory */
    }
}

TEST_WITH(test_graphs, set_up, tear_down) {
    int64_t now = hec_out_now_ns();
    uint8_t *record = append(51, 56);
    PUT(record, 4, uint32_t, 12);
    PUT(record, 8, uint64_t, (uint64_t)now + OFFSET);
    PUT(record, 16, uint64_t, (uint64_t)now + OFFSET + 7000);
    PUT(record, 24, uint32_t, 1);
    PUT(record, 28, uint32_t, 99);
    PUT(record, 32, uint32_t, 2);
    PUT(record, 36, uint32_t, 7);
    parse();
    union hec_trace_payload u = payload(nth(HEC_TRACE_GRAPH_LAUNCH, 0));
    assert_in_range(u.graph.duration_ns, 6999, 7001);
    assert_int_equal(u.graph.correlation, 12);
    assert_int_equal(u.graph.graph, 99);
    assert_int_equal(u.graph.device, 1);
    assert_int_equal(u.graph.context, 2);
    assert_int_equal(u.graph.stream, 7);
    assert_int_equal(hec_records_totals().device, 1);
    assert_int_equal(hec_records_totals().kept, 0);
}

TEST_WITH(test_bad_records, set_up, tear_down) {
    int64_t now = hec_out_now_ns();
    kernel("fine", 1, now, now + 10);
    kernel("backwards", 2, now + 10, now);
    kernel("far ahead", 3, now + 3600 * HEC_NS_PER_S, now + 3601 * HEC_NS_PER_S);
    kernel("long ago", 4, now - 3600 * HEC_NS_PER_S, now);
    PUT(kernel("no start", 5, now, now), 16, uint64_t, 0);
    PUT(kernel("no end", 6, now, now), 24, uint64_t, 0);
    PUT(kernel("no such device", 7, now, now), 40, uint32_t, 4000000000u);
    append(33, 8); /* a kind that was not asked for */
    append(5, 40); /* a call: nor was that */
    parse();
    assert_int_equal(count(HEC_TRACE_KERNEL), 1);
    assert_int_equal(hec_records_totals().bad, 8);
    assert_int_equal(hec_records_totals().dropped, 0);
    /* when a forced flush takes the buffer away, one without an end is not bad: it still runs */
    hec_records_forced(true);
    PUT(kernel("runs", 8, now, now), 24, uint64_t, 0);
    parse();
    hec_records_forced(false);
    assert_int_equal(hec_records_totals().bad, 8);
    assert_int_equal(hec_records_totals().dropped, 1);
    /* a record that reaches over the end of the buffer is not read */
    kernel("cut", 9, now, now + 10);
    filled -= 100;
    parse();
    assert_int_equal(count(HEC_TRACE_KERNEL), 0);
    assert_int_equal(hec_records_totals().bad, 9);
}

TEST_WITH(test_names, set_up, tear_down) {
    int64_t now = hec_out_now_ns();
    static char reused[64] = "first";
    char text[9000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    kernel(reused, 1, now, now + 1);
    kernel(text, 2, now, now + 1);
    kernel(NULL, 3, now, now + 1);
    parse();
    assert_int_equal(count(HEC_TRACE_KERNEL), 3);
    assert_string_equal(name_of(payload(nth(HEC_TRACE_CONFIG, 0)).config.name), "first");
    assert_int_equal(strlen(name_of(payload(nth(HEC_TRACE_CONFIG, 1)).config.name)), 255 * HEC_RING_NAME_PIECE);
    assert_string_equal(name_of(payload(nth(HEC_TRACE_CONFIG, 2)).config.name), "(no name)");
    /* the same address with another text, in a later buffer: another kernel */
    strcpy(reused, "second");
    kernel(reused, 4, now, now + 1);
    parse();
    assert_int_equal(count(HEC_TRACE_CONFIG), 1);
    assert_string_equal(name_of(payload(nth(HEC_TRACE_CONFIG, 0)).config.name), "second");
}

TEST_WITH(test_configs_overflow, set_up, tear_down) {
    int64_t now = hec_out_now_ns();
    size_t configs = 0, kernels = 0;
    for (uint32_t i = 0; i < HEC_INTERN_CONFIGS + 3000; i++) {
        PUT(kernel("many shapes", i, now, now + 1), 52, int32_t, i);
        if (i % 1000 == 999 || i == HEC_INTERN_CONFIGS + 2999) {
            parse();
            configs += count(HEC_TRACE_CONFIG);
            kernels += count(HEC_TRACE_KERNEL);
        }
    }
    assert_int_equal(kernels, HEC_INTERN_CONFIGS + 3000);
    assert_int_equal(configs, HEC_INTERN_CONFIGS + 1); /* all further ones are one: the name alone */
    union hec_trace_payload u = payload(nth(HEC_TRACE_KERNEL, 0));
    assert_true(u.kernel.config > HEC_INTERN_CONFIGS);
}

TEST_WITH(test_names_overflow, set_up, tear_down) {
    char text[32];
    for (uint32_t i = 0; i < HEC_INTERN_NAMES + 10; i++) {
        snprintf(text, sizeof text, "kernel %u", i);
        uint32_t id = hec_intern_name(text);
        assert_int_equal(id, i < HEC_INTERN_NAMES ? i + 1 : HEC_INTERN_NAMES + 1);
        read_ring();
    }
    assert_string_equal(name_of(HEC_INTERN_NAMES + 1), "(too many names)");
    assert_int_equal(hec_intern_name("kernel 5"), 6);
    assert_int_equal(hec_intern_name(""), 0);
}

TEST_WITH(test_ring_full, set_up, tear_down) {
    int64_t now = hec_out_now_ns();
    struct hec_ring_record record = {0};
    while (hec_out_write(&record, HEC_TRACE_COUNTS))
        ;
    kernel("did not fit", 1, now, now + 1);
    hec_records_parse(&cupti, buffer, filled);
    filled = 0;
    assert_true(hec_ring_lost(&reader) >= 2);
    while (hec_ring_read(&reader, records, RECORDS_MAX) > 0)
        ;
    /* its definition is tried again */
    kernel("did not fit", 2, now, now + 1);
    parse();
    assert_int_equal(count(HEC_TRACE_CONFIG), 1);
    assert_int_equal(count(HEC_TRACE_KERNEL), 1);
    assert_string_equal(name_of(payload(nth(HEC_TRACE_CONFIG, 0)).config.name), "did not fit");
}

TEST(test_buffers) {
    static uint8_t *taken[HEC_TRACER_BUFFERS];
    assert_null(hec_buffers_take());
    assert_int_equal(hec_buffers_open(), 0);
    for (uint32_t i = 0; i < HEC_TRACER_BUFFERS; i++) {
        taken[i] = hec_buffers_take();
        assert_non_null(taken[i]);
        assert_true(hec_buffers_ours(taken[i]) && (uintptr_t)taken[i] % 8 == 0);
        assert_true(i == 0 || taken[i] == taken[i - 1] + HEC_TRACER_BUFFER_BYTES);
    }
    assert_int_equal(hec_buffers_out(), HEC_TRACER_BUFFERS);
    assert_null(hec_buffers_take());
    hec_buffers_give(taken[17]);
    assert_ptr_equal(hec_buffers_take(), taken[17]);
    assert_false(hec_buffers_ours(buffer));
    for (uint32_t i = 0; i < HEC_TRACER_BUFFERS; i++)
        hec_buffers_give(taken[i]);
    assert_int_equal(hec_buffers_out(), 0);
    hec_buffers_forget();
    assert_false(hec_buffers_ours(taken[0]));
}
