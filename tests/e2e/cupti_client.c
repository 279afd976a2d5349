/* A user of CUPTI like Kineto (torch.profiler): registers its functions when it first profiles, then enable - work - disable
 * - flush, several times. cupti_client is linked with libcupti, cupti_client_late (CUPTI_LATE) loads it when it first
 * profiles. It keeps its buffers by address and complains about any that it did not
 * give. Between the profiles it works unobserved, which a tracer may use.
 *
 *   cupti_client [rounds=N] [kernels=N] [ns=N] [idle_ms=N] [before_ms=N]    prints {"launched", "profiled": [...], "unknown", "errors"} */
#include "sim/cuda/exports.h"
#include "sim/cuda/hook.h"
#include "sim/cupti/exports.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef CUPTI_LATE
#define CUPTI(name) ((__typeof__(&name))dlsym(dlopen("libcupti.so.13", RTLD_NOW), #name))
#else
#define CUPTI(name) name
#endif

#define BUFFER_BYTES (256 * 1024)
#define BUFFERS_MAX 4096
#define ROUNDS_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *given[BUFFERS_MAX];
static int given_count;
static long kernels, unknown, errors;

static long option(char **argv, const char *key, long fallback) {
    size_t length = strlen(key);
    for (; *argv; argv++)
        if (strncmp(*argv, key, length) == 0 && (*argv)[length] == '=')
            return atol(*argv + length + 1);
    return fallback;
}

static void requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    pthread_mutex_lock(&lock);
    *max_records = 0;
    *size = BUFFER_BYTES;
    *buffer = given_count < BUFFERS_MAX ? calloc(1, BUFFER_BYTES) : NULL;
    if (*buffer)
        given[given_count++] = *buffer;
    pthread_mutex_unlock(&lock);
}

static bool take_back(const uint8_t *buffer) {
    for (int i = 0; i < given_count; i++)
        if (given[i] == buffer) {
            given[i] = given[--given_count];
            return true;
        }
    return false;
}

static void completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    if (!take_back(buffer)) {
        unknown++;
    } else {
        CUpti_Activity *record = NULL;
        while (valid && CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == 0)
            kernels += record->kind == SIM_KIND_CONCURRENT_KERNEL;
        free(buffer);
    }
    pthread_mutex_unlock(&lock);
}

static void must(int ret) {
    errors += ret != 0;
}

static void work(CUfunction function, long count, int64_t ns) {
    void *parameters[] = {&ns};
    for (long i = 0; i < count; i++)
        must(cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    must(cuCtxSynchronize());
}

static int64_t now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int main(int argc, char **argv) {
    (void)argc;
    static const CUpti_ActivityKind kinds[] = {SIM_KIND_MEMCPY,  SIM_KIND_MEMSET, SIM_KIND_CONCURRENT_KERNEL,
                                               SIM_KIND_RUNTIME, SIM_KIND_DRIVER, SIM_KIND_SYNCHRONIZATION};
    long rounds = option(argv, "rounds", 3), count = option(argv, "kernels", 500), idle = option(argv, "idle_ms", 50);
    long profiled[ROUNDS_MAX] = {0}, before = option(argv, "before_ms", 0), ns = option(argv, "ns", 4000);
    CUcontext context;
    CUmodule module;
    CUfunction function;
    if (rounds > ROUNDS_MAX)
        return 2;
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
    must(cuModuleLoadData(&module, "_Z4spinl - train_tf32\n"));
    must(cuModuleGetFunction(&function, module, "_Z4spinl"));
    int64_t until = now_ms() + before;
    do
        work(function, count, ns);
    while (now_ms() < until);
    for (long round = 0; round < rounds; round++) {
        if (round == 0)
            must(CUPTI(cuptiActivityRegisterCallbacks)(requested, completed));
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            must(CUPTI(cuptiActivityEnable)(kinds[i]));
        work(function, count, ns);
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            must(CUPTI(cuptiActivityDisable)(kinds[i]));
        must(CUPTI(cuptiActivityFlushAll)(1));
        pthread_mutex_lock(&lock);
        profiled[round] = kernels;
        kernels = 0;
        pthread_mutex_unlock(&lock);
        usleep((useconds_t)idle * 1000);
        work(function, count, ns);
    }
    struct sim_cuda_device_truth truth;
    if (hecSimCudaTruth(0, &truth) < 0)
        return 8;
    printf("{\"launched\": %" PRIu64 ", \"per_round\": %ld, \"unknown\": %ld, \"errors\": %ld, \"profiled\": [",
           truth.kernels, count, unknown, errors);
    for (long round = 0; round < rounds; round++)
        printf("%s%ld", round ? ", " : "", profiled[round]);
    printf("]}\n");
    return 0;
}
