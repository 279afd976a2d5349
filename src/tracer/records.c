#include "tracer/tracer.h"

#include <pthread.h>

/* A record may lie this far outside the life of the tracer: the mapping of clocks is good to microseconds. */
#define SLACK_NS HEC_NS_PER_S
static struct hec_records_totals totals; /* changed under hec_out_lock but for dropped and self_ns, read by atomics */
static bool forced;
static int64_t first_ns; /* nothing can be older */

struct pass {
    struct hec_clock clock;
    int64_t now_ns;
    const uint8_t *bytes; /* the record */
};

static void count(uint64_t *which, uint64_t by) {
    __atomic_fetch_add(which, by, __ATOMIC_RELAXED);
}

struct hec_records_totals hec_records_totals(void) {
    struct hec_records_totals out;
#define TAKE(field) out.field = __atomic_load_n(&totals.field, __ATOMIC_RELAXED)
    TAKE(device);
    TAKE(kept);
    TAKE(bad);
    TAKE(dropped);
    TAKE(self_ns);
#undef TAKE
    return out;
}

void hec_records_forget(void) {
    memset(&totals, 0, sizeof totals);
    first_ns = 0;
    forced = false;
}

void hec_records_count_dropped(uint64_t n) {
    count(&totals.dropped, n);
}

void hec_records_add_self(int64_t ns) {
    __atomic_fetch_add(&totals.self_ns, ns, __ATOMIC_RELAXED);
}

void hec_records_forced(bool yes) {
    __atomic_store_n(&forced, yes, __ATOMIC_RELAXED);
}

/* Start and length on our clock. false: the record makes no sense, or is without an end; it is counted. */
static bool times(const struct pass *pass, uint64_t start, uint64_t end, struct hec_ring_record *record,
                  int64_t *duration_ns) {
    if (end == 0 && __atomic_load_n(&forced, __ATOMIC_RELAXED)) {
        count(&totals.dropped, 1);
        return false;
    }
    if (start != 0 && end >= start) {
        int64_t from = hec_clock_map(&pass->clock, start), to = hec_clock_map(&pass->clock, end);
        if (from != INT64_MIN && to >= from && from >= first_ns - SLACK_NS && to <= pass->now_ns + SLACK_NS) {
            record->t_ns = from;
            *duration_ns = to - from;
            return true;
        }
    }
    count(&totals.bad, 1);
    return false;
}

static bool device_sane(uint32_t device) {
    if (device < HEC_TRACER_DEVICES)
        return true;
    count(&totals.bad, 1);
    return false;
}

static uint16_t clamp16(int64_t value) {
    return value < 0 ? 0 : value > UINT16_MAX ? UINT16_MAX : (uint16_t)value;
}

static uint8_t memory_of(uint32_t kind) {
    static const uint8_t map[] = {
        [HEC_CUPTI_MEMORY_UNKNOWN] = HEC_TRACE_MEMORY_UNKNOWN,
        [HEC_CUPTI_MEMORY_PAGEABLE] = HEC_TRACE_MEMORY_PAGEABLE,
        [HEC_CUPTI_MEMORY_PINNED] = HEC_TRACE_MEMORY_PINNED,
        [HEC_CUPTI_MEMORY_DEVICE] = HEC_TRACE_MEMORY_DEVICE,
        [HEC_CUPTI_MEMORY_ARRAY] = HEC_TRACE_MEMORY_ARRAY,
        [HEC_CUPTI_MEMORY_MANAGED] = HEC_TRACE_MEMORY_MANAGED,
        [HEC_CUPTI_MEMORY_DEVICE_STATIC] = HEC_TRACE_MEMORY_DEVICE,
        [HEC_CUPTI_MEMORY_MANAGED_STATIC] = HEC_TRACE_MEMORY_MANAGED,
    };
    return kind < sizeof map ? map[kind] : HEC_TRACE_MEMORY_UNKNOWN;
}

static void device_done(const struct hec_ring_record *record, uint32_t context, uint32_t stream) {
    count(&totals.device, 1);
    if (!(record->flags & HEC_TRACE_IN_GRAPH))
        count(&totals.kept, 1);
    hec_lead_device(context, stream, record->t_ns);
}

