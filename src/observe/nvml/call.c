#include "observe/nvml/internal.h"

#include "observe/nvml/tuning.h"

#include <stdlib.h>
#include <time.h>

static const struct {
    int64_t normal_ns;
    enum hec_metric metric, second; /* HEC_METRIC_COUNT: none */
    const char *text;
} sensors[] = {
#define HEC_NVML_SENSOR(id, normal_us, metric, second, text)                                                           \
    {(normal_us)*HEC_NS_PER_US, HEC_##metric, HEC_##second, text},
#include "observe/nvml/sensors.def"
#undef HEC_NVML_SENSOR
};

const char *nvml_sensor_text(enum nvml_sensor sensor) {
    return sensors[sensor].text;
}

bool nvml_code_is_unsupported(int code) {
    return code == HEC_NVML_NOT_SUPPORTED || code == HEC_NVML_FUNCTION_NOT_FOUND || code == HEC_NVML_DEPRECATED ||
           code == HEC_NVML_ARGUMENT_VERSION_MISMATCH || code == HEC_NVML_VGPU_ECC_NOT_SUPPORTED;
}

int64_t nvml_thread_cpu_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

int64_t nvml_interval(const struct nvml_device *device, int64_t default_ns) {
    int64_t fixed_ns = device->observer->options->interval_ns;
    return fixed_ns ? fixed_ns : default_ns;
}

void nvml_emit(struct nvml_device *device, enum hec_metric metric, int64_t t_ns, int64_t value) {
    const struct hec_sink *sink = device->observer->sink;
    sink->sample(sink->context, metric, device->info.index, t_ns, value);
}

void nvml_missing(struct nvml_device *device, enum hec_metric metric, int64_t t_ns) {
    const struct hec_sink *sink = device->observer->sink;
    if (metric != HEC_METRIC_COUNT)
        sink->missing(sink->context, metric, device->info.index, t_ns);
}

bool nvml_buffer(struct nvml_observer *observer, size_t size) {
    if (size <= observer->buffer_size)
        return true;
    void *bigger = realloc(observer->buffer, size);
    if (!bigger)
        return false;
    observer->buffer = bigger;
    observer->buffer_size = size;
    return true;
}

bool nvml_call_due(const struct nvml_device *device, enum nvml_sensor sensor, int64_t now_ns) {
    const struct nvml_health *health = &device->health[sensor];
    return !device->lost && !health->off && now_ns >= health->retry_ns;
}

/* The first call of a sensor may set things up in the driver and is not judged. */
static void judge_speed(struct nvml_device *device, enum nvml_sensor sensor, int64_t took_ns) {
    struct nvml_health *health = &device->health[sensor];
    int64_t typical = health->calls > 1 ? health->typical_ns : sensors[sensor].normal_ns;
    bool slow = took_ns > HEC_TUNE_SLOW_FACTOR * typical && took_ns > HEC_TUNE_SLOW_LEAST_NS;
    if (health->calls++ == 0)
        return;
    if (!slow) {
        health->typical_ns = typical + (took_ns - typical) / 8;
        return;
    }
    if (!device->slow_reported)
        nvml_event(device, HEC_EVENT_DEVICE_SLOW, "reading the %s took %.0f ms, usually %.2g ms", sensors[sensor].text,
                   (double)took_ns / 1e6, (double)typical / 1e6);
    device->slow_reported = true;
}

static void fail(struct nvml_device *device, enum nvml_sensor sensor, int64_t now_ns, int code) {
    struct nvml_health *health = &device->health[sensor];
    health->backoff_ns = health->backoff_ns ? 2 * health->backoff_ns : HEC_TUNE_BACKOFF_MIN_NS;
    if (health->backoff_ns > HEC_TUNE_BACKOFF_MAX_NS)
        health->backoff_ns = HEC_TUNE_BACKOFF_MAX_NS;
    health->retry_ns = now_ns + health->backoff_ns;
    nvml_missing(device, sensors[sensor].metric, now_ns);
    nvml_missing(device, sensors[sensor].second, now_ns);
    if (!health->failing)
        nvml_event(device, HEC_EVENT_SENSOR_FAILED, "reading the %s failed: %s", sensors[sensor].text,
                   hec_nvml_code_text(code));
    health->failing = true;
}

bool nvml_call_done(struct nvml_device *device, enum nvml_sensor sensor, int64_t t0_ns, int code) {
    struct nvml_health *health = &device->health[sensor];
    int64_t now = hec_clock_mono_ns();
    bool worked = health->calls > 0;

    if (code == HEC_NVML_GPU_IS_LOST) {
        device->lost = true;
        nvml_xid_last(device);
        nvml_event(device, HEC_EVENT_DEVICE_LOST, "the driver says that %s", hec_nvml_code_text(code));
        return false;
    }
    if (!worked && nvml_code_is_unsupported(code)) {
        health->off = true;
        return false;
    }
    if (code != HEC_NVML_SUCCESS) {
        fail(device, sensor, now, code);
        return false;
    }
    judge_speed(device, sensor, now - t0_ns);
    health->failing = false;
    health->backoff_ns = 0;
    return true;
}
