/* Functions in front of a driver of our own: every row of trampolines.def hands its arguments through, those on the stack
 * too, and what the driver returns; lookups give trampolines, but to the driver's own modules. */
#include "tracer/tracer.h"
#include "tracer/trampolines.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "trace_ring.h"
#include "unit.h"

/* As in the tracer: a launch by configuration is reported with the stream that is in it. */
struct launch_config {
    unsigned dimensions[7];
    void *stream;
};

#define ARGUMENTS_MAX 12
#define PINNED UINT64_C(0x7000000)

/* What came to the driver, and what it answers. */
static struct {
    const char *name;
    uint64_t value[ARGUMENTS_MAX];
    size_t bytes[ARGUMENTS_MAX];
    int count, result, calls;
} got;

/* BYTES(a), BYTES(b), ... of a row's arguments, of which there are up to eleven, or none. */
#define BYTES(x) sizeof(x)
#define EACH_1(f, x) f(x)
#define EACH_2(f, x, ...) f(x), EACH_1(f, __VA_ARGS__)
#define EACH_3(f, x, ...) f(x), EACH_2(f, __VA_ARGS__)
#define EACH_4(f, x, ...) f(x), EACH_3(f, __VA_ARGS__)
#define EACH_5(f, x, ...) f(x), EACH_4(f, __VA_ARGS__)
#define EACH_6(f, x, ...) f(x), EACH_5(f, __VA_ARGS__)
#define EACH_7(f, x, ...) f(x), EACH_6(f, __VA_ARGS__)
#define EACH_8(f, x, ...) f(x), EACH_7(f, __VA_ARGS__)
#define EACH_9(f, x, ...) f(x), EACH_8(f, __VA_ARGS__)
#define EACH_10(f, x, ...) f(x), EACH_9(f, __VA_ARGS__)
#define EACH_11(f, x, ...) f(x), EACH_10(f, __VA_ARGS__)
#define PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, each, ...) each
#define EACH(f, ...)                                                                                                   \
    PICK(__VA_ARGS__, EACH_11, EACH_10, EACH_9, EACH_8, EACH_7, EACH_6, EACH_5, EACH_4, EACH_3, EACH_2, EACH_1, )      \
    (f, __VA_ARGS__)
#define SIZES(...)                                                                                                     \
    { __VA_OPT__(EACH(BYTES, __VA_ARGS__), ) 0 }

typedef int (*any)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                   uint64_t, uint64_t);

static int answer(const char *name, const uint64_t *value) {
    got.name = name;
    memcpy(got.value, value, sizeof got.value);
    got.calls++;
    return got.result;
}

static int measure(int count, const size_t *bytes) {
    got.count = count;
    memcpy(got.bytes, bytes, (size_t)count * sizeof *bytes);
    return 0;
}

/* The driver takes its arguments as they lie, whatever the row says of their order; beside it, how long each is. */
#define FAKE(name_, parameters, arguments)                                                                             \
    static int driver_##name_(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,      \
                              uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l) {                            \
        return answer(#name_, (const uint64_t[ARGUMENTS_MAX]){a, b, c, d, e, f, g, h, i, j, k, l});                    \
    }                                                                                                                  \
    static int measure_##name_ parameters {                                                                            \
        const size_t sizes_[] = SIZES arguments;                                                                       \
        return measure((int)(sizeof sizes_ / sizeof sizes_[0]) - 1, sizes_);                                           \
    }
#define LAUNCH(name, class, parameters, arguments, amount, stream) FAKE(name, parameters, arguments)
#define CALL(name, class, parameters, arguments, amount, stream, from, to) FAKE(name, parameters, arguments)
#define MOVE(name, parameters, arguments, context) FAKE(name, parameters, arguments)
#define GRAPH(name, parameters, arguments, graph) FAKE(name, parameters, arguments)
#define NAMES(name, parameters, arguments, note) FAKE(name, parameters, arguments)
#include "tracer/trampolines.def"
#undef LAUNCH
#undef CALL
#undef MOVE
#undef GRAPH
#undef NAMES

