#include "observe/nvml/probe.h"

#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS 3 /* the middle one of three is the cost: the first may set things up */

static const struct {
    enum nvml_sensor sensor;
    const char *unit;
    double scale;
    bool needed; /* without it something is missing from a report */
    const char *remedy;
} scalars[] = {
    {NVML_SENSOR_ENERGY, "J", 1e-3, true, "a device of the Volta generation or newer; until then energy is integrated"},
    {NVML_SENSOR_INSTANT, "W", 1e-3, true, "driver 530 or newer"},
    {NVML_SENSOR_USAGE, "W", 1e-3, false, ""},
    {NVML_SENSOR_LIMIT, "W", 1e-3, false, ""},
    {NVML_SENSOR_UTIL, "%", 0.1, true, "with MIG enabled the driver does not give it: use the whole device"},
    {NVML_SENSOR_SM_CLOCK, "MHz", 1, false, ""},
    {NVML_SENSOR_MEM_CLOCK, "MHz", 1, false, ""},
    {NVML_SENSOR_THROTTLE, "", 1, false, ""},
    {NVML_SENSOR_MEMORY, "MiB", 1.0 / 1024, false, ""},
    {NVML_SENSOR_TEMPERATURE, "C", 1, false, ""},
    {NVML_SENSOR_MEM_TEMPERATURE, "C", 1, false, ""},
};

static int compare_times(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static struct hec_nvml_reading *add_reading(struct hec_nvml_probed *probed, const char *name, int code,
                                            const char *remedy) {
    struct hec_nvml_reading *reading = &probed->readings[probed->reading_count++];
    *reading = (struct hec_nvml_reading){.works = code == HEC_NVML_SUCCESS, .cost_us = NAN};
    snprintf(reading->name, sizeof reading->name, "%s", name);
    if (reading->works)
        return reading;
    snprintf(reading->why, sizeof reading->why, "%s", hec_nvml_code_text(code));
    if (code == HEC_NVML_NO_PERMISSION || code == HEC_NVML_OPERATING_SYSTEM)
        remedy = "permission for the device files /dev/nvidia*";
    snprintf(reading->remedy, sizeof reading->remedy, "%s", remedy);
    return reading;
}

static void probe_scalars(const struct hec_nvml *nvml, hec_nvml_device handle, struct hec_nvml_probed *probed) {
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        int64_t took[CALLS], value = 0, unused;
        int code = HEC_NVML_SUCCESS;
        for (int n = 0; n < CALLS && code == HEC_NVML_SUCCESS; n++) {
            int64_t t0 = hec_clock_mono_ns();
            code = nvml_read(nvml, handle, scalars[i].sensor, &value, &unused);
            took[n] = hec_clock_mono_ns() - t0;
        }
        struct hec_nvml_reading *reading =
            add_reading(probed, nvml_sensor_text(scalars[i].sensor), code, scalars[i].remedy);
        if (!reading->works)
            continue;
        qsort(took, CALLS, sizeof took[0], compare_times);
        int64_t middle = took[CALLS / 2];
        reading->cost_us = (double)middle / 1e3;
        if (scalars[i].sensor == NVML_SENSOR_THROTTLE)
            snprintf(reading->value, sizeof reading->value, "0x%llx", (unsigned long long)value);
        else
            snprintf(reading->value, sizeof reading->value, "%.*f %s", scalars[i].scale == 1e-3 ? 1 : 0,
                     (double)value * scalars[i].scale, scalars[i].unit);
    }
    if (!probed->readings[0].works)
        probed->device.has_energy_counter = 0;
}

static void probe_history(const struct hec_nvml *nvml, hec_nvml_device handle, struct hec_nvml_probed *probed) {
    struct hec_nvml_sample *samples = calloc(HEC_TUNE_HISTORY_BUFFER, sizeof *samples);
    unsigned count = HEC_TUNE_HISTORY_BUFFER;
    int type, code = HEC_NVML_FUNCTION_NOT_FOUND;
    if (!samples) {
        add_reading(probed, nvml_sensor_text(NVML_SENSOR_HISTORY), HEC_NVML_MEMORY, "");
        return;
    }
    int64_t t0 = hec_clock_mono_ns();
    if (nvml->samples)
        code = nvml->samples(handle, HEC_NVML_SAMPLES_TOTAL_POWER, 0, &type, &count, samples);
    int64_t took = hec_clock_mono_ns() - t0;
    struct hec_nvml_reading *reading =
        add_reading(probed, nvml_sensor_text(NVML_SENSOR_HISTORY), code, "nothing: power is polled instead");
    if (reading->works) {
        uint64_t first = UINT64_MAX, last = 0;
        unsigned used = 0;
        for (unsigned i = 0; i < count && i < HEC_TUNE_HISTORY_BUFFER; i++) {
            if (samples[i].time_us == 0)
                continue;
            used++;
            first = samples[i].time_us < first ? samples[i].time_us : first;
            last = samples[i].time_us > last ? samples[i].time_us : last;
        }
        reading->cost_us = (double)took / 1e3;
        if (used > 1)
            snprintf(reading->value, sizeof reading->value, "%u samples, one every %.1f ms", used,
                     (double)(last - first) / 1e3 / (used - 1));
        else
            snprintf(reading->value, sizeof reading->value, "%u samples", used);
    }
    free(samples);
}

