/* The self-test on a CUDA that a table of functions plays: what comes out of known times, and what of faults. Time is
 * virtual. Device memory is host memory. */
#include "driver/cuda_bench.h"

#include "base/clock.h"
#include "diagnose/meter/sensor_response.h"
#include "driver/cuda_kernel.h"
#include "unit.h"

enum { SMS = 2, LAUNCH_NS = 2000, SYNC_NS = 300, CLOCK_MHZ = 1500 };
#define OPERATIONS_PER_S 50e12
#define DRAM_PER_S 10e9 /* a round of 8 MiB takes long, so that few are copied here */
#define PCIE_PER_S 20e9

static int64_t now_ns, device_ns; /* the host's time, and when the device is done */
static int capability;
static size_t device_bytes; /* free */
static int module_code;     /* what loading a module with wgmma in it returns */
static int launch_code;
static double wrong_by;
static bool no_host_memory;
static int reported[HEC_PEAK_COUNT];
static char last_reported[200];

static int64_t mono(void) {
    return now_ns;
}

/* A module is the index of its kernel + 1; that of memory has the number behind the last. */
static uintptr_t modules_of(const char *image) {
    for (int i = 0; i < hec_cuda_kernel_count(); i++) {
        struct hec_buf ptx;
        hec_buf_init(&ptx, 1u << 20);
        assert_int_equal(hec_cuda_kernel_ptx(i, &ptx), HEC_OK);
        int same = strcmp(hec_buf_text(&ptx), image) == 0;
        hec_buf_free(&ptx);
        if (same)
            return (uintptr_t)i + 1;
    }
    assert_string_equal(image, hec_cuda_memory_ptx);
    return (uintptr_t)hec_cuda_kernel_count() + 1;
}

static int fake_module_load(hec_cuda_module *module, const void *image) {
    if (module_code && strstr(image, "wgmma"))
        return module_code;
    *module = (hec_cuda_module)modules_of(image);
    return 0;
}

static int fake_module_unload(hec_cuda_module module) {
    assert_non_null(module);
    return 0;
}

enum { READ = 1000, COPY, EMPTY };

static int fake_module_function(hec_cuda_function *function, hec_cuda_module module, const char *name) {
    uintptr_t id = (uintptr_t)module;
    if (strcmp(name, HEC_CUDA_KERNEL_NAME) != 0)
        id = strcmp(name, HEC_CUDA_READ_NAME) == 0 ? READ : strcmp(name, HEC_CUDA_COPY_NAME) == 0 ? COPY : EMPTY;
    *function = (hec_cuda_function)id;
    return 0;
}

/* ---- a power sensor: none of this is known to what is tested ---- */

#define POWER_MS 60000
static struct sensor {
    double idle_w, load_w, noise_w, window_ms, lag_ms, filter_ms, spacing_ms;
    double busy[POWER_MS], seen[POWER_MS]; /* of each ms: the part that worked; watts after the filter */
    int64_t edges_ns[64];
    int edges, count;
    double next_ms;
    struct hec_sensor_reading readings[4096];
    uint64_t seed;
} power;

static double unit(void) {
    power.seed = power.seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(power.seed >> 11) + 0.5) / 9007199254740992.0;
}

static void work(double seconds) {
    int64_t from = device_ns > now_ns ? device_ns : now_ns;
    device_ns = from + (int64_t)(seconds * 1e9);
    for (int64_t ms = from / 1000000; ms < POWER_MS && ms * 1000000 < device_ns; ms++) {
        int64_t start = ms * 1000000 > from ? ms * 1000000 : from;
        int64_t end = (ms + 1) * 1000000 < device_ns ? (ms + 1) * 1000000 : device_ns;
        power.busy[ms] += (double)(end - start) * 1e-6;
    }
}

static void load(void *context, int64_t t_ns) {
    (void)context;
    assert_true(power.edges < 64);
    power.edges_ns[power.edges++] = t_ns;
}

static void watch(void *context) {
    (void)context;
    now_ns += 20000;
}