enum { NOTED = -1 }; /* nothing is recorded of it */
static const struct {
    const char *name;
    void *driver, *measure;
    int call_class;
} rows[] = {
#define LAUNCH(name, class, ...) {#name, (void *)driver_##name, (void *)measure_##name, HEC_TRACE_CALL_##class},
#define CALL(name, class, ...) {#name, (void *)driver_##name, (void *)measure_##name, HEC_TRACE_CALL_##class},
#define MOVE(name, ...) {#name, (void *)driver_##name, (void *)measure_##name, NOTED},
#define GRAPH(name, ...) MOVE(name)
#define NAMES(name, ...) MOVE(name)
#include "tracer/trampolines.def"
#undef LAUNCH
#undef CALL
#undef MOVE
#undef GRAPH
#undef NAMES
};
#define ROWS (sizeof rows / sizeof rows[0])

static int current_device, contexts = 1;

static int get_device(int *device) {
    *device = current_device;
    return 0;
}

static int get_context(void **context) {
    *context = contexts ? &contexts : NULL;
    return 0;
}

static int get_nodes(void *graph, void **nodes, size_t *count) {
    assert_null(nodes);
    *count = (size_t)(uintptr_t)graph;
    return graph == (void *)0xbad;
}

/* Pinned memory lies at one address; what the driver does not know is pageable. */
static int get_attribute(void *out_type, int attribute, uint64_t address) {
    assert_int_equal(attribute, 2);
    if (address != PINNED)
        return 1;
    *(unsigned *)out_type = 1;
    return 0;
}

static int get_address(const char *symbol, void **found, int version, uint64_t flags, void *status) {
    if (version != 12345 || flags != UINT64_C(0x123456789ab) || (status && *(int *)status != 99))
        return 77;
    *found = NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, symbol) == 0)
            *found = rows[i].driver;
    if (strcmp(symbol, "cuSomethingElse") == 0)
        *found = (void *)get_device;
    return *found ? 0 : 500;
}

static int get_address_v1(const char *symbol, void **found, int version, uint64_t flags) {
    return get_address(symbol, found, version, flags, NULL);
}

static int set_up(void **state) {
    (void)state;
    ring_open();
    for (size_t i = 0; i < ROWS; i++)
        hec_trampolines_set_real(hec_trampolines_row(rows[i].name), rows[i].driver);
    hec_trampolines_set_real(hec_trampolines_row("cuCtxGetDevice"), (void *)get_device);
    hec_trampolines_set_real(hec_trampolines_row("cuCtxGetCurrent"), (void *)get_context);
    hec_trampolines_set_real(hec_trampolines_row("cuGraphGetNodes"), (void *)get_nodes);
    hec_trampolines_set_real(hec_trampolines_row("cuPointerGetAttribute"), (void *)get_attribute);
    hec_trampolines_set_real(hec_trampolines_row("cuGetProcAddress"), (void *)get_address_v1);
    hec_trampolines_set_real(hec_trampolines_row("cuGetProcAddress_v2"), (void *)get_address);
    hec_callers_forget();
    hec_callers_open();
    hec_callers_single(true);
    hec_callers_record(true);
    current_device = 1;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hec_callers_forget();
    ring_close();
    return 0;
}

static struct launch_config config = {.stream = (void *)0x5151};

/* A different value in each place, with something in each byte; the first is a pointer that may be followed. */
static uint64_t value_of(int place) {
    return place == 0 ? (uint64_t)(uintptr_t)&config : UINT64_C(0x0101010101010101) * (uint64_t)(0x10 + place);
}

static int call_through(void *front) {
    return ((any)front)(value_of(0), value_of(1), value_of(2), value_of(3), value_of(4), value_of(5), value_of(6),
                        value_of(7), value_of(8), value_of(9), value_of(10), value_of(11));
}

static void assert_went_through(size_t row) {
    call_through(rows[row].measure);
    if (got.calls != 1 || strcmp(got.name, rows[row].name) != 0)
        fail_msg("%s: %d calls of %s", rows[row].name, got.calls, got.name ? got.name : "nothing");
    for (int i = 0; i < got.count; i++) {
        uint64_t mask = got.bytes[i] == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * got.bytes[i]) - 1;
        if ((got.value[i] ^ value_of(i)) & mask)
            fail_msg("%s: argument %d is %llx", rows[row].name, i, (unsigned long long)got.value[i]);
    }
}

