/* The doubles of libcupti, one version after another: what is recorded, in which layout, and what goes wrong on wish. */
#include "sim_cuda.h"

#include "sim/cupti/exports.h"
#include "unit.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define US INT64_C(1000)

static const struct version {
    const char *spec, *library;
    uint32_t number;
    size_t kernel_bytes, copy_bytes, sync_bytes, graph_bytes;
} versions[] = {
    {"11.8", "cupti-11.8/libcupti.so.11.8", 18, 200, 88, 40, 48},
    {"12", "cupti-12/libcupti.so.12", 26, 208, 96, 56, 56},
    {"13", "cupti-13/libcupti.so.13", 130001, 216, 96, 56, 56},
};

static void *libcupti;
#define CUPTI(name) ((__typeof__(&name))dlsym(libcupti, #name))

static struct {
    int requested, completed, refused, kinds[64], unknown, unnamed, bad_times, bad_device;
    size_t sizes[64];
    uint64_t kernel_ns;
    bool refuse;
    char name[64];
    uint64_t first_start;
} seen;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* buffers are asked for and handed back by several threads */

static void request(uint8_t **buffer, size_t *size, size_t *max_records) {
    pthread_mutex_lock(&lock);
    *max_records = 0;
    *size = 16384;
    *buffer = seen.refuse ? NULL : aligned_alloc(8, *size);
    seen.refused += seen.refuse;
    seen.requested += !seen.refuse;
    pthread_mutex_unlock(&lock);
}

static uint64_t u64(const void *record, size_t offset) {
    uint64_t value;
    memcpy(&value, (const char *)record + offset, sizeof value);
    return value;
}

static void look(const CUpti_Activity *record) {
    if (record->kind >= 64) {
        seen.unknown++;
        return;
    }
    seen.kinds[record->kind]++;
    if (record->kind != SIM_KIND_CONCURRENT_KERNEL)
        return;
    uint64_t start = u64(record, 16), end = u64(record, 24), name = u64(record, 104);
    uint32_t device;
    memcpy(&device, (const char *)record + 40, sizeof device);
    seen.bad_times += start == 0 || end < start;
    seen.bad_device += device > 15;
    seen.unnamed += name == 0;
    seen.kernel_ns += end - start;
    if (!seen.first_start)
        seen.first_start = start;
    if (name)
        snprintf(seen.name, sizeof seen.name, "%s", (const char *)(uintptr_t)name);
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    CUpti_Activity *record = NULL, *before = NULL;
    pthread_mutex_lock(&lock);
    seen.completed++;
    while (valid && CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == 0) {
        if (before && before->kind < 64)
            seen.sizes[before->kind] = (size_t)((char *)record - (char *)before);
        look(record);
        before = record;
    }
    if (before && before->kind < 64 && !seen.sizes[before->kind])
        seen.sizes[before->kind] = valid - (size_t)((uint8_t *)before - buffer);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static const CUpti_ActivityKind kinds[] = {SIM_KIND_MEMCPY, SIM_KIND_MEMSET, SIM_KIND_CONCURRENT_KERNEL,
                                           SIM_KIND_DRIVER, SIM_KIND_SYNCHRONIZATION};

static void turn(bool on) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        MUST((on ? CUPTI(cuptiActivityEnable) : CUPTI(cuptiActivityDisable))(kinds[i]));
}

/* Every case has a process of its own: what is initialised once is then initialised anew. */
static void in_child(const char *spec, const char *library, void (*work)(const struct version *),
                     const struct version *v) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        make_machine(spec);
        char path[512];
        snprintf(path, sizeof path, HEC_BINARY_DIR "/lib/hec/sim/%s", library);
        libcupti = dlopen(path, RTLD_NOW);
        if (!libcupti)
            fail_msg("%s", dlerror());
        work(v);
        sim_world_destroy(world);
        fflush(NULL);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s with %s: status %d", spec, library, status);
}

static void on_each_version(void (*work)(const struct version *), const char *more) {
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char spec[128];
        snprintf(spec, sizeof spec, "h200,clock=virtual,cupti=%s%s", versions[i].spec, more);
        in_child(spec, versions[i].library, work, &versions[i]);
    }
}

/* In the child a failed assertion must end it. */
#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                    \
            _exit(3);                                                                                                  \
        }                                                                                                              \
    } while (0)
#undef MUST
#define MUST(call) NEED((call) == 0)