static void kernel(const struct pass *pass) {
#define GET(field) HEC_CUPTI_GET(pass->bytes, kernel, field)
    struct hec_ring_record record = {0};
    struct hec_trace_kernel *out = &hec_out_payload(&record)->kernel;
    if (!device_sane(GET(device)) || !times(pass, GET(start), GET(end), &record, &out->duration_ns))
        return;
    struct hec_trace_config config = {
        .grid = {(uint32_t)GET(grid_x), (uint32_t)GET(grid_y), (uint32_t)GET(grid_z)},
        .block = {clamp16(GET(block_x)), clamp16(GET(block_y)), clamp16(GET(block_z))},
        .registers = GET(registers),
        .static_shared_bytes = (uint32_t)GET(static_shared),
        .dynamic_shared_bytes = (uint32_t)GET(dynamic_shared),
        .local_bytes = GET(local),
    };
    out->graph_node = GET(graph_node);
    out->correlation = GET(correlation);
    out->stream = GET(stream);
    out->context = GET(context);
    out->graph = GET(graph);
    out->device = (uint16_t)GET(device);
    record.flags = out->graph_node != 0 || out->graph != 0 ? HEC_TRACE_IN_GRAPH : 0;
    device_done(&record, out->context, out->stream);
    out->config = hec_intern_config(&config, GET(name));
    if (out->config != 0) /* else its definition found the ring full, and was counted there; so is the kernel */
        hec_out_write(&record, HEC_TRACE_KERNEL);
    else
        hec_out_drop();
#undef GET
}

/* What copies, copies between devices and memsets have alike: CUPTI has a struct for each. */
struct transfer {
    uint64_t start, end, bytes, graph_node;
    uint32_t correlation, stream, context, graph, device;
};
#define TRANSFER(record)                                                                                               \
    &(struct transfer) {                                                                                               \
        .start = GET(record, start), .end = GET(record, end), .bytes = GET(record, bytes),                             \
        .graph_node = GET(record, graph_node), .correlation = GET(record, correlation), .stream = GET(record, stream), \
        .context = GET(record, context), .graph = GET(record, graph), .device = (uint32_t)GET(record, device),         \
    }
#define GET(record, field) HEC_CUPTI_GET(pass->bytes, record, field)

/* NULL: it makes no sense, and is counted. */
static struct hec_trace_copy *fill_copy(const struct pass *pass, const struct transfer *in,
                                        struct hec_ring_record *record) {
    struct hec_trace_copy *out = &hec_out_payload(record)->copy;
    if (!device_sane(in->device) || !times(pass, in->start, in->end, record, &out->duration_ns))
        return NULL;
    out->bytes = in->bytes;
    out->correlation = in->correlation;
    out->stream = in->stream;
    out->context = in->context;
    out->graph = in->graph;
    out->device = (uint16_t)in->device;
    if (in->graph_node != 0 || in->graph != 0)
        record->flags |= HEC_TRACE_IN_GRAPH;
    device_done(record, in->context, in->stream);
    return out;
}

static void copy(const struct pass *pass) {
    struct hec_ring_record record = {0};
    struct hec_trace_copy *out = fill_copy(pass, TRANSFER(copy), &record);
    if (!out)
        return;
    out->from = memory_of(GET(copy, from));
    out->to = memory_of(GET(copy, to));
    hec_out_write(&record, HEC_TRACE_COPY);
}

static void peer(const struct pass *pass) {
    struct hec_ring_record record = {.flags = HEC_TRACE_PEER};
    struct hec_trace_copy *out = device_sane(GET(peer, to_device)) ? fill_copy(pass, TRANSFER(peer), &record) : NULL;
    if (!out)
        return;
    out->peer = (uint16_t)GET(peer, to_device);
    out->from = memory_of(GET(peer, from));
    out->to = memory_of(GET(peer, to));
    hec_out_write(&record, HEC_TRACE_COPY);
}

static void set(const struct pass *pass) {
    struct hec_ring_record record = {0};
    struct hec_trace_copy *out = fill_copy(pass, TRANSFER(memset), &record);
    if (!out)
        return;
    out->to = memory_of(GET(memset, memory));
    hec_out_write(&record, HEC_TRACE_MEMSET);
}
#undef GET
#undef TRANSFER

