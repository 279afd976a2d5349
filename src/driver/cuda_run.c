#include "driver/cuda_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OUT_BLOCKS_PER_SM = 8, OUT_THREADS = 256, LAUNCHES_MAX = 4096 };

#define BURST_MS 5.0
#define WARM_MS 20.0
#define SETTLE_NS (200 * HEC_NS_PER_MS) /* after the figure before: the power limit forgets it */
#define REST_NS (40 * HEC_NS_PER_MS)
#define SUSTAINED_MS 450.0 /* the power limit settles within about 100 ms; the second half is measured */

int cuda_run_begin(struct cuda_run *run, struct hec_why *why) {
    const struct hec_cuda *cuda = run->cuda;
    size_t bytes = ((size_t)run->sms * OUT_BLOCKS_PER_SM * OUT_THREADS + 2) * sizeof *run->copy;
    int code = cuda->context_retain(&run->context, run->bench->device);
    if (code)
        return hec_cuda_fail(cuda, code, "cannot make a context", why);
    if ((code = cuda->context_set(run->context)) || (code = cuda->event_create(&run->start, 0)) ||
        (code = cuda->event_create(&run->end, 0)) || (code = cuda->memory_alloc(&run->out, bytes)))
        return hec_cuda_fail(cuda, code, "cannot use the device", why);
    run->copy = malloc(bytes);
    return run->copy ? HEC_OK : hec_fail(why, HEC_ERR_NOMEM, "no memory");
}

void cuda_run_end(struct cuda_run *run) {
    const struct hec_cuda *cuda = run->cuda;
    if (run->out)
        cuda->memory_free(run->out);
    if (run->start)
        cuda->event_destroy(run->start);
    if (run->end)
        cuda->event_destroy(run->end);
    if (run->context)
        cuda->context_release(run->bench->device);
    free(run->copy);
}