static void probe_processes(const struct hec_nvml *nvml, hec_nvml_device handle, struct hec_nvml_probed *probed) {
    struct hec_nvml_process *list = calloc(1024, sizeof *list); /* room for either layout */
    unsigned count = 1024;
    int code = list ? HEC_NVML_FUNCTION_NOT_FOUND : HEC_NVML_MEMORY;
    int64_t t0 = hec_clock_mono_ns();
    if (list && nvml->compute_processes)
        code = nvml->compute_processes(handle, &count, list);
    else if (list && nvml->compute_processes_v1)
        code = nvml->compute_processes_v1(handle, &count, (struct hec_nvml_process_v1 *)list);
    int64_t took = hec_clock_mono_ns() - t0;
    struct hec_nvml_reading *reading = add_reading(probed, nvml_sensor_text(NVML_SENSOR_COMPUTE), code, "");
    if (reading->works) {
        reading->cost_us = (double)took / 1e3;
        snprintf(reading->value, sizeof reading->value, "%u", count);
    }
    free(list);
}

/* First half: a sample of each device; the second comes a window later. */
static hec_nvml_gpm_sample begin_gpm(const struct hec_nvml *nvml, hec_nvml_device handle,
                                     const struct hec_device *info) {
    hec_nvml_gpm_sample sample = NULL;
    if (!info->has_gpm || nvml->gpm_sample_alloc(&sample) != HEC_NVML_SUCCESS)
        return NULL;
    if (nvml->gpm_sample_get(handle, sample) == HEC_NVML_SUCCESS)
        return sample;
    nvml->gpm_sample_free(sample);
    return NULL;
}

static void end_gpm(const struct hec_nvml *nvml, hec_nvml_device handle, hec_nvml_gpm_sample first,
                    struct hec_nvml_probed *probed) {
    const char *name = nvml_sensor_text(NVML_SENSOR_GPM);
    hec_nvml_gpm_sample second = NULL;
    if (!first) {
        struct hec_nvml_reading *reading =
            add_reading(probed, name, HEC_NVML_NOT_SUPPORTED,
                        "a device of the Hopper generation or newer, not divided by MIG, with "
                        "driver 525 or newer");
        probed->device.has_gpm = 0;
        snprintf(reading->why, sizeof reading->why, "this device or driver has no GPM");
        return;
    }
    int code = nvml->gpm_sample_alloc(&second);
    int64_t t0 = hec_clock_mono_ns();
    if (code == HEC_NVML_SUCCESS)
        code = nvml->gpm_sample_get(handle, second);
    int64_t took = hec_clock_mono_ns() - t0;
    struct hec_nvml_gpm_metrics request = {.version = 1, .sample1 = first, .sample2 = second};
    enum hec_metric metric;
    double factor;
    unsigned works = 0;
    while (nvml_gpm_row((int)request.count, &request.metrics[request.count].id, &metric, &factor))
        request.count++;
    if (code == HEC_NVML_SUCCESS)
        code = nvml->gpm_metrics(&request);
    for (unsigned i = 0; code == HEC_NVML_SUCCESS && i < request.count; i++)
        works += request.metrics[i].code == HEC_NVML_SUCCESS && isfinite(request.metrics[i].value);
    struct hec_nvml_reading *reading = add_reading(probed, name, code, "");
    if (reading->works) {
        reading->cost_us = (double)took / 1e3;
        snprintf(reading->value, sizeof reading->value, "%u of %u metrics", works, request.count);
    }
    nvml->gpm_sample_free(first);
    if (second)
        nvml->gpm_sample_free(second);
}

static int probe_all(const struct hec_nvml *nvml, const char *visible_devices, unsigned count,
                     struct hec_nvml_probed **devices, struct hec_why *why) {
    hec_nvml_device handles[HEC_VENDOR_DEVICES_MAX];
    hec_nvml_gpm_sample samples[HEC_VENDOR_DEVICES_MAX];
    struct hec_device *infos[HEC_VENDOR_DEVICES_MAX];
    struct hec_nvml_probed *probed = calloc(count, sizeof *probed);
    if (!probed)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    bool any_gpm = false;
    for (unsigned i = 0; i < count; i++) {
        int code = nvml->device_by_index(i, &handles[i]);
        if (code != HEC_NVML_SUCCESS)
            handles[i] = NULL;
        nvml_describe(nvml, handles[i], (int)i, &probed[i].device);
        infos[i] = &probed[i].device;
        samples[i] = handles[i] ? begin_gpm(nvml, handles[i], infos[i]) : NULL;
        any_gpm |= samples[i] != NULL;
        if (!handles[i])
            add_reading(&probed[i], "device", code, "");
    }
    if (any_gpm)
        nanosleep(&(struct timespec){0, HEC_TUNE_GPM_WINDOW_NS}, NULL);
    for (unsigned i = 0; i < count; i++) {
        if (!handles[i])
            continue;
        end_gpm(nvml, handles[i], samples[i], &probed[i]);
        struct hec_nvml_reading gpm = probed[i].readings[--probed[i].reading_count]; /* shown last */
        probe_scalars(nvml, handles[i], &probed[i]);
        probe_history(nvml, handles[i], &probed[i]);
        probe_processes(nvml, handles[i], &probed[i]);
        probed[i].readings[probed[i].reading_count++] = gpm;
    }
    if (nvml_find_visible(nvml, handles, infos, (int)count, visible_devices, NULL) != HEC_OK) {
        free(probed);
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    }
    *devices = probed;
    return (int)count;
}