static void graph(const struct pass *pass) {
#define GET(field) HEC_CUPTI_GET(pass->bytes, graph, field)
    struct hec_ring_record record = {.flags = HEC_TRACE_IN_GRAPH};
    struct hec_trace_graph *out = &hec_out_payload(&record)->graph;
    if (!device_sane(GET(device)) || !times(pass, GET(start), GET(end), &record, &out->duration_ns))
        return;
    out->correlation = GET(correlation);
    out->stream = GET(stream);
    out->context = GET(context);
    out->graph = GET(graph);
    out->device = (uint16_t)GET(device);
    device_done(&record, out->context, out->stream);
    hec_out_write(&record, HEC_TRACE_GRAPH_LAUNCH);
#undef GET
}

static void one(const struct pass *pass, size_t left) {
    uint32_t kind;
    memcpy(&kind, pass->bytes, sizeof kind);
    size_t needed = kind == HEC_CUPTI_CONCURRENT_KERNEL || kind == HEC_CUPTI_KERNEL ? hec_cupti_bytes_kernel
                    : kind == HEC_CUPTI_MEMCPY                                      ? hec_cupti_bytes_copy
                    : kind == HEC_CUPTI_MEMCPY2                                     ? hec_cupti_bytes_peer
                    : kind == HEC_CUPTI_MEMSET                                      ? hec_cupti_bytes_memset
                    : kind == HEC_CUPTI_GRAPH_TRACE                                 ? hec_cupti_bytes_graph
                                                                                    : SIZE_MAX;
    if (needed > left) { /* a kind that we did not enable, or one that reaches over the end */
        count(&totals.bad, 1);
        return;
    }
    switch (kind) {
    case HEC_CUPTI_CONCURRENT_KERNEL:
    case HEC_CUPTI_KERNEL:
        kernel(pass);
        break;
    case HEC_CUPTI_MEMCPY:
        copy(pass);
        break;
    case HEC_CUPTI_MEMCPY2:
        peer(pass);
        break;
    case HEC_CUPTI_MEMSET:
        set(pass);
        break;
    case HEC_CUPTI_GRAPH_TRACE:
        graph(pass);
        break;
    }
}

void hec_records_parse(const struct hec_cupti *cupti, uint8_t *buffer, size_t valid) {
    struct pass pass = {.now_ns = hec_out_now_ns()};
    hec_clock_copy(&pass.clock);
    uint8_t *record = NULL;
    hec_out_lock();
    if (first_ns == 0)
        first_ns = pass.clock.count > 0 ? pass.clock.ours[0] : pass.now_ns;
    hec_device_report();
    hec_intern_epoch();
    for (;;) {
        uint32_t result = cupti->ActivityGetNextRecord(buffer, valid, &record);
        if (result == HEC_CUPTI_MAX_LIMIT_REACHED)
            break;
        if (result != HEC_CUPTI_SUCCESS || !record || record < buffer || record + sizeof(uint32_t) > buffer + valid) {
            count(result == HEC_CUPTI_INVALID_KIND && __atomic_load_n(&forced, __ATOMIC_RELAXED) ? &totals.dropped
                                                                                                 : &totals.bad,
                  1);
            break; /* where the next one begins is not known */
        }
        pass.bytes = record;
        one(&pass, (size_t)(buffer + valid - record));
    }
    hec_out_unlock();
}

#define STREAMS 64u

static struct {
    int64_t open_ns;
    uint32_t streams;
    struct {
        uint32_t context, stream;
        int64_t start_ns;
    } first[STREAMS];
} lead;

void hec_lead_reset(int64_t open_ns) {
    lead.open_ns = open_ns;
    lead.streams = 0;
}

void hec_lead_device(uint32_t context, uint32_t stream, int64_t start_ns) {
    uint32_t at = 0;
    while (at < lead.streams && (lead.first[at].context != context || lead.first[at].stream != stream))
        at++;
    if (at == STREAMS || (at < lead.streams && lead.first[at].start_ns <= start_ns))
        return;
    if (at == lead.streams)
        lead.streams++;
    lead.first[at].context = context;
    lead.first[at].stream = stream;
    lead.first[at].start_ns = start_ns;
}

int64_t hec_lead_complete_ns(int64_t limit_ns) {
    int64_t complete = lead.open_ns;
    for (uint32_t i = 0; i < lead.streams; i++)
        if (lead.first[i].start_ns > complete && lead.first[i].start_ns <= limit_ns)
            complete = lead.first[i].start_ns;
    return complete;
}
