/* The MIG devices of a divided device: what they are, their memory, and the hardware counters of their GPU instances. They are
 * made and destroyed while others work, so they are looked for again now and then, and at once where one does not answer. */
#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"

#include <stdio.h>
#include <string.h>

static const char *after_last(const char *text, const char *word) {
    const char *found = NULL;
    for (const char *at = text; (at = strstr(at, word)); at++)
        found = at + strlen(word);
    return found;
}

/* "NVIDIA H200 MIG 1c.3g.71gb" is a part of the compute of a "3g.71gb". */
static void name_profile(struct hec_gpu_instance *record, const char *name, const struct hec_nvml_attributes *has) {
    const char *profile = after_last(name, " MIG ");
    unsigned compute;
    int skip = 0;
    if (!profile && has->gpu_instance_slices)
        snprintf(record->profile, sizeof record->profile, "%ug.%llugb", has->gpu_instance_slices,
                 (has->memory_mib + 1023) / 1024);
    if (!profile)
        return;
    if (sscanf(profile, "%uc.%n", &compute, &skip) != 1)
        skip = 0;
    snprintf(record->profile, sizeof record->profile, "%s", profile + skip);
}

static bool describe(const struct hec_nvml *nvml, hec_nvml_device handle, struct hec_gpu_instance *record) {
    unsigned id, compute_id;
    char name[HEC_NVML_NAME_SIZE];
    struct hec_nvml_attributes has = {0};
    if (nvml->gpu_instance_id(handle, &id) != HEC_NVML_SUCCESS ||
        nvml->device_uuid(handle, record->uuid, sizeof record->uuid) != HEC_NVML_SUCCESS)
        return false;
    record->id = (int)id;
    if (nvml->compute_instance_id && nvml->compute_instance_id(handle, &compute_id) == HEC_NVML_SUCCESS)
        record->compute_id = (int)compute_id;
    if (nvml->attributes && nvml->attributes(handle, &has) == HEC_NVML_SUCCESS)
        record->slices = (int)has.gpu_instance_slices;
    if (nvml->device_name(handle, name, sizeof name) != HEC_NVML_SUCCESS)
        name[0] = '\0';
    name_profile(record, name, &has);
    return true;
}

static struct nvml_instance *find(struct nvml_instances *instances, const char *uuid) {
    for (int i = 0; i < instances->count; i++)
        if (strcmp(instances->items[i].record.uuid, uuid) == 0)
            return &instances->items[i];
    return NULL;
}

/* Those that are there now, with the counters of those that were there before. */
static void list(struct nvml_device *device, unsigned slots) {
    const struct hec_nvml *nvml = &device->observer->nvml;
    struct nvml_instances *instances = &device->instances, before = *instances;
    instances->count = 0;
    for (unsigned slot = 0; slot < slots && instances->count < HEC_GPU_INSTANCES_MAX; slot++) {
        struct nvml_instance *instance = &instances->items[instances->count];
        hec_nvml_device handle;
        if (nvml->mig_by_index(device->handle, slot, &handle) != HEC_NVML_SUCCESS) /* a slot may be empty */
            continue;
        *instance = (struct nvml_instance){.handle = handle};
        instance->record =
            (struct hec_gpu_instance){.device = device->info.index, .slices_of = (int)slots, .until_ns = INT64_MIN};
        memset(instance->record.counters, 0xff, sizeof instance->record.counters); /* -1 */
        if (!describe(nvml, handle, &instance->record))
            continue;
        struct nvml_instance *was = find(&before, instance->record.uuid);
        if (was && was->record.id == instance->record.id) {
            instance->record = was->record;
            instance->gpm = was->gpm;
            was->gpm = (struct nvml_gpm){0};
        }
        instances->count++;
    }
    for (int i = 0; i < before.count; i++)
        nvml_gpm_free(nvml, &before.items[i].gpm);
}

/* The mode of a device may change, too. False: it is none that can be divided. */
static bool look(struct nvml_device *device, int64_t now_ns) {
    const struct hec_nvml *nvml = &device->observer->nvml;
    unsigned mig = 0, pending, slots = 0;
    int64_t t0 = hec_clock_mono_ns();
    if (!nvml_call_due(device, NVML_SENSOR_MIG, t0))
        return !device->health[NVML_SENSOR_MIG].off;
    int code = HEC_NVML_FUNCTION_NOT_FOUND;
    if (nvml->mig_mode && nvml->mig_max_count && nvml->mig_by_index && nvml->device_uuid && nvml->gpu_instance_id)
        code = nvml->mig_mode(device->handle, &mig, &pending);
    if (code == HEC_NVML_SUCCESS && mig == 1)
        code = nvml->mig_max_count(device->handle, &slots);
    if (!nvml_call_done(device, NVML_SENSOR_MIG, t0, code))
        return !device->health[NVML_SENSOR_MIG].off;
    list(device, slots);
    device->instances.listed_ns = now_ns;
    if (device->info.mig_enabled != (mig == 1)) {
        device->info.mig_enabled = mig == 1;
        device->observer->sink->device(device->observer->sink->context, &device->info);
    }
    return true;
}

