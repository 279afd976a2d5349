#include "driver/cuda_bench.h"

#include "driver/cuda_kernel.h"
#include "driver/cuda_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMORY_BLOCKS_PER_SM = 4,
    MEMORY_THREADS = 256,
    COPY_BYTES = 256 << 20, /* pinned: about 5 ms at PCIe 5.0 x16 */
    WAVE_LAUNCHES = 4,      /* of about 1 ms together, so that the load ends when it should */
    LAUNCHES = 200,         /* fewer than a stream queues (1024), so that no launch waits for the device */
};

#define IDLE_NS (1500 * HEC_NS_PER_MS)
#define SETTLE_NS (500 * HEC_NS_PER_MS)
#define WAVE_WATCH_NS (5 * HEC_NS_PER_MS)
#define DRAM_BYTES_MAX (UINT64_C(2) << 30)

static void report(const struct cuda_run *run, enum hec_peak_kind kind, const char *why) {
    if (run->bench->report)
        run->bench->report(run->bench->context, kind, why);
}

static void measure(struct cuda_run *run, enum hec_peak_kind kind, struct hec_peaks *peaks,
                    int (*how)(struct cuda_run *, enum hec_peak_kind, struct hec_peaks *, struct hec_why *)) {
    struct hec_why why = {""};
    if (run->error < 0)
        return;
    report(run, kind, NULL);
    int err = how(run, kind, peaks, &why);
    if (err < 0 && err != HEC_ERR_UNSUPPORTED && err != HEC_ERR_NOMEM && err != HEC_ERR_CORRUPT) {
        run->error = err; /* after an error of execution a context is of no more use */
        run->why = why;
    } else if (err < 0) {
        report(run, kind, why.text);
    }
}

/* ---- arithmetic ---- */

static int measure_kernel(struct cuda_run *run, int index, struct hec_peak *peak, struct hec_why *why) {
    struct hec_buf ptx;
    hec_buf_init(&ptx, 1u << 20);
    hec_cuda_module module = NULL;
    int err = hec_cuda_kernel_ptx(index, &ptx);
    err =
        err < 0 ? hec_fail(why, err, "no memory for a kernel") : cuda_run_module(run, hec_buf_text(&ptx), &module, why);
    if (err == HEC_OK)
        err = cuda_run_arithmetic(run, hec_cuda_kernel_at(index), module, peak, why);
    if (module)
        run->cuda->module_unload(module);
    hec_buf_free(&ptx);
    return err;
}

/* The first row for this device that its driver compiles. */
static int arithmetic(struct cuda_run *run, enum hec_peak_kind kind, struct hec_peaks *peaks, struct hec_why *why) {
    int err = hec_fail(why, HEC_ERR_UNSUPPORTED, "compute capability %d.%d has no such instruction",
                       run->capability / 10, run->capability % 10);
    for (int i = 0; i < hec_cuda_kernel_count() && err == HEC_ERR_UNSUPPORTED; i++) {
        const struct hec_cuda_kernel *kernel = hec_cuda_kernel_at(i);
        if (kernel->peak == kind && run->capability >= kernel->least && run->capability <= kernel->most)
            err = measure_kernel(run, i, &peaks->peak[kind], why);
    }
    return err;
}

/* ---- device memory ---- */

struct memory {
    hec_cuda_module module;
    hec_cuda_function read, copy;
    uint64_t from, to, bytes;
    unsigned rounds, blocks;
};

static int memory_begin(struct cuda_run *run, struct memory *memory, struct hec_why *why) {
    size_t free_bytes = 0, total = 0;
    const struct hec_cuda *cuda = run->cuda;
    memory->blocks = (unsigned)run->sms * MEMORY_BLOCKS_PER_SM;
    uint64_t round = (uint64_t)memory->blocks * MEMORY_THREADS * HEC_CUDA_ROUND_BYTES;
    int code = cuda->memory_info(&free_bytes, &total);
    if (code)
        return hec_cuda_fail(cuda, code, "cannot read the free memory", why);
    uint64_t bytes = free_bytes / 4 < DRAM_BYTES_MAX ? free_bytes / 4 : DRAM_BYTES_MAX;
    memory->rounds = (unsigned)(bytes / round);
    memory->bytes = memory->rounds * round;
    if (memory->bytes < 4 * (uint64_t)run->l2_bytes || memory->rounds == 0)
        return hec_fail(why, HEC_ERR_NOMEM, "too little free device memory: less than 16 times the L2 cache");
    if ((code = cuda->memory_alloc(&memory->from, memory->bytes)) ||
        (code = cuda->memory_alloc(&memory->to, memory->bytes)))
        return hec_cuda_fail(cuda, code, "cannot allocate device memory", why);
    int err = cuda_run_module(run, hec_cuda_memory_ptx, &memory->module, why);
    if (err == HEC_OK && ((code = cuda->module_function(&memory->read, memory->module, HEC_CUDA_READ_NAME)) ||
                          (code = cuda->module_function(&memory->copy, memory->module, HEC_CUDA_COPY_NAME)) ||
                          (code = cuda->memory_set_32(memory->from, 1, memory->bytes / 4)) ||
                          (code = cuda->memory_set_32(memory->to, 0, memory->bytes / 4))))
        err = hec_cuda_fail(cuda, code, "cannot prepare device memory", why);
    return err;
}