static CUfunction begin(void) {
    MUST(CUPTI(cuptiActivityRegisterCallbacks)(request, complete));
    CUcontext context;
    MUST(CU(cuInit)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST(CU(cuCtxSetCurrent)(context));
    CUmodule module;
    CUfunction function;
    MUST(CU(cuModuleLoadData)(&module, "_Z4spinl - train_tf32 40 1024\n"));
    MUST(CU(cuModuleGetFunction)(&function, module, "_Z4spinl"));
    return function;
}

static void launches(CUfunction function, int count) {
    int64_t ns = 4 * US;
    for (int i = 0; i < count; i++)
        MUST(CU(cuLaunchKernel)(function, 4, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&ns}, NULL));
    MUST(CU(cuCtxSynchronize)());
}

static void records(const struct version *v) {
    uint32_t number;
    uint64_t before, after;
    CUdeviceptr memory;
    MUST(CUPTI(cuptiGetVersion)(&number));
    NEED(number == v->number);
    CUfunction function = begin();
    launches(function, 10); /* not enabled yet */
    turn(true);
    MUST(CUPTI(cuptiGetTimestamp)(&before));
    launches(function, 1000);
    MUST(CUPTI(cuptiGetTimestamp)(&after));
    MUST(CU(cuMemAlloc_v2)(&memory, 1 << 20));
    MUST(CU(cuMemcpyHtoD_v2)(memory, &before, sizeof before));
    MUST(CU(cuMemcpyHtoD_v2)(memory, &before, sizeof before));
    MUST(CU(cuMemsetD8_v2)(memory, 0, 100));
    MUST(CU(cuMemsetD8_v2)(memory, 0, 100));
    MUST(CU(cuCtxSynchronize)());
    turn(false);
    launches(function, 10); /* not any more */
    MUST(CUPTI(cuptiActivityFlushAll)(0));
    NEED(seen.kinds[SIM_KIND_CONCURRENT_KERNEL] == 1000);
    NEED(seen.kinds[SIM_KIND_MEMCPY] == 2 && seen.kinds[SIM_KIND_MEMSET] == 2);
    NEED(seen.kinds[SIM_KIND_SYNCHRONIZATION] == 2);
    NEED(seen.kinds[SIM_KIND_DRIVER] == 1000 + 1 + 1 + 2 + 2 + 1);
    NEED(seen.unknown == 0 && seen.bad_times == 0 && seen.unnamed == 0);
    NEED(seen.kernel_ns == 1000 * 4 * US);
    NEED(strcmp(seen.name, "_Z4spinl") == 0);
    NEED(seen.first_start > before && seen.first_start < after);
    NEED(seen.sizes[SIM_KIND_CONCURRENT_KERNEL] == v->kernel_bytes);
    NEED(seen.sizes[SIM_KIND_MEMCPY] == v->copy_bytes && seen.sizes[SIM_KIND_DRIVER] == 40);
    NEED(seen.sizes[SIM_KIND_SYNCHRONIZATION] == v->sync_bytes);
    NEED(seen.requested == seen.completed);
    /* and again, after a rest */
    turn(true);
    launches(function, 50);
    turn(false);
    MUST(CUPTI(cuptiActivityFlushAll)(1));
    NEED(seen.kinds[SIM_KIND_CONCURRENT_KERNEL] == 1050);
}

TEST(gives_records_in_each_layout) {
    on_each_version(records, "");
}

static void versions_differ(const struct version *v) {
    NEED((CUPTI(cuptiActivityEnableDriverApi) != NULL) == (v->number != 18));
    NEED((CUPTI(cuptiSubscribe_v2) != NULL) == (v->number == 130001));
    if (v->number == 18)
        return;
    /* single calls */
    CUfunction function = begin();
    MUST(CUPTI(cuptiActivityEnableDriverApi)(307, 1)); /* cuLaunchKernel */
    launches(function, 5);
    MUST(CUPTI(cuptiActivityFlushAll)(0));
    NEED(seen.kinds[SIM_KIND_DRIVER] == 5 && seen.kinds[SIM_KIND_CONCURRENT_KERNEL] == 0);
    MUST(CUPTI(cuptiActivityEnableDriverApi)(307, 0));
    launches(function, 5);
    MUST(CUPTI(cuptiActivityFlushAll)(0));
    NEED(seen.kinds[SIM_KIND_DRIVER] == 5);
}

TEST(has_what_its_version_has) {
    on_each_version(versions_differ, "");
}

