"""Programs in CUDA C++, for nvcc. As an arm they take orders on standard input (arms.py), else they go on for SECONDS."""
import math

from parts import Flags, filled

SOURCE = r'''// Heat in a plate: the mean of four neighbours, again and again.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

static const int SIDE = @SIDE@;
static const int SWEEPS = @SWEEPS@;

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        exit(1);
    }
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__global__ void relax(const float *from, float *to, int side) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < side - 1 && y < side - 1)
        to[y * side + x] = 0.25f * (from[y * side + x - 1] + from[y * side + x + 1] + from[(y - 1) * side + x] + from[(y + 1) * side + x]);
}

__global__ void add(const float *values, float *sum, int count) {
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        mine += values[i];
    atomicAdd(sum, mine);
}
@FUNCTIONS@
// Goes on for some seconds; or as it is told, three parts an order: until it is steady, what is timed, and some more.
struct Progress {
    enum { WARM, LEAD, TIMED, TAIL } part = WARM;
    bool ordered = getenv("ORDERS") != nullptr;
    double seconds = getenv("SECONDS") ? atof(getenv("SECONDS")) : 8, begin = 0, enqueued = 0, end_of_part = 0;
    long steps = 0, left = 4, lead = 0, timed = 0, tail = 0;

    bool next_part() {
        if (part == WARM || part == TAIL) {
            if (part == WARM)
                printf("{\"ready\": true, \"units\": 1}\n");
            else
                printf("{\"steps\": %ld, \"begin\": %.9f, \"end\": %.9f, \"enqueued\": %.9f, \"units\": 1}\n", timed, begin, end_of_part,
                       enqueued);
            fflush(stdout);
            part = LEAD;
            return scanf("%ld %ld %ld", &lead, &timed, &tail) == 3 && ((left = lead), true);
        }
        enqueued = now();
        check(cudaDeviceSynchronize());
        (part == LEAD ? begin : end_of_part) = now();
        left = part == LEAD ? timed : tail;
        part = part == LEAD ? TIMED : TAIL;
        return true;
    }

    bool step() {
        steps++;
        if (!ordered) {
            begin = begin ? begin : now();
            return now() - begin < seconds;
        }
        while (left == 0)
            if (!next_part())
                return false;
        left--;
        return true;
    }

    void finish() {
        if (!ordered)
            printf("{\"units\": %ld, \"steps\": %ld, \"seconds\": %.6f}\n", steps, steps, now() - begin);
    }
};

int main() {
    size_t bytes = sizeof(float) * SIDE * SIDE;
    float *from, *to, *sum, total = 0;
    check(cudaMalloc(&from, bytes));
    check(cudaMalloc(&to, bytes));
    check(cudaMalloc(&sum, sizeof(float)));
    std::vector<float> first(size_t(SIDE) * SIDE, 1.5f);
    check(cudaMemcpy(from, first.data(), bytes, cudaMemcpyHostToDevice));
    check(cudaMemcpy(to, first.data(), bytes, cudaMemcpyHostToDevice));
    dim3 block(32, 8), grid((SIDE + 31) / 32, (SIDE + 7) / 8);
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
@SETUP@
    Progress progress;
    long step = 0;
    do {
@BEFORE@@WORK@@AFTER@        if (step % @EVERY@ == 0) {
            check(cudaMemsetAsync(sum, 0, sizeof(float), stream));
            add<<<128, 256, 0, stream>>>(from, sum, SIDE * SIDE);
            check(cudaMemcpyAsync(&total, sum, sizeof(float), cudaMemcpyDeviceToHost, stream));
            check(cudaStreamSynchronize(stream));
        }
        step++;
    } while (progress.step());
    check(cudaDeviceSynchronize());
    progress.finish();
    fprintf(stderr, "total %g\n", total);
    return 0;
}
'''
SWEEPS = '''        for (int sweep = 0; sweep < SWEEPS; sweep++) {
@FRESH@            relax<<<grid, block, 0, stream>>>(from, to, SIDE);
@STOP@            std::swap(from, to);
        }
'''
GRAPH = '''    cudaGraph_t graph;
    cudaGraphExec_t sweeps;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int sweep = 0; sweep < 2 * (SWEEPS / 2); sweep++) {
        relax<<<grid, block, 0, stream>>>(from, to, SIDE);
        std::swap(from, to);
    }
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&sweeps, graph, 0));
'''
TALLY = '''
static long tally(const std::vector<int> &words) {
    std::unordered_map<int, int> counts;
    for (int word : words)
        counts[word] += 1;
    return long(counts.size());
}
'''