static void memory_end(const struct cuda_run *run, struct memory *memory) {
    if (memory->from)
        run->cuda->memory_free(memory->from);
    if (memory->to)
        run->cuda->memory_free(memory->to);
    if (memory->module)
        run->cuda->module_unload(memory->module);
}

static int memory_launch(void *context, unsigned repeat) {
    const struct cuda_launch *launch = context;
    (void)repeat;
    return cuda_run_launch(launch);
}

/* Reading sums ones: every thread must have seen all of its words; copying is checked by reading the copy. */
static int dram(struct cuda_run *run, enum hec_peak_kind kind, struct hec_peaks *peaks, struct hec_why *why) {
    struct memory memory = {0};
    int err = memory_begin(run, &memory, why);
    bool copies = kind == HEC_PEAK_DRAM_COPY;
    if (err == HEC_OK) {
        uint64_t from = copies ? memory.to : memory.from, to = memory.to;
        struct cuda_launch read = {run, memory.read, memory.blocks, MEMORY_THREADS, {&run->out, &from, &memory.rounds}};
        struct cuda_launch copy = {
            run, memory.copy, memory.blocks, MEMORY_THREADS, {&to, &memory.from, &memory.rounds}};
        struct cuda_timed timed = {.launch = memory_launch, .context = copies ? &copy : &read, .runs = CUDA_RUNS};
        err = cuda_run_timed(run, &timed, why);
        int code = err == HEC_OK ? cuda_run_launch(&read) : 0;
        if (code)
            err = hec_cuda_fail(run->cuda, code, "cannot launch", why);
        if (err == HEC_OK)
            err = cuda_run_check(run, memory.blocks * MEMORY_THREADS, 16.0 * memory.rounds, why);
        if (err == HEC_OK)
            cuda_run_keep(&timed, (double)memory.bytes * (copies ? 2 : 1), copies ? "16-byte copies" : "16-byte loads",
                          &peaks->peak[kind]);
    }
    memory_end(run, &memory);
    return err;
}

/* ---- pinned copies ---- */

struct transfer {
    const struct hec_cuda *cuda;
    uint64_t device;
    void *host;
    bool to_device;
};

static int transfer_launch(void *context, unsigned repeat) {
    const struct transfer *t = context;
    (void)repeat;
    return t->to_device ? t->cuda->copy_to_device_async(t->device, t->host, COPY_BYTES, NULL)
                        : t->cuda->copy_to_host_async(t->host, t->device, COPY_BYTES, NULL);
}

static int transfer(struct cuda_run *run, enum hec_peak_kind kind, struct hec_peaks *peaks, struct hec_why *why) {
    const struct hec_cuda *cuda = run->cuda;
    struct transfer t = {.cuda = cuda, .to_device = kind == HEC_PEAK_H2D};
    int err = HEC_OK, code = cuda->memory_alloc(&t.device, COPY_BYTES);
    if (code == 0)
        code = cuda->host_alloc(&t.host, COPY_BYTES, 0);
    if (code)
        err = hec_cuda_fail(cuda, code, "no pinned memory", why);
    struct cuda_timed timed = {.launch = transfer_launch, .context = &t, .runs = CUDA_RUNS};
    if (err == HEC_OK) {
        memset(t.host, 1, COPY_BYTES);
        err = cuda_run_timed(run, &timed, why);
    }
    if (err == HEC_OK)
        cuda_run_keep(&timed, COPY_BYTES, "pinned, 256 MiB", &peaks->peak[kind]);
    if (t.host)
        cuda->host_free(t.host);
    if (t.device)
        cuda->memory_free(t.device);
    return err;
}

