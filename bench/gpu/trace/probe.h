/* What the parts of the CUPTI probe share: CUPTI by dlopen, its buffers, the loops that are measured. */
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        auto code_ = (call);                                                                                           \
        if ((int)code_ != 0) {                                                                                         \
            printf("{\"error\": \"%s\", \"code\": %d, \"line\": %d}\n", #call, (int)code_, __LINE__);                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The calls of CUPTI that are used, bound at run time so that a part may run with none loaded. */
#define PROBE_CUPTI(X)                                                                                                 \
    X(GetVersion)                                                                                                      \
    X(GetTimestamp)                                                                                                    \
    X(Subscribe)                                                                                                       \
    X(Unsubscribe)                                                                                                     \
    X(EnableCallback)                                                                                                  \
    X(ActivityRegisterCallbacks)                                                                                       \
    X(ActivityEnable)                                                                                                  \
    X(ActivityDisable)                                                                                                 \
    X(ActivityEnableRuntimeApi)                                                                                        \
    X(ActivityEnableDriverApi)                                                                                         \
    X(ActivityEnableLatencyTimestamps)                                                                                 \
    X(ActivityEnableAllSyncRecords)                                                                                    \
    X(ActivityFlushAll)                                                                                                \
    X(ActivityFlushPeriod)                                                                                             \
    X(ActivityGetNextRecord)                                                                                           \
    X(ActivityGetNumDroppedRecords)                                                                                    \
    X(ActivitySetAttribute)                                                                                            \
    X(Finalize)

struct cupti_calls {
#define X(name) decltype(&cupti##name) name;
    PROBE_CUPTI(X)
#undef X
};
extern cupti_calls cupti;

struct options {
    const char *loops = "c,graph", *only = "", *order = "early", *how = "plain";
    int pairs = 20, block_ms = 30, seconds = 20;
    size_t buffer_bytes = 1 << 20;
    bool early = false, walk = true, latency = false;
    int device_buffer = -1, pool_limit = -1, preallocate = -1, per_thread = -1, zeroed = -1, pinned = -1;
    int refuse_after = -1; /* buffers after which bufferRequested gives none */
    int no_attach = 0, kernels = 100000, kind = 10, max_buffers = 0, flush_period = 0, cycles = 20, graph_trace = 0,
        quiet = 0, kind2 = 0;
};
extern options opt;

/* What came through the buffer callbacks. */
struct delivered {
    std::atomic<uint64_t> kinds[64], bytes, requested, completed, refused, bad_time, in_graph, main_requested,
        main_completed, allocated;
};
extern delivered got;
extern pid_t main_tid;

struct kernel_time {
    uint64_t start, end;
    uint32_t correlation, graph;
};
extern std::vector<kernel_time> *kept; /* where kernels' times go, NULL: nowhere */

static inline double now_ns(void) {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

void cupti_load(void);     /* dlopen; prints the time */
void cupti_register(void); /* attributes of opt, buffer callbacks */
void delivered_reset(void);
void delivered_print(const char *what);
uint64_t dropped_now(void);
long rss_kb(void);
double median(std::vector<double> v);

/* One block of a loop: ns a kernel that the host needed for launching, and until all was done. */
struct block {
    double host, total, longest;
};
void work_setup(void);
cudaGraphExec_t graph_make(int nodes, int spin);
block run_block(const char *loop, double ms);
void launch(int spin);
cudaFunction_t launch_function(void);
extern cudaStream_t stream;

int part_cost(void), part_switch(void), part_graphs(void), part_clock(void), part_memory(void), part_start(void);
int part_residual(void), part_finalize(void), part_graph_trace(void), part_growth(void);
