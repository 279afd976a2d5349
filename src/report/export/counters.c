#include "report/export/counters.h"

#include <math.h>
#include <stdlib.h>

static const struct hec_export_counter counters[] = {
    {HEC_GPU_POWER, false, "power", "W", 1e-3},
    {HEC_GPU_POWER_LIMIT, false, "power limit", "W", 1e-3},
    {HEC_GPU_UTIL, false, "GPU utilisation", "%", 0.1},
    {HEC_GPM_GR_ACTIVE, false, "engine active", "%", 0.1},
    {HEC_GPM_SM_ACTIVE, false, "SM active", "%", 0.1},
    {HEC_GPM_SM_OCCUPANCY, false, "SM occupancy", "%", 0.1},
    {HEC_GPM_TENSOR_ACTIVE, false, "tensor active", "%", 0.1},
    {HEC_GPM_FP32_ACTIVE, false, "FP32 active", "%", 0.1},
    {HEC_GPM_FP16_ACTIVE, false, "FP16 active", "%", 0.1},
    {HEC_GPM_DRAM_ACTIVE, false, "DRAM active", "%", 0.1},
    {HEC_GPM_PCIE_RX, false, "PCIe in", "B/s", 1024},
    {HEC_GPM_PCIE_TX, false, "PCIe out", "B/s", 1024},
    {HEC_GPM_NVLINK_RX, false, "NVLink in", "B/s", 1024},
    {HEC_GPM_NVLINK_TX, false, "NVLink out", "B/s", 1024},
    {HEC_GPU_MEM_USED, false, "memory used", "B", 1024},
    {HEC_GPU_SM_CLOCK, false, "SM clock", "MHz", 1},
    {HEC_GPU_TEMPERATURE, false, "temperature", "C", 1},
    {HEC_HOST_CPU_BUSY, true, "CPU busy", "%", 0.1},
    {HEC_TREE_RSS, true, "memory of the command", "B", 1024},
};

struct series {
    struct hec_export_reading reading;
    bool mean, begun;
    int64_t previous_ns;
    int (*visit)(void *context, const struct hec_export_reading *reading);
    void *context;
};

static int take_samples(void *to, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t count) {
    struct series *s = to;
    int stop = 0;
    for (size_t i = 0; i < count && !stop; i++) {
        s->reading.start_ns = s->mean && s->begun ? s->previous_ns : t_ns[i];
        s->reading.end_ns = t_ns[i];
        s->reading.value = valid[i] ? (double)value[i] * s->reading.counter->scale : NAN;
        s->reading.first = !s->begun;
        s->previous_ns = t_ns[i];
        s->begun = true;
        stop = s->visit(s->context, &s->reading);
    }
    return stop;
}

/* 1: the run has this metric of this subject. */
static int has(const struct hec_summary_input *in, enum hec_metric metric, int32_t subject, struct hec_why *why) {
    int32_t *subjects = NULL;
    int there = 0, count = in->subjects(in->context, metric, &subjects, why);
    for (int i = 0; i < count; i++)
        there |= subjects[i] == subject;
    free(subjects);
    return count < 0 && count != HEC_ERR_NOTFOUND ? count : there;
}

static int visit_series(const struct hec_summary_input *in, struct series *s, struct hec_why *why) {
    enum hec_metric metric = s->reading.counter->metric;
    int32_t subject = s->reading.counter->host ? 0 : s->reading.device;
    int there = has(in, metric, subject, why);
    if (there <= 0)
        return there;
    s->mean = hec_metric_info(metric)->kind == HEC_METRIC_MEAN;
    int err = in->series(in->context, metric, subject, take_samples, s, why);
    return err == HEC_ERR_NOTFOUND ? 0 : err;
}

int hec_export_counters(const struct hec_summary_input *input, const struct hec_device *devices, int device_count,
                        int (*visit)(void *context, const struct hec_export_reading *reading), void *context,
                        struct hec_why *why) {
    const size_t count = sizeof counters / sizeof counters[0];
    int err = 0;
    if (!input->subjects || !input->series)
        return 0;
    for (int d = -1; d < device_count && !err; d++)
        for (size_t i = 0; i < count && !err; i++) {
            struct series s = {
                .reading = {.counter = &counters[i], .device = d < 0 ? -1 : devices[d].index},
                .visit = visit,
                .context = context,
            };
            if (counters[i].host == (d < 0))
                err = visit_series(input, &s, why);
        }
    return err;
}
