/* CUPTI's buffers and the measured loops. */
#include "probe.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>

cupti_calls cupti;
options opt;
delivered got;
pid_t main_tid;
std::vector<kernel_time> *kept;
cudaStream_t stream;

static std::mutex lock;
static std::vector<uint8_t *> spare;
static cudaStream_t streams[4];
static cudaGraphExec_t graph_tiny, graph_5us;

__global__ void tiny(int *p) {
    if (p)
        *p = 1;
}

__global__ void spinning(int cycles) {
    long long end = clock64() + cycles;
    while (clock64() < end)
        ;
}

void launch(int spin) {
    if (spin)
        spinning<<<1, 32, 0, stream>>>(spin);
    else
        tiny<<<1, 32, 0, stream>>>(NULL);
}

cudaFunction_t launch_function(void) {
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, (const void *)tiny));
    return function;
}

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *max_records) {
    uint64_t number = got.requested++;
    got.main_requested += gettid() == main_tid;
    *max_records = 0;
    if (opt.refuse_after >= 0 && number >= (uint64_t)opt.refuse_after) {
        got.refused++;
        *buffer = NULL, *size = 0;
        return;
    }
    std::lock_guard<std::mutex> hold(lock);
    if (spare.empty() && opt.max_buffers && got.allocated >= (uint64_t)opt.max_buffers) {
        got.refused++;
        *buffer = NULL, *size = 0;
        return;
    }
    if (spare.empty()) {
        got.allocated++;
        uint8_t *fresh = (uint8_t *)aligned_alloc(4096, opt.buffer_bytes);
        memset(fresh, 0, opt.buffer_bytes);
        spare.push_back(fresh);
    }
    *buffer = spare.back(), *size = opt.buffer_bytes;
    spare.pop_back();
}

static void CUPTIAPI on_complete(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
    got.completed++;
    got.bytes += valid;
    got.main_completed += gettid() == main_tid;
    CUpti_Activity *record = NULL;
    while (opt.walk && valid && cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        got.kinds[record->kind & 63].fetch_add(1, std::memory_order_relaxed);
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
            auto *k = (CUpti_ActivityKernel10 *)record;
            if (k->start == 0 || k->end < k->start)
                got.bad_time++;
            if (k->graphNodeId)
                got.in_graph++;
            if (kept)
                kept->push_back({k->start, k->end, k->correlationId, k->graphId});
        } else if (record->kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) {
            auto *g = (CUpti_ActivityGraphTrace2 *)record;
            if (g->start == 0 || g->end < g->start)
                got.bad_time++;
        }
    }
    if (!buffer)
        return;
    if (opt.zeroed == 1)
        memset(buffer, 0, opt.buffer_bytes);
    std::lock_guard<std::mutex> hold(lock);
    spare.push_back(buffer);
}

void cupti_load(void) {
    const char *path = getenv("PROBE_CUPTI");
    double t0 = now_ns();
    void *library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
    double t1 = now_ns();
    if (!library) {
        printf("{\"error\": \"%s\"}\n", dlerror());
        exit(1);
    }
#define X(name)                                                                                                        \
    cupti.name = (decltype(cupti.name))dlsym(library, "cupti" #name);                                                          \
    if (!cupti.name)                                                                                                   \
        printf("{\"missing\": \"%s\"}\n", #name);
    PROBE_CUPTI(X)
#undef X
    uint32_t version = 0;
    cupti.GetVersion(&version);
    printf("{\"part\": \"load\", \"dlopen_ms\": %.2f, \"version\": %u}\n", (t1 - t0) / 1e6, version);
}

static void attribute(CUpti_ActivityAttribute which, long value, size_t size) {
    if (value < 0)
        return;
    size_t wide = (size_t)value;
    uint8_t narrow = (uint8_t)value;
    CUptiResult code = cupti.ActivitySetAttribute(which, &size, size == 1 ? (void *)&narrow : (void *)&wide);
    if (code)
        printf("{\"attribute\": %d, \"value\": %ld, \"code\": %d}\n", (int)which, value, (int)code);
}

void cupti_register(void) {
    attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, opt.device_buffer, 8);
    attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, opt.pool_limit, 8);
    attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, opt.preallocate, 8);
    attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, opt.zeroed, 1);
    attribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, opt.pinned, 1);
    attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, opt.per_thread, 1);
    if (opt.latency)
        printf("{\"latency_timestamps\": %d}\n", (int)cupti.ActivityEnableLatencyTimestamps(1));
    double t0 = now_ns();
    CHECK(cupti.ActivityRegisterCallbacks(on_request, on_complete));
    if (!opt.quiet)
        printf("{\"part\": \"register\", \"ms\": %.3f}\n", (now_ns() - t0) / 1e6);
}

