/* A training run as a run file, as the recorder writes one: make FILE MILLIONS
 *
 * A step: 500 kernels of twelve classes on one stream (70 launch configurations, durations to the nanosecond with 10 % of
 * noise), a communication kernel on a second stream after every 50th, a copy of the batch from pinned memory, one sync
 * and its calls; about every third step an allocation. Launches are no records of their own: a kernel holds its launch
 * (so does a real run in automatic mode, where calls are kept that take long or that matter). Every 10th step the data
 * are late by 2 ms. Stack samples 20 times a second, power every 20 ms, the energy counter and 20 other series ten times
 * a second: 11 us a kernel, so that 10 million kernels last some two minutes. */
#include "../uniform.h"

#include "base/clock.h"
#include "base/trace.h"
#include "store/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_KERNELS 500
#define COMM_EVERY 50
#define CONFIGURATIONS 70
#define QUEUE 1000 /* launches that may wait */
#define BATCH 512  /* activities that the collector hands over at a time */
#define FRAMES 40

static const char *const names[] = {
    "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT",
    "ampere_sgemm_128x64_nn",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_kernel_cudnn",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEEEEviT0_T1_",
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIffEEEEvT1_",
    "_ZN2at6native25multi_tensor_apply_kernelINS1_18TensorListMetadataILi4EEEEEvT_",
    "_ZN2at6native20cunn_SoftMaxForwardILi8EffEEvPT2_PKT0_i",
    "_ZN2at6native28vectorized_layer_norm_kernelIffEEviT0_PKT_",
    "_ZN2at6native24index_elementwise_kernelILi128ELi4EEEvlT1_",
    "_ZN2at6native20CatArrayBatchedCopyIjLi4ELi64ELi64EEEvPT_",
    "_ZN5flash16flash_fwd_kernelILi64ELi128EEEvPT_",
    "triton_poi_fused_add_gelu_mul_3",
};
#define NAMES (int)(sizeof names / sizeof names[0])

/* Mean with a tenth of noise, not normal but as wide: cheap to make. */
static int64_t about(double mean) {
    return (int64_t)(mean * (1 + 0.1 * (uniform() + uniform() + uniform() + uniform() - 2) * 1.732));
}

struct run {
    const struct hec_sink *sink;
    uint32_t process, thread, stream, comm_stream, kernel[CONFIGURATIONS], comm, frame[FRAMES];
    uint32_t unit, loss, data, copy_call, sync_call, alloc_call;
    int64_t host_ns, device_ns, comm_ns, step_ns; /* the thread, the streams, the end of the last step */
    int64_t ends[QUEUE];                          /* of the last kernels */
    int64_t kernels, steps, activities, sampled_ns, powered_ns, counted_ns;
    double joules, busy;
    struct hec_activity batch[BATCH];
    size_t count;
};

static void hand_over(struct run *r) {
    r->sink->trace_activities(r->sink->context, r->batch, r->count);
    r->activities += (int64_t)r->count;
    r->count = 0;
}

static void add(struct run *r, const struct hec_activity *a) {
    if (r->count == BATCH)
        hand_over(r);
    r->batch[r->count++] = *a;
}

static uint32_t name(const struct run *r, const char *text) {
    return r->sink->trace_name(r->sink->context, text);
}

