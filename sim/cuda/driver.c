/* The double of libcuda: initialisation, injection, calls and who is notified of them. */
#include "sim/cuda/double.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct sim_cu_state sim_cu = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    const char *name, *base;
    uint32_t cbid;
    int64_t cost_ns;
} calls[] = {
#define SIM_CU_CALL(name, base, cbid, cost_ns) {#name, #base, cbid, cost_ns},
#include "sim/cuda/calls.def"
#undef SIM_CU_CALL
};

static struct sim_cuda_listener listeners[SIM_CUDA_LISTENER_MAX];
static int listener_count; /* published last */
static uint32_t correlations;
static void (*injected_report)(const struct hec_trace_reported *reported); /* NULL: it wants none */

/* cuInit: whoever comes first does it, the others wait; the injected library may call back. */
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t init_done = PTHREAD_COND_INITIALIZER;
static enum { INIT_NOT, INIT_RUNNING, INIT_DONE } init_state;
static pthread_t init_thread;
static CUresult init_result;

/* ---- listeners ---- */

SIM_EXPORT int hecSimCudaListen(uint32_t abi, const struct sim_cuda_listener *listener) {
    int ret = -1;
    pthread_mutex_lock(&init_lock);
    if (abi == SIM_CUDA_HOOK_ABI && listener_count < SIM_CUDA_LISTENER_MAX) {
        listeners[listener_count] = *listener;
        __atomic_store_n(&listener_count, listener_count + 1, __ATOMIC_RELEASE);
        ret = 0;
    }
    pthread_mutex_unlock(&init_lock);
    return ret;
}

static int listening(void) {
    return __atomic_load_n(&listener_count, __ATOMIC_ACQUIRE);
}

static void count(const struct sim_op *op) {
    pthread_mutex_lock(&sim_cu.lock);
    struct sim_cu_device *device = &sim_cu.devices[op->device];
    struct sim_cuda_device_truth *truth = &device->truth;
    if (op->kind == SIM_OP_KERNEL) {
        truth->kernels++;
        truth->kernel_sum_ns += op->end_ns - op->start_ns;
    } else if (op->kind == SIM_OP_COPY) {
        int side = op->u.copy.copy == SIM_COPY_HTOD   ? op->u.copy.from
                   : op->u.copy.copy == SIM_COPY_DTOH ? op->u.copy.to
                                                      : 0;
        truth->copies++;
        truth->bytes[op->u.copy.copy][side] += op->u.copy.bytes;
    } else if (op->kind == SIM_OP_MEMSET) {
        truth->memsets++;
        truth->memset_bytes += op->u.memset.bytes;
    } else if (op->kind == SIM_OP_GRAPH) {
        truth->graphs++;
    }
    if (op->kind <= SIM_OP_MEMSET) {
        if (!truth->first_ns || op->start_ns < truth->first_ns)
            truth->first_ns = op->start_ns;
        if (op->end_ns > truth->last_ns)
            truth->last_ns = op->end_ns;
        sim_union_add(&device->busy, op->start_ns, op->end_ns);
        sim_union_add(op->kind == SIM_OP_KERNEL ? &device->compute : &device->copy, op->start_ns, op->end_ns);
    }
    pthread_mutex_unlock(&sim_cu.lock);
}

void sim_cu_report(const struct sim_op *op) {
    if (op->kind <= SIM_OP_GRAPH)
        count(op);
    for (int i = 0, n = listening(); i < n; i++)
        listeners[i].op(listeners[i].context, op);
}

bool sim_cu_graph_level(void) {
    for (int i = 0, n = listening(); i < n; i++)
        if (listeners[i].graph_level && listeners[i].graph_level(listeners[i].context))
            return true;
    return false;
}

SIM_EXPORT void hecSimCudaEmit(const struct sim_op *op) {
    struct sim_op planned = *op;
    planned.planned = true;
    if (op->device < (uint32_t)sim_cu.device_count)
        sim_cu_report(&planned);
}

SIM_EXPORT void hecSimCudaReport(const struct hec_trace_reported *reported) {
    if (injected_report)
        injected_report(reported);
}

SIM_EXPORT uint32_t hecSimCudaCorrelations(uint32_t number) {
    return __atomic_fetch_add(&correlations, number, __ATOMIC_RELAXED) + 1;
}

