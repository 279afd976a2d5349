/* A CUDA program for the tests of the tracer, written against the driver API. It runs on the simulated machine of
 * `hec run --sim` and prints what it did, as JSON: the truth that a report can be compared with.
 *
 *   cuda_program [KEY=VALUE...] 
 *     kernels=N    launches (1000)           ns=N        each lasts (5000)       streams=N  in turn on so many (1)
 *     h2d=BYTES    pinned, before each batch pageable=BYTES    d2h=BYTES         memset=BYTES
 *     batch=N      synchronise after N launches (0: only at the end)             sleep_us=N after each batch
 *     graph=N      launch a graph of N kernels instead of each kernel            wait=1     wait for the injected thread
 *     fork=1       do it in a child that was forked before CUDA was used; =2: the parent uses CUDA, forks, and the child
 *                  only exits                exec=1      do it in this program executed again
 *     seconds=S    repeat the batches for so long instead of kernels=N           device=N   ordinal (0)
 *     die=N        by signal N, when the work is done               mark=N     each batch is a marked step of N samples
 *     parts=1      each batch is a step of an optimizer, half of it launched in the forward pass, the last four in the optimizer: told
 *                  as the Python hooks tell it, while CUPTI records the device
 *     knob=N       the knob "batch", N unless it is set: so many samples a step, in ns * (1 + (batch / best)^2); least=N most=N its
 *                  range (0: it gives none)  best=N     what takes least a sample (256)
 *     loss=1       each step tells a loss, as the Python hooks do; nan from a batch of breaks=N on (0: never)
 *     by=1         launch through a pointer from dlsym; =2: from cuGetProcAddress; =3: from what dlsym gave for that;
 *                  =4: through a table that a module has filled before cuInit */
#define HEC_HEADER_ONLY
#include "hec/hec.h"
#include "sim/cuda/exports.h"
#include "sim/cuda/hook.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long option(char **argv, const char *key, long fallback) {
    size_t length = strlen(key);
    for (; *argv; argv++)
        if (strncmp(*argv, key, length) == 0 && (*argv)[length] == '=')
            return atol(*argv + length + 1);
    return fallback;
}

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        CUresult ret_ = (call);                                                                                        \
        if (ret_ != 0) {                                                                                               \
            fprintf(stderr, "%s: %d\n", #call, ret_);                                                                  \
            exit(9);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define STREAMS_MAX 8

struct program {
    CUfunction kernel, other;
    __typeof__(&cuLaunchKernel) launch;
    CUstream streams[STREAMS_MAX];
    CUgraphExec exec;
    CUdeviceptr memory;
    void *pinned, *pageable;
    long kernels, ns, streams_used, h2d, pageable_bytes, d2h, memset, batch, sleep_us, graph, seconds, device, mark,
        parts, loss, breaks;
    int64_t part_ns; /* since when the program is in the part of the step that goes on */
    int (*interval)(const char *name, int64_t start_ns, int64_t duration_ns);
    int (*step)(const char *unit, double units, uint32_t source, int64_t t_ns);
    int (*value)(const char *name, double value, int64_t t_ns);
    int (*records)(void);
};

/* A function of the driver, as runtimes and other languages get it. */
static __typeof__(&cuLaunchKernel) find_launch(long by) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = NULL;
    __typeof__(&cuGetProcAddress_v2) look_up = cuGetProcAddress_v2;
    if (by == 0)
        return cuLaunchKernel;
    if (by == 4)
        return (__typeof__(&cuLaunchKernel))dlsym(RTLD_DEFAULT, "launch_by_table");
    if (by == 1)
        return (__typeof__(&cuLaunchKernel))dlsym(driver, "cuLaunchKernel");
    if (by == 3)
        look_up = (__typeof__(look_up))dlsym(driver, "cuGetProcAddress_v2");
    MUST(look_up("cuLaunchKernel", &found, 13000, 0, NULL));
    return (__typeof__(&cuLaunchKernel))found;
}

static void set_up(struct program *p, long by) {
    CUcontext context;
    CUmodule module;
    CUdevice device;
    if (by == 4 && !dlopen(HAS_TABLE, RTLD_NOW | RTLD_GLOBAL))
        exit(8);
    MUST(cuInit(0));
    p->launch = find_launch(by);
    MUST(cuDeviceGet(&device, (int)p->device));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, "_Z6squarePfl - train_tf32 40 2048\n_Z3addPfS_l - elementwise 16\n"));
    MUST(cuModuleGetFunction(&p->kernel, module, "_Z6squarePfl"));
    MUST(cuModuleGetFunction(&p->other, module, "_Z3addPfS_l"));
    MUST(cuMemAlloc_v2(&p->memory, 1 << 20));
    MUST(cuMemAllocHost_v2(&p->pinned, 1 << 20));
    p->pageable = malloc(1 << 20);
    for (long i = 0; i < p->streams_used; i++)
        MUST(cuStreamCreate(&p->streams[i], CU_STREAM_NON_BLOCKING));
    if (p->graph) {
        CUgraph graph;
        void *parameters[] = {&p->ns};
        MUST(cuStreamBeginCapture_v2(p->streams[0], 0));
        for (long i = 0; i < p->graph; i++)
            MUST(cuLaunchKernel(p->kernel, 32, 1, 1, 128, 1, 1, 0, p->streams[0], parameters, NULL));
        MUST(cuStreamEndCapture(p->streams[0], &graph));
        MUST(cuGraphInstantiateWithFlags(&p->exec, graph, 0));
        MUST(cuGraphDestroy(graph));
    }
}

