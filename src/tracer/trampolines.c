#include "tracer/trampolines.h"

#include "tracer/callers.h"
#include "tracer/tracer.h"

#include <string.h>

/* CUlaunchConfig, as far as it is read here. */
struct launch_config {
    unsigned dimensions[7];
    void *stream;
};

#define MEMORY_TYPE 2 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
enum { TYPE_HOST = 1, TYPE_DEVICE = 2, TYPE_ARRAY = 3, TYPE_UNIFIED = 4 };

/* Getters of the driver, for the tracer itself. */
static int (*pointer_attribute)(void *out, int attribute, uint64_t pointer);
static int (*context_current)(void **context);
static int (*context_device)(int *device);
static int (*graph_nodes)(void *graph, void **nodes, size_t *count);

static uint8_t memory_at(uint64_t address) {
    static const uint8_t kinds[] = {[TYPE_HOST] = HEC_TRACE_MEMORY_PINNED,
                                    [TYPE_DEVICE] = HEC_TRACE_MEMORY_DEVICE,
                                    [TYPE_ARRAY] = HEC_TRACE_MEMORY_ARRAY,
                                    [TYPE_UNIFIED] = HEC_TRACE_MEMORY_MANAGED};
    unsigned type = 0;
    if (!pointer_attribute)
        return HEC_TRACE_MEMORY_UNKNOWN;
    if (pointer_attribute(&type, MEMORY_TYPE, address) != 0)
        return HEC_TRACE_MEMORY_PAGEABLE; /* the driver does not know it */
    return type < sizeof kinds ? kinds[type] : HEC_TRACE_MEMORY_UNKNOWN;
}

/* Those of a graph within it count as one. Of a graph that is still being captured there are none yet. */
static size_t nodes_of(void *graph) {
    size_t count = 0;
    if (!graph)
        return 0;
    return graph_nodes && graph_nodes(graph, NULL, &count) == 0 ? count : HEC_GRAPH_NODES_UNKNOWN;
}

bool hec_trampolines_context(void) {
    void *context = NULL;
    return context_current && context_current(&context) == 0 && context;
}

uint16_t hec_trampolines_device(void) {
    int device;
    bool known = context_device && context_device(&device) == 0 && device >= 0 && device < HEC_TRACE_DEVICE_UNKNOWN;
    return known ? (uint16_t)device : HEC_TRACE_DEVICE_UNKNOWN;
}

/* ---- the driver's functions ---- */

enum row {
#define LAUNCH(name, ...) ROW_##name,
#define CALL(name, ...) ROW_##name,
#define MOVE(name, ...) ROW_##name,
#define GRAPH(name, ...) ROW_##name,
#define NAMES(name, ...) ROW_##name,
#include "tracer/trampolines.def"
#undef LAUNCH
#undef CALL
#undef MOVE
#undef GRAPH
#undef NAMES
    ROW_cuGetProcAddress,
    ROW_cuGetProcAddress_v2,
    ROW_GETTERS, /* from here on nothing stands in front */
    ROW_cuPointerGetAttribute = ROW_GETTERS,
    ROW_cuCtxGetCurrent,
    ROW_cuCtxGetDevice,
    ROW_cuGraphGetNodes,
    ROWS
};
_Static_assert(ROWS <= HEC_TRAMPOLINES_MAX, "every row has a name in the ring");

/* What a launch that joins no burst is recorded by: kept out of the way of the others. */
static __attribute__((noinline, cold)) void alone(struct hec_caller *caller, uint64_t begin, uint64_t end, unsigned row,
                                                  unsigned call_class, int result, uint64_t amount, uint64_t stream) {
    hec_caller_alone(caller, begin, end,
                     &(struct hec_caller_call){.amount = amount,
                                               .stream = stream,
                                               .function = row,
                                               .result = result,
                                               .call_class = (enum hec_trace_call_class)call_class});
}

