/* Processes with a context on the device, and what share of the SMs each used. */
#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>

#define LIST_MAX 4096   /* entries of one list of the driver */
#define TABLE_MAX 16384 /* processes remembered a device: 256 a minute for an hour, then no new ones */

static struct nvml_process *find_process(struct nvml_processes *table, int32_t pid) {
    for (int i = table->count - 1; i >= 0; i--) /* the living are the newer ones */
        if (table->items[i].record.pid == pid)
            return &table->items[i];
    return NULL;
}

static struct nvml_process *find_or_add(struct nvml_device *device, int32_t pid, int64_t now_ns) {
    struct nvml_processes *table = &device->processes;
    struct nvml_process *known = find_process(table, pid);
    if (known)
        return known;
    if (table->count == table->capacity) {
        int capacity = table->capacity ? 2 * table->capacity : 16;
        void *bigger = capacity <= TABLE_MAX ? realloc(table->items, (size_t)capacity * sizeof *table->items) : NULL;
        if (!bigger) {
            if (!table->overflowed)
                nvml_event(device, HEC_EVENT_NOTE, "too many processes used the device: later ones are not listed");
            table->overflowed = true;
            return NULL;
        }
        table->items = bigger;
        table->capacity = capacity;
    }
    struct nvml_process *added = &table->items[table->count++];
    *added = (struct nvml_process){.reported_ns = INT64_MIN, .memory_kib = -1};
    added->record = (struct hec_gpu_process){.device = device->info.index,
                                             .pid = pid,
                                             .first_ns = now_ns,
                                             .memory_max_kib = -1,
                                             .sm_util_permille = -1,
                                             .gpu_instance = -1};
    /* in a container the driver may name processes of an outer pid namespace */
    added->record.visible = kill(pid, 0) == 0 || errno == EPERM;
    added->changed = true;
    return added;
}

/* The same process may stand in a list more than once (MIG instances) and in both lists. */
static void note_process(struct nvml_device *device, unsigned pid, unsigned long long used_bytes, unsigned gpu_instance,
                         int64_t now_ns) {
    if (pid == 0 || pid > INT_MAX)
        return;
    struct nvml_process *process = find_or_add(device, (int32_t)pid, now_ns);
    if (!process)
        return;
    if (!process->seen)
        process->memory_kib = -1;
    process->seen = true;
    process->record.gpu_instance = gpu_instance <= INT_MAX ? (int)gpu_instance : -1;
    process->record.last_ns = now_ns;
    if (used_bytes != HEC_NVML_NOT_AVAILABLE)
        process->memory_kib = (process->memory_kib < 0 ? 0 : process->memory_kib) + (int64_t)(used_bytes / 1024);
}

/* Fetch one list into the observer's buffer. The driver says INSUFFICIENT_SIZE and the number when there is more. */
static int fetch(struct nvml_device *device, hec_nvml_device handle, enum nvml_sensor sensor, bool *old_layout,
                 unsigned *count) {
    const struct hec_nvml *nvml = &device->observer->nvml;
    bool compute = sensor == NVML_SENSOR_COMPUTE;
    *old_layout = compute ? !nvml->compute_processes : !nvml->graphics_processes;
    size_t size = *old_layout ? sizeof(struct hec_nvml_process_v1) : sizeof(struct hec_nvml_process);
    unsigned room = 64;
    int code;
    do {
        if (!nvml_buffer(device->observer, room * size))
            return HEC_NVML_MEMORY;
        void *list = device->observer->buffer;
        *count = room;
        if (!*old_layout)
            code = (compute ? nvml->compute_processes : nvml->graphics_processes)(handle, count, list);
        else if (compute ? nvml->compute_processes_v1 : nvml->graphics_processes_v1)
            code = (compute ? nvml->compute_processes_v1 : nvml->graphics_processes_v1)(handle, count, list);
        else
            code = HEC_NVML_FUNCTION_NOT_FOUND;
        room *= 4;
    } while (code == HEC_NVML_INSUFFICIENT_SIZE && room <= LIST_MAX);
    if (code == HEC_NVML_SUCCESS && *count > room / 4)
        return HEC_NVML_UNKNOWN;
    return code;
}