static void refusals(const struct version *v) {
    (void)v;
    size_t dropped;
    CUfunction function = begin();
    turn(true);
    seen.refuse = true;
    launches(function, 100);
    MUST(CUPTI(cuptiActivityFlushAll)(0));
    MUST(CUPTI(cuptiActivityGetNumDroppedRecords)(NULL, 0, &dropped));
    NEED(dropped == 100 + 101 + 1 && seen.kinds[SIM_KIND_CONCURRENT_KERNEL] == 0); /* kernels, calls, the wait */
    MUST(CUPTI(cuptiActivityGetNumDroppedRecords)(NULL, 0, &dropped));
    NEED(dropped == 0);
    seen.refuse = false;
    launches(function, 100);
    MUST(CUPTI(cuptiActivityFlushAll)(0));
    NEED(seen.kinds[SIM_KIND_CONCURRENT_KERNEL] == 100);
}

TEST(counts_what_has_no_room) {
    on_each_version(refusals, "");
}

static int stolen;

static void steal(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size, (void)valid;
    pthread_mutex_lock(&lock);
    stolen++;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

/* The property that breaks others: whoever registers last gets the buffers of everybody. */
static void takeover(const struct version *v) {
    (void)v;
    CUfunction function = begin();
    turn(true);
    launches(function, 10);
    turn(false);
    usleep(20000); /* the library's thread has written them by then, or the flush does */
    MUST(CUPTI(cuptiActivityRegisterCallbacks)(request, steal));
    MUST(CUPTI(cuptiActivityFlushAll)(0));
    NEED(stolen > 0 && seen.completed == 0);
}

TEST(the_last_to_register_wins) {
    on_each_version(takeover, "");
}

static int callbacks[2];

static void on_call(void *user, uint32_t domain, uint32_t cbid, const void *data) {
    const CUpti_CallbackData *call = data;
    NEED(user == &callbacks && domain == 1 && cbid == 307);
    NEED(strcmp(call->functionName, "cuLaunchKernel") == 0);
    callbacks[call->callbackSite]++;
}

static void subscribers(const struct version *v) {
    CUpti_SubscriberHandle mine, yours;
    const char *name;
    CUfunction function = begin();
    if (v->number == 130001) {
        char holder[64] = "";
        MUST(CUPTI(cuptiSubscribe_v2)(&mine, on_call, &callbacks,
                                      &(CUpti_SubscriberParams){sizeof(CUpti_SubscriberParams), "first", NULL, 0}));
        NEED(CUPTI(cuptiSubscribe_v2)(
                 &yours, on_call, NULL,
                 &(CUpti_SubscriberParams){sizeof(CUpti_SubscriberParams), "second", holder, sizeof holder}) == 39);
        NEED(strcmp(holder, "first") == 0);
    } else {
        MUST(CUPTI(cuptiSubscribe)(&mine, on_call, &callbacks));
    }
    NEED(CUPTI(cuptiSubscribe)(&yours, on_call, NULL) == 39);
    MUST(CUPTI(cuptiEnableCallback)(1, mine, 1, 307));
    launches(function, 10);
    NEED(callbacks[0] == 10 && callbacks[1] == 10);
    MUST(CUPTI(cuptiUnsubscribe)(mine));
    launches(function, 10);
    NEED(callbacks[0] == 10);
    MUST(CUPTI(cuptiSubscribe)(&yours, on_call, NULL));
    MUST(CUPTI(cuptiGetCallbackName)(1, 307, &name));
    NEED(strcmp(name, "cuLaunchKernel") == 0);
    MUST(CUPTI(cuptiGetResultString)(39, &name));
    NEED(strcmp(name, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED") == 0);
    MUST(CUPTI(cuptiFinalize)());
    MUST(CUPTI(cuptiSubscribe)(&mine, on_call, NULL));
}

TEST(there_is_one_subscriber) {
    on_each_version(subscribers, "");
}

static void graph_levels(const struct version *v) {
    CUgraph graph;
    CUgraphExec nodes, whole;
    CUstream stream;
    int64_t ns = 10 * US;
    CUfunction function = begin();
    MUST(CU(cuStreamCreate)(&stream, 1));
    MUST(CU(cuStreamBeginCapture_v2)(stream, 0));
    for (int i = 0; i < 4; i++)
        MUST(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&ns}, NULL));
    MUST(CU(cuStreamEndCapture)(stream, &graph));
    turn(true);
    MUST(CU(cuGraphInstantiateWithFlags)(&nodes, graph, 0));
    MUST(CUPTI(cuptiActivityEnable)(SIM_KIND_GRAPH_TRACE));
    MUST(CU(cuGraphInstantiateWithFlags)(&whole, graph, 0));
    MUST(CU(cuGraphLaunch)(nodes, stream));
    MUST(CU(cuCtxSynchronize)());
    MUST(CUPTI(cuptiActivityFlushAll)(0));
    NEED(seen.kinds[SIM_KIND_CONCURRENT_KERNEL] == 4 && seen.kinds[SIM_KIND_GRAPH_TRACE] == 0);
    for (int i = 0; i < 3; i++)
        MUST(CU(cuGraphLaunch)(whole, stream));
    MUST(CU(cuCtxSynchronize)());
    MUST(CUPTI(cuptiActivityFlushAll)(0));
    NEED(seen.kinds[SIM_KIND_CONCURRENT_KERNEL] == 4 && seen.kinds[SIM_KIND_GRAPH_TRACE] == 3);
    NEED(seen.sizes[SIM_KIND_GRAPH_TRACE] == v->graph_bytes);
}

TEST(graphs_are_traced_one_way) {
    on_each_version(graph_levels, "");
}

static void faulty(const struct version *v) {
    (void)v;
    size_t dropped;
    CUfunction function = begin();
    turn(true);
    launches(function, 1000);
    turn(false);
    MUST(CUPTI(cuptiActivityFlushAll)(0));
    MUST(CUPTI(cuptiActivityGetNumDroppedRecords)(NULL, 0, &dropped));
    int kernels = seen.kinds[SIM_KIND_CONCURRENT_KERNEL];
    const struct sim_trace_spec *spec = &sim_world_spec(world)->trace;
    int bad = seen.bad_times + seen.bad_device + seen.unnamed + seen.unknown;
    if (spec->no_buffer) {
        NEED(dropped == 100 && kernels == 900 && bad == 0);
    } else if (spec->bad[SIM_BAD_TRUNCATED]) {
        NEED(dropped > 0 && bad == 0);
    } else {
        NEED(dropped == 0 && bad == 100 && kernels + seen.unknown == 1000);
    }
}

TEST(faults_are_as_planted) {
    static const char *const specs[] = {",badrecord=start:10",  ",badrecord=order:10", ",badrecord=kind:10",
                                        ",badrecord=device:10", ",badrecord=name:10",  ",badrecord=truncated:1",
                                        ",nobuffer=10"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        on_each_version(faulty, specs[i]);
}

static void clocks(const struct version *v) {
    (void)v;
    uint64_t a, b;
    begin();
    MUST(CUPTI(cuptiGetTimestamp)(&a));
    sim_world_set_now_ns(world, now_ns() + 1000 * 1000 * US);
    MUST(CUPTI(cuptiGetTimestamp)(&b));
    NEED(b - a == 1000 * 1000 * US + 500 * US); /* 500 ppm */
    int64_t wall = now_ns() + sim_world_wall_offset_ns(world);
    NEED((int64_t)b > wall + 3000 * 1000 * US && (int64_t)b < wall + 3002 * 1000 * US);
}

TEST(the_clock_is_as_planted) {
    on_each_version(clocks, ",cuptiskew=500:3000");
}

static void held(const struct version *v) {
    CUpti_SubscriberHandle subscriber;
    NEED(CUPTI(cuptiActivityRegisterCallbacks)(request, complete) == 39);
    NEED(CUPTI(cuptiActivityEnable)(SIM_KIND_MEMCPY) == 39);
    NEED(CUPTI(cuptiSubscribe)(&subscriber, on_call, NULL) == 39);
    if (v->number == 130001) {
        char holder[64] = "";
        NEED(CUPTI(cuptiSubscribe_v2)(
                 &subscriber, on_call, NULL,
                 &(CUpti_SubscriberParams){sizeof(CUpti_SubscriberParams), "me", holder, sizeof holder}) == 39);
        NEED(strcmp(holder, "nsys") == 0);
    }
    sim_world_set_now_ns(world, sim_world_epoch_ns(world) + 2000 * 1000 * US);
    MUST(CUPTI(cuptiActivityEnable)(SIM_KIND_MEMCPY));
}

TEST(a_holder_comes_and_goes) {
    on_each_version(held, ",holder=nsys:1");
}

static void too_old(const struct version *v) {
    uint32_t number;
    MUST(CUPTI(cuptiGetVersion)(&number));
    NEED(number == v->number);
    NEED(CUPTI(cuptiActivityEnable)(SIM_KIND_MEMCPY) == (v->number == 18 ? 0 : 15));
}

TEST(an_old_driver_serves_no_newer_cupti) {
    on_each_version(too_old, ",driver=450");
}