void cuda_run_pause(const struct cuda_run *run, int64_t ns) {
    if (run->bench->pause) {
        run->bench->pause(run->bench->context, ns);
        return;
    }
    struct timespec left = {ns / HEC_NS_PER_S, ns % HEC_NS_PER_S};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

int cuda_run_module(const struct cuda_run *run, const char *ptx, hec_cuda_module *module, struct hec_why *why) {
    int code = run->cuda->module_load(module, ptx);
    return code ? hec_cuda_fail(run->cuda, code, "the driver does not take the kernel", why) : HEC_OK;
}

int cuda_run_launch(const struct cuda_launch *launch) {
    return launch->run->cuda->launch(launch->function, launch->blocks, 1, 1, launch->threads, 1, 1, 0, NULL,
                                     (void **)launch->parameters, NULL);
}

/* So many pieces one after another; *ms: all of them. The clocks are asked for while they run. */
static int burst(struct cuda_run *run, struct cuda_timed *timed, int pieces, double *ms) {
    const struct hec_cuda *cuda = run->cuda;
    float elapsed = 0;
    int code = cuda->event_record(run->start, NULL);
    for (int i = 0; i < pieces && code == 0; i++)
        code = timed->launch(timed->context, (unsigned)i);
    if (code == 0)
        code = cuda->event_record(run->end, NULL);
    if (code == 0 && run->bench->throttled && run->bench->throttled(run->bench->context))
        timed->throttled = true;
    if (code == 0)
        code = cuda->event_synchronize(run->end);
    if (code == 0)
        code = cuda->event_elapsed(&elapsed, run->start, run->end);
    *ms = (double)elapsed;
    return code;
}

/* How many pieces take about that long; 0: they take no time at all. */
static int pieces_for(double ms, double one_ms) {
    double pieces = one_ms > 0 ? ceil(ms / one_ms) : 0;
    return pieces > LAUNCHES_MAX ? LAUNCHES_MAX : (int)pieces;
}

int cuda_run_timed(struct cuda_run *run, struct cuda_timed *timed, struct hec_why *why) {
    double ms = 0;
    cuda_run_pause(run, SETTLE_NS);
    int code = burst(run, timed, 1, &ms); /* the first loads what is loaded lazily */
    if (code == 0)
        code = burst(run, timed, 4, &ms);
    int pieces = pieces_for(BURST_MS, ms / 4);
    if (code == 0 && pieces == 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "work took no time");
    if (code == 0)
        code = burst(run, timed, pieces_for(WARM_MS, ms / 4), &ms);
    timed->throttled = false;
    for (int i = 0; i < timed->runs && code == 0; i++) {
        cuda_run_pause(run, REST_NS);
        code = burst(run, timed, pieces, &ms);
        timed->ms[i] = ms / pieces;
    }
    return code ? hec_cuda_fail(run->cuda, code, "a measurement failed", why) : HEC_OK;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void cuda_run_keep(struct cuda_timed *timed, double work, const char *method, struct hec_peak *peak) {
    double values[CUDA_TIMED_RUNS];
    int runs = timed->runs;
    for (int i = 0; i < runs; i++)
        values[i] = isnan(work) ? timed->ms[i] : work / (timed->ms[i] * 1e-3);
    qsort(values, (size_t)runs, sizeof values[0], ascending);
    peak->value = runs % 2 ? values[runs / 2] : (values[runs / 2 - 1] + values[runs / 2]) / 2;
    peak->low = values[0];
    peak->high = values[runs - 1];
    peak->runs = runs;
    peak->throttled = timed->throttled;
    snprintf(peak->method, sizeof peak->method, "%s", method);
}

static int fetch(struct cuda_run *run, size_t count, struct hec_why *why) {
    int code = run->cuda->synchronize();
    if (code == 0)
        code = run->cuda->copy_to_host(run->copy, run->out, count * sizeof *run->copy);
    return code ? hec_cuda_fail(run->cuda, code, "a kernel failed", why) : HEC_OK;
}

int cuda_run_check(struct cuda_run *run, unsigned threads, double expected, struct hec_why *why) {
    int err = fetch(run, threads, why);
    for (unsigned i = 0; i < threads && err == HEC_OK; i++)
        if (run->copy[i] != expected)
            err = hec_fail(why, HEC_ERR_CORRUPT, "the device computed %g where %g is right (thread %u)", run->copy[i],
                           expected, i);
    return err;
}

/* ---- arithmetic ---- */

struct arithmetic {
    struct cuda_launch launch;
    unsigned iterations, pattern;
};

static int arithmetic_launch(void *context, unsigned repeat) {
    (void)repeat;
    return cuda_run_launch(&((struct arithmetic *)context)->launch);
}

/* MHz in the launch that ended last, as its first thread counted cycles and nanoseconds; NAN: too short to measure. */
static double clock_mhz(const struct cuda_run *run, unsigned threads) {
    uint64_t counted[2] = {0, 0};
    if (run->cuda->copy_to_host(counted, run->out + threads * sizeof *run->copy, sizeof counted) != 0 ||
        counted[1] < 100 * (uint64_t)HEC_NS_PER_US) /* the timer steps by up to 1 us */
        return NAN;
    return (double)counted[0] / (double)counted[1] * 1e3;
}

int cuda_run_arithmetic(struct cuda_run *run, const struct hec_cuda_kernel *kernel, hec_cuda_module module,
                        struct hec_peak *peak, struct hec_why *why) {
    unsigned blocks = (unsigned)run->sms * kernel->blocks_per_sm, threads = blocks * kernel->threads;
    struct arithmetic work = {.iterations = kernel->check_iterations, .pattern = HEC_CUDA_PATTERN_ONES};
    work.launch =
        (struct cuda_launch){run, NULL, blocks, kernel->threads, {&run->out, &work.iterations, &work.pattern}};
    struct cuda_timed timed = {.launch = arithmetic_launch, .context = &work, .runs = CUDA_RUNS};
    double one = 0;
    int code = run->cuda->module_function(&work.launch.function, module, HEC_CUDA_KERNEL_NAME);
    if (code == 0)
        code = run->cuda->memory_set_32(run->out, 0, 2 * ((size_t)threads + 2));
    if (code == 0)
        code = cuda_run_launch(&work.launch);
    if (code)
        return hec_cuda_fail(run->cuda, code, "cannot launch the kernel", why);
    int err = cuda_run_check(run, threads, kernel->sum_per_iteration * work.iterations, why);
    if (err < 0)
        return err;

    /* one launch a burst: iterations for 5 ms, found from short launches */
    work.pattern = HEC_CUDA_PATTERN_RANDOM;
    for (work.iterations = 64; (code = burst(run, &timed, 1, &one)) == 0 && one < 1 && work.iterations < 1u << 24;)
        work.iterations *= 2;
    if (code)
        return hec_cuda_fail(run->cuda, code, "a measurement failed", why);
    if (!(one > 0))
        return hec_fail(why, HEC_ERR_CORRUPT, "work took no time");
    double wanted = work.iterations * BURST_MS / one;
    work.iterations = wanted > 1e9 ? 1000000000u : wanted < 1 ? 1 : (unsigned)wanted;

    err = cuda_run_timed(run, &timed, why);
    if (err < 0)
        return err;
    double operations = kernel->operations * blocks * work.iterations;
    peak->sm_mhz = clock_mhz(run, threads);
    cuda_run_keep(&timed, operations, kernel->method, peak);

    /* without a pause: the first half lets the power limit settle */
    struct cuda_timed sustained = timed;
    sustained.throttled = false;
    int half = pieces_for(SUSTAINED_MS / 2, timed.ms[timed.runs - 1]);
    double ms = 0;
    for (int i = 0; i < 2 && code == 0; i++)
        code = burst(run, &sustained, half, &ms);
    if (code)
        return hec_cuda_fail(run->cuda, code, "a measurement failed", why);
    peak->sustained = operations * half / (ms * 1e-3);
    peak->sustained_mhz = clock_mhz(run, threads);
    peak->sustained_throttled = sustained.throttled;
    return HEC_OK;
}
