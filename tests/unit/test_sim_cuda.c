/* The double of libcuda: streams, engines, events, graphs and power, in virtual time. */
#include "sim_cuda.h"

#include "sim/cuda/union.c"
#include "sim/ids.h"
#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)

static CUcontext context;
static CUfunction kernel;

static int set_up(void **state) {
    (void)state;
    make_machine("h200x2,clock=virtual");
    context = make_context(0);
    kernel = make_kernel("spin - train_tf32 40 1024\nfixed 7000 elementwise\n", "spin");
    return 0;
}

static struct sim_cuda_device_truth truth(void) {
    struct sim_cuda_device_truth t;
    MUST(CU(hecSimCudaTruth)(0, &t));
    return t;
}

static CUstream stream(unsigned flags) {
    CUstream made;
    MUST(CU(cuStreamCreate)(&made, flags));
    return made;
}

static CUevent event_on(CUstream on) {
    CUevent made;
    MUST(CU(cuEventCreate)(&made, 0));
    MUST(CU(cuEventRecord)(made, on));
    return made;
}

/* And they are over. */
static double between_us(CUevent start, CUevent end) {
    float ms;
    MUST(CU(cuEventElapsedTime)(&ms, start, end));
    MUST(CU(cuEventDestroy_v2)(start));
    MUST(CU(cuEventDestroy_v2)(end));
    return (double)ms * 1000;
}

TEST(devices) {
    int count, value;
    char name[64], bus[32], text[SIM_UUID_SIZE];
    CUuuid uuid;
    size_t bytes;
    MUST(CU(cuDeviceGetCount)(&count));
    assert_int_equal(count, 2);
    MUST(CU(cuDeviceGetName)(name, sizeof name, 1));
    assert_string_equal(name, "NVIDIA H200");
    MUST(CU(cuDeviceGetPCIBusId)(bus, sizeof bus, 1));
    assert_string_equal(bus, "0000:20:00.0");
    /* the same as NVML says, as bytes */
    MUST(CU(cuDeviceGetUuid_v2)(&uuid, 1));
    sim_uuid(1, text);
    char again[64] = "GPU";
    for (int i = 0; i < 16; i++)
        snprintf(again + strlen(again), 8, "%s%02x", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                 (unsigned char)uuid.bytes[i]);
    assert_string_equal(again, text);
    MUST(CU(cuDeviceGetAttribute)(&value, 75, 0));
    assert_int_equal(value, 9);
    MUST(CU(cuDeviceTotalMem_v2)(&bytes, 0));
    assert_int_equal(bytes >> 20, 143771);
    MUST(CU(cuDriverGetVersion)(&value));
    assert_int_equal(value, 13000);
    assert_int_equal(CU(cuDeviceGet)(&value, 2), 101);
    assert_int_equal(CU(cuDeviceGetAttribute)(&value, 9999, 0), 1);
}

TEST(names_and_addresses) {
    const char *text;
    void *function = NULL;
    int status = -1;
    MUST(CU(cuGetErrorName)(600, &text));
    assert_string_equal(text, "CUDA_ERROR_NOT_READY");
    assert_int_equal(CU(cuGetErrorString)(12345, &text), 1);
    MUST(CU(cuGetProcAddress_v2)("cuMemAlloc", &function, 12000, 0, &status));
    assert_ptr_equal(function, dlsym(libcuda, "cuMemAlloc_v2"));
    assert_int_equal(status, 0);
    assert_int_equal(CU(cuGetProcAddress_v2)("cuBrew", &function, 12000, 0, &status), 500);
    assert_null(function);
}