/* All that the sensor gave over the wave, and what is made of it. */
static double sensor(void *context, enum hec_peak_kind kind) {
    struct hec_sensor_response response;
    double state = power.idle_w, keep = power.filter_ms > 0 ? exp(-1 / power.filter_ms) : 0;
    (void)context;
    for (int ms = 0; ms < POWER_MS; ms++)
        power.seen[ms] = state =
            keep * state + (1 - keep) * (power.idle_w + power.busy[ms] * (power.load_w - power.idle_w));
    power.count = 0;
    for (double t = 2000; t < (double)now_ns * 1e-6 && power.count < 4096; t += power.spacing_ms) {
        double to = t - power.lag_ms, from = to - power.window_ms, sum = 0;
        for (int i = (int)from; i < to; i++)
            sum += power.seen[i] * (fmin(to, i + 1) - fmax(from, i));
        double normal = sqrt(-2 * log(unit())) * cos(6.283185307179586 * unit());
        if (t * 1e6 > (double)power.edges_ns[0] - 4e8 && unit() > 0.03)
            power.readings[power.count++] =
                (struct hec_sensor_reading){llround(t * 1e6), sum / power.window_ms + power.noise_w * normal};
    }
    if (!hec_sensor_response_fit(power.edges_ns, power.edges, power.readings, power.count, &response))
        return NAN;
    return (double)(kind == HEC_PEAK_SENSOR_WINDOW ? response.window_ns : response.delay_ns);
}

static int fake_launch(hec_cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared, hec_cuda_stream stream, void **parameters,
                       void **extra) {
    (void)grid_y, (void)grid_z, (void)block_y, (void)block_z, (void)shared, (void)stream, (void)extra;
    uintptr_t id = (uintptr_t)function;
    unsigned threads = grid_x * block_x;
    now_ns += LAUNCH_NS;
    if (launch_code || id == EMPTY)
        return launch_code;
    double *out = (double *)(uintptr_t) * (uint64_t *)parameters[0];
    unsigned count = *(unsigned *)parameters[id == READ || id == COPY ? 2 : 1];
    if (id == READ || id == COPY) {
        const char *from = (const char *)(uintptr_t) * (uint64_t *)parameters[1];
        size_t bytes = (size_t)threads * count * HEC_CUDA_ROUND_BYTES;
        if (id == COPY)
            memcpy(out, from, bytes);
        for (unsigned t = 0; id == READ && t < threads; t++)
            out[t] = 16.0 * count * *(const unsigned *)from + wrong_by;
        work((double)bytes * (id == COPY ? 2 : 1) / DRAM_PER_S);
        return 0;
    }
    const struct hec_cuda_kernel *kernel = hec_cuda_kernel_at((int)id - 1);
    double seconds = kernel->operations * grid_x * count / OPERATIONS_PER_S;
    for (unsigned t = 0; t < threads; t++)
        out[t] = kernel->sum_per_iteration * count + wrong_by;
    uint64_t counted[2] = {(uint64_t)(seconds * CLOCK_MHZ * 1e6), (uint64_t)(seconds * 1e9)};
    memcpy(out + threads, counted, sizeof counted);
    work(seconds);
    return 0;
}

static int fake_synchronize(void) {
    now_ns = (device_ns > now_ns ? device_ns : now_ns) + SYNC_NS;
    return 0;
}

static int64_t events[2];
static int event_count;

static int fake_event_create(hec_cuda_event *event, unsigned flags) {
    (void)flags;
    *event = (hec_cuda_event)&events[event_count++ % 2];
    return 0;
}

static int fake_event_destroy(hec_cuda_event event) {
    (void)event;
    event_count--;
    return 0;
}

static int fake_event_record(hec_cuda_event event, hec_cuda_stream stream) {
    (void)stream;
    *(int64_t *)event = device_ns > now_ns ? device_ns : now_ns;
    return 0;
}

static int fake_event_synchronize(hec_cuda_event event) {
    (void)event;
    return fake_synchronize();
}

static int fake_event_elapsed(float *ms, hec_cuda_event start, hec_cuda_event end) {
    *ms = (float)((double)(*(int64_t *)end - *(int64_t *)start) / 1e6);
    return 0;
}

static int allocations;

static int fake_memory_alloc(uint64_t *pointer, size_t bytes) {
    allocations++;
    *pointer = (uint64_t)(uintptr_t)malloc(bytes);
    return *pointer ? 0 : HEC_CUDA_OUT_OF_MEMORY;
}

static int fake_memory_free(uint64_t pointer) {
    allocations--;
    free((void *)(uintptr_t)pointer);
    return 0;
}

static int fake_host_alloc(void **pointer, size_t bytes, unsigned flags) {
    (void)flags;
    if (no_host_memory)
        return HEC_CUDA_OUT_OF_MEMORY;
    allocations++;
    return (*pointer = malloc(bytes)) ? 0 : HEC_CUDA_OUT_OF_MEMORY;
}

