/* The double of libcupti: how it finds the simulated machine, and its clock. */
#include "sim/cupti/double.h"

#include <dlfcn.h>
#include <stdlib.h>

struct sim_cupti_state sim_cupti = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CUptiResult found;
static const char *(*call_name)(uint32_t cbid);

static void find(void) {
    int (*listen)(uint32_t, const struct sim_cuda_listener *) = NULL;
    int (*driver_version)(void) = NULL;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sim_cupti.wake, &monotonic);
    pthread_cond_init(&sim_cupti.settled, &monotonic);
    found = SIM_CUPTI_ERROR_NOT_INITIALIZED;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || sim_world_attach(NULL, &sim_cupti.world, NULL) != HEC_OK)
        return;
    *(void **)&listen = dlsym(library, "hecSimCudaListen");
    *(void **)&driver_version = dlsym(library, "hecSimCudaDriverVersion");
    *(void **)&call_name = dlsym(library, "hecSimCudaCallName");
    /* a driver is as new as its toolkit or newer */
    if (!listen || !driver_version || !call_name || driver_version() < SIM_CUPTI / 10 * 1000)
        return;
    sim_cupti.wall_offset_ns = sim_world_wall_offset_ns(sim_cupti.world);
    if (listen(SIM_CUDA_HOOK_ABI,
               &(struct sim_cuda_listener){sim_cupti_op, sim_cupti_call, sim_cupti_graph_level, NULL}) == 0)
        found = SIM_CUPTI_SUCCESS;
}

CUptiResult sim_cupti_ready(void) {
    pthread_once(&once, find);
    return found;
}

const struct sim_trace_spec *sim_cupti_spec(void) {
    return &sim_world_spec(sim_cupti.world)->trace;
}

bool sim_cupti_held(void) {
    const struct sim_trace_spec *spec = sim_cupti_spec();
    return spec->holder[0] &&
           (!spec->holder_until_ns || sim_cupti_now() - sim_world_epoch_ns(sim_cupti.world) < spec->holder_until_ns);
}

int64_t sim_cupti_now(void) {
    return sim_world_now_ns(sim_cupti.world);
}

uint64_t sim_cupti_time(int64_t t_ns) {
    if (sim_cupti.timestamp)
        return (uint64_t)(t_ns + sim_cupti.timestamp_offset_ns);
    const struct sim_trace_spec *spec = sim_cupti_spec();
    int64_t since = t_ns - sim_world_epoch_ns(sim_cupti.world);
    return (uint64_t)(t_ns + sim_cupti.wall_offset_ns + spec->offset_ns +
                      (int64_t)((__int128)since * spec->skew_ppm / 1000000));
}

const char *sim_cupti_driver_name(uint32_t cbid) {
    return call_name ? call_name(cbid) : NULL;
}