static void launch(struct program *p, long number) {
    void *parameters[] = {&p->ns};
    CUstream stream = p->streams[number % p->streams_used];
    if (p->graph)
        MUST(cuGraphLaunch(p->exec, stream));
    else
        MUST(p->launch(number % 4 == 3 ? p->other : p->kernel, 32, 2, 1, 128, 1, 1, 0, stream, parameters, NULL));
}

static void begin_batch(struct program *p) {
    CUstream stream = p->streams[0];
    if (p->h2d)
        MUST(cuMemcpyHtoDAsync_v2(p->memory, p->pinned, (size_t)p->h2d, stream));
    if (p->pageable_bytes)
        MUST(cuMemcpyHtoD_v2(p->memory, p->pageable, (size_t)p->pageable_bytes));
    if (p->memset)
        MUST(cuMemsetD8Async(p->memory, 0, (size_t)p->memset, stream));
}

static void end_batch(struct program *p) {
    if (p->d2h)
        MUST(cuMemcpyDtoHAsync_v2(p->pinned, p->memory, (size_t)p->d2h, p->streams[0]));
    MUST(cuCtxSynchronize());
    if (p->sleep_us)
        usleep((useconds_t)p->sleep_us);
}

static double now_s(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int64_t now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* The knob decides what a step does. */
static void read_knob(struct program *p, long fallback, long least, long most, double best) {
    p->mark = most ? hec_knob_int_in("batch", fallback, least, most) : hec_knob_int("batch", fallback);
    p->ns = (long)((double)p->ns * (1 + ((double)p->mark / best) * ((double)p->mark / best)));
}

static void find_hooks(struct program *p) {
    void *mark = dlopen(getenv("HEC_LIB"), RTLD_NOW),
         *trace = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOLOAD | RTLD_NOW);
    p->interval = (__typeof__(p->interval))dlsym(mark, "hec_hook_interval");
    p->step = (__typeof__(p->step))dlsym(mark, "hec_hook_step");
    p->value = (__typeof__(p->value))dlsym(mark, "hec_hook_value");
    p->records = trace ? (__typeof__(p->records))dlsym(trace, "hec_trace_records") : NULL;
}

/* Of a step of `count` launches, as many have been made. */
static void end_part(struct program *p, long made, long count) {
    static bool recorded;
    const char *part = made == count / 2 ? "part/forward" : made == count - 4 ? "part/backward" : "part/optimizer";
    bool before = recorded;
    int64_t t_ns = now_ns();
    if (made && made != count / 2 && made != count - 4 && made != count)
        return;
    recorded = p->records();
    if (made && (before || recorded))
        p->interval(part, p->part_ns, t_ns - p->part_ns);
    if (made == count)
        p->step("sample", 16, 1, t_ns);
    p->part_ns = t_ns;
}