TEST(a_stream_is_in_order) {
    CUstream s = stream(CU_STREAM_NON_BLOCKING);
    struct sim_cuda_device_truth before = truth();
    CUevent start = event_on(s);
    for (int i = 0; i < 10; i++)
        launch(kernel, s, 100 * US);
    CUevent end = event_on(s);
    assert_int_equal(CU(cuStreamQuery)(s), 600);
    assert_int_equal(CU(cuEventQuery)(end), 600);
    MUST(CU(cuStreamSynchronize)(s));
    assert_int_equal(CU(cuStreamQuery)(s), 0);
    /* ten kernels, nine pauses of 0.8 us; the first starts 1.5 us after its launch of 4.5 us and the event's 1.2 us */
    double us = between_us(start, end);
    assert_true(us >= 1000 + 9 * 0.8 && us <= 1000 + 9 * 0.8 + 8);
    struct sim_cuda_device_truth after = truth();
    assert_int_equal(after.kernels - before.kernels, 10);
    assert_int_equal(after.busy_ns - before.busy_ns, 1000 * US);
    MUST(CU(cuStreamDestroy_v2)(s));
}

TEST(streams_overlap) {
    CUstream a = stream(CU_STREAM_NON_BLOCKING), b = stream(CU_STREAM_NON_BLOCKING);
    struct sim_cuda_device_truth before = truth();
    launch(kernel, a, 10 * MS);
    launch(kernel, b, 10 * MS);
    MUST(CU(cuCtxSynchronize)());
    struct sim_cuda_device_truth after = truth();
    assert_int_equal(after.kernel_sum_ns - before.kernel_sum_ns, 20 * MS);
    assert_true(after.busy_ns - before.busy_ns > 10 * MS && after.busy_ns - before.busy_ns < 10 * MS + 10 * US);
    /* unless one waits for an event of the other */
    before = after;
    launch(kernel, a, 10 * MS);
    CUevent done = event_on(a);
    MUST(CU(cuStreamWaitEvent)(b, done, 0));
    launch(kernel, b, 10 * MS);
    MUST(CU(cuCtxSynchronize)());
    MUST(CU(cuEventDestroy_v2)(done));
    assert_int_equal(truth().busy_ns - before.busy_ns, 20 * MS);
    /* or they are blocking and the null stream stands between them */
    CUstream c = stream(0), d = stream(0);
    before = truth();
    launch(kernel, c, 10 * MS);
    launch(kernel, NULL, 10 * MS);
    launch(kernel, d, 10 * MS);
    MUST(CU(cuCtxSynchronize)());
    assert_int_equal(truth().busy_ns - before.busy_ns, 30 * MS);
}

TEST(copies_have_engines) {
    CUstream s[3] = {stream(1), stream(1), stream(1)};
    CUdeviceptr memory;
    void *pinned, *pageable = malloc(1 << 20);
    MUST(CU(cuMemAlloc_v2)(&memory, 520 << 20));
    MUST(CU(cuMemAllocHost_v2)(&pinned, 1 << 20));
    const struct {
        CUdeviceptr address;
        unsigned type; /* 0: the driver does not know it */
    } known[] = {{memory + 1, CU_MEMORYTYPE_DEVICE},
                 {(uintptr_t)pinned + (1 << 20) - 1, CU_MEMORYTYPE_HOST},
                 {(uintptr_t)pageable, 0}};
    for (size_t i = 0; i < 3; i++) {
        unsigned type = 0;
        assert_int_equal(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, known[i].address),
                         known[i].type ? 0 : 1);
        assert_int_equal(type, known[i].type);
    }
    struct sim_cuda_device_truth before = truth();
    /* 52 MB to the device: 1 ms; two after each other on one engine, the way back on the other, a kernel beside them */
    launch(kernel, s[2], 3 * MS);
    MUST(CU(cuMemcpyHtoDAsync_v2)(memory, pinned, 52000000, s[0]));
    MUST(CU(cuMemcpyHtoDAsync_v2)(memory, pinned, 52000000, s[1]));
    MUST(CU(cuMemcpyDtoHAsync_v2)(pinned, memory, 50000000, s[2]));
    MUST(CU(cuCtxSynchronize)());
    struct sim_cuda_device_truth after = truth();
    assert_int_equal(after.bytes[SIM_COPY_HTOD][SIM_MEMORY_PINNED] - before.bytes[SIM_COPY_HTOD][SIM_MEMORY_PINNED],
                     104000000);
    assert_int_equal(after.copies - before.copies, 3);
    assert_true(llabs(after.copy_ns - before.copy_ns - 3 * (MS + 1300)) < 3);
    assert_true(after.busy_ns - before.busy_ns < 4 * MS + 20 * US);
    /* pageable memory: the call lasts as long as the copy */
    int64_t begin = now_ns();
    MUST(CU(cuMemcpyHtoDAsync_v2)(memory, pageable, 8000000, s[0]));
    assert_true(now_ns() - begin >= MS);
    begin = now_ns();
    MUST(CU(cuMemcpyHtoDAsync_v2)(memory, pinned, 52000000, s[0]));
    assert_true(now_ns() - begin < 10 * US);
    MUST(CU(cuMemcpyDtoH_v2)(pinned, memory, 50000000));
    assert_true(truth().bytes[SIM_COPY_HTOD][SIM_MEMORY_PAGEABLE] - before.bytes[SIM_COPY_HTOD][SIM_MEMORY_PAGEABLE] ==
                8000000);
    MUST(CU(cuMemsetD32Async)(memory, 7, 1000, s[0]));
    assert_int_equal(truth().memset_bytes - before.memset_bytes, 4000);
    MUST(CU(cuMemFreeHost)(pinned));
    MUST(CU(cuMemFree_v2)(memory));
    assert_int_equal(CU(cuMemFree_v2)(memory), 1);
    assert_int_equal(CU(cuMemAlloc_v2)(&memory, (size_t)1 << 40), 2);
    free(pageable);
}