SIM_EXPORT int hecSimCudaTruth(uint32_t device, struct sim_cuda_device_truth *truth) {
    if (device >= (uint32_t)sim_cu.device_count)
        return -1;
    pthread_mutex_lock(&sim_cu.lock);
    *truth = sim_cu.devices[device].truth;
    truth->busy_ns = sim_union_length_ns(&sim_cu.devices[device].busy);
    truth->compute_ns = sim_union_length_ns(&sim_cu.devices[device].compute);
    truth->copy_ns = sim_union_length_ns(&sim_cu.devices[device].copy);
    pthread_mutex_unlock(&sim_cu.lock);
    return 0;
}

SIM_EXPORT const char *hecSimCudaCallName(uint32_t cbid) {
    for (int i = 0; i < SIM_CU_CALL_COUNT; i++)
        if (calls[i].cbid == cbid)
            return calls[i].name;
    return NULL;
}

/* ---- time ---- */

int64_t sim_cu_now(void) {
    return sim_world_now_ns(sim_cu.world);
}

/* With clock=virtual, calls move the clock by what they cost and waiting moves it to what is waited for: a program is then
 * a simulation of discrete events, the same each time. */
void sim_cu_spend(int64_t duration_ns) {
    if (sim_world_spec(sim_cu.world)->virtual_time)
        sim_world_set_now_ns(sim_cu.world, sim_cu_now() + duration_ns);
    else
        sim_world_spend(sim_cu.world, duration_ns);
}

void sim_cu_wait_until(int64_t t_ns) {
    sim_cu_spend(t_ns - sim_cu_now());
}

static uint32_t own_tid(void) {
    static __thread uint32_t tid;
    static __thread pid_t pid;
    if (pid != getpid()) {
        pid = getpid();
        tid = (uint32_t)syscall(SYS_gettid);
    }
    return tid;
}

/* ---- calls ---- */

CUresult sim_cu_enter(struct sim_cu_scope *scope, enum sim_cu_call call) {
    if (__atomic_load_n(&init_state, __ATOMIC_ACQUIRE) == INIT_NOT || !sim_cu.world || sim_cu.pid != getpid())
        return SIM_CUDA_ERROR_NOT_INITIALIZED;
    if (__atomic_load_n(&init_state, __ATOMIC_ACQUIRE) == INIT_DONE && init_result != SIM_CUDA_SUCCESS)
        return SIM_CUDA_ERROR_NOT_INITIALIZED;
    *scope = (struct sim_cu_scope){call, hecSimCudaCorrelations(1), sim_cu_now(), sim_cu_current()};
    for (int i = 0, n = listening(); i < n; i++)
        if (listeners[i].call)
            listeners[i].call(listeners[i].context, 0, calls[call].cbid, calls[call].name, scope->correlation,
                              scope->context, scope->context ? scope->context->id : 0, 0);
    /* the work of a call is done at its end: what it launches cannot start before */
    sim_cu_spend(calls[call].cost_ns);
    return SIM_CUDA_SUCCESS;
}

CUresult sim_cu_leave(const struct sim_cu_scope *scope, CUresult result) {
    if (!listening())
        return result;
    struct sim_op op = {.kind = SIM_OP_API,
                        .correlation = scope->correlation,
                        .launch_ns = scope->start_ns,
                        .start_ns = scope->start_ns,
                        .end_ns = sim_cu_now(),
                        .u.api = {calls[scope->call].cbid, own_tid(), result}};
    sim_cu_report(&op);
    CUcontext context = sim_cu_current();
    for (int i = 0, n = listening(); i < n; i++)
        if (listeners[i].call)
            listeners[i].call(listeners[i].context, 1, calls[scope->call].cbid, calls[scope->call].name,
                              scope->correlation, context, context ? context->id : 0, result);
    return result;
}

/* ---- cuInit ---- */

static CUresult find_devices(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (sim_world_attach(NULL, &sim_cu.world, NULL) != HEC_OK)
        return SIM_CUDA_ERROR_NO_DEVICE;
    int count_found = 0;
    while (count_found < SIM_DEVICE_MAX &&
           sim_cu_find_device(visible, count_found, &sim_cu.devices[count_found]) == HEC_OK)
        count_found++;
    sim_cu.device_count = count_found;
    sim_cu.pid = getpid();
    return count_found ? SIM_CUDA_SUCCESS : SIM_CUDA_ERROR_NO_DEVICE;
}