/* gpu_instance: of the handle; UINT_MAX: the list says it. */
static int note_list(struct nvml_device *device, hec_nvml_device handle, enum nvml_sensor sensor,
                     unsigned gpu_instance) {
    bool old_layout;
    unsigned count = 0;
    int code = fetch(device, handle, sensor, &old_layout, &count);
    int64_t now = hec_clock_mono_ns();
    const struct hec_nvml_process_v1 *v1 = device->observer->buffer;
    const struct hec_nvml_process *v2 = device->observer->buffer;
    for (unsigned i = 0; i < count && code == HEC_NVML_SUCCESS; i++)
        if (old_layout)
            note_process(device, v1[i].pid, v1[i].used_bytes, gpu_instance, now);
        else
            note_process(device, v2[i].pid, v2[i].used_bytes,
                         gpu_instance == UINT_MAX ? v2[i].gpu_instance : gpu_instance, now);
    return code;
}

/* Without the right to see all instances of a divided device the driver refuses the list of the whole. Then each instance is asked. */
static bool read_list(struct nvml_device *device, enum nvml_sensor sensor) {
    const struct nvml_instances *instances = &device->instances;
    int64_t t0 = hec_clock_mono_ns();
    if (!nvml_call_due(device, sensor, t0))
        return false;
    int code = note_list(device, device->handle, sensor, UINT_MAX);
    for (int i = 0; i < instances->count && (i == 0 ? code == HEC_NVML_NO_PERMISSION : code == HEC_NVML_SUCCESS); i++)
        code = note_list(device, instances->items[i].handle, sensor, (unsigned)instances->items[i].record.id);
    return nvml_call_done(device, sensor, t0, code);
}

/* The driver keeps the samples. Paced: as often as the CPU share allows, so that shares follow what processes do. */
int64_t nvml_utilization_interval(const struct nvml_observer *observer) {
    if (!observer->options->interval_ns)
        return HEC_TUNE_PROCESS_UTIL_NS;
    int64_t cpu_ns = 0;
    for (int i = 0; i < observer->count; i++)
        cpu_ns += observer->devices[i].processes.util_cpu_ns;
    int64_t interval = (int64_t)((double)cpu_ns / HEC_TUNE_FIXED_PROCESS_UTIL_SHARE);
    if (interval > HEC_TUNE_FIXED_PROCESS_UTIL_MAX_NS)
        interval = HEC_TUNE_FIXED_PROCESS_UTIL_MAX_NS;
    /* a little less than a multiple of the interval, so that it is due when the lists are read */
    return interval / observer->options->interval_ns * observer->options->interval_ns +
           observer->options->interval_ns / 2;
}

/* Samples of one call are of one window: since the newest of the call before. The driver leaves out who had no part in it. */
static void take_utilization(struct nvml_processes *table, const struct hec_nvml_process_utilization *samples,
                             unsigned count) {
    uint64_t newest = table->last_us;
    for (unsigned i = 0; i < count; i++) {
        struct nvml_process *process = find_process(table, (int32_t)samples[i].pid);
        if (samples[i].time_us > newest)
            newest = samples[i].time_us;
        if (!process || samples[i].sm > 100 || samples[i].time_us <= table->last_us)
            continue;
        process->record.sm_util_sum_permille += (int64_t)samples[i].sm * 10;
        process->record.sm_util_samples++;
        process->ran = true;
    }
    for (int i = 0; i < table->count; i++) {
        struct nvml_process *process = &table->items[i];
        process->record.sm_util_samples += process->seen && !process->ran && newest > table->last_us;
        process->ran = false;
    }
    table->last_us = newest;
}