TEST(test_rows) {
    size_t calls = 0;
    int most = 0;
    read_ring();
    for (size_t i = 0; i < ROWS; i++) {
        void *front = hec_trampolines_of(hec_trampolines_row(rows[i].name));
        assert_non_null(front);
        assert_ptr_not_equal(front, rows[i].driver);
        memset(&got, 0, sizeof got);
        got.result = 1000 + (int)i;
        assert_int_equal(call_through(front), 1000 + (int)i);
        assert_went_through(i);
        most = got.count > most ? got.count : most;
        calls += rows[i].call_class != NOTED;
        read_ring();
        assert_int_equal(count(HEC_TRACE_CALL), rows[i].call_class != NOTED);
        if (rows[i].call_class == NOTED)
            continue;
        struct hec_trace_call call = payload(nth(HEC_TRACE_CALL, 0)).call;
        assert_int_equal(call.call_class, rows[i].call_class);
        assert_int_equal(call.result, 1000 + (int)i);
        assert_int_equal(nth(HEC_TRACE_CALL, 0)->tid, syscall(SYS_gettid));
    }
    assert_int_equal(most, 11);
    assert_int_equal(calls,
                     ROWS - 3 - 9 - 3); /* three change the context, nine make a graph, three look for a kernel */
    struct hec_callers_totals totals;
    hec_callers_read(&totals);
    assert_int_equal(totals.calls, calls);
    /* and the same where nothing is recorded */
    hec_callers_record(false);
    for (size_t i = 0; i < ROWS; i++) {
        memset(&got, 0, sizeof got);
        got.result = 2000 + (int)i;
        assert_int_equal(call_through(hec_trampolines_of(hec_trampolines_row(rows[i].name))), 2000 + (int)i);
        assert_went_through(i);
    }
    read_ring();
    assert_int_equal(count(HEC_TRACE_CALL), 0);
}

static struct hec_trace_call recorded(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    memset(&got, 0, sizeof got);
    ((any)hec_trampolines_of(hec_trampolines_row(name)))(a, b, c, d, 0, 0, 0, 0, 0x88, 0, 0, 0);
    read_ring();
    assert_int_equal(count(HEC_TRACE_CALL), 1);
    return payload(nth(HEC_TRACE_CALL, 0)).call;
}

