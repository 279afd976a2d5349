#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"

static int read_field(const struct hec_nvml *nvml, hec_nvml_device handle, unsigned field, int64_t *value) {
    if (!nvml->field_values)
        return HEC_NVML_FUNCTION_NOT_FOUND;
    struct hec_nvml_field request = {.id = field};
    int code = nvml->field_values(handle, 1, &request);
    if (code != HEC_NVML_SUCCESS)
        return code;
    /* a driver that does not know the field says "invalid argument" for the field alone */
    if (request.code == HEC_NVML_INVALID_ARGUMENT)
        return HEC_NVML_NOT_SUPPORTED;
    if (request.code != HEC_NVML_SUCCESS)
        return request.code;
    *value = hec_nvml_value_integer(&request.value, request.value_type);
    return *value < 0 ? HEC_NVML_UNKNOWN : HEC_NVML_SUCCESS;
}

/* version is 0 where reserved is not known: the driver counts it as used. */
int nvml_read_memory(const struct hec_nvml *nvml, hec_nvml_device handle, struct hec_nvml_memory_v2 *memory) {
    *memory = (struct hec_nvml_memory_v2){.version = HEC_NVML_MEMORY_V2};
    int code = nvml->memory_v2 ? nvml->memory_v2(handle, memory) : HEC_NVML_FUNCTION_NOT_FOUND;
    if (!nvml_code_is_unsupported(code) || !nvml->memory_v1)
        return code;
    struct hec_nvml_memory_v1 v1 = {0};
    code = nvml->memory_v1(handle, &v1);
    *memory = (struct hec_nvml_memory_v2){.total = v1.total, .free = v1.free, .used = v1.used};
    return code;
}

/* *reserved stays as it is where it is not known. */
static int read_free(const struct hec_nvml *nvml, hec_nvml_device handle, int64_t *free, int64_t *reserved) {
    struct hec_nvml_memory_v2 memory;
    int code = nvml_read_memory(nvml, handle, &memory);
    *free = (int64_t)(memory.free / 1024);
    if (memory.version)
        *reserved = (int64_t)(memory.reserved / 1024);
    return code;
}

#define CALL(function, ...) ((function) ? (function)(__VA_ARGS__) : HEC_NVML_FUNCTION_NOT_FOUND)