static void read_memory(const struct hec_nvml *nvml, struct nvml_instance *instance) {
    struct hec_gpu_instance *record = &instance->record;
    struct hec_nvml_memory_v2 memory;
    bool known = nvml_read_memory(nvml, instance->handle, &memory) == HEC_NVML_SUCCESS;
    record->memory_used_kib = known ? (int64_t)(memory.used / 1024) : -1;
    record->memory_free_kib = known ? (int64_t)(memory.free / 1024) : -1;
    record->memory_reserved_kib = known && memory.version ? (int64_t)(memory.reserved / 1024) : -1;
}

/* Of the GPU instance: the first MIG device in it. */
static struct nvml_instance *first_of(struct nvml_instances *instances, int id) {
    struct nvml_instance *instance = instances->items;
    while (instance->record.id != id)
        instance++;
    return instance;
}

static int read_counters(struct nvml_device *device, struct nvml_instance *instance) {
    const struct hec_nvml *nvml = &device->observer->nvml;
    struct nvml_gpm *gpm = &instance->gpm;
    int64_t cpu = nvml_thread_cpu_ns();
    if (!nvml->gpm_mig_sample_get || !nvml->gpm_sample_alloc || !nvml->gpm_sample_free || !nvml->gpm_metrics)
        return HEC_NVML_FUNCTION_NOT_FOUND;
    if (!gpm->older && !nvml_gpm_alloc(nvml, gpm)) {
        nvml_gpm_free(nvml, gpm);
        return HEC_NVML_MEMORY;
    }
    if (hec_clock_mono_ns() - HEC_TUNE_GPM_WINDOW_LEAST_NS <= gpm->older_end_ns) /* it would read as 0 */
        return HEC_NVML_SUCCESS;
    int code = nvml->gpm_mig_sample_get(device->handle, (unsigned)instance->record.id, gpm->newer);
    int64_t end_ns = hec_clock_mono_ns();
    bool first = gpm->older_end_ns == INT64_MIN;
    if (code == HEC_NVML_SUCCESS && !first)
        code = nvml_gpm_counters(nvml, gpm, instance->record.counters);
    if (code != HEC_NVML_SUCCESS) {
        gpm->older_end_ns = INT64_MIN;
        return code;
    }
    if (!first) {
        instance->record.from_ns = gpm->older_end_ns;
        instance->record.until_ns = end_ns;
        nvml_gpm_cost(gpm, nvml_thread_cpu_ns() - cpu);
    }
    nvml_gpm_swap(gpm, end_ns);
    return code;
}

/* One that does not answer may be gone: it is looked for before anything is said of it. */
static void read_all_counters(struct nvml_device *device) {
    struct nvml_instances *instances = &device->instances;
    int64_t t0 = hec_clock_mono_ns();
    int failed = HEC_NVML_SUCCESS;
    if (instances->count == 0 || !nvml_call_due(device, NVML_SENSOR_MIG_GPM, t0) ||
        t0 - instances->sampled_ns < nvml_gpm_interval(device->observer) - device->observer->options->interval_ns / 2)
        return;
    for (int i = 0; i < instances->count && failed != HEC_NVML_GPU_IS_LOST; i++) {
        struct nvml_instance *instance = &instances->items[i], *first = first_of(instances, instance->record.id);
        int code = first == instance ? read_counters(device, instance) : HEC_NVML_SUCCESS;
        memcpy(instance->record.counters, first->record.counters, sizeof instance->record.counters);
        instance->record.from_ns = first->record.from_ns;
        instance->record.until_ns = first->record.until_ns;
        if (code == HEC_NVML_SUCCESS)
            continue;
        instance->record.until_ns = INT64_MIN;
        failed = code;
        instances->listed_ns = INT64_MIN;
    }
    instances->sampled_ns = t0;
    bool gone = failed == HEC_NVML_INVALID_ARGUMENT || failed == HEC_NVML_NOT_FOUND;
    nvml_call_done(device, NVML_SENSOR_MIG_GPM, t0, gone ? HEC_NVML_SUCCESS : failed);
}

int64_t nvml_run_instances(struct nvml_device *device, int64_t now_ns) {
    const struct nvml_observer *observer = device->observer;
    struct nvml_instances *instances = &device->instances;
    if (!observer->options->interval_ns)
        return INT64_MAX;
    if ((instances->listed_ns == INT64_MIN || now_ns - instances->listed_ns >= HEC_TUNE_MIG_LIST_NS) &&
        !look(device, now_ns))
        return INT64_MAX;
    read_all_counters(device);
    bool due = now_ns - instances->memory_ns >= HEC_TUNE_MIG_MEMORY_NS;
    instances->memory_ns = due ? now_ns : instances->memory_ns;
    for (int i = 0; i < instances->count && !device->lost; i++) {
        struct nvml_instance *instance = &instances->items[i];
        if (due || instance->record.t_ns == 0)
            read_memory(&observer->nvml, instance);
        instance->record.t_ns = hec_clock_mono_ns();
        observer->sink->gpu_instance(observer->sink->context, &instance->record);
    }
    return now_ns + (instances->count ? nvml_interval(device, 0) : HEC_TUNE_MIG_LIST_NS);
}

void nvml_instances_close(struct nvml_device *device) {
    for (int i = 0; i < device->instances.count; i++)
        nvml_gpm_free(&device->observer->nvml, &device->instances.items[i].gpm);
    device->instances.count = 0;
}
