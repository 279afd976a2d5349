/* The double: library state, faults, and the calls on no device. */
#include "sim/nvml/double.h"
#include "sim/nvml/exports.h"

#include "base/clock.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define HANG_NS (60 * HEC_NS_PER_S)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_world *the_world;
static int users;
/* [device][0] the whole one, [device][1 + i] its MIG device i */
static struct sim_handle handles[SIM_DEVICE_MAX][1 + SIM_MIG_MAX];

struct sim_handle *sim_nvml_handle(int device, int mig) {
    return &handles[device][1 + mig];
}

static bool valid(const struct sim_handle *handle, const struct sim_world *world) {
    const char *first = (const char *)handles, *p = (const char *)handle;
    if (p < first || p >= first + sizeof handles || (size_t)(p - first) % sizeof *handle)
        return false;
    const struct sim_spec *spec = sim_world_spec(world);
    return handle->device < spec->count &&
           (handle->mig < 0 ||
            (sim_world_instance_there(world, handle->mig, sim_world_now_ns(world)) && handle->device == 0));
}

/* The world outlives every call that found it: shutdown only drops it when nobody uses the library, as with NVML. */
static sim_nvml_ret apply_faults(enum sim_call call, struct sim_world *world) {
    const struct sim_spec *spec = sim_world_spec(world);
    int64_t since = sim_world_now_ns(world) - sim_world_epoch_ns(world);
    sim_nvml_ret ret = SIM_NVML_SUCCESS;
    for (int i = 0; i < spec->fault_count; i++) {
        const struct sim_fault *fault = &spec->faults[i];
        if (fault->call != call || since < fault->at_ns || since >= fault->until_ns)
            continue;
        if (fault->kind == SIM_FAULT_SLOW)
            sim_world_spend(world, fault->delay_ns);
        else if (fault->kind == SIM_FAULT_HANG) {
            sim_world_spend(world, HANG_NS); /* bounded, so that a test that forgets it ends */
            ret = SIM_NVML_TIMEOUT;
        } else if (fault->kind == SIM_FAULT_FAIL)
            ret = SIM_NVML_UNKNOWN;
    }
    return ret;
}

sim_nvml_ret sim_nvml_enter(enum sim_call call, const struct sim_handle *handle, struct sim_world **world) {
    pthread_mutex_lock(&lock);
    *world = the_world;
    pthread_mutex_unlock(&lock);
    if (!*world)
        return SIM_NVML_UNINITIALIZED;
    if (handle && !valid(handle, *world))
        return SIM_NVML_INVALID_ARGUMENT;
    sim_world_spend(*world, sim_call_cost_ns(call));
    sim_nvml_ret ret = apply_faults(call, *world);
    if (handle && sim_world_lost(*world, handle->device, sim_world_now_ns(*world)))
        return SIM_NVML_GPU_IS_LOST;
    return ret;
}

sim_nvml_ret sim_nvml_enter_whole(enum sim_call call, const struct sim_handle *handle, struct sim_world **world) {
    if (!handle)
        return SIM_NVML_INVALID_ARGUMENT;
    sim_nvml_ret ret = sim_nvml_enter(call, handle, world);
    return ret == SIM_NVML_SUCCESS && handle->mig >= 0 ? SIM_NVML_NOT_SUPPORTED : ret;
}

unsigned sim_nvml_instance_id(const struct sim_handle *handle) {
    return handle->mig < 0 ? UINT_MAX : (unsigned)handle->mig + 1;
}

sim_nvml_ret sim_nvml_put(char *buffer, unsigned length, const char *text) {
    if (!buffer)
        return SIM_NVML_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return SIM_NVML_INSUFFICIENT_SIZE;
    memcpy(buffer, text, strlen(text) + 1);
    return SIM_NVML_SUCCESS;
}

unsigned long long sim_nvml_wall_us(const struct sim_world *world, int64_t t_ns) {
    return (unsigned long long)((t_ns + sim_world_wall_offset_ns(world)) / HEC_NS_PER_US);
}

static sim_nvml_ret start(enum sim_call call) {
    sim_nvml_ret ret = SIM_NVML_SUCCESS;
    pthread_mutex_lock(&lock);
    if (users == 0) {
        for (int d = 0; d < SIM_DEVICE_MAX; d++)
            for (int i = 0; i <= SIM_MIG_MAX; i++)
                handles[d][i] = (struct sim_handle){d, i - 1};
        if (sim_world_attach(NULL, &the_world, NULL) != HEC_OK)
            ret = SIM_NVML_DRIVER_NOT_LOADED;
        else
            ret = apply_faults(call, the_world);
        if (ret != SIM_NVML_SUCCESS) {
            sim_world_detach(the_world);
            the_world = NULL;
        }
    }
    users += ret == SIM_NVML_SUCCESS;
    pthread_mutex_unlock(&lock);
    return ret;
}