static int fake_host_free(void *pointer) {
    allocations--;
    free(pointer);
    return 0;
}

static int fake_memory_info(size_t *free_bytes, size_t *total) {
    *free_bytes = *total = device_bytes;
    return 0;
}

static int fake_memory_set(uint64_t to, unsigned value, size_t count) {
    for (size_t i = 0; i < count; i++)
        ((unsigned *)(uintptr_t)to)[i] = value;
    return 0;
}

static int fake_copy_to_host(void *to, uint64_t from, size_t bytes) {
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}

static int fake_to_host_async(void *to, uint64_t from, size_t bytes, hec_cuda_stream stream) {
    (void)to, (void)from, (void)stream;
    work((double)bytes / PCIE_PER_S);
    return 0;
}

static int fake_to_device_async(uint64_t to, const void *from, size_t bytes, hec_cuda_stream stream) {
    (void)to, (void)from, (void)stream;
    work((double)bytes / PCIE_PER_S);
    return 0;
}

static int fake_attribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == HEC_CUDA_ATTRIBUTE_MAJOR       ? capability / 10
             : attribute == HEC_CUDA_ATTRIBUTE_MINOR     ? capability % 10
             : attribute == HEC_CUDA_ATTRIBUTE_SMS       ? SMS
             : attribute == HEC_CUDA_ATTRIBUTE_L2_BYTES  ? 1 << 20
             : attribute == HEC_CUDA_ATTRIBUTE_CLOCK_KHZ ? 1600000
                                                         : 0;
    return 0;
}

static int fake_retain(hec_cuda_context *context, int device) {
    *context = (hec_cuda_context)(uintptr_t)(device + 1);
    return 0;
}

static int fake_release(int device) {
    (void)device;
    return 0;
}

static int fake_set(hec_cuda_context context) {
    assert_non_null(context);
    return 0;
}

static int fake_error_string(int code, const char **text) {
    *text = "what CUDA says";
    return code ? 0 : 1;
}

static const struct hec_cuda fake = {
    .error_string = fake_error_string,
    .device_attribute = fake_attribute,
    .context_retain = fake_retain,
    .context_release = fake_release,
    .context_set = fake_set,
    .synchronize = fake_synchronize,
    .module_load = fake_module_load,
    .module_unload = fake_module_unload,
    .module_function = fake_module_function,
    .launch = fake_launch,
    .memory_info = fake_memory_info,
    .memory_alloc = fake_memory_alloc,
    .memory_free = fake_memory_free,
    .host_alloc = fake_host_alloc,
    .host_free = fake_host_free,
    .memory_set_32 = fake_memory_set,
    .copy_to_host = fake_copy_to_host,
    .copy_to_host_async = fake_to_host_async,
    .copy_to_device_async = fake_to_device_async,
    .event_create = fake_event_create,
    .event_destroy = fake_event_destroy,
    .event_record = fake_event_record,
    .event_synchronize = fake_event_synchronize,
    .event_elapsed = fake_event_elapsed,
};

static bool lowered;

static bool throttled(void *context) {
    (void)context;
    return lowered;
}

static double watts(void *context, int64_t ns) {
    (void)context;
    now_ns += ns;
    return 75;
}

static void rest(void *context, int64_t ns) {
    (void)context;
    now_ns += ns;
}

static void report(void *context, enum hec_peak_kind kind, const char *why) {
    (void)context;
    reported[kind] += why != NULL;
    if (why)
        snprintf(last_reported, sizeof last_reported, "%s", why);
}

static int setup(void **state) {
    (void)state;
    static const struct hec_clock_source source = {mono, mono};
    hec_clock_set_source(&source);
    now_ns = device_ns = 0;
    capability = 90;
    device_bytes = 32 << 20;
    module_code = launch_code = 0;
    wrong_by = 0;
    no_host_memory = false;
    lowered = false;
    memset(reported, 0, sizeof reported);
    memset(&power, 0, sizeof power);
    power.seed = 1;
    power.idle_w = 100;
    power.load_w = 450;
    power.window_ms = power.spacing_ms = 20;
    event_count = allocations = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hec_clock_set_source(NULL);
    return allocations != 0 || event_count != 0; /* everything was given back */
}

static struct hec_peaks peaks;
static struct hec_why why;

