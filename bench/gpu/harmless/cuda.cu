/* Streams, events, asynchronous copies, kernels, graphs and two host threads: `cuda [SECONDS]`. The runtime is linked
 * statically, as nvcc does by default. Each round gives the same sum; it is printed once. */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>
#include <time.h>
#include <vector>

#define COUNT (1 << 18)
#define STREAMS 2
#define GRAPH_KERNELS 20

static void check(cudaError_t code, const char *what) {
    if (code != cudaSuccess) {
        fprintf(stderr, "cuda: %s: %s\n", what, cudaGetErrorString(code));
        exit(2);
    }
}
#define CHECK(call) check((call), #call)

__global__ void mix(unsigned *data, int count, unsigned key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        data[i] = data[i] * 1664525u + key;
}

static double now_s(void) {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

struct Lane {
    cudaStream_t stream[STREAMS];
    cudaEvent_t event[STREAMS];
    unsigned *host, *device;
    cudaGraphExec_t graph;
};

static void open_lane(Lane *lane) {
    CHECK(cudaMallocHost((void **)&lane->host, COUNT * sizeof(unsigned)));
    CHECK(cudaMalloc((void **)&lane->device, COUNT * sizeof(unsigned)));
    for (int i = 0; i < STREAMS; i++) {
        CHECK(cudaStreamCreateWithFlags(&lane->stream[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&lane->event[i], cudaEventDisableTiming));
    }
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(lane->stream[0], cudaStreamCaptureModeThreadLocal));
    for (unsigned i = 0; i < GRAPH_KERNELS; i++)
        mix<<<COUNT / 256, 256, 0, lane->stream[0]>>>(lane->device, COUNT, i);
    CHECK(cudaStreamEndCapture(lane->stream[0], &graph));
    CHECK(cudaGraphInstantiate(&lane->graph, graph, 0));
    CHECK(cudaGraphDestroy(graph));
}

static void close_lane(Lane *lane) {
    CHECK(cudaGraphExecDestroy(lane->graph));
    for (int i = 0; i < STREAMS; i++) {
        CHECK(cudaEventDestroy(lane->event[i]));
        CHECK(cudaStreamDestroy(lane->stream[i]));
    }
    CHECK(cudaFree(lane->device));
    CHECK(cudaFreeHost(lane->host));
}

/* Copy in on one stream, kernels on the other, the graph and the copy out on the first. */
static unsigned round_of(Lane *lane) {
    unsigned sum = 0;
    for (unsigned i = 0; i < COUNT; i++)
        lane->host[i] = i;
    size_t bytes = COUNT * sizeof(unsigned);
    CHECK(cudaMemcpyAsync(lane->device, lane->host, bytes, cudaMemcpyHostToDevice, lane->stream[0]));
    CHECK(cudaEventRecord(lane->event[0], lane->stream[0]));
    CHECK(cudaStreamWaitEvent(lane->stream[1], lane->event[0], 0));
    for (unsigned i = 0; i < 50; i++)
        mix<<<COUNT / 256, 256, 0, lane->stream[1]>>>(lane->device, COUNT, i);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(lane->event[1], lane->stream[1]));
    CHECK(cudaStreamWaitEvent(lane->stream[0], lane->event[1], 0));
    CHECK(cudaGraphLaunch(lane->graph, lane->stream[0]));
    CHECK(cudaMemcpyAsync(lane->host, lane->device, bytes, cudaMemcpyDeviceToHost, lane->stream[0]));
    CHECK(cudaStreamSynchronize(lane->stream[0]));
    for (unsigned i = 0; i < COUNT; i++)
        sum += lane->host[i] ^ i;
    return sum;
}

static void work(double seconds, unsigned *result) {
    Lane lane;
    CHECK(cudaSetDevice(0));
    open_lane(&lane);
    double start = now_s();
    unsigned first = round_of(&lane);
    while (now_s() - start < seconds)
        if (round_of(&lane) != first)
            check(cudaErrorUnknown, "a round gave another sum");
    close_lane(&lane);
    *result = first;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 4;
    unsigned result[2] = {0, 1};
    std::thread other(work, seconds, &result[1]);
    work(seconds, &result[0]);
    other.join();
    printf("done cuda %u %u\n", result[0], result[1]);
    return result[0] == result[1] ? 0 : 3;
}