/* As the driver does: a tool names its library in CUDA_INJECTION64_PATH. What the library says changes nothing. */
static void inject(void) {
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*initialize)(void) = NULL;
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (initialize && initialize())
        *(void **)&injected_report = dlsym(library, "hec_trace_report");
}

SIM_EXPORT CUresult cuInit(unsigned flags) {
    if (flags)
        return SIM_CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&init_lock);
    while (init_state == INIT_RUNNING && !pthread_equal(init_thread, pthread_self()))
        pthread_cond_wait(&init_done, &init_lock);
    if (init_state != INIT_NOT) { /* done, or called by the injected library */
        CUresult result = init_state == INIT_DONE ? init_result : SIM_CUDA_SUCCESS;
        pthread_mutex_unlock(&init_lock);
        return sim_cu.world && sim_cu.pid != getpid() ? SIM_CUDA_ERROR_NOT_INITIALIZED : result;
    }
    init_thread = pthread_self();
    CUresult result = find_devices();
    __atomic_store_n(&init_state, INIT_RUNNING, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&init_lock);
    int64_t begin = sim_cu.world ? sim_cu_now() : 0;
    if (result == SIM_CUDA_SUCCESS) {
        sim_cu_spend(calls[SIM_CALL_cuInit].cost_ns);
        inject();
    }
    pthread_mutex_lock(&init_lock);
    init_result = result;
    __atomic_store_n(&init_state, INIT_DONE, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&init_done);
    pthread_mutex_unlock(&init_lock);
    if (result == SIM_CUDA_SUCCESS)
        sim_cu_leave(&(struct sim_cu_scope){SIM_CALL_cuInit, hecSimCudaCorrelations(1), begin, NULL}, result);
    return result;
}

SIM_EXPORT int hecSimCudaDriverVersion(void) {
    struct sim_world *world;
    if (sim_world_attach(NULL, &world, NULL) != HEC_OK)
        return 0;
    int version = sim_world_spec(world)->driver == 450 ? 11000 : 13000;
    sim_world_detach(world);
    return version;
}

SIM_EXPORT int64_t hecSimCudaNow(void) {
    return sim_cu.world ? sim_cu_now() : 0;
}

/* Works before cuInit, as NVIDIA's. */
SIM_EXPORT CUresult cuDriverGetVersion(int *version) {
    if (!version)
        return SIM_CUDA_ERROR_INVALID_VALUE;
    *version = hecSimCudaDriverVersion();
    return SIM_CUDA_SUCCESS;
}

/* ---- names ---- */

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define SIM_CU_ERROR(code, name, text) {code, #name, text},
#include "sim/cuda/errors.def"
#undef SIM_CU_ERROR
};

static CUresult describe(CUresult error, const char **text, bool name) {
    if (!text)
        return SIM_CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == error)
            *text = name ? errors[i].name : errors[i].text;
    return *text ? SIM_CUDA_SUCCESS : SIM_CUDA_ERROR_INVALID_VALUE;
}

SIM_EXPORT CUresult cuGetErrorName(CUresult error, const char **text) {
    return describe(error, text, true);
}

SIM_EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
    return describe(error, text, false);
}

/* By the plain name, which means the newest version that the double has, or by the exported one. */
SIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    (void)version, (void)flags;
    if (!symbol || !function)
        return SIM_CUDA_ERROR_INVALID_VALUE;
    const char *name = NULL;
    for (int i = 0; i < SIM_CU_CALL_COUNT && !name; i++)
        if (strcmp(calls[i].base, symbol) == 0 || strcmp(calls[i].name, symbol) == 0)
            name = calls[i].name;
    Dl_info self;
    void *library = name && dladdr(&sim_cu, &self) ? dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    *function = library ? dlsym(library, name) : NULL;
    if (library)
        dlclose(library); /* it stays loaded: this code is in it */
    if (status)
        *status = *function ? 0 : 1;
    return *function ? SIM_CUDA_SUCCESS : SIM_CUDA_ERROR_NOT_FOUND;
}

SIM_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