/* A stream takes 1024 operations; the next launch waits for the oldest to end. */
TEST(the_queue_is_bounded) {
    CUstream s = stream(1);
    int64_t begin = now_ns();
    for (int i = 0; i < 1024; i++)
        launch(kernel, s, MS);
    assert_true(now_ns() - begin < 10 * MS);
    for (int i = 0; i < 100; i++)
        launch(kernel, s, MS);
    assert_true(now_ns() - begin >= 100 * MS && now_ns() - begin < 120 * MS);
    MUST(CU(cuStreamSynchronize)(s));
}

TEST(graphs) {
    CUstream s = stream(1);
    CUgraph captured, made;
    CUgraphExec exec;
    CUgraphNode node;
    int64_t ns = 20 * US;
    struct sim_cuda_device_truth before = truth();
    MUST(CU(cuStreamBeginCapture_v2)(s, 0));
    for (int i = 0; i < 5; i++)
        launch(kernel, s, 20 * US);
    assert_int_equal(CU(cuStreamSynchronize)(s), 900);
    MUST(CU(cuStreamEndCapture)(s, &captured));
    assert_int_equal(truth().kernels, before.kernels); /* nothing has run yet */
    MUST(CU(cuGraphInstantiateWithFlags)(&exec, captured, 0));
    for (int i = 0; i < 3; i++)
        MUST(CU(cuGraphLaunch)(exec, s));
    MUST(CU(cuStreamSynchronize)(s));
    assert_int_equal(truth().kernels - before.kernels, 15);
    assert_int_equal(truth().graphs - before.graphs, 3);
    assert_int_equal(truth().busy_ns - before.busy_ns, 300 * US);
    MUST(CU(cuGraphExecDestroy)(exec));
    MUST(CU(cuGraphDestroy)(captured));
    MUST(CU(cuGraphCreate)(&made, 0));
    MUST(CU(cuGraphAddKernelNode)(&node, made, NULL, 0,
                                  &(CUDA_KERNEL_NODE_PARAMS){kernel, 1, 1, 1, 32, 1, 1, 0, (void *[]){&ns}, NULL}));
    MUST(CU(cuGraphInstantiateWithFlags)(&exec, made, 0));
    MUST(CU(cuGraphLaunch)(exec, s));
    MUST(CU(cuStreamSynchronize)(s));
    assert_int_equal(truth().kernels - before.kernels, 16);
    assert_int_equal(CU(cuStreamEndCapture)(s, &captured), 903);
    MUST(CU(cuGraphExecDestroy)(exec));
    MUST(CU(cuGraphDestroy)(made));
}