static int bench(void) {
    struct hec_cuda_bench with = {
        .cuda = &fake, .throttled = throttled, .idle_watts = watts, .pause = rest, .report = report};
    with.load = load;
    with.watch = watch;
    with.sensor = sensor;
    hec_peaks_init(&peaks);
    return hec_cuda_bench(&with, &peaks, &why);
}

static void near(const struct hec_peak *peak, double expected, double relative) {
    assert_true(fabs(peak->value / expected - 1) < relative);
    assert_true(peak->low <= peak->value && peak->value <= peak->high && peak->runs == 9);
}

TEST_WITH(test_figures, setup, teardown) {
    assert_int_equal(bench(), HEC_OK);
    for (int i = 0; i < HEC_PEAK_COUNT; i++)
        assert_int_equal(reported[i], 0);
    for (int i = HEC_PEAK_FP64; i <= HEC_PEAK_INT8; i++) {
        near(&peaks.peak[i], OPERATIONS_PER_S, 1e-3);
        assert_true(fabs(peaks.peak[i].sustained / OPERATIONS_PER_S - 1) < 1e-3);
        assert_true(fabs(peaks.peak[i].sm_mhz / CLOCK_MHZ - 1) < 1e-3);
        assert_false(peaks.peak[i].throttled);
    }
    near(&peaks.peak[HEC_PEAK_DRAM_READ], DRAM_PER_S, 1e-2); /* a launch of 2 us is a part of it */
    near(&peaks.peak[HEC_PEAK_DRAM_COPY], DRAM_PER_S, 1e-2);
    near(&peaks.peak[HEC_PEAK_H2D], PCIE_PER_S, 1e-3);
    near(&peaks.peak[HEC_PEAK_D2H], PCIE_PER_S, 1e-3);
    near(&peaks.peak[HEC_PEAK_LAUNCH], LAUNCH_NS, 1e-3);
    near(&peaks.peak[HEC_PEAK_LAUNCH_SYNC], LAUNCH_NS + SYNC_NS, 1e-3);
    near(&peaks.peak[HEC_PEAK_SYNC], SYNC_NS, 1e-3);
    assert_true(peaks.peak[HEC_PEAK_IDLE_POWER].value == 75);
    assert_string_equal(peaks.peak[HEC_PEAK_BF16].method, "wgmma");
    assert_string_equal(peaks.peak[HEC_PEAK_FP64_TENSOR].method, "mma.sync");
    assert_string_equal(peaks.peak[HEC_PEAK_FP32].method, "fma");
    assert_true(peaks.sms == SMS && peaks.cuda_major == 9 && peaks.sm_max_mhz == 1600);
    assert_true(now_ns < 30 * HEC_NS_PER_S);
}

/* Whatever the sensor, its window and its delay come out; a filter counts as the mean that is most like it. */
TEST_WITH(test_sensor, setup, teardown) {
    static const double windows_ms[] = {20, 25, 100, 1000};
    uint64_t seed = getenv("HEC_TEST_SEED") ? strtoull(getenv("HEC_TEST_SEED"), NULL, 10) : 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 4; i++) {
        setup(NULL);
        no_host_memory = true; /* copies take long here */
        power.seed = seed * 1000 + (uint64_t)i;
        for (int k = 0; k < 8; k++)
            unit();
        power.idle_w = 60 + 80 * unit();
        power.load_w = power.idle_w + 80 + 400 * unit();
        power.noise_w = 0.01 * power.load_w;
        power.window_ms = windows_ms[i];
        power.spacing_ms = windows_ms[i] > 20 && unit() < 0.5 ? 100 : 20;
        power.lag_ms = -10 + 50 * unit();
        power.filter_ms = i % 2 ? 15 * unit() : 0;
        assert_int_equal(bench(), HEC_OK);
        double window = peaks.peak[HEC_PEAK_SENSOR_WINDOW].value * 1e-6;
        double delay = peaks.peak[HEC_PEAK_SENSOR_DELAY].value * 1e-6;
        double expected = power.lag_ms + power.filter_ms + power.window_ms / 2;
        print_message("window %.0f ms: %.0f; delay %.1f ms: %.1f\n", power.window_ms, window, expected, delay);
        assert_true(fabs(window - power.window_ms) <= 0.1 * power.window_ms + 2 * power.filter_ms + 5);
        assert_true(fabs(delay - expected) <= 0.02 * power.window_ms + 4);
    }
    /* power that does not follow the load is no sensor */
    setup(NULL);
    no_host_memory = true;
    power.load_w = power.idle_w;
    power.noise_w = 5;
    assert_int_equal(bench(), HEC_OK);
    assert_true(isnan(peaks.peak[HEC_PEAK_SENSOR_WINDOW].value) && reported[HEC_PEAK_SENSOR_WINDOW] == 1);
}

