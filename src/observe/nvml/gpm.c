/* GPM: hardware counters between two samples, which must be more than 100 ms apart: nearer ones give zeros with a return
 * code of success (seen at 11, 20 and 50 ms), so that short windows are dropped here, never stored. */
#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"

#include <math.h>

static const struct {
    unsigned id;
    enum hec_metric metric;
    double factor;
} rows[] = {
#define HEC_NVML_GPM(id, metric, factor) {id, HEC_##metric, factor},
#include "observe/nvml/gpm.def"
#undef HEC_NVML_GPM
};
enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert(ROWS <= HEC_NVML_GPM_METRICS_MAX, "one call asks for all rows");
_Static_assert(ROWS <= sizeof((struct nvml_gpm *)0)->unsupported, "one flag a row");

bool nvml_gpm_row(int i, unsigned *id, enum hec_metric *metric, double *factor) {
    if (i < 0 || i >= ROWS)
        return false;
    *id = rows[i].id;
    *metric = rows[i].metric;
    *factor = rows[i].factor;
    return true;
}

bool nvml_gpm_alloc(const struct hec_nvml *nvml, struct nvml_gpm *gpm) {
    gpm->older_end_ns = INT64_MIN;
    if (nvml->gpm_sample_alloc(&gpm->older) != HEC_NVML_SUCCESS)
        gpm->older = NULL;
    else if (nvml->gpm_sample_alloc(&gpm->newer) != HEC_NVML_SUCCESS)
        gpm->newer = NULL;
    return gpm->older && gpm->newer;
}

void nvml_gpm_free(const struct hec_nvml *nvml, struct nvml_gpm *gpm) {
    if (gpm->older)
        nvml->gpm_sample_free(gpm->older);
    if (gpm->newer)
        nvml->gpm_sample_free(gpm->newer);
    gpm->older = gpm->newer = NULL;
}

void nvml_gpm_begin(struct nvml_device *device) {
    device->gpm.older_end_ns = INT64_MIN;
    if (device->info.has_gpm && !nvml_gpm_alloc(&device->observer->nvml, &device->gpm))
        device->info.has_gpm = 0;
}

void nvml_gpm_close(struct nvml_device *device) {
    nvml_gpm_free(&device->observer->nvml, &device->gpm);
}

/* A share is at most the whole; the counters' clocks leave it a little above now and then. */
static bool plausible(int row, double value) {
    return isfinite(value) && value >= 0 && (rows[row].factor != 10 || value <= 105);
}

/* In our unit; -1 where it makes no sense. */
static int64_t value_of(int row, double value) {
    if (!plausible(row, value))
        return -1;
    return llround((rows[row].factor == 10 && value > 100 ? 100 : value) * rows[row].factor);
}

static void all_missing(struct nvml_device *device, int64_t t_ns) {
    for (int row = 0; row < ROWS; row++)
        if (!device->gpm.unsupported[row])
            nvml_missing(device, rows[row].metric, t_ns);
}

static void emit_window(struct nvml_device *device, const int64_t counters[HEC_GPM_COUNT], int64_t t_ns) {
    for (int row = 0; row < ROWS; row++) {
        int64_t value = counters[rows[row].metric - HEC_GPM_GR_ACTIVE];
        if (value >= 0)
            nvml_emit(device, rows[row].metric, t_ns, value);
        else if (!device->gpm.unsupported[row])
            nvml_missing(device, rows[row].metric, t_ns);
    }
}

/* Each metric has its own return code: one that the device does not have is not asked for again. */
int nvml_gpm_counters(const struct hec_nvml *nvml, struct nvml_gpm *gpm, int64_t counters[HEC_GPM_COUNT]) {
    struct hec_nvml_gpm_metrics request = {.version = 1, .sample1 = gpm->older, .sample2 = gpm->newer};
    for (int i = 0; i < HEC_GPM_COUNT; i++)
        counters[i] = -1;
    for (int row = 0; row < ROWS; row++)
        if (!gpm->unsupported[row])
            request.metrics[request.count++].id = rows[row].id;
    int code = request.count ? nvml->gpm_metrics(&request) : HEC_NVML_NOT_SUPPORTED;
    unsigned i = 0;
    for (int row = 0; row < ROWS && code == HEC_NVML_SUCCESS; row++) {
        if (gpm->unsupported[row])
            continue;
        const struct hec_nvml_gpm_metric *metric = &request.metrics[i++];
        /* the driver filled as many as were asked for, which the analyser cannot know */
        if (metric->code == HEC_NVML_SUCCESS) /* NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult) */
            counters[rows[row].metric - HEC_GPM_GR_ACTIVE] = value_of(row, metric->value);
        else if (nvml_code_is_unsupported(metric->code) || metric->code == HEC_NVML_INVALID_ARGUMENT)
            gpm->unsupported[row] = true;
    }
    return code;
}