int nvml_read(const struct hec_nvml *nvml, hec_nvml_device handle, enum nvml_sensor sensor, int64_t *value,
              int64_t *second) {
    struct hec_nvml_utilization utilization = {0};
    struct hec_nvml_memory_v2 memory;
    int state = 0;
    unsigned number = 0, other = 0, pending = 0, failed = 0;
    unsigned long long wide = 0;
    int code;

    switch (sensor) {
    case NVML_SENSOR_ENERGY:
        code = CALL(nvml->energy, handle, &wide);
        *value = (int64_t)wide;
        return code;
    case NVML_SENSOR_INSTANT:
        return read_field(nvml, handle, HEC_NVML_FIELD_POWER_INSTANT, value);
    case NVML_SENSOR_MEM_TEMPERATURE:
        return read_field(nvml, handle, HEC_NVML_FIELD_MEMORY_TEMPERATURE, value);
    case NVML_SENSOR_UTIL:
        code = CALL(nvml->utilization, handle, &utilization);
        *value = (int64_t)utilization.gpu * 10;
        *second = (int64_t)utilization.memory * 10;
        return code;
    case NVML_SENSOR_MEMORY:
        code = nvml_read_memory(nvml, handle, &memory);
        *value = (int64_t)(memory.used / 1024);
        return code;
    case NVML_SENSOR_MEM_TOTAL:
        code = nvml_read_memory(nvml, handle, &memory);
        *value = (int64_t)(memory.total / 1024);
        return code;
    case NVML_SENSOR_MEM_FREE:
        return read_free(nvml, handle, value, second);
    case NVML_SENSOR_ENCODER:
        code = CALL(nvml->encoder_utilization, handle, &number, &other);
        *value = (int64_t)number * 10;
        return code;
    case NVML_SENSOR_DECODER:
        code = CALL(nvml->decoder_utilization, handle, &number, &other);
        *value = (int64_t)number * 10;
        return code;
    case NVML_SENSOR_ROWS:
    case NVML_SENSOR_ROWS_FAILED:
        code = CALL(nvml->remapped_rows, handle, &number, &other, &pending, &failed);
        *value = sensor == NVML_SENSOR_ROWS ? number : failed != 0;
        *second = other;
        return code;
    case NVML_SENSOR_PCIE_REPLAYS:
        code = CALL(nvml->pcie_replays, handle, &number);
        break;
    case NVML_SENSOR_THROTTLE:
        code = CALL(nvml->clocks_event_reasons, handle, &wide);
        *value = hec_nvml_throttle(wide);
        return code;
    case NVML_SENSOR_USAGE:
        code = CALL(nvml->power_usage, handle, &number);
        break;
    case NVML_SENSOR_SM_CLOCK:
        code = CALL(nvml->clock, handle, HEC_NVML_CLOCK_SM, &number);
        break;
    case NVML_SENSOR_MEM_CLOCK:
        code = CALL(nvml->clock, handle, HEC_NVML_CLOCK_MEMORY, &number);
        break;
    case NVML_SENSOR_TEMPERATURE:
        code = CALL(nvml->temperature, handle, HEC_NVML_TEMPERATURE_GPU, &number);
        break;
    case NVML_SENSOR_LIMIT:
        code = CALL(nvml->power_limit_enforced, handle, &number);
        break;
    case NVML_SENSOR_LIMIT_SET:
        code = CALL(nvml->power_limit, handle, &number);
        break;
    case NVML_SENSOR_PERFORMANCE_STATE:
        code = CALL(nvml->performance_state, handle, &state);
        if (code == HEC_NVML_SUCCESS && (state < 0 || state >= HEC_NVML_PERFORMANCE_STATES))
            return HEC_NVML_NOT_SUPPORTED; /* "unknown" */
        number = (unsigned)state;
        break;
    case NVML_SENSOR_FAN_SPEED:
        code = CALL(nvml->fan_speed, handle, &number);
        number *= 10;
        break;
    case NVML_SENSOR_SLOWDOWN_TEMPERATURE:
        code = CALL(nvml->temperature_threshold, handle, HEC_NVML_THRESHOLD_SLOWDOWN, &number);
        break;
    default:
        return HEC_NVML_INVALID_ARGUMENT;
    }
    *value = number;
    return code;
}

struct reading {
    enum nvml_sensor sensor;
    enum hec_metric metric, second;
};
static const struct reading readings[] = {
    {NVML_SENSOR_UTIL, HEC_GPU_UTIL, HEC_GPU_MEM_UTIL},
    {NVML_SENSOR_SM_CLOCK, HEC_GPU_SM_CLOCK, HEC_METRIC_COUNT},
    {NVML_SENSOR_MEM_CLOCK, HEC_GPU_MEM_CLOCK, HEC_METRIC_COUNT},
    {NVML_SENSOR_THROTTLE, HEC_GPU_THROTTLE, HEC_METRIC_COUNT},
    {NVML_SENSOR_MEMORY, HEC_GPU_MEM_USED, HEC_METRIC_COUNT},
    {NVML_SENSOR_TEMPERATURE, HEC_GPU_TEMPERATURE, HEC_METRIC_COUNT},
    {NVML_SENSOR_MEM_TEMPERATURE, HEC_GPU_MEM_TEMPERATURE, HEC_METRIC_COUNT},
    {NVML_SENSOR_LIMIT, HEC_GPU_POWER_LIMIT, HEC_METRIC_COUNT},
};
/* Of a device that is watched for ever: what its operators look at. */
static const struct reading monitored[] = {
    {NVML_SENSOR_MEM_FREE, HEC_GPU_MEM_FREE, HEC_GPU_MEM_RESERVED},
    {NVML_SENSOR_MEM_TOTAL, HEC_GPU_MEM_TOTAL, HEC_METRIC_COUNT},
    {NVML_SENSOR_ENCODER, HEC_GPU_ENCODER_UTIL, HEC_METRIC_COUNT},
    {NVML_SENSOR_DECODER, HEC_GPU_DECODER_UTIL, HEC_METRIC_COUNT},
    {NVML_SENSOR_PCIE_REPLAYS, HEC_GPU_PCIE_REPLAYS, HEC_METRIC_COUNT},
    {NVML_SENSOR_ROWS, HEC_GPU_ROWS_CORRECTABLE, HEC_GPU_ROWS_UNCORRECTABLE},
    {NVML_SENSOR_ROWS_FAILED, HEC_GPU_ROWS_FAILED, HEC_METRIC_COUNT},
    {NVML_SENSOR_LIMIT_SET, HEC_GPU_POWER_LIMIT_SET, HEC_METRIC_COUNT},
    {NVML_SENSOR_PERFORMANCE_STATE, HEC_GPU_PERFORMANCE_STATE, HEC_METRIC_COUNT},
    {NVML_SENSOR_FAN_SPEED, HEC_GPU_FAN_SPEED, HEC_METRIC_COUNT},
    {NVML_SENSOR_SLOWDOWN_TEMPERATURE, HEC_GPU_SLOWDOWN_TEMPERATURE, HEC_METRIC_COUNT},
};