SIM_EXPORT sim_nvml_ret nvmlInit(void) {
    return start(SIM_CALL_nvmlInit);
}

SIM_EXPORT sim_nvml_ret nvmlInit_v2(void) {
    return start(SIM_CALL_nvmlInit_v2);
}

SIM_EXPORT sim_nvml_ret nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return start(SIM_CALL_nvmlInitWithFlags);
}

SIM_EXPORT sim_nvml_ret nvmlShutdown(void) {
    sim_nvml_ret ret = SIM_NVML_UNINITIALIZED;
    pthread_mutex_lock(&lock);
    if (users > 0) {
        ret = SIM_NVML_SUCCESS;
        if (--users == 0) {
            sim_world_detach(the_world);
            the_world = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return ret;
}

/* The mark by which a program knows that the device is not real. Works before nvmlInit. */
SIM_EXPORT int hecSimulatedGpu(char *profile, unsigned length) {
    struct sim_world *world;
    if (sim_world_attach(NULL, &world, NULL) != HEC_OK)
        return sim_nvml_put(profile, length, "none");
    char text[64];
    const struct sim_profile *p = sim_world_profile(world);
    if (strcmp(p->known, "measured") == 0)
        snprintf(text, sizeof text, "%s", p->name);
    else
        snprintf(text, sizeof text, "%s (%s)", p->name, p->known);
    sim_world_detach(world);
    return sim_nvml_put(profile, length, text);
}

SIM_EXPORT const char *nvmlErrorString(sim_nvml_ret ret) {
    switch (ret) {
    case SIM_NVML_SUCCESS:
        return "Success";
    case SIM_NVML_UNINITIALIZED:
        return "Uninitialized";
    case SIM_NVML_INVALID_ARGUMENT:
        return "Invalid Argument";
    case SIM_NVML_NOT_SUPPORTED:
        return "Not Supported";
    case SIM_NVML_NO_PERMISSION:
        return "Insufficient Permissions";
    case SIM_NVML_NOT_FOUND:
        return "Not Found";
    case SIM_NVML_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case SIM_NVML_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case SIM_NVML_TIMEOUT:
        return "Timeout";
    case SIM_NVML_GPU_IS_LOST:
        return "GPU is lost";
    case SIM_NVML_MEMORY:
        return "Insufficient Memory";
    case SIM_NVML_ARGUMENT_VERSION_MISMATCH:
        return "Argument version mismatch";
    default:
        return "Unknown Error";
    }
}

static bool old(const struct sim_world *world) {
    return sim_world_spec(world)->driver < 580;
}

SIM_EXPORT sim_nvml_ret nvmlSystemGetDriverVersion(char *version, unsigned length) {
    SIM_ENTER(nvmlSystemGetDriverVersion, NULL);
    return sim_nvml_put(version, length, old(world) ? "450.80.02" : "580.159.04");
}

SIM_EXPORT sim_nvml_ret nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    SIM_ENTER(nvmlSystemGetNVMLVersion, NULL);
    return sim_nvml_put(version, length, old(world) ? "11.450.80.02" : "13.580.159.04");
}

SIM_EXPORT sim_nvml_ret nvmlSystemGetCudaDriverVersion(int *version) {
    SIM_ENTER(nvmlSystemGetCudaDriverVersion, NULL);
    if (!version)
        return SIM_NVML_INVALID_ARGUMENT;
    *version = old(world) ? 11000 : 13000;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return nvmlSystemGetCudaDriverVersion(version);
}

SIM_EXPORT sim_nvml_ret nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
    SIM_ENTER(nvmlSystemGetProcessName, NULL);
    char path[40], text[256] = "";
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return SIM_NVML_NOT_FOUND;
    if (!fgets(text, sizeof text, file))
        text[0] = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    return sim_nvml_put(name, length, text);
}

static sim_nvml_ret count_devices(struct sim_world *world, unsigned *count) {
    if (!count)
        return SIM_NVML_INVALID_ARGUMENT;
    *count = (unsigned)sim_world_spec(world)->count;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetCount(unsigned *count) {
    SIM_ENTER(nvmlDeviceGetCount, NULL);
    return count_devices(world, count);
}

SIM_EXPORT sim_nvml_ret nvmlDeviceGetCount_v2(unsigned *count) {
    SIM_ENTER(nvmlDeviceGetCount_v2, NULL);
    return count_devices(world, count);
}
