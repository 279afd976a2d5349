/* The driver's power history: one call a second gives every 20 ms sample since the last. */
#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"

#include <stdlib.h>

#define FUTURE_NS (50 * HEC_NS_PER_MS) /* a sample this far ahead of now is misplaced, not merely rounded */

static int compare_times(const void *a, const void *b) {
    uint64_t x = ((const struct hec_nvml_sample *)a)->time_us, y = ((const struct hec_nvml_sample *)b)->time_us;
    return (x > y) - (x < y);
}

/* The driver stamps samples with the wall clock. When that was set since the last call, a sample may carry the old time
 * or the new: the one that continues the history is right. */
static int64_t place(const struct nvml_power_history *history, uint64_t time_us, int64_t offset_ns, int64_t now_ns) {
    int64_t with_new = (int64_t)time_us * HEC_NS_PER_US - offset_ns;
    int64_t with_old = (int64_t)time_us * HEC_NS_PER_US - history->wall_offset_ns;
    bool new_fits = with_new > history->last_ns && with_new <= now_ns + FUTURE_NS;
    bool old_fits = with_old > history->last_ns && with_old <= now_ns + FUTURE_NS;
    if (new_fits && old_fits)
        return with_new < with_old ? with_new : with_old;
    return old_fits ? with_old : with_new;
}

static void take_samples(struct nvml_device *device, struct hec_nvml_sample *samples, unsigned count, int type,
                         int64_t offset_ns) {
    struct nvml_power_history *history = &device->history;
    int64_t now = hec_clock_mono_ns(), moved = offset_ns - history->wall_offset_ns;
    bool stepped = history->begun && llabs(moved) > HEC_TUNE_CLOCK_STEP_NS;
    if (stepped)
        nvml_event(device, HEC_EVENT_NOTE,
                   "the wall clock was set by %+.3f s; power samples around it may be misplaced", (double)moved / 1e9);
    else
        qsort(samples, count, sizeof *samples, compare_times); /* documented as a buffer, not as ordered */

    uint64_t newest = stepped ? 0 : history->last_us;
    for (unsigned i = 0; i < count; i++) {
        uint64_t time_us = samples[i].time_us;
        if (time_us == 0 || (!stepped && time_us <= history->last_us)) /* an unused slot, or known */
            continue;
        int64_t t = stepped ? place(history, time_us, offset_ns, now) : (int64_t)time_us * HEC_NS_PER_US - offset_ns;
        long long power = hec_nvml_value_integer(&samples[i].value, type);
        if (time_us > newest)
            newest = time_us;
        if ((history->begun && t <= history->last_ns) || t > now + FUTURE_NS)
            continue;
        if (power < 0)
            nvml_missing(device, HEC_GPU_POWER, t);
        else
            nvml_emit(device, HEC_GPU_POWER, t, power);
        history->last_ns = t;
        history->begun = true;
    }
    history->last_us = newest;
    history->wall_offset_ns = offset_ns;
}

int64_t nvml_run_history(struct nvml_device *device, int64_t now_ns) {
    const struct hec_nvml *nvml = &device->observer->nvml;
    size_t room = HEC_TUNE_HISTORY_BUFFER * sizeof(struct hec_nvml_sample);
    if (!device->info.has_power_history || device->health[NVML_SENSOR_HISTORY].off)
        return INT64_MAX;
    if (!nvml_call_due(device, NVML_SENSOR_HISTORY, now_ns))
        return device->lost ? INT64_MAX : device->health[NVML_SENSOR_HISTORY].retry_ns;
    if (!nvml_buffer(device->observer, room))
        return now_ns + HEC_TUNE_HISTORY_INTERVAL_NS;

    struct hec_nvml_sample *samples = device->observer->buffer;
    unsigned count = HEC_TUNE_HISTORY_BUFFER;
    int type = HEC_NVML_UNSIGNED;
    int64_t t0 = hec_clock_mono_ns();
    /* everything each time: "newer than" is in wall-clock time and would return nothing after the clock was set back */
    int code = nvml->samples(device->handle, HEC_NVML_SAMPLES_TOTAL_POWER, 0, &type, &count, samples);
    if (code == HEC_NVML_NOT_FOUND) {
        code = HEC_NVML_SUCCESS;
        count = 0;
    }
    if (nvml_call_done(device, NVML_SENSOR_HISTORY, t0, code))
        take_samples(device, samples, count < HEC_TUNE_HISTORY_BUFFER ? count : HEC_TUNE_HISTORY_BUFFER, type,
                     hec_clock_wall_offset_ns());
    return now_ns + HEC_TUNE_HISTORY_INTERVAL_NS;
}
