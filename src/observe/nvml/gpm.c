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

void nvml_gpm_begin(struct nvml_device *device) {
    const struct hec_nvml *nvml = &device->observer->nvml;
    struct nvml_gpm *gpm = &device->gpm;
    gpm->older_end_ns = INT64_MIN;
    if (!device->info.has_gpm)
        return;
    if (nvml->gpm_sample_alloc(&gpm->older) != HEC_NVML_SUCCESS)
        gpm->older = NULL;
    else if (nvml->gpm_sample_alloc(&gpm->newer) != HEC_NVML_SUCCESS)
        gpm->newer = NULL;
    if (!gpm->older || !gpm->newer)
        device->info.has_gpm = 0;
}

void nvml_gpm_close(struct nvml_device *device) {
    struct nvml_gpm *gpm = &device->gpm;
    if (gpm->older)
        device->observer->nvml.gpm_sample_free(gpm->older);
    if (gpm->newer)
        device->observer->nvml.gpm_sample_free(gpm->newer);
    gpm->older = gpm->newer = NULL;
}

/* A share is at most the whole; the counters' clocks leave it a little above now and then. */
static bool plausible(int row, double value) {
    return isfinite(value) && value >= 0 && (rows[row].factor != 10 || value <= 105);
}

static void emit_row(struct nvml_device *device, int row, int64_t t_ns, double value) {
    if (!plausible(row, value)) {
        nvml_missing(device, rows[row].metric, t_ns);
        return;
    }
    if (rows[row].factor == 10 && value > 100)
        value = 100;
    nvml_emit(device, rows[row].metric, t_ns, llround(value * rows[row].factor));
}

static void all_missing(struct nvml_device *device, int64_t t_ns) {
    for (int row = 0; row < ROWS; row++)
        if (!device->gpm.unsupported[row])
            nvml_missing(device, rows[row].metric, t_ns);
}

/* Each metric has its own return code: one that the device does not have is not asked for again. */
static void emit_window(struct nvml_device *device, const struct hec_nvml_gpm_metrics *request, int64_t t_ns) {
    unsigned i = 0;
    for (int row = 0; row < ROWS; row++) {
        if (device->gpm.unsupported[row])
            continue;
        const struct hec_nvml_gpm_metric *metric = &request->metrics[i++];
        /* the driver filled as many as were asked for, which the analyser cannot know */
        if (metric->code == HEC_NVML_SUCCESS) /* NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult) */
            emit_row(device, row, t_ns, metric->value);
        else if (nvml_code_is_unsupported(metric->code) || metric->code == HEC_NVML_INVALID_ARGUMENT)
            device->gpm.unsupported[row] = true;
        else
            nvml_missing(device, rows[row].metric, t_ns);
    }
}

static int read_window(struct nvml_device *device, struct hec_nvml_gpm_metrics *request) {
    *request = (struct hec_nvml_gpm_metrics){.version = 1, .sample1 = device->gpm.older, .sample2 = device->gpm.newer};
    for (int row = 0; row < ROWS; row++)
        if (!device->gpm.unsupported[row])
            request->metrics[request->count++].id = rows[row].id;
    return request->count ? device->observer->nvml.gpm_metrics(request) : HEC_NVML_NOT_SUPPORTED;
}

static void not_here(struct nvml_device *device) {
    const struct hec_sink *sink = device->observer->sink;
    device->info.has_gpm = 0;
    sink->device(sink->context, &device->info);
}

/* As long as asked for, if that is long enough; else as short as the CPU share, which the devices share, allows. */
static int64_t window_ns(const struct nvml_device *device) {
    const struct nvml_observer *observer = device->observer;
    int64_t wanted = observer->options->gpm_window_ns, least = HEC_TUNE_GPM_WINDOW_LEAST_NS + HEC_NS_PER_MS;
    int64_t paced = observer->options->interval_ns;
    if (wanted > 0)
        return wanted > least ? wanted : least;
    int64_t cpu_ns = 0;
    for (int i = 0; i < observer->count; i++)
        if (!observer->devices[i].lost && observer->devices[i].info.has_gpm)
            cpu_ns += observer->devices[i].gpm.cpu_ns;
    int64_t window = (int64_t)((double)cpu_ns / (paced ? HEC_TUNE_PACED_GPM_SHARE : HEC_TUNE_GPM_CPU_SHARE));
    int64_t longest = paced ? HEC_TUNE_PACED_GPM_MAX_NS : HEC_TUNE_GPM_WINDOW_MAX_NS;
    int64_t shortest = paced > HEC_TUNE_GPM_WINDOW_NS ? paced : HEC_TUNE_GPM_WINDOW_NS;
    if (window > longest)
        window = longest;
    return window > shortest ? window : shortest;
}

static void swap_samples(struct nvml_gpm *gpm, int64_t end_ns) {
    hec_nvml_gpm_sample spare = gpm->older;
    gpm->older = gpm->newer;
    gpm->newer = spare;
    gpm->older_end_ns = end_ns;
}

int64_t nvml_run_gpm(struct nvml_device *device, int64_t now_ns) {
    struct nvml_gpm *gpm = &device->gpm;
    if (!device->info.has_gpm)
        return INT64_MAX;
    if (!nvml_call_due(device, NVML_SENSOR_GPM, now_ns))
        return device->lost ? INT64_MAX : device->health[NVML_SENSOR_GPM].retry_ns;
    bool first = gpm->older_end_ns == INT64_MIN;
    /* the older sample may have come late, behind a slow call: the window counts from there */
    if (!first && now_ns - gpm->older_end_ns <= HEC_TUNE_GPM_WINDOW_LEAST_NS)
        return gpm->older_end_ns + window_ns(device);

    int64_t cpu = nvml_thread_cpu_ns(), begin = hec_clock_mono_ns();
    int code = device->observer->nvml.gpm_sample_get(device->handle, gpm->newer);
    int64_t end = hec_clock_mono_ns();
    struct hec_nvml_gpm_metrics request;
    if (code == HEC_NVML_SUCCESS && !first)
        code = read_window(device, &request);
    if (!nvml_call_done(device, NVML_SENSOR_GPM, begin, code)) {
        if (device->health[NVML_SENSOR_GPM].off)
            not_here(device);
        else
            all_missing(device, end);
        gpm->older_end_ns = INT64_MIN; /* the next window starts with the next good sample */
        return device->health[NVML_SENSOR_GPM].off || device->lost ? INT64_MAX : now_ns + window_ns(device);
    }
    if (!first) {
        emit_window(device, &request, end);
        cpu = nvml_thread_cpu_ns() - cpu;
        if (cpu > HEC_TUNE_GPM_CPU_MOST_NS)
            cpu = HEC_TUNE_GPM_CPU_MOST_NS;
        gpm->cpu_ns += gpm->cpu_ns ? (cpu - gpm->cpu_ns) / 8 : cpu;
    }
    swap_samples(gpm, end);
    return end + window_ns(device);
}