TEST(functions) {
    CUmodule module;
    CUfunction fixed = make_kernel("fixed 7000 elementwise\n", "fixed");
    CUfunction unknown = make_kernel("\x7f"
                                     "ELF a cubin",
                                     "_Z3fooPf");
    int64_t before = truth().kernel_sum_ns;
    launch(fixed, NULL, 0);
    launch(unknown, NULL, 0);
    MUST(CU(cuCtxSynchronize)());
    assert_int_equal(truth().kernel_sum_ns - before, 7000 + 5000);
    assert_int_equal(CU(cuModuleLoadData)(&module, "kernel 5000 no_such_activity\n"), 200);
    assert_int_equal(CU(cuLaunchKernel)(fixed, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 1);
    assert_int_equal(CU(cuLaunchKernel)(fixed, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL), 1);
    assert_int_equal(CU(cuLaunchKernel)(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 400);
    assert_int_equal(CU(cuLaunchKernel)(fixed, 1, 1, 1, 1, 1, 1, 0, (CUstream)0x1234, NULL, NULL), 400);
}

/* A kernel draws the power of its activity; a hundred thousand short ones do not push the past out of the ring. */
TEST(power) {
    const struct sim_profile *profile = sim_world_profile(world);
    MUST(CU(cuCtxSynchronize)());
    int64_t from = now_ns() + 100 * US, e0, e1;
    launch(kernel, NULL, 50 * MS);
    MUST(CU(cuCtxSynchronize)());
    e0 = sim_world_energy_nj(world, 0, from), e1 = sim_world_energy_nj(world, 0, from + 40 * MS);
    assert_true(llabs(e1 - e0 - sim_energy_of(sim_activity_power_mw(profile, SIM_TRAIN_TF32), 40 * MS)) < 1000);
    sim_world_set_now_ns(world, now_ns() + 10 * MS);
    from = now_ns();
    int64_t early = sim_world_energy_nj(world, 0, from);
    CUfunction other = make_kernel("other - elementwise\n", "other");
    for (int i = 0; i < 100000; i++)
        launch(i % 3 ? kernel : other, NULL, 4 * US);
    MUST(CU(cuCtxSynchronize)());
    assert_int_equal(sim_world_energy_nj(world, 0, from), early);
    int64_t whole = sim_world_energy_nj(world, 0, now_ns()) - early;
    double watts = (double)whole / (double)(now_ns() - from);
    assert_true(watts > 500 && watts < 600);
    /* energy only grows, at no instant faster than any activity draws */
    int64_t before = early;
    for (int64_t t = from + 10 * MS; t < now_ns(); t += 10 * MS) {
        int64_t e = sim_world_energy_nj(world, 0, t);
        assert_true(e >= before && e - before < sim_energy_of(847000, 10 * MS));
        before = e;
    }
}

/* Under a power limit kernels take longer, whoever launches them, and the device draws what it may. */
TEST(a_limit_slows_kernels) {
    int64_t lasted[2];
    for (int i = 0; i < 2; i++) {
        MUST(CU(cuCtxSynchronize)());
        assert_int_equal(sim_world_set_cap_mw(world, 0, i ? 300000 : 700000), HEC_OK);
        sim_world_set_now_ns(world, now_ns() + 20 * MS);
        int64_t from = now_ns();
        for (int k = 0; k < 100; k++)
            launch(kernel, NULL, 2 * MS);
        MUST(CU(cuCtxSynchronize)());
        lasted[i] = now_ns() - from;
        int64_t held = from + 100 * MS; /* the burst is over */
        double watts = (double)(sim_world_energy_nj(world, 0, now_ns()) - sim_world_energy_nj(world, 0, held)) /
                       (double)(now_ns() - held);
        assert_true(i ? watts > 290 && watts < 300 : watts > 520 && watts < 535);
    }
    assert_int_equal(sim_world_set_cap_mw(world, 0, 700000), HEC_OK);
    assert_true(lasted[0] > 200 * MS && lasted[0] < 202 * MS);
    assert_true(lasted[1] > 240 * MS && lasted[1] < 300 * MS);
}

struct heard {
    int ops[SIM_OP_API + 1], calls[2];
    struct sim_op last[SIM_OP_API + 1];
};

static void hear_op(void *to, const struct sim_op *op) {
    struct heard *heard = to;
    heard->ops[op->kind]++;
    heard->last[op->kind] = *op;
}

static void hear_call(void *to, int site, uint32_t cbid, const char *name, uint32_t correlation, void *cu_context,
                      uint32_t context_id, int result) {
    (void)cbid, (void)name, (void)correlation, (void)cu_context, (void)context_id, (void)result;
    ((struct heard *)to)->calls[site]++;
}

TEST(listeners_hear_all) {
    static struct heard heard;
    assert_int_equal(CU(hecSimCudaListen)(99, &(struct sim_cuda_listener){hear_op, hear_call, NULL, &heard}), -1);
    MUST(CU(hecSimCudaListen)(SIM_CUDA_HOOK_ABI, &(struct sim_cuda_listener){hear_op, hear_call, NULL, &heard}));
    launch(kernel, NULL, 5 * US);
    MUST(CU(cuCtxSynchronize)());
    assert_int_equal(heard.ops[SIM_OP_KERNEL], 1);
    assert_int_equal(heard.ops[SIM_OP_SYNC], 1);
    assert_int_equal(heard.ops[SIM_OP_API], 2);
    assert_int_equal(heard.calls[0], 2);
    assert_int_equal(heard.calls[1], 2);
    const struct sim_op *op = &heard.last[SIM_OP_KERNEL];
    assert_string_equal(op->u.kernel.name, "spin");
    assert_int_equal(op->u.kernel.registers, 40);
    assert_int_equal(op->end_ns - op->start_ns, 5 * US);
    assert_true(op->launch_ns < op->start_ns);
    assert_int_equal(op->stream, 7);
    assert_int_equal(heard.last[SIM_OP_SYNC].u.sync.type, SIM_SYNC_CONTEXT);
    assert_int_equal(heard.last[SIM_OP_API].u.api.cbid, 17); /* cuCtxSynchronize */
}

TEST(does_not_survive_a_fork) {
    pid_t child = fork();
    if (child == 0)
        _exit(CU(cuCtxSynchronize)() == 3 && CU(cuInit)(0) == 3 ? 7 : 1);
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST(contexts) {
    CUcontext other, got;
    CUdevice device;
    struct sim_context open[SIM_CONTEXT_MAX];
    assert_int_equal(sim_world_contexts(world, 1, open), 0);
    MUST(CU(cuCtxCreate_v2)(&other, 0, 1));
    assert_int_equal(sim_world_contexts(world, 1, open), 1);
    assert_int_equal(open[0].pid, getpid());
    MUST(CU(cuCtxGetDevice)(&device));
    assert_int_equal(device, 1);
    MUST(CU(cuCtxDestroy_v2)(other));
    assert_int_equal(sim_world_contexts(world, 1, open), 0);
    assert_int_equal(CU(cuCtxDestroy_v2)(other), 201);
    MUST(CU(cuCtxGetCurrent)(&got));
    assert_ptr_equal(got, context);
}

/* Against a bitmap. */
TEST(unions) {
    static bool covered[40000];
    static struct sim_union u;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        memset(&u, 0, sizeof u);
        memset(covered, 0, sizeof covered);
        int64_t expected = 0;
        for (uint64_t i = 0; i < 3000; i++) {
            int64_t start = (int64_t)i * 10 + (int64_t)(sim_hash_unit(seed, i, 0) * 400);
            int64_t end = start + 1 + (int64_t)(sim_hash_unit(seed, i, 1) * (double)(seed * 3));
            sim_union_add(&u, start, end);
            for (int64_t t = start; t < end; t++)
                covered[t] = true;
        }
        for (size_t t = 0; t < sizeof covered; t++)
            expected += covered[t];
        assert_int_equal(sim_union_length_ns(&u), expected);
    }
}

ALL_TESTS(set_up, destroy_world)