static void define(struct run *r) {
    const struct hec_sink *s = r->sink;
    struct hec_device device = {.uuid = "GPU-0",
                                .name = "NVIDIA H200",
                                .architecture = "hopper",
                                .cuda_major = 9,
                                .memory_kib = 146800640,
                                .power_limit_mw = 700000,
                                .power_limit_default_mw = 700000,
                                .pcie_kib_per_s = 61000000,
                                .visible = 1,
                                .has_energy_counter = 1,
                                .has_power_history = 1,
                                .has_gpm = 1};
    struct hec_track track = {.kind = HEC_TRACK_PROCESS, .pid = 100, .rank = -1, .device = -1};
    s->device(s->context, &device);
    r->process = s->trace_track(s->context, &track);
    track.kind = HEC_TRACK_THREAD;
    track.stream = 100;
    r->thread = s->trace_track(s->context, &track);
    track = (struct hec_track){.kind = HEC_TRACK_STREAM, .pid = 100, .rank = -1, .context = 1, .stream = 7};
    r->stream = s->trace_track(s->context, &track);
    track.stream = 20;
    r->comm_stream = s->trace_track(s->context, &track);
    for (int i = 0; i < CONFIGURATIONS; i++) {
        struct hec_kernel kernel = {.name = name(r, names[i % NAMES]),
                                    .grid = {132 + i, 1, 1},
                                    .block = {128, 1, 1},
                                    .registers = 64,
                                    .static_shared_bytes = 1024};
        r->kernel[i] = s->trace_kernel(s->context, &kernel);
    }
    r->comm =
        s->trace_kernel(s->context, &(struct hec_kernel){.name = name(r, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
                                                         .grid = {16, 1, 1},
                                                         .block = {512, 1, 1}});
    for (int i = 0; i < FRAMES; i++) {
        struct hec_frame frame = {.parent = i % 8 ? r->frame[i - 1] : 0,
                                  .file = name(r, i % 2 ? "train.py" : "model.py"),
                                  .function = name(r, "forward"),
                                  .line = 10 + i};
        r->frame[i] = s->trace_frame(s->context, &frame);
    }
    r->unit = name(r, "steps");
    r->loss = name(r, "loss");
    r->data = name(r, "data");
    r->copy_call = name(r, "cudaMemcpyAsync");
    r->sync_call = name(r, "cudaStreamSynchronize");
    r->alloc_call = name(r, "cudaMalloc");
}

/* One launch of the thread, which waits where too many wait. */
static struct hec_activity launch(struct run *r) {
    int64_t oldest = r->ends[r->kernels % QUEUE];
    struct hec_activity a = {.kind = HEC_ACTIVITY_KERNEL, .launch_track = r->thread};
    r->host_ns = r->host_ns > oldest ? r->host_ns : oldest;
    a.launch_ns = r->host_ns + about(2600);
    a.launch_end_ns = r->host_ns = a.launch_ns + about(2400);
    return a;
}

static void kernel(struct run *r) {
    int which = (int)(r->kernels % STEP_KERNELS % CONFIGURATIONS);
    struct hec_activity a = launch(r);
    int64_t earliest = a.launch_ns + about(3900), after = r->device_ns + about(1050);
    a.track = r->stream;
    a.name = r->kernel[which];
    a.start_ns = earliest > after ? earliest : after;
    a.end_ns = r->device_ns = r->ends[r->kernels % QUEUE] = a.start_ns + about(2000 + 220 * which);
    r->busy += (double)(a.end_ns - a.start_ns);
    add(r, &a);
    if (r->kernels % STEP_KERNELS % COMM_EVERY == COMM_EVERY - 1) {
        a = launch(r);
        a.track = r->comm_stream;
        a.name = r->comm;
        a.start_ns = r->device_ns > r->comm_ns ? r->device_ns + about(900) : r->comm_ns + about(900);
        a.end_ns = r->comm_ns = a.start_ns + about(40000);
        add(r, &a);
    }
    r->kernels++;
}

static void call(struct run *r, uint32_t which, enum hec_api_class detail, int64_t length) {
    struct hec_activity a = {.kind = HEC_ACTIVITY_API,
                             .detail = (uint8_t)detail,
                             .track = r->thread,
                             .name = which,
                             .start_ns = r->host_ns,
                             .end_ns = r->host_ns + length};
    add(r, &a);
    r->host_ns = a.end_ns;
}

static void step(struct run *r) {
    struct hec_activity a = {.kind = HEC_ACTIVITY_PHASE, .track = r->thread, .name = r->data, .start_ns = r->host_ns};
    a.end_ns = r->host_ns += about(r->steps % 10 == 9 ? 2000000 : 60000);
    add(r, &a);
    call(r, r->copy_call, HEC_API_COPY, about(7000));
    a = (struct hec_activity){.kind = HEC_ACTIVITY_COPY,
                              .track = r->stream,
                              .launch_ns = r->host_ns - 5000,
                              .launch_end_ns = r->host_ns,
                              .launch_track = r->thread,
                              .amount = 4 << 20,
                              .from = HEC_MEMORY_PINNED,
                              .to = HEC_MEMORY_DEVICE};
    a.start_ns = (r->host_ns > r->device_ns ? r->host_ns : r->device_ns) + about(1000);
    a.end_ns = r->device_ns = a.start_ns + about(80000);
    add(r, &a);
    if (r->steps % 3 == 1)
        call(r, r->alloc_call, HEC_API_ALLOC, about(90000));
    for (int i = 0; i < STEP_KERNELS; i++)
        kernel(r);
    int64_t end = r->comm_ns > r->device_ns ? r->comm_ns : r->device_ns;
    a = (struct hec_activity){.kind = HEC_ACTIVITY_SYNC,
                              .detail = HEC_SYNC_STREAM,
                              .track = r->thread,
                              .start_ns = r->host_ns,
                              .end_ns = end > r->host_ns ? end + 3000 : r->host_ns + 3000};
    add(r, &a);
    call(r, r->sync_call, HEC_API_SYNC, a.end_ns - a.start_ns + 500);
    a = (struct hec_activity){.kind = HEC_ACTIVITY_STEP,
                              .detail = HEC_STEP_OPTIMIZER,
                              .track = r->process,
                              .name = r->unit,
                              .start_ns = r->step_ns,
                              .end_ns = r->host_ns,
                              .amount = 1};
    add(r, &a);
    r->step_ns = a.end_ns;
    a = (struct hec_activity){.kind = HEC_ACTIVITY_VALUE,
                              .track = r->process,
                              .name = r->loss,
                              .start_ns = r->host_ns,
                              .end_ns = r->host_ns,
                              .amount = 10 * uniform()};
    add(r, &a);
    r->steps++;
}

static void sample_stacks(struct run *r) {
    for (; r->sampled_ns + 50 * HEC_NS_PER_MS <= r->host_ns; r->sampled_ns += 50 * HEC_NS_PER_MS) {
        struct hec_activity a = {.kind = HEC_ACTIVITY_STACK,
                                 .track = r->thread,
                                 .name = r->frame[(int)(uniform() * FRAMES)],
                                 .start_ns = r->sampled_ns,
                                 .end_ns = r->sampled_ns + 50 * HEC_NS_PER_MS};
        add(r, &a);
    }
}

static void sample_series(struct run *r, int64_t from_ns) {
    const struct hec_sink *s = r->sink;
    int64_t length = r->host_ns - from_ns;
    double watts = 120 + 480 * r->busy / (double)(length > 0 ? length : 1);
    r->busy = 0;
    for (; r->powered_ns + 20 * HEC_NS_PER_MS <= r->host_ns; r->powered_ns += 20 * HEC_NS_PER_MS) {
        s->sample(s->context, HEC_GPU_POWER, 0, r->powered_ns, about(watts * 1e3));
        r->joules += watts * 0.02;
    }
    for (; r->counted_ns + 100 * HEC_NS_PER_MS <= r->host_ns; r->counted_ns += 100 * HEC_NS_PER_MS) {
        s->sample(s->context, HEC_GPU_ENERGY, 0, r->counted_ns, (int64_t)(r->joules * 1e3));
        s->sample(s->context, HEC_GPU_ENERGY_SLACK, 0, r->counted_ns, 1000);
        for (int m = HEC_GPM_GR_ACTIVE; m <= HEC_GPM_NVLINK_TX; m++)
            s->sample(s->context, (enum hec_metric)m, 0, r->counted_ns, about(500));
        s->sample(s->context, HEC_GPU_UTIL, 0, r->counted_ns, 900);
        s->sample(s->context, HEC_TREE_CPU, 0, r->counted_ns, r->counted_ns / HEC_NS_PER_MS);
        s->sample(s->context, HEC_TREE_RSS, 0, r->counted_ns, about(4e6));
    }
}

static void finish(struct run *r, int mode) {
    const struct hec_sink *s = r->sink;
    char duration[32];
    struct hec_tracer tracer = {.pid = 100,
                                .mode = mode,
                                .cupti_version = 130001,
                                .driver_version = 13000,
                                .last_ns = r->host_ns,
                                .traced_ns = r->host_ns,
                                .windows = 1,
                                .records = r->activities,
                                .estimate_ppm = 5000,
                                .budget_ppm = 10000};
    struct hec_activity window = {.kind = HEC_ACTIVITY_WINDOW,
                                  .detail = (uint8_t)mode,
                                  .track = r->process,
                                  .end_ns = r->host_ns,
                                  .amount = (double)r->activities};
    add(r, &window);
    hand_over(r);
    s->tracer(s->context, &tracer);
    snprintf(duration, sizeof duration, "%lld", (long long)r->host_ns);
    s->meta(s->context, "duration_ns", duration);
    s->meta(s->context, "command", "python train.py");
    s->meta(s->context, "hec_version", HEC_VERSION);
    s->meta(s->context, "cores", "16");
    s->meta(s->context, "exit_code", "0");
    s->meta(s->context, "complete", "1");
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE MILLIONS\n", argv[0]);
        return 2;
    }
    int64_t kernels = (int64_t)(atof(argv[2]) * 1e6);
    struct hec_why why = {""};
    struct hec_writer *writer;
    static struct run r;
    if (hec_writer_create(argv[1], true, 0, &writer, &why) != HEC_OK) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    r.sink = hec_writer_sink(writer);
    define(&r);
    for (int64_t flushed_ns = 0; r.kernels < kernels;) {
        step(&r);
        sample_stacks(&r);
        if (r.host_ns - flushed_ns < HEC_NS_PER_S)
            continue;
        sample_series(&r, flushed_ns);
        hand_over(&r);
        flushed_ns = r.host_ns;
        if (hec_writer_flush(writer, &why) != HEC_OK)
            fprintf(stderr, "%s\n", why.text);
    }
    finish(&r, HEC_TRACE_AUTO);
    int64_t lost = 0;
    if (hec_writer_close(writer, &lost, &why) != HEC_OK || lost) {
        fprintf(stderr, "lost %lld: %s\n", (long long)lost, why.text);
        return 1;
    }
    printf("%lld kernels, %lld activities, %lld steps, %.0f s\n", (long long)r.kernels, (long long)r.activities,
           (long long)r.steps, (double)r.host_ns / 1e9);
    return 0;
}