/* Lowered clocks are labelled. */
TEST_WITH(test_throttled, setup, teardown) {
    lowered = true;
    assert_int_equal(bench(), HEC_OK);
    assert_true(peaks.peak[HEC_PEAK_BF16].throttled && peaks.peak[HEC_PEAK_BF16].sustained_throttled);
    assert_true(peaks.peak[HEC_PEAK_DRAM_READ].throttled);
}

/* A driver that does not know wgmma: the next row, which is named. */
TEST_WITH(test_old_driver, setup, teardown) {
    module_code = HEC_CUDA_UNSUPPORTED_PTX_VERSION;
    assert_int_equal(bench(), HEC_OK);
    assert_string_equal(peaks.peak[HEC_PEAK_BF16].method, "mma.sync");
    assert_int_equal(reported[HEC_PEAK_BF16], 0);
}

/* An older device has no such unit: unknown, never zero. */
TEST_WITH(test_older_device, setup, teardown) {
    capability = 75;
    assert_int_equal(bench(), HEC_OK);
    static const enum hec_peak_kind none[] = {HEC_PEAK_BF16, HEC_PEAK_TF32, HEC_PEAK_FP8, HEC_PEAK_FP64_TENSOR};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_true(isnan(peaks.peak[none[i]].value) && peaks.peak[none[i]].runs == 0);
        assert_int_equal(reported[none[i]], 1);
    }
    near(&peaks.peak[HEC_PEAK_FP16], OPERATIONS_PER_S, 1e-3);
    near(&peaks.peak[HEC_PEAK_INT8], OPERATIONS_PER_S, 1e-3);
    capability = 61;
    assert_int_equal(bench(), HEC_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "6.1"));
}

/* A kernel that computes something else gives no figure. */
TEST_WITH(test_wrong_results, setup, teardown) {
    wrong_by = 1;
    assert_int_equal(bench(), HEC_OK);
    for (int i = HEC_PEAK_FP64; i <= HEC_PEAK_DRAM_COPY; i++) {
        assert_true(isnan(peaks.peak[i].value));
        assert_int_equal(reported[i], 1);
    }
    assert_non_null(strstr(last_reported, "is right"));
    near(&peaks.peak[HEC_PEAK_H2D], PCIE_PER_S, 1e-3);
}

TEST_WITH(test_little_memory, setup, teardown) {
    device_bytes = 8 << 20;
    assert_int_equal(bench(), HEC_OK);
    assert_true(isnan(peaks.peak[HEC_PEAK_DRAM_READ].value) && reported[HEC_PEAK_DRAM_READ] == 1);
}

/* An error while something runs ends it: the context is of no more use. */
TEST_WITH(test_lost, setup, teardown) {
    launch_code = 719; /* CUDA_ERROR_LAUNCH_FAILED */
    assert_int_equal(bench(), HEC_ERR_FAILED);
    assert_non_null(strstr(why.text, "what CUDA says"));
}

TEST(test_kernels_are_text) {
    for (int i = 0; i < hec_cuda_kernel_count(); i++) {
        struct hec_buf ptx;
        hec_buf_init(&ptx, 1u << 20);
        assert_int_equal(hec_cuda_kernel_ptx(i, &ptx), HEC_OK);
        const struct hec_cuda_kernel *kernel = hec_cuda_kernel_at(i);
        char target[32];
        snprintf(target, sizeof target, ".target sm_%d", kernel->least);
        assert_non_null(strstr(hec_buf_text(&ptx), target));
        assert_int_equal(strncmp(hec_buf_text(&ptx), ".version ", 9), 0);
        assert_non_null(strstr(hec_buf_text(&ptx), kernel->method));
        hec_buf_free(&ptx);
    }
    assert_null(hec_cuda_kernel_at(-1));
    assert_null(hec_cuda_kernel_at(hec_cuda_kernel_count()));
}

TEST(test_uuid) {
    unsigned char bytes[16];
    char text[48];
    for (int i = 0; i < 16; i++)
        bytes[i] = (unsigned char)(i * 17);
    hec_cuda_uuid_text(bytes, text);
    assert_string_equal(text, "GPU-00112233-4455-6677-8899-aabbccddeeff");
}