TEST(test_what_is_recorded) {
    read_ring();
    struct hec_trace_call call = recorded("cuMemcpyHtoDAsync_v2", 0x1000, PINNED, 4096, 0x77);
    assert_int_equal(call.amount, 4096);
    assert_int_equal(call.stream, 0x77);
    assert_int_equal(call.from, HEC_TRACE_MEMORY_PINNED);
    assert_int_equal(call.to, HEC_TRACE_MEMORY_DEVICE);
    call = recorded("cuMemcpyDtoH_v2", 0x2000, 0x1000, 123, 0);
    assert_int_equal(call.from, HEC_TRACE_MEMORY_DEVICE);
    assert_int_equal(call.to, HEC_TRACE_MEMORY_PAGEABLE);
    call = recorded("cuMemcpy", PINNED, 0x2000, 1, 0);
    assert_int_equal(call.from, HEC_TRACE_MEMORY_PAGEABLE);
    assert_int_equal(call.to, HEC_TRACE_MEMORY_PINNED);
    call = recorded("cuMemsetD32Async", 0x1000, 0, 100, 0x99);
    assert_int_equal(call.amount, 400);
    assert_int_equal(call.stream, 0x99);
    call = recorded("cuLaunchKernel", 0xabc, 1, 1, 1);
    assert_int_equal(call.amount, 0xabc);
    assert_int_equal(call.stream, 0x88);
    call = recorded("cuLaunchKernelEx", (uint64_t)(uintptr_t)&config, 0xdef, 0, 0);
    assert_int_equal(call.amount, 0xdef);
    assert_int_equal(call.stream, 0x5151);
    call = recorded("cuEventSynchronize", 0x1, 0, 0, 0);
    assert_int_equal(call.from, HEC_TRACE_WAIT_EVENT);
    call = recorded("cuStreamSynchronize_ptsz", 0x66, 0, 0, 0);
    assert_int_equal(call.from, HEC_TRACE_WAIT_STREAM);
    assert_int_equal(call.stream, 0x66);
    call = recorded("cuCtxSynchronize", 0, 0, 0, 0);
    assert_int_equal(call.from, HEC_TRACE_WAIT_CONTEXT);
    call = recorded("cuMemAlloc_v2", 0x1000, 1 << 20, 0, 0);
    assert_int_equal(call.amount, 1 << 20);
    assert_int_equal(call.device, 1);
    /* another context */
    current_device = 2;
    assert_int_equal(recorded("cuMemAlloc_v2", 0, 1, 0, 0).device, 1);
    ((any)hec_trampolines_of(hec_trampolines_row("cuCtxSetCurrent")))(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    assert_int_equal(recorded("cuMemAlloc_v2", 0, 1, 0, 0).device, 2);
    contexts = 0;
    assert_false(hec_trampolines_context());
    contexts = 1;
    assert_true(hec_trampolines_context());
}

/* What of graphs is known after this call: which place is the graph's, and how many nodes it has. */
static uint64_t nodes_after(const char *name, uint64_t graph, int result) {
    struct hec_callers_totals totals;
    memset(&got, 0, sizeof got);
    got.result = result;
    ((any)hec_trampolines_of(hec_trampolines_row(name)))(0x1000, graph, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    hec_callers_read(&totals);
    return totals.graph_nodes;
}

TEST(test_graphs) {
    struct hec_callers_totals totals;
    hec_callers_read(&totals);
    assert_int_equal(totals.graph_nodes, 0);
    assert_int_equal(nodes_after("cuStreamBeginCapture_v2", 1, 900), 0); /* it failed */
    assert_int_equal(nodes_after("cuStreamBeginCapture_v2", 1, 0), 1);
    assert_int_equal(nodes_after("cuGraphInstantiateWithFlags", 70, 0), 70);
    assert_int_equal(nodes_after("cuGraphInstantiate_v2", 60, 0), 70); /* of the largest */
    assert_int_equal(nodes_after("cuGraphInstantiateWithParams", 80, 0), 80);
    assert_int_equal(nodes_after("cuGraphInstantiateWithParams", 90, 1), 80);
    assert_int_equal(nodes_after("cuGraphInstantiateWithParams", 0xbad, 0), HEC_GRAPH_NODES_UNKNOWN);
    hec_callers_forget(); /* in a child */
    hec_callers_read(&totals);
    assert_int_equal(totals.graph_nodes, 0);
}

/* The driver gives a kernel's handle for a name, or for another handle of it. */
static const char *named_after(const char *name, uint64_t handle, const void *by, bool by_name, int result) {
    memset(&got, 0, sizeof got);
    got.result = result;
    ((any)hec_trampolines_of(hec_trampolines_row(name)))((uint64_t)(uintptr_t)&handle,
                                                         by_name ? 7 : (uint64_t)(uintptr_t)by, (uint64_t)(uintptr_t)by,
                                                         0, 0, 0, 0, 0, 0, 0, 0, 0);
    return hec_functions_name(handle);
}

TEST(test_names_of_kernels) {
    static char longest[600];
    memset(longest, 'x', sizeof longest - 1);
    assert_null(named_after("cuModuleGetFunction", 0x10, "before the table", true, 0));
    assert_int_equal(hec_functions_open(), 0);
    assert_null(named_after("cuModuleGetFunction", 0x10, "not found", true, 500));
    assert_string_equal(named_after("cuModuleGetFunction", 0x10, "one", true, 0), "one");
    assert_string_equal(named_after("cuModuleGetFunction", 0x20, "one_and_more", true, 0), "one_and_more");
    assert_string_equal(named_after("cuLibraryGetKernel", 0x30, "of a library", true, 0), "of a library");
    assert_string_equal(named_after("cuKernelGetFunction", 0x40, (void *)0x30, false, 0), "of a library");
    assert_null(named_after("cuKernelGetFunction", 0x50, (void *)0x3f, false, 0)); /* of a kernel without a name */
    assert_null(named_after("cuModuleGetFunction", 0x60, "", true, 0));
    /* a handle of another module: the last name counts */
    assert_string_equal(named_after("cuModuleGetFunction", 0x20, "one", true, 0), "one");
    assert_string_equal(named_after("cuModuleGetFunction", 0x10, "one_and", true, 0), "one_and");
    assert_int_equal(strlen(named_after("cuModuleGetFunction", 0x70, longest, true, 0)), 511);
    assert_null(hec_functions_name(0));
    /* no room: a handle that has a name does not keep the wrong one */
    for (uint64_t i = 0; i < 20000; i++) {
        char name[64];
        snprintf(name, sizeof name, "kernel %d", (int)i);
        const char *known = named_after("cuModuleGetFunction", 0x10000 + 256 * i, name, true, 0);
        assert_true(i < 8000 ? strcmp(known, name) == 0 : !known || strcmp(known, name) == 0);
    }
    assert_null(hec_functions_name(0x10000 + 256 * 19999));
    assert_string_equal(named_after("cuModuleGetFunction", 0x30, "another", true, 0), "");
    assert_string_equal(hec_functions_name(0x40), "of a library");
    hec_functions_forget();
    assert_null(hec_functions_name(0x40));
}

static void *looked_up(bool second, const char *symbol, int expected) {
    void *found = &contexts;
    int status = 99;
    void *front = hec_trampolines_of(hec_trampolines_row(second ? "cuGetProcAddress_v2" : "cuGetProcAddress"));
    int result =
        second ? ((int (*)(const char *, void **, int, uint64_t, void *))front)(symbol, &found, 12345,
                                                                                UINT64_C(0x123456789ab), &status)
               : ((int (*)(const char *, void **, int, uint64_t))front)(symbol, &found, 12345, UINT64_C(0x123456789ab));
    assert_int_equal(result, expected);
    return found;
}

TEST(test_lookups) {
    extern const char __executable_start[], etext[];
    for (int second = 0; second < 2; second++) {
        for (size_t i = 0; i < ROWS; i++)
            assert_ptr_equal(looked_up(second, rows[i].name, 0), hec_trampolines_of(hec_trampolines_row(rows[i].name)));
        assert_ptr_equal(looked_up(second, "cuSomethingElse", 0), (void *)get_device);
        assert_null(looked_up(second, "cuNothing", 500));
    }
    for (size_t i = 0; i < ROWS; i++)
        assert_ptr_equal(hec_trampolines_in_front(rows[i].driver),
                         hec_trampolines_of(hec_trampolines_row(rows[i].name)));
    /* getters have none, and what is no function of the driver neither */
    assert_null(hec_trampolines_of(hec_trampolines_row("cuCtxGetDevice")));
    assert_ptr_equal(hec_trampolines_in_front((void *)get_device), (void *)get_device);
    assert_null(hec_trampolines_in_front(NULL));
    /* ranges that are somebody else's change nothing; then this program is a module of the driver */
    hec_trampolines_plain_caller(16, 4096);
    assert_ptr_not_equal(looked_up(true, "cuLaunchKernel", 0), (void *)driver_cuLaunchKernel);
    hec_trampolines_plain_caller((uintptr_t)__executable_start, (uintptr_t)etext);
    for (int second = 0; second < 2; second++)
        for (size_t i = 0; i < ROWS; i++)
            assert_ptr_equal(looked_up(second, rows[i].name, 0), rows[i].driver);
}

TEST(test_names) {
    assert_int_equal(hec_trampolines_count(), ROWS + 6); /* lookups and getters */
    for (uint32_t row = 0; row < hec_trampolines_count(); row++)
        assert_int_equal(hec_trampolines_row(hec_trampolines_name(row)), row);
    assert_string_equal(hec_trampolines_name(hec_trampolines_count()), "");
    assert_null(hec_trampolines_of(hec_trampolines_count()));
    hec_trampolines_set_real(hec_trampolines_count(), NULL);
}

EACH_TEST(set_up, tear_down)
