/* Reading the energy counter at the times the tracker (tracker.c) asks for. */
#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"

#include <math.h>
#include <stdlib.h>

#define FINISH_TRIES 3 /* an edge is as narrow as a call, so that the second reading is past it */

static void emit(void *context, int64_t t_ns, int64_t slack_ns, int64_t value_mj) {
    struct nvml_device *device = context;
    nvml_emit(device, HEC_GPU_ENERGY, t_ns, value_mj);
    nvml_emit(device, HEC_GPU_ENERGY_SLACK, t_ns, (slack_ns + HEC_NS_PER_US - 1) / HEC_NS_PER_US);
}

void nvml_energy_begin(struct nvml_device *device) {
    nvml_tracker_init(&device->tracker, emit, device);
    if (device->observer->options->interval_ns)
        device->tracker.interval_ns = device->observer->options->interval_ns;
}

/* Some drivers spin inside the call, some sleep: what counts is the CPU time, shared among all devices. */
static void pace(struct nvml_device *device, int64_t cpu_ns) {
    struct nvml_observer *observer = device->observer;
    device->energy_cpu_ns += device->energy_cpu_ns ? (cpu_ns - device->energy_cpu_ns) / 8 : cpu_ns;
    int64_t total = 0;
    for (int i = 0; i < observer->count; i++)
        if (!observer->devices[i].lost)
            total += observer->devices[i].energy_cpu_ns;
    bool fixed = observer->options->interval_ns > 0;
    int64_t interval = (int64_t)((double)total / (fixed ? HEC_TUNE_FIXED_ENERGY_SHARE : HEC_TUNE_ENERGY_CPU_SHARE));
    int64_t shortest = nvml_interval(device, HEC_TUNE_ENERGY_INTERVAL_NS);
    int64_t longest = shortest > HEC_TUNE_ENERGY_INTERVAL_MAX_NS ? shortest : HEC_TUNE_ENERGY_INTERVAL_MAX_NS;
    if (fixed && shortest < nvml_utilization_interval(observer))
        shortest = nvml_utilization_interval(observer); /* joules are divided by it */
    if (device->observer->options->energy_every_ns)
        longest = shortest = device->observer->options->energy_every_ns;
    if (interval < shortest)
        interval = shortest;
    if (interval > longest)
        interval = longest;
    device->tracker.interval_ns = interval;
}

/* Paced: the reading itself, as old as a value may be. */
static void take_plainly(struct nvml_device *device, int64_t t0_ns, int64_t t1_ns, int64_t value_mj, bool *reset) {
    *reset = value_mj < device->energy_mj;
    device->energy_mj = value_mj;
    emit(device, t1_ns, t1_ns - t0_ns + HEC_TUNE_ENERGY_QUANTUM_NS, value_mj);
    device->tracker.next_ns = t1_ns + device->tracker.interval_ns;
}

static bool read_counter(struct nvml_device *device) {
    int64_t value = 0, unused, before = device->health[NVML_SENSOR_ENERGY].calls;
    int64_t cpu = nvml_thread_cpu_ns(), t0 = hec_clock_mono_ns();
    int code = nvml_read(&device->observer->nvml, device->handle, NVML_SENSOR_ENERGY, &value, &unused);
    int64_t t1 = hec_clock_mono_ns();
    cpu = nvml_thread_cpu_ns() - cpu;
    if (!nvml_call_done(device, NVML_SENSOR_ENERGY, t0, code)) {
        if (device->health[NVML_SENSOR_ENERGY].off && device->info.has_energy_counter) {
            const struct hec_sink *sink = device->observer->sink;
            device->info.has_energy_counter = 0;
            sink->device(sink->context, &device->info);
        }
        return false;
    }
    if (before > 0) /* the first call of a driver may wake the device */
        pace(device, cpu);
    bool fixed = device->observer->options->interval_ns > 0, reset;
    int64_t old = device->tracker.held_count ? device->tracker.held[device->tracker.held_count - 1].value_mj : 0;
    if (fixed) {
        old = device->energy_mj;
        take_plainly(device, t0, t1, value, &reset);
    } else {
        nvml_tracker_add(&device->tracker, t0, t1, value, &reset);
    }
    if (reset)
        nvml_event(device, HEC_EVENT_COUNTER_RESET, "the energy counter went back from %.3f J to %.3f J",
                   (double)old / 1e3, (double)value / 1e3);
    return true;
}

/* The pace of the counter, when it was found and again, better known, at the end. */
static void report_quantum(struct nvml_device *device) {
    const struct hec_grid *grid = &device->tracker.grid;
    if (!device->tracker.located)
        return;
    nvml_emit(device, HEC_GPU_ENERGY_QUANTUM, hec_clock_mono_ns(),
              llround((grid->period_min + grid->period_max) / 2 / (double)HEC_NS_PER_US));
    device->quantum_reported = true;
}

int64_t nvml_run_energy(struct nvml_device *device, int64_t now_ns) {
    const struct nvml_health *health = &device->health[NVML_SENSOR_ENERGY];
    if (!nvml_call_due(device, NVML_SENSOR_ENERGY, now_ns))
        return health->off ? INT64_MAX : health->retry_ns;
    bool resting = device->tracker.state == NVML_TRACKER_RESTING && device->tracker.rest_until_ns > 0;
    if (!read_counter(device))
        return health->off ? INT64_MAX : health->retry_ns;
    if (device->observer->options->interval_ns)
        return device->tracker.next_ns;
    if (!resting && device->tracker.state == NVML_TRACKER_RESTING)
        nvml_event(device, HEC_EVENT_NOTE,
                   "the energy counter has no regular pace of %d ms: its readings are placed to within %.0f ms",
                   (int)(HEC_TUNE_ENERGY_QUANTUM_NS / HEC_NS_PER_MS), (double)device->tracker.quantum_ns / 1e6);
    if (!device->quantum_reported)
        report_quantum(device);
    return device->tracker.next_ns;
}

void nvml_energy_finish(struct nvml_device *device) {
    for (int i = 0; i < FINISH_TRIES; i++) {
        if (device->lost || device->health[NVML_SENSOR_ENERGY].off || !read_counter(device))
            break;
        if (!nvml_tracker_undecided(&device->tracker))
            break;
    }
    report_quantum(device);
    nvml_tracker_flush(&device->tracker);
}

/* The driver's power history: one call a second gives every 20 ms sample since the last. */

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