/* One reading, if it is due; true when it was good. */
static bool sample(struct nvml_device *device, enum nvml_sensor sensor, enum hec_metric metric,
                   enum hec_metric second) {
    int64_t t0 = hec_clock_mono_ns(), value = 0, value2 = -1;
    if (!nvml_call_due(device, sensor, t0))
        return false;
    int code = nvml_read(&device->observer->nvml, device->handle, sensor, &value, &value2);
    if (!nvml_call_done(device, sensor, t0, code))
        return false;
    int64_t now = hec_clock_mono_ns();
    nvml_emit(device, metric, now, value);
    if (second != HEC_METRIC_COUNT && value2 >= 0)
        nvml_emit(device, second, now, value2);
    return true;
}

int64_t nvml_run_state(struct nvml_device *device, int64_t now_ns) {
    for (size_t i = 0; i < sizeof readings / sizeof readings[0]; i++)
        sample(device, readings[i].sensor, readings[i].metric, readings[i].second);
    if (!device->reserved_reported && !device->observer->nvml.memory_v2 && !device->health[NVML_SENSOR_MEMORY].off) {
        nvml_event(device, HEC_EVENT_NOTE, "this driver counts the memory it reserves for itself as memory in use");
        device->reserved_reported = true;
    }
    return now_ns + nvml_interval(device, HEC_TUNE_STATE_INTERVAL_NS);
}

int64_t nvml_run_monitored(struct nvml_device *device, int64_t now_ns) {
    if (!device->observer->options->interval_ns)
        return INT64_MAX;
    for (size_t i = 0; i < sizeof monitored / sizeof monitored[0]; i++)
        sample(device, monitored[i].sensor, monitored[i].metric, monitored[i].second);
    return now_ns + nvml_interval(device, HEC_TUNE_MONITORED_INTERVAL_NS);
}

/* Beside a history only to compare with; without one, what power is known by. */
int64_t nvml_run_instant(struct nvml_device *device, int64_t now_ns) {
    bool history = device->info.has_power_history, first = device->health[NVML_SENSOR_INSTANT].calls == 0;
    bool good = sample(device, NVML_SENSOR_INSTANT, history ? HEC_GPU_POWER_INSTANT : HEC_GPU_POWER, HEC_METRIC_COUNT);
    if (device->health[NVML_SENSOR_INSTANT].off)
        return INT64_MAX;
    if (good && first && !history && !device->observer->options->interval_ns)
        nvml_event(device, HEC_EVENT_NOTE, "no power history: power is read every %d ms",
                   (int)(HEC_TUNE_INSTANT_INTERVAL_NS / HEC_NS_PER_MS));
    return now_ns + nvml_interval(device, history ? HEC_TUNE_STATE_INTERVAL_NS : HEC_TUNE_INSTANT_INTERVAL_NS);
}

/* Only where there is neither a history nor instant power. */
int64_t nvml_run_usage(struct nvml_device *device, int64_t now_ns) {
    if (device->info.has_power_history || !device->health[NVML_SENSOR_INSTANT].off)
        return INT64_MAX;
    bool first = device->health[NVML_SENSOR_USAGE].calls == 0;
    bool good = sample(device, NVML_SENSOR_USAGE, HEC_GPU_POWER, HEC_METRIC_COUNT);
    if (good && first)
        nvml_event(device, HEC_EVENT_NOTE,
                   "no power history and no instant power: power is the driver's average, over 1 s on newer parts");
    return device->health[NVML_SENSOR_USAGE].off ? INT64_MAX
                                                 : now_ns + nvml_interval(device, HEC_TUNE_USAGE_INTERVAL_NS);
}