/* ---- the host's side ---- */

static int host_once(const struct cuda_run *run, enum hec_peak_kind kind, hec_cuda_function empty, int64_t *ns) {
    struct cuda_launch launch = {run, empty, 1, 1, {NULL}};
    int64_t began = hec_clock_mono_ns();
    int code = 0;
    for (int i = 0; i < LAUNCHES && code == 0; i++) {
        if (kind != HEC_PEAK_SYNC)
            code = cuda_run_launch(&launch);
        if (kind != HEC_PEAK_LAUNCH && code == 0)
            code = run->cuda->synchronize();
    }
    *ns = hec_clock_mono_ns() - began;
    return code ? code : run->cuda->synchronize();
}

static int host(struct cuda_run *run, enum hec_peak_kind kind, struct hec_peaks *peaks, struct hec_why *why) {
    hec_cuda_module module = NULL;
    hec_cuda_function empty;
    int err = cuda_run_module(run, hec_cuda_memory_ptx, &module, why);
    if (err < 0)
        return err;
    int code = run->cuda->module_function(&empty, module, HEC_CUDA_EMPTY_NAME);
    struct cuda_timed timed = {.runs = CUDA_RUNS};
    for (int i = -1; i < CUDA_RUNS && code == 0; i++) { /* the first one warms up */
        int64_t ns = 0;
        code = host_once(run, kind, empty, &ns);
        if (i >= 0)
            timed.ms[i] = (double)ns / LAUNCHES;
    }
    run->cuda->module_unload(module);
    if (code)
        return hec_cuda_fail(run->cuda, code, "cannot launch", why);
    cuda_run_keep(&timed, NAN, "mean of 200", &peaks->peak[kind]);
    return HEC_OK;
}

static int idle(struct cuda_run *run, enum hec_peak_kind kind, struct hec_peaks *peaks, struct hec_why *why) {
    struct hec_peak *peak = &peaks->peak[kind];
    if (!run->bench->idle_watts)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the device reports no power");
    cuda_run_pause(run, SETTLE_NS);
    double watts = run->bench->idle_watts(run->bench->context, IDLE_NS);
    if (!isfinite(watts))
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the device reports no power");
    peak->value = peak->low = peak->high = watts;
    peak->runs = 1;
    snprintf(peak->method, sizeof peak->method, "energy counter");
    return HEC_OK;
}

/* ---- the power sensor ---- */

/* Of the load and of the pause after it: between what a fast sensor (20 ms) and a slow one (1 s) resolve, and no rhythm. */
static const int wave_ms[] = {300, 150, 80,  250, 700, 120, 60, 400, 180, 90,  500, 220, 110, 340,
                              70,  600, 200, 130, 450, 100, 65, 280, 900, 160, 85,  370, 140, 1200};

static int wave_load(const struct cuda_launch *read, int64_t ns) {
    const struct hec_cuda_bench *bench = read->run->bench;
    int64_t began = hec_clock_mono_ns();
    int code = 0;
    bench->load(bench->context, began);
    while (!code && hec_clock_mono_ns() - began < ns) {
        for (int i = 0; !code && i < WAVE_LAUNCHES; i++)
            code = cuda_run_launch(read);
        code = code ? code : read->run->cuda->synchronize();
        bench->watch(bench->context);
    }
    bench->load(bench->context, hec_clock_mono_ns());
    return code;
}

static void wave_pause(const struct cuda_run *run, int64_t ns) {
    for (int64_t until = hec_clock_mono_ns() + ns; hec_clock_mono_ns() < until;) {
        cuda_run_pause(run, WAVE_WATCH_NS);
        run->bench->watch(run->bench->context);
    }
}