#define LAUNCH(name, class, parameters, arguments, amount_, stream_)                                                   \
    static int(*real_##name) parameters;                                                                               \
    static int front_##name parameters {                                                                               \
        struct hec_caller *caller = hec_caller_enter();                                                                \
        if (!caller)                                                                                                   \
            return real_##name arguments;                                                                              \
        uint64_t begin = hec_caller_now();                                                                             \
        int result = real_##name arguments;                                                                            \
        uint64_t end = hec_caller_now();                                                                               \
        if (!hec_caller_joined(caller, begin, end, HEC_TRACE_CALL_##class == HEC_TRACE_CALL_GRAPH))                    \
            alone(caller, begin, end, ROW_##name, HEC_TRACE_CALL_##class, result, (uint64_t)(uintptr_t)(amount_),      \
                  (uint64_t)(uintptr_t)(stream_));                                                                     \
        return result;                                                                                                 \
    }
#define CALL(name, class, parameters, arguments, amount_, stream_, from_, to_)                                         \
    static int(*real_##name) parameters;                                                                               \
    static int front_##name parameters {                                                                               \
        struct hec_caller *caller = hec_caller_enter();                                                                \
        if (!caller)                                                                                                   \
            return real_##name arguments;                                                                              \
        uint64_t begin = hec_caller_now();                                                                             \
        if (HEC_TRACE_CALL_##class == HEC_TRACE_CALL_SYNC)                                                             \
            __atomic_store_n(&caller->waiting_since, begin, __ATOMIC_RELAXED);                                         \
        int result = real_##name arguments;                                                                            \
        struct hec_caller_call call = {.amount = (uint64_t)(amount_),                                                  \
                                       .stream = (uint64_t)(uintptr_t)(stream_),                                       \
                                       .function = ROW_##name,                                                         \
                                       .result = result,                                                               \
                                       .call_class = HEC_TRACE_CALL_##class};                                          \
        uint64_t end = hec_caller_now();                                                                               \
        call.from = (from_);                                                                                           \
        call.to = (to_);                                                                                               \
        hec_caller_leave(caller, begin, end, &call);                                                                   \
        return result;                                                                                                 \
    }
#define MOVE(name, parameters, arguments, context_)                                                                    \
    static int(*real_##name) parameters;                                                                               \
    static int front_##name parameters {                                                                               \
        int result = real_##name arguments;                                                                            \
        hec_caller_moved(result == 0 ? (context_) : NULL);                                                             \
        return result;                                                                                                 \
    }
#define GRAPH(name, parameters, arguments, graph_)                                                                     \
    static int(*real_##name) parameters;                                                                               \
    static int front_##name parameters {                                                                               \
        int result = real_##name arguments;                                                                            \
        if (result == 0)                                                                                               \
            hec_callers_graph_made(nodes_of(graph_));                                                                  \
        return result;                                                                                                 \
    }
#define NAMES(name, parameters, arguments, note_)                                                                      \
    static int(*real_##name) parameters;                                                                               \
    static int front_##name parameters {                                                                               \
        int result = real_##name arguments;                                                                            \
        if (result == 0)                                                                                               \
            note_;                                                                                                     \
        return result;                                                                                                 \
    }
#include "tracer/trampolines.def"
#undef LAUNCH
#undef CALL
#undef MOVE
#undef GRAPH
#undef NAMES

/* ---- lookups ---- */

#define PLAIN_MAX 16u
static struct { uintptr_t start, end; } plain[PLAIN_MAX];
static uint32_t plain_count;

void hec_trampolines_plain_caller(uintptr_t start, uintptr_t end) {
    if (plain_count == PLAIN_MAX)
        return;
    plain[plain_count].start = start;
    plain[plain_count].end = end;
    __atomic_store_n(&plain_count, plain_count + 1, __ATOMIC_RELEASE);
}

static void look_up(void **found, uintptr_t caller) {
    uint32_t count = __atomic_load_n(&plain_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (caller >= plain[i].start && caller < plain[i].end)
            return;
    if (found && *found)
        *found = hec_trampolines_in_front(*found);
}

static int (*real_cuGetProcAddress)(const char *symbol, void **out, int version, uint64_t flags);
static int front_cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags) {
    int result = real_cuGetProcAddress(symbol, out, version, flags);
    if (result == 0)
        look_up(out, (uintptr_t)__builtin_return_address(0));
    return result;
}

static int (*real_cuGetProcAddress_v2)(const char *symbol, void **out, int version, uint64_t flags, void *status);
static int front_cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, void *status) {
    int result = real_cuGetProcAddress_v2(symbol, out, version, flags, status);
    if (result == 0)
        look_up(out, (uintptr_t)__builtin_return_address(0));
    return result;
}

/* ---- the table ---- */

static const struct trampoline {
    const char *name;
    void **real;
    void *front;
} table[ROWS] = {
#define LAUNCH(name, ...) [ROW_##name] = {#name, (void **)&real_##name, (void *)front_##name},
#define CALL(name, ...) LAUNCH(name)
#define MOVE(name, ...) LAUNCH(name)
#define GRAPH(name, ...) LAUNCH(name)
#define NAMES(name, ...) LAUNCH(name)
#include "tracer/trampolines.def"
    LAUNCH(cuGetProcAddress) LAUNCH(cuGetProcAddress_v2)
#undef LAUNCH
#undef CALL
#undef MOVE
#undef GRAPH
#undef NAMES
        [ROW_cuPointerGetAttribute] = {"cuPointerGetAttribute", (void **)&pointer_attribute, NULL},
    [ROW_cuCtxGetCurrent] = {"cuCtxGetCurrent", (void **)&context_current, NULL},
    [ROW_cuCtxGetDevice] = {"cuCtxGetDevice", (void **)&context_device, NULL},
    [ROW_cuGraphGetNodes] = {"cuGraphGetNodes", (void **)&graph_nodes, NULL},
};

uint32_t hec_trampolines_count(void) {
    return ROWS;
}

const char *hec_trampolines_name(uint32_t row) {
    return row < ROWS ? table[row].name : "";
}

uint32_t hec_trampolines_row(const char *name) {
    for (uint32_t row = 0; row < ROWS; row++)
        if (strcmp(table[row].name, name) == 0)
            return row;
    return 0;
}

void *hec_trampolines_of(uint32_t row) {
    return row < ROWS ? table[row].front : NULL;
}

void hec_trampolines_set_real(uint32_t row, void *real) {
    if (row < ROWS)
        __atomic_store_n(table[row].real, real, __ATOMIC_RELEASE);
}

static void *real_of(uint32_t row) {
    return row < ROWS ? __atomic_load_n(table[row].real, __ATOMIC_ACQUIRE) : NULL;
}

void *hec_trampolines_in_front(void *real) {
    for (uint32_t row = 0; row < ROW_GETTERS; row++)
        if (real && real_of(row) == real)
            return table[row].front;
    return real;
}
