/* The double: GPU performance monitoring. Two samples of running totals; a metric is their difference over their
 * distance. What the hardware does and this does too: samples at most 100 ms apart read 0 or NaN, with success. */
#include "sim/nvml/double.h"
#include "sim/nvml/exports.h"

#include "base/clock.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define GPM_REFRESH_NS (100 * HEC_NS_PER_MS)

struct sim_gpm_sample {
    int64_t t_ns;
    int device, mig; /* device -1: not taken yet */
    struct sim_active active;
};

#define GPM_METRIC(id, member, scale)                                                                                  \
    { id, offsetof(struct sim_counters, member), scale }
static const struct {
    unsigned id;
    size_t offset;
    double scale;
} metrics_table[] = {
    GPM_METRIC(1, gr, 0.1),       GPM_METRIC(2, sm, 0.1),       GPM_METRIC(3, occupancy, 0.1),
    GPM_METRIC(4, integer, 0.1),  GPM_METRIC(5, tensor, 0.1),   GPM_METRIC(6, dfma, 0.1),
    GPM_METRIC(7, hmma, 0.1),     GPM_METRIC(8, dmma, 0.1),     GPM_METRIC(9, imma, 0.1),
    GPM_METRIC(10, dram, 0.1),    GPM_METRIC(11, fp64, 0.1),    GPM_METRIC(12, fp32, 0.1),
    GPM_METRIC(13, fp16, 0.1),    GPM_METRIC(20, pcie_tx, 1),   GPM_METRIC(21, pcie_rx, 1),
    GPM_METRIC(60, nvlink_rx, 1), GPM_METRIC(61, nvlink_tx, 1),
};

SIM_EXPORT sim_nvml_ret nvmlGpmQueryDeviceSupport(sim_nvml_device device, struct sim_nvml_gpm_support *support) {
    SIM_ENTER(nvmlGpmQueryDeviceSupport, device);
    if (!device || !support)
        return SIM_NVML_INVALID_ARGUMENT;
    if (support->version != 1)
        return SIM_NVML_ARGUMENT_VERSION_MISMATCH;
    support->supported = sim_world_profile(world)->has_gpm;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlGpmSampleAlloc(sim_nvml_gpm_sample *sample) {
    SIM_ENTER(nvmlGpmSampleAlloc, NULL);
    if (!sample)
        return SIM_NVML_INVALID_ARGUMENT;
    *sample = calloc(1, sizeof **sample);
    if (!*sample)
        return SIM_NVML_MEMORY;
    (*sample)->device = -1;
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlGpmSampleFree(sim_nvml_gpm_sample sample) {
    if (!sample)
        return SIM_NVML_INVALID_ARGUMENT;
    free(sample); /* needs no world: it may be called after the last shutdown */
    return SIM_NVML_SUCCESS;
}

static sim_nvml_ret take_sample(struct sim_world *world, int device, int mig, sim_nvml_gpm_sample sample) {
    if (!sample)
        return SIM_NVML_INVALID_ARGUMENT;
    if (!sim_world_profile(world)->has_gpm)
        return SIM_NVML_NOT_SUPPORTED;
    sample->t_ns = sim_world_now_ns(world);
    sample->device = device;
    sample->mig = mig;
    if (mig < 0)
        sim_world_active(world, device, sample->t_ns, &sample->active);
    else
        sim_world_instance_active(world, device, mig, sample->t_ns, &sample->active);
    return SIM_NVML_SUCCESS;
}

SIM_EXPORT sim_nvml_ret nvmlGpmSampleGet(sim_nvml_device device, sim_nvml_gpm_sample sample) {
    SIM_ENTER_WHOLE(nvmlGpmSampleGet, device);
    if (sim_world_spec(world)->mig && device->device == 0)
        return SIM_NVML_NOT_SUPPORTED; /* a divided device is read instance by instance */
    return take_sample(world, device->device, -1, sample);
}

SIM_EXPORT sim_nvml_ret nvmlGpmMigSampleGet(sim_nvml_device device, unsigned instance, sim_nvml_gpm_sample sample) {
    SIM_ENTER_WHOLE(nvmlGpmMigSampleGet, device);
    if (!sim_world_spec(world)->mig || device->device != 0)
        return SIM_NVML_NOT_SUPPORTED;
    if (instance < 1 || !sim_world_instance_there(world, (int)instance - 1, sim_world_now_ns(world)))
        return SIM_NVML_INVALID_ARGUMENT;
    return take_sample(world, device->device, (int)instance - 1, sample);
}

static void evaluate(struct sim_nvml_gpm_metric *metric, const struct sim_counters *mean, bool too_close) {
    metric->info.short_name = metric->info.long_name = metric->info.unit = NULL;
    metric->value = 0;
    metric->ret = SIM_NVML_INVALID_ARGUMENT; /* what driver 580 says for ids that the device does not have */
    for (size_t i = 0; i < sizeof metrics_table / sizeof metrics_table[0]; i++) {
        if (metrics_table[i].id != metric->id)
            continue;
        metric->ret = SIM_NVML_SUCCESS;
        if (too_close) /* ratios of nothing to nothing, and rates of nothing */
            metric->value = metric->id == 2 || metric->id == 3 ? NAN : 0;
        else
            metric->value = *(const double *)((const char *)mean + metrics_table[i].offset) * metrics_table[i].scale;
    }
    if (metric->id >= 62 && metric->id <= 97) { /* each NVLink: nothing simulated uses it */
        metric->ret = SIM_NVML_SUCCESS;
        metric->value = 0;
    }
}

SIM_EXPORT sim_nvml_ret nvmlGpmMetricsGet(struct sim_nvml_gpm_metrics *metrics) {
    SIM_ENTER(nvmlGpmMetricsGet, NULL);
    if (!metrics || !metrics->sample1 || !metrics->sample2 || metrics->count > 477)
        return SIM_NVML_INVALID_ARGUMENT;
    if (metrics->version != 1)
        return SIM_NVML_ARGUMENT_VERSION_MISMATCH;
    const struct sim_gpm_sample *a = metrics->sample1, *b = metrics->sample2;
    if (a->device < 0 || a->device != b->device || a->mig != b->mig)
        return SIM_NVML_INVALID_ARGUMENT;
    int64_t window = b->t_ns - a->t_ns;
    struct sim_active active = sim_active_between(&a->active, &b->active);
    struct sim_counters mean = {0};
    if (window > 0)
        sim_counters_mean(sim_world_profile(world), &active, window, &mean);
    for (unsigned i = 0; i < metrics->count; i++)
        evaluate(&metrics->metrics[i], &mean, window <= GPM_REFRESH_NS);
    return SIM_NVML_SUCCESS;
}