def probe_of(spec, cause):
    possible = {"sync": spec["report_every"] == 1, "launch": not spec["captured"] and not {"barriers", "no_pool"} & spec["faults"].keys()}
    return cause if possible.get(cause) else None


def source(spec, without=frozenset(), probe=None):
    flags = Flags(spec, without, probe)
    setup, before, after, functions = "", "", "", ""
    for place in ("host_before", "host_after"):
        if not flags.drawn(place):
            continue
        functions = TALLY
        setup += filled("    std::vector<int> words(@N@);\n    for (size_t i = 0; i < words.size(); i++)\n        words[i] = int(i * 7919 % 1000);\n"
                        "    long kinds = tally(words);\n", N=max(1, flags.knobs[place] * 12))
        if flags.has(place):
            line = "        kinds += tally(words);\n"
            before, after = (before + line, after) if place == "host_before" else (before, after + line)
        setup += "    fprintf(stderr, \"%ld kinds\\n\", kinds);\n" if not flags.has(place) else ""
    if flags.drawn("pageable"):
        count = max(1, flags.knobs["pageable"] // 4)
        setup += f"    const size_t EXTRA = {count};\n    float *extra, *place;\n    check(cudaMalloc(&place, sizeof(float) * EXTRA));\n"
        setup += ("    extra = (float *)calloc(EXTRA, sizeof(float));\n" if flags.has("pageable")
                  else "    check(cudaMallocHost(&extra, sizeof(float) * EXTRA));\n")
        before += ("        for (size_t i = 0; i < EXTRA; i += 1024)\n            extra[i] = float(step);\n"
                   "        check(cudaMemcpyAsync(place, extra, sizeof(float) * EXTRA, cudaMemcpyHostToDevice, stream));\n")
    if flags.drawn("chatty"):
        setup += (f"    const int ROWS = {flags.knobs['chatty']}, ROW = 64;\n    std::vector<float> rows(size_t(ROWS) * ROW, 1);\n    float *kept;\n"
                  "    check(cudaMalloc(&kept, sizeof(float) * ROWS * ROW));\n")
        before += ("        for (int row = 0; row < ROWS; row++)\n            check(cudaMemcpy(kept + row * ROW, rows.data() + row * ROW, "
                   "sizeof(float) * ROW, cudaMemcpyHostToDevice));\n" if flags.has("chatty") else
                   "        check(cudaMemcpy(kept, rows.data(), sizeof(float) * ROWS * ROW, cudaMemcpyHostToDevice));\n")
    fresh = ("            check(cudaFree(to));\n            check(cudaMalloc(&to, bytes));\n" if flags.has("no_pool") else "")
    stop = "            check(cudaStreamSynchronize(stream));\n" if flags.has("barriers") else ""
    work = filled(SWEEPS, FRESH=fresh, STOP=stop)
    if flags.captured:
        setup, work = setup + GRAPH, "        check(cudaGraphLaunch(sweeps, stream));\n"
    every = 1 if flags.report_every == 1 else math.ceil(flags.report_every)
    return filled(SOURCE, SIDE=spec["items"], SWEEPS=spec["depth"], FUNCTIONS=functions, SETUP=setup, BEFORE=before, WORK=work, AFTER=after,
                  EVERY=every)