static void not_here(struct nvml_device *device) {
    const struct hec_sink *sink = device->observer->sink;
    device->info.has_gpm = 0;
    sink->device(sink->context, &device->info);
}

/* As long as asked for, if that is long enough; else as short as the CPU share, which the devices share, allows. */
int64_t nvml_gpm_interval(const struct nvml_observer *observer) {
    int64_t wanted = observer->options->gpm_window_ns, least = HEC_TUNE_GPM_WINDOW_LEAST_NS + HEC_NS_PER_MS;
    int64_t fixed = observer->options->interval_ns;
    if (wanted > 0)
        return wanted > least ? wanted : least;
    int64_t cpu_ns = 0;
    for (int i = 0; i < observer->count; i++) {
        const struct nvml_device *device = &observer->devices[i];
        if (!device->lost && device->info.has_gpm)
            cpu_ns += device->gpm.cpu_ns;
        for (int k = 0; k < device->instances.count && !device->lost; k++)
            cpu_ns += device->instances.items[k].gpm.cpu_ns;
    }
    int64_t window = (int64_t)((double)cpu_ns / (fixed ? HEC_TUNE_FIXED_GPM_SHARE : HEC_TUNE_GPM_CPU_SHARE));
    int64_t longest = fixed ? HEC_TUNE_FIXED_GPM_MAX_NS : HEC_TUNE_GPM_WINDOW_MAX_NS;
    int64_t shortest = fixed > HEC_TUNE_GPM_WINDOW_NS ? fixed : HEC_TUNE_GPM_WINDOW_NS;
    if (window > longest)
        window = longest;
    return window > shortest ? window : shortest;
}

void nvml_gpm_cost(struct nvml_gpm *gpm, int64_t cpu_ns) {
    if (cpu_ns > HEC_TUNE_GPM_CPU_MOST_NS)
        cpu_ns = HEC_TUNE_GPM_CPU_MOST_NS;
    gpm->cpu_ns += gpm->cpu_ns ? (cpu_ns - gpm->cpu_ns) / 8 : cpu_ns;
}

void nvml_gpm_swap(struct nvml_gpm *gpm, int64_t end_ns) {
    hec_nvml_gpm_sample spare = gpm->older;
    gpm->older = gpm->newer;
    gpm->newer = spare;
    gpm->older_end_ns = end_ns;
}

int64_t nvml_run_gpm(struct nvml_device *device, int64_t now_ns) {
    struct nvml_gpm *gpm = &device->gpm;
    if (!device->info.has_gpm)
        return INT64_MAX;
    if (device->instances.count > 0) /* a divided device is read instance by instance */
        return now_ns + nvml_gpm_interval(device->observer);
    if (!nvml_call_due(device, NVML_SENSOR_GPM, now_ns))
        return device->lost ? INT64_MAX : device->health[NVML_SENSOR_GPM].retry_ns;
    bool first = gpm->older_end_ns == INT64_MIN;
    /* the older sample may have come late, behind a slow call: the window counts from there */
    if (!first && now_ns - gpm->older_end_ns <= HEC_TUNE_GPM_WINDOW_LEAST_NS)
        return gpm->older_end_ns + nvml_gpm_interval(device->observer);

    int64_t cpu = nvml_thread_cpu_ns(), begin = hec_clock_mono_ns();
    int code = device->observer->nvml.gpm_sample_get(device->handle, gpm->newer);
    int64_t end = hec_clock_mono_ns();
    int64_t counters[HEC_GPM_COUNT];
    if (code == HEC_NVML_SUCCESS && !first)
        code = nvml_gpm_counters(&device->observer->nvml, gpm, counters);
    if (!nvml_call_done(device, NVML_SENSOR_GPM, begin, code)) {
        if (device->health[NVML_SENSOR_GPM].off)
            not_here(device);
        else
            all_missing(device, end);
        gpm->older_end_ns = INT64_MIN; /* the next window starts with the next good sample */
        return device->health[NVML_SENSOR_GPM].off || device->lost ? INT64_MAX
                                                                   : now_ns + nvml_gpm_interval(device->observer);
    }
    if (!first) {
        emit_window(device, counters, end);
        nvml_gpm_cost(gpm, nvml_thread_cpu_ns() - cpu);
    }
    nvml_gpm_swap(gpm, end);
    return end + nvml_gpm_interval(device->observer);
}