static void work(struct program *p) {
    long step = p->batch ? p->batch : p->seconds ? 100 : p->kernels;
    double until = now_s() + (double)p->seconds;
    for (long done = 0; p->seconds ? now_s() < until : done < p->kernels; done += step) {
        begin_batch(p);
        for (long i = 0; i < step && (p->seconds || done + i < p->kernels); i++) {
            if (p->parts)
                end_part(p, i, step);
            launch(p, i);
        }
        if (p->parts)
            end_part(p, step, step);
        end_batch(p);
        if (p->loss && p->value)
            p->value("loss", p->breaks && p->mark >= p->breaks ? NAN : 1 + 20 / (20 + (double)done), 0);
        if (p->mark)
            hec_step((double)p->mark);
    }
}

static void print_truth(const struct program *p) {
    struct sim_cuda_device_truth t;
    if (hecSimCudaTruth((uint32_t)p->device, &t) < 0)
        exit(8);
    printf("{\"pid\": %d, \"kernels\": %" PRIu64 ", \"copies\": %" PRIu64 ", \"memsets\": %" PRIu64
           ", \"graphs\": %" PRIu64 ", \"h2d_pinned\": %" PRIu64 ", \"h2d_pageable\": %" PRIu64
           ", \"d2h_pinned\": %" PRIu64 ", \"memset_bytes\": %" PRIu64
           ", \"window_us\": %.3f, \"busy_us\": %.3f, \"compute_us\": %.3f, "
           "\"copy_us\": %.3f, \"kernel_sum_us\": %.3f}\n",
           (int)getpid(), t.kernels, t.copies, t.memsets, t.graphs, t.bytes[SIM_COPY_HTOD][SIM_MEMORY_PINNED],
           t.bytes[SIM_COPY_HTOD][SIM_MEMORY_PAGEABLE], t.bytes[SIM_COPY_DTOH][SIM_MEMORY_PINNED], t.memset_bytes,
           (double)(t.last_ns - t.first_ns) * 1e-3, (double)t.busy_ns * 1e-3, (double)t.compute_ns * 1e-3,
           (double)t.copy_ns * 1e-3, (double)t.kernel_sum_ns * 1e-3);
    fflush(stdout);
}

static int wait_for(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 7;
}

int main(int argc, char **argv) {
    (void)argc;
    struct program p = {.kernels = option(argv, "kernels", 1000),
                        .ns = option(argv, "ns", 5000),
                        .streams_used = option(argv, "streams", 1),
                        .h2d = option(argv, "h2d", 0),
                        .pageable_bytes = option(argv, "pageable", 0),
                        .d2h = option(argv, "d2h", 0),
                        .memset = option(argv, "memset", 0),
                        .batch = option(argv, "batch", 0),
                        .sleep_us = option(argv, "sleep_us", 0),
                        .graph = option(argv, "graph", 0),
                        .seconds = option(argv, "seconds", 0),
                        .mark = option(argv, "mark", 0),
                        .device = option(argv, "device", 0),
                        .parts = option(argv, "parts", 0),
                        .loss = option(argv, "loss", 0),
                        .breaks = option(argv, "breaks", 0)};
    long forks = option(argv, "fork", 0);
    if (p.streams_used < 1 || p.streams_used > STREAMS_MAX)
        return 2;
    if (option(argv, "exec", 0)) {
        for (char **a = argv; *a; a++)
            if (strncmp(*a, "exec=", 5) == 0)
                *a = (char[]){"done=1"};
        execv("/proc/self/exe", argv);
        return 6;
    }
    if (forks == 1) {
        pid_t child = fork();
        if (child)
            return wait_for(child);
    }
    set_up(&p, option(argv, "by", 0));
    if (forks == 2) {
        pid_t child = fork();
        if (child == 0)
            exit(cuCtxSynchronize() == 3 ? 0 : 5); /* not initialised: CUDA does not survive a fork */
        if (wait_for(child) != 0)
            return 5;
    }
    if (option(argv, "knob", 0))
        read_knob(&p, option(argv, "knob", 0), option(argv, "least", 0), option(argv, "most", 0),
                  (double)option(argv, "best", 256));
    if (p.parts || p.loss)
        find_hooks(&p);
    work(&p);
    print_truth(&p);
    if (option(argv, "die", 0))
        raise((int)option(argv, "die", 0));
    return 0;
}