static int sensor(struct cuda_run *run, enum hec_peak_kind kind, struct hec_peaks *peaks, struct hec_why *why) {
    const struct hec_cuda_bench *bench = run->bench;
    struct hec_peak *peak = &peaks->peak[kind];
    struct memory memory = {0};
    int err = HEC_OK, code = 0;
    if (!bench->sensor)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the device reports no power");
    if (kind == HEC_PEAK_SENSOR_WINDOW) { /* both figures come from one wave */
        err = memory_begin(run, &memory, why);
        struct cuda_launch read = {
            run, memory.read, memory.blocks, MEMORY_THREADS, {&run->out, &memory.from, &memory.rounds}};
        if (err == HEC_OK)
            wave_pause(run, SETTLE_NS);
        for (size_t i = 0; err == HEC_OK && !code && i < sizeof wave_ms / sizeof wave_ms[0]; i += 2) {
            code = wave_load(&read, wave_ms[i] * HEC_NS_PER_MS);
            wave_pause(run, wave_ms[i + 1] * HEC_NS_PER_MS);
        }
        memory_end(run, &memory);
    }
    if (code)
        return hec_cuda_fail(run->cuda, code, "cannot launch", why);
    double ns = err == HEC_OK ? bench->sensor(bench->context, kind) : NAN;
    if (err == HEC_OK && !(ns > 0))
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the power readings do not follow the load");
    if (err == HEC_OK) {
        peak->value = peak->low = peak->high = ns;
        peak->runs = 1;
        snprintf(peak->method, sizeof peak->method, "square wave of load");
    }
    return err;
}

/* ---- */

static int attribute(const struct hec_cuda *cuda, int which, int device) {
    int value = 0;
    return cuda->device_attribute(&value, which, device) ? 0 : value;
}

/* Power first: nothing has run yet. Arithmetic last: after it the power limit holds the clocks down for a while. */
static void measure_all(struct cuda_run *run, struct hec_peaks *peaks) {
    static const struct {
        enum hec_peak_kind kind;
        int (*measure)(struct cuda_run *, enum hec_peak_kind, struct hec_peaks *, struct hec_why *);
    } order[] = {
        {HEC_PEAK_IDLE_POWER, idle},        {HEC_PEAK_SENSOR_WINDOW, sensor},
        {HEC_PEAK_SENSOR_DELAY, sensor},    {HEC_PEAK_DRAM_READ, dram},
        {HEC_PEAK_DRAM_COPY, dram},         {HEC_PEAK_H2D, transfer},
        {HEC_PEAK_D2H, transfer},           {HEC_PEAK_LAUNCH, host},
        {HEC_PEAK_LAUNCH_SYNC, host},       {HEC_PEAK_SYNC, host},
        {HEC_PEAK_FP64, arithmetic},        {HEC_PEAK_FP32, arithmetic},
        {HEC_PEAK_FP16_VECTOR, arithmetic}, {HEC_PEAK_FP64_TENSOR, arithmetic},
        {HEC_PEAK_TF32, arithmetic},        {HEC_PEAK_FP16, arithmetic},
        {HEC_PEAK_BF16, arithmetic},        {HEC_PEAK_FP8, arithmetic},
        {HEC_PEAK_INT8, arithmetic},
    };
    _Static_assert(sizeof order / sizeof order[0] == HEC_PEAK_COUNT, "every figure is measured");
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        measure(run, order[i].kind, peaks, order[i].measure);
}

int hec_cuda_bench(const struct hec_cuda_bench *bench, struct hec_peaks *peaks, struct hec_why *why) {
    const struct hec_cuda *cuda = bench->cuda;
    struct cuda_run run = {.bench = bench, .cuda = cuda};
    peaks->cuda_major = attribute(cuda, HEC_CUDA_ATTRIBUTE_MAJOR, bench->device);
    peaks->cuda_minor = attribute(cuda, HEC_CUDA_ATTRIBUTE_MINOR, bench->device);
    peaks->sms = run.sms = attribute(cuda, HEC_CUDA_ATTRIBUTE_SMS, bench->device);
    run.capability = peaks->cuda_major * 10 + peaks->cuda_minor;
    run.l2_bytes = attribute(cuda, HEC_CUDA_ATTRIBUTE_L2_BYTES, bench->device);
    int khz = attribute(cuda, HEC_CUDA_ATTRIBUTE_CLOCK_KHZ, bench->device);
    peaks->sm_max_mhz = khz > 0 ? khz / 1e3 : NAN;
    if (run.sms <= 0 || run.capability < 70)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "compute capability %d.%d: the self-test needs 7.0",
                        peaks->cuda_major, peaks->cuda_minor);
    int err = cuda_run_begin(&run, why);
    if (err == HEC_OK) {
        measure_all(&run, peaks);
        err = run.error;
        if (err < 0 && why)
            *why = run.why;
    }
    cuda_run_end(&run);
    return err;
}