void delivered_reset(void) {
    for (auto &kind : got.kinds)
        kind = 0;
    got.bytes = got.requested = got.completed = got.refused = got.bad_time = got.in_graph = got.main_requested = got.main_completed = 0;
}

void delivered_print(const char *what) {
    printf("{\"part\": \"delivered\", \"of\": \"%s\", \"requested\": %llu, \"completed\": %llu, \"requested_in_main\": %llu, "
           "\"completed_in_main\": %llu, \"bad\": %llu, \"dropped\": %llu}\n",
           what, (unsigned long long)got.requested, (unsigned long long)got.completed, (unsigned long long)got.main_requested,
           (unsigned long long)got.main_completed, (unsigned long long)got.bad_time, (unsigned long long)dropped_now());
}

uint64_t dropped_now(void) {
    size_t count = 0;
    CUptiResult code = cupti.ActivityGetNumDroppedRecords(NULL, 0, &count);
    return code ? 0 : count;
}

long rss_kb(void) {
    char line[128];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    if (file)
        fclose(file);
    return kb;
}

double median(std::vector<double> v) {
    if (v.empty())
        return 0;
    std::sort(v.begin(), v.end());
    size_t n = v.size();
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

cudaGraphExec_t graph_make(int nodes, int spin) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < nodes; i++)
        launch(spin);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

void work_setup(void) {
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (auto &s : streams)
        CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    launch(0);
    launch(100);
    CHECK(cudaStreamSynchronize(stream));
    graph_tiny = graph_make(100, 0);
    graph_5us = graph_make(100, 9000); /* ~5 us at 1.8 GHz */
}

/* c: 400 tiny kernels, then a wait. graph: 4 replays of 100 tiny nodes; graph5: of nodes of 5 us.
 * streams: 400 kernels of 5 us over four streams, which a serialising tool would stretch. */
block run_block(const char *loop, double ms) {
    double host = 0, total = 0, longest = 0, end = now_ns() + ms * 1e6;
    uint64_t count = 0;
    while (now_ns() < end) {
        double t0 = now_ns();
        if (!strcmp(loop, "c")) {
            for (int i = 0; i < 400; i++)
                tiny<<<1, 32, 0, stream>>>(NULL);
        } else if (!strcmp(loop, "streams")) {
            for (int i = 0; i < 400; i++)
                spinning<<<1, 32, 0, streams[i % 4]>>>(9000);
        } else {
            for (int i = 0; i < 4; i++)
                cudaGraphLaunch(!strcmp(loop, "graph") ? graph_tiny : graph_5us, stream);
        }
        double t1 = now_ns();
        if (!strcmp(loop, "streams"))
            for (auto s : streams)
                cudaStreamSynchronize(s);
        else
            cudaStreamSynchronize(stream);
        double t2 = now_ns();
        host += t1 - t0, total += t2 - t0, count += 400, longest = std::max(longest, t1 - t0);
    }
    CHECK(cudaGetLastError());
    return {host / count, total / count, longest};
}