int hec_nvml_probe(const char *nvml_path, const char *visible_devices, struct hec_nvml_probed **devices,
                   struct hec_why *why) {
    struct hec_nvml nvml;
    *devices = NULL;
    int result = hec_nvml_load(nvml_path, &nvml, why);
    if (result != HEC_OK)
        return result;
    int code = nvml.init();
    if (code != HEC_NVML_SUCCESS) {
        hec_nvml_unload(&nvml);
        return hec_fail(why, hec_nvml_error(code), "the NVIDIA driver does not start: %s", hec_nvml_code_text(code));
    }
    unsigned count = 0;
    code = nvml.device_count(&count);
    if (code != HEC_NVML_SUCCESS)
        result =
            hec_fail(why, hec_nvml_error(code), "the NVIDIA driver cannot list its GPUs: %s", hec_nvml_code_text(code));
    else if (count == 0)
        result = hec_fail(why, HEC_ERR_NOTFOUND, "the NVIDIA driver is here, but no GPU");
    else
        result = probe_all(&nvml, visible_devices, count < HEC_VENDOR_DEVICES_MAX ? count : HEC_VENDOR_DEVICES_MAX,
                           devices, why);
    if (nvml.shutdown)
        nvml.shutdown();
    hec_nvml_unload(&nvml);
    return result;
}

static bool is_needed(const char *name) {
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++)
        if (strcmp(name, nvml_sensor_text(scalars[i].sensor)) == 0)
            return scalars[i].needed;
    return true;
}

static void check_device(const struct hec_nvml_probed *probed, const char *area, struct hec_check_list *list) {
    for (int r = 0; r < probed->reading_count; r++) {
        const struct hec_nvml_reading *reading = &probed->readings[r];
        enum hec_check_status without = is_needed(reading->name) ? HEC_CHECK_MISSING : HEC_CHECK_LIMITED;
        struct hec_check *check = hec_check_add(list, area, reading->name, reading->works ? HEC_CHECK_OK : without,
                                                "%s", reading->works ? reading->value : reading->why);
        snprintf(check->remedy, sizeof check->remedy, "%s", reading->remedy);
        if (reading->works)
            snprintf(check->cost, sizeof check->cost, "%.0f us a reading", reading->cost_us);
    }
}

static bool same_readings(const struct hec_nvml_probed *a, const struct hec_nvml_probed *b) {
    bool same = a->reading_count == b->reading_count;
    for (int r = 0; same && r < a->reading_count; r++)
        same = a->readings[r].works == b->readings[r].works && strcmp(a->readings[r].name, b->readings[r].name) == 0;
    return same;
}

int hec_nvml_devices(const struct hec_observe_options *options, struct hec_device *out, int room, struct hec_why *why) {
    struct hec_nvml_probed *probed = NULL;
    int count = hec_nvml_probe(options->nvml_path, options->visible_devices, &probed, why);
    count = count > room ? room : count;
    for (int i = 0; i < count; i++)
        out[i] = probed[i].device;
    free(probed);
    return count;
}

void hec_nvml_check(const struct hec_observe_options *options, struct hec_check_list *list) {
    struct hec_nvml_probed *devices;
    struct hec_why why;
    int count = hec_nvml_probe(options->nvml_path, options->visible_devices, &devices, &why);
    if (count < 0 || !devices) {
        struct hec_check *check = hec_check_add(list, "gpu", "NVIDIA driver", HEC_CHECK_MISSING, "%s", why.text);
        snprintf(
            check->remedy, sizeof check->remedy,
            "install the NVIDIA driver (in a container: run it with the NVIDIA runtime), or try `hec run --sim h200`");
        return;
    }
    const char *driver = "of unknown version";
    for (int i = count - 1; i >= 0; i--) /* one that cannot be opened does not show it */
        if (devices[i].device.driver[0] != '\0')
            driver = devices[i].device.driver;
    hec_check_add(list, "gpu", "NVIDIA driver", HEC_CHECK_OK, "driver %s, %d device%s", driver, count,
                  count == 1 ? "" : "s");
    for (int i = 0; i < count; i++) {
        char area[24];
        snprintf(area, sizeof area, "gpu %d", i);
        if (i > 0 && same_readings(&devices[i], &devices[0])) /* a node of eight equal devices would fill the screen */
            hec_check_add(list, area, "all readings", HEC_CHECK_OK, "as for gpu 0");
        else
            check_device(&devices[i], area, list);
    }
    free(devices);
}