static void read_utilization(struct nvml_device *device) {
    const struct hec_nvml *nvml = &device->observer->nvml;
    int64_t t0 = hec_clock_mono_ns();
    unsigned count = 256;
    if (t0 < device->processes.util_due_ns || !nvml_call_due(device, NVML_SENSOR_PROCESS_UTIL, t0) ||
        !nvml_buffer(device->observer, count * sizeof(struct hec_nvml_process_utilization)))
        return;
    struct hec_nvml_process_utilization *samples = device->observer->buffer;
    int64_t cpu = nvml_thread_cpu_ns();
    int code = HEC_NVML_FUNCTION_NOT_FOUND;
    if (nvml->process_utilization)
        code = nvml->process_utilization(device->handle, samples, &count, device->processes.last_us);
    device->processes.util_cpu_ns = nvml_thread_cpu_ns() - cpu;
    device->processes.util_due_ns = t0 + nvml_utilization_interval(device->observer);
    if (code == HEC_NVML_NOT_FOUND || code == HEC_NVML_INSUFFICIENT_SIZE) { /* nothing ran, or more than fits */
        code = HEC_NVML_SUCCESS;
        count = 0;
    }
    if (!nvml_call_done(device, NVML_SENSOR_PROCESS_UTIL, t0, code))
        return;
    take_utilization(&device->processes, samples, count < 256 ? count : 256);
}

static void report(struct nvml_device *device, struct nvml_process *process, int64_t now_ns) {
    const struct hec_sink *sink = device->observer->sink;
    if (process->record.sm_util_samples > 0)
        process->record.sm_util_permille =
            (int)(process->record.sm_util_sum_permille / process->record.sm_util_samples);
    sink->gpu_process(sink->context, &process->record);
    process->reported_ns = now_ns;
    process->changed = false;
}

/* Reported when new, when gone, when its memory grew by more than a sixteenth, and every 10 s; fixed: always. */
static void settle(struct nvml_device *device, struct nvml_process *process, int64_t now_ns) {
    struct hec_gpu_process *record = &process->record;
    record->memory_kib = process->memory_kib;
    if (process->memory_kib > record->memory_max_kib) {
        process->changed |= process->memory_kib > record->memory_max_kib + record->memory_max_kib / 16;
        record->memory_max_kib = process->memory_kib;
    }
    bool fixed = device->observer->options->interval_ns > 0;
    bool due = process->seen && (fixed || now_ns >= process->reported_ns + HEC_TUNE_PROCESS_REPORT_NS);
    if (process->changed || due || (process->was_seen && !process->seen))
        report(device, process, now_ns);
}

/* Paced: those that are gone were reported, and a node sees any number of them. */
static void forget_gone(struct nvml_processes *table) {
    int kept = 0;
    for (int i = 0; i < table->count; i++)
        if (table->items[i].seen)
            table->items[kept++] = table->items[i];
    table->count = kept;
}

int64_t nvml_run_processes(struct nvml_device *device, int64_t now_ns) {
    struct nvml_processes *table = &device->processes;
    int before = table->count, present = 0;
    for (int i = 0; i < before; i++) {
        table->items[i].was_seen = table->items[i].seen;
        table->items[i].seen = false;
    }
    bool compute = read_list(device, NVML_SENSOR_COMPUTE);
    bool graphics = read_list(device, NVML_SENSOR_GRAPHICS);
    if (compute || graphics) {
        read_utilization(device);
        for (int i = 0; i < table->count; i++) {
            present += table->items[i].seen;
            settle(device, &table->items[i], now_ns);
        }
        if (device->observer->options->interval_ns)
            forget_gone(table);
        nvml_emit(device, HEC_GPU_CONTEXTS, hec_clock_mono_ns(), present);
    }
    if (device->lost || (device->health[NVML_SENSOR_COMPUTE].off && device->health[NVML_SENSOR_GRAPHICS].off))
        return INT64_MAX;
    return now_ns + nvml_interval(device, HEC_TUNE_PROCESS_INTERVAL_NS);
}

void nvml_processes_finish(struct nvml_device *device) {
    int64_t now = hec_clock_mono_ns();
    for (int i = 0; i < device->processes.count; i++)
        if (device->processes.items[i].seen)
            report(device, &device->processes.items[i], now);
}
