/* hec calibrate: measure what the devices reach, or show what was measured. */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/calibration.h"
#include "cli/cli.h"
#include "diagnose/meter/sensor_response.h"
#include "driver/cuda_bench.h"
#include "driver/nvml.h"
#include "launch/facts.h"
#include "launch/simulation.h"
#include "model/peaks.h"
#include "model/run.h"
#include "model/throttle.h"
#include "observe/nvml/probe.h"
#include "report/format.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- one device, asked through NVML and worked through CUDA ---- */

#define PROCESSES_MAX 256
#define BUSY_PERCENT 5 /* utilisation that a device without visible processes is taken for busy at */
#define POLL_NS (5 * HEC_NS_PER_MS)

#define READINGS_MAX 4096 /* 12 s, each 5 ms */
#define EDGES_MAX 64
#define HISTORY_MAX 256                  /* the driver keeps 119 samples */
#define HISTORY_NS (500 * HEC_NS_PER_MS) /* between two looks at it: it reaches 2.3 s back */

struct card {
    struct hec_nvml nvml;
    hec_nvml_device handle;
    /* of the square wave */
    int64_t edges_ns[EDGES_MAX];
    struct hec_sensor_reading readings[READINGS_MAX];
    int edges, count;
    int64_t looked_ns;
    uint64_t last_us;
    bool history;
};

static bool throttled(void *context) {
    struct card *card = context;
    unsigned long long reasons = 0;
    if (card->nvml.clocks_event_reasons(card->handle, &reasons) != HEC_NVML_SUCCESS)
        return false;
    int64_t why = hec_nvml_throttle(reasons);
    return hec_throttle_has(why, HEC_THROTTLE_POWER) || hec_throttle_slowed(why);
}

static void wait_ns(int64_t ns) {
    struct timespec left = {ns / HEC_NS_PER_S, ns % HEC_NS_PER_S};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Wait until the energy counter moves: it is updated in steps of 20 to 100 ms. False: it does not, for half a second. */
static bool next_edge(const struct card *card, unsigned long long *mj, int64_t *t_ns) {
    unsigned long long before;
    if (card->nvml.energy(card->handle, &before) != HEC_NVML_SUCCESS)
        return false;
    for (int64_t began = hec_clock_mono_ns(); (*t_ns = hec_clock_mono_ns()) - began < HEC_NS_PER_S / 2;
         wait_ns(POLL_NS))
        if (card->nvml.energy(card->handle, mj) == HEC_NVML_SUCCESS && *mj != before)
            return true;
    return false;
}

/* By the energy counter from edge to edge; where there is none, the mean of the power readings. */
static double idle_watts(void *context, int64_t ns) {
    const struct card *card = context;
    unsigned long long first = 0, last = 0;
    int64_t began = 0, ended = 0;
    if (card->nvml.energy && next_edge(card, &first, &began)) {
        wait_ns(ns);
        if (next_edge(card, &last, &ended) && last > first)
            return (double)(last - first) / 1e3 / ((double)(ended - began) / 1e9);
    }
    double sum = 0;
    int count = 0;
    for (int64_t until = hec_clock_mono_ns() + ns; hec_clock_mono_ns() < until; wait_ns(100 * HEC_NS_PER_MS)) {
        unsigned mw = 0;
        if (card->nvml.power_usage && card->nvml.power_usage(card->handle, &mw) == HEC_NVML_SUCCESS) {
            sum += mw / 1e3;
            count++;
        }
    }
    return count ? sum / count : NAN;
}

/* ---- the power sensor ---- */

static void load_edge(void *context, int64_t t_ns) {
    struct card *card = context;
    if (card->edges < EDGES_MAX)
        card->edges_ns[card->edges++] = t_ns;
}

static void keep_reading(struct card *card, int64_t t_ns, double watts) {
    if (card->count < READINGS_MAX)
        card->readings[card->count++] = (struct hec_sensor_reading){t_ns, watts};
}

/* The samples that the driver stamps itself, where it keeps them: those are what hec run reads. */
static bool look_at_history(struct card *card) {
    struct hec_nvml_sample samples[HISTORY_MAX];
    unsigned count = HISTORY_MAX;
    int type = HEC_NVML_UNSIGNED;
    if (!card->nvml.samples || card->nvml.samples(card->handle, HEC_NVML_SAMPLES_TOTAL_POWER, card->last_us, &type,
                                                  &count, samples) != HEC_NVML_SUCCESS)
        return false;
    uint64_t newest = card->last_us;
    for (unsigned i = 0; i < count && i < HISTORY_MAX; i++) {
        if (samples[i].time_us <= card->last_us)
            continue;
        newest = samples[i].time_us > newest ? samples[i].time_us : newest;
        keep_reading(card, (int64_t)samples[i].time_us * HEC_NS_PER_US - hec_clock_wall_offset_ns(),
                     (double)hec_nvml_value_integer(&samples[i].value, type) / 1e3);
    }
    card->last_us = newest;
    return count > 0;
}

static void watch(void *context) {
    struct card *card = context;
    int64_t now_ns = hec_clock_mono_ns();
    unsigned mw = 0;
    if (now_ns - card->looked_ns >= HISTORY_NS) {
        card->looked_ns = now_ns;
        card->history = look_at_history(card) || card->history;
    }
    if (!card->history && card->nvml.power_usage && card->nvml.power_usage(card->handle, &mw) == HEC_NVML_SUCCESS)
        keep_reading(card, now_ns, mw / 1e3);
}

static double sensor(void *context, enum hec_peak_kind kind) {
    const struct card *card = context;
    struct hec_sensor_response response;
    if (!hec_sensor_response_fit(card->edges_ns, card->edges, card->readings, card->count, &response))
        return NAN;
    return (double)(kind == HEC_PEAK_SENSOR_WINDOW ? response.window_ns : response.delay_ns);
}

static void report(void *context, enum hec_peak_kind kind, const char *why) {
    (void)context;
    if (why)
        hec_warn("calibrate: no figure for %s: %s", hec_peak_name(kind), why);
    else
        hec_info("calibrate: %s (%s)", hec_peak_name(kind), hec_peak_meaning(kind));
}

/* Processes on the device but this one; -1: the driver does not say. */
static int other_processes(const struct card *card) {
    struct hec_nvml_process list[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;
    if (!card->nvml.compute_processes)
        return -1;
    int code = card->nvml.compute_processes(card->handle, &count, list);
    if (code == HEC_NVML_INSUFFICIENT_SIZE)
        return PROCESSES_MAX;
    if (code != HEC_NVML_SUCCESS)
        return -1;
    int others = 0;
    for (unsigned i = 0; i < count && i < PROCESSES_MAX; i++)
        others += list[i].pid != (unsigned)getpid();
    return others;
}

/* In a container the list may be empty although the device works: its utilisation shows it. */
static int look_for_others(const struct card *card, bool force, bool *shared, struct hec_why *why) {
    struct hec_nvml_utilization used = {0, 0};
    int others = other_processes(card);
    if (!card->nvml.utilization || card->nvml.utilization(card->handle, &used) != HEC_NVML_SUCCESS)
        used.gpu = 0;
    *shared = others > 0 || used.gpu >= BUSY_PERCENT;
    if (!*shared || force)
        return HEC_OK;
    if (others > 0)
        return hec_fail(
            why, HEC_ERR_BUSY,
            "%d other process%s a context on the device, so its peaks would come out wrong; --force measures "
            "all the same",
            others, others == 1 ? " has" : "es have");
    return hec_fail(why, HEC_ERR_BUSY,
                    "the device is %u %% busy, so its peaks would come out wrong; --force measures all the same",
                    used.gpu);
}

static int open_card(const struct hec_device *device, struct card *card, struct hec_why *why) {
    int err = hec_nvml_load(NULL, &card->nvml, why);
    if (err < 0)
        return err;
    int code = card->nvml.init();
    if (code == HEC_NVML_SUCCESS)
        code = card->nvml.device_by_index((unsigned)device->index, &card->handle);
    if (code == HEC_NVML_SUCCESS)
        return HEC_OK;
    hec_nvml_unload(&card->nvml);
    return hec_fail(why, hec_nvml_error(code), "NVML: %s", hec_nvml_code_text(code));
}

/* CUDA numbers devices its own way. */
static int ordinal_of(const struct hec_cuda *cuda, const char *uuid, struct hec_why *why) {
    int count = 0, device = 0;
    int code = cuda->init(0);
    if (code == 0)
        code = cuda->device_count(&count);
    if (code)
        return hec_cuda_fail(cuda, code, "CUDA cannot be used", why);
    for (int i = 0; i < count; i++) {
        unsigned char bytes[16];
        char text[48];
        if (cuda->device_get(&device, i) != 0 || cuda->device_uuid(bytes, device) != 0)
            continue;
        hec_cuda_uuid_text(bytes, text);
        if (strcmp(text, uuid) == 0)
            return device;
    }
    return hec_fail(why, HEC_ERR_NOTFOUND, "CUDA does not see the device; is it hidden by CUDA_VISIBLE_DEVICES?");
}

static void describe(const struct hec_device *device, struct hec_peaks *peaks) {
    hec_peaks_init(peaks);
    snprintf(peaks->uuid, sizeof peaks->uuid, "%s", device->uuid);
    snprintf(peaks->name, sizeof peaks->name, "%s", device->name);
    snprintf(peaks->driver, sizeof peaks->driver, "%s", device->driver);
    snprintf(peaks->hec_version, sizeof peaks->hec_version, "%s", HEC_VERSION);
    hec_facts_wall_time(hec_clock_wall_ns(), peaks->measured);
    if (device->power_limit_mw > 0)
        peaks->power_limit_w = (double)device->power_limit_mw / 1e3;
}

/* Measure this device: about 15 s. force: although others use it. HEC_ERR_BUSY: others use it; UNSUPPORTED: it is
 * simulated or divided (MIG), or CUDA cannot use it. */
static int calibrate_device(const struct hec_device *device, bool force, struct hec_peaks *peaks, struct hec_why *why) {
    describe(device, peaks);
    if (device->simulated)
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "a simulated GPU executes no kernels, so there are no peaks to measure; nothing was kept");
    if (device->mig_enabled > 0)
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "the device is divided (MIG); its parts have no peaks of their own here");
    struct hec_cuda cuda;
    static struct card card; /* one device after the other */
    card = (struct card){.edges = 0};
    int err = hec_cuda_load(NULL, &cuda, why);
    if (err < 0)
        return err;
    err = open_card(device, &card, why);
    if (err == HEC_OK) {
        err = look_for_others(&card, force, &peaks->shared, why);
        int ordinal = err < 0 ? err : ordinal_of(&cuda, device->uuid, why);
        struct hec_cuda_bench bench = {.cuda = &cuda, .device = ordinal, .context = &card, .report = report};
        bench.throttled = card.nvml.clocks_event_reasons ? throttled : NULL;
        bench.idle_watts = card.nvml.energy || card.nvml.power_usage ? idle_watts : NULL;
        if (card.nvml.samples || card.nvml.power_usage) {
            bench.load = load_edge;
            bench.watch = watch;
            bench.sensor = sensor;
        }
        err = ordinal < 0 ? ordinal : hec_cuda_bench(&bench, peaks, why);
        if (err == HEC_OK && other_processes(&card) > 0)
            peaks->shared = true; /* somebody came while it ran */
        if (card.nvml.shutdown)
            card.nvml.shutdown();
        hec_nvml_unload(&card.nvml);
    }
    hec_cuda_unload(&cuda);
    return err;
}

#define SCHEMA "hec.calibrate/1"

struct job {
    struct hec_args args;
    double device; /* below 0: every one */
    bool json;
    json_t *list; /* of hec_calibration_json */
};

static void print_figure(const struct hec_peaks *peaks, const struct hec_part *part, enum hec_peak_kind kind) {
    const struct hec_peak *peak = &peaks->peak[kind];
    char value[HEC_FORMAT_SIZE], spread[32] = "", stated[64] = "", sustained[256] = "";
    double vendor = hec_peak_stated(part, kind);
    if (kind == HEC_PEAK_IDLE_POWER)
        snprintf(value, sizeof value, "%.1f W", peak->value);
    else if (hec_peak_is_rate(kind))
        hec_format_si(value, peak->value, 4, hec_peak_unit(kind));
    else
        hec_format_si(value, peak->value * 1e-9, 4, "s");
    if (peak->runs > 1)
        snprintf(spread, sizeof spread, "-%.1f/+%.1f %%", 100 * (1 - peak->low / peak->value),
                 100 * (peak->high / peak->value - 1));
    if (vendor > 0)
        snprintf(stated, sizeof stated, "%.0f %%", 100 * peak->value / vendor);
    printf("  %-12s %16s  %-14s %6s  %s%s\n", hec_peak_name(kind), value, spread, stated, peak->method,
           peak->throttled ? ", clocks lowered" : "");
    if (isfinite(peak->sustained)) {
        hec_format_si(value, peak->sustained, 4, hec_peak_unit(kind));
        snprintf(sustained, sizeof sustained, "%16s  without a pause, at %.0f MHz%s (bursts: %.0f MHz)", value,
                 peak->sustained_mhz, peak->sustained_throttled ? ", clocks lowered" : "", peak->sm_mhz);
        printf("  %-12s %s\n", "", sustained);
    }
}

/* On standard output. */
static void print_peaks(const struct hec_peaks *peaks, int index) {
    const struct hec_part *part = hec_part_find(peaks->name);
    char gpu[HEC_FORMAT_SIZE];
    printf("%s  %s, %s\n", hec_format_gpu(gpu, index), peaks->name, peaks->uuid);
    printf("  measured %s, driver %s, %d SMs, up to %.0f MHz, power limit %.0f W%s%s\n", peaks->measured, peaks->driver,
           peaks->sms, peaks->sm_max_mhz, peaks->power_limit_w,
           peaks->shared ? "; other processes used the device: too low" : "",
           peaks->simulated ? "; SIMULATED: no measurement" : "");
    printf("  %-12s %16s  %-14s %6s  %s\n", "", "median", "spread", "vendor", "method");
    for (int i = 0; i < HEC_PEAK_COUNT; i++)
        if (peaks->peak[i].runs > 0)
            print_figure(peaks, part, (enum hec_peak_kind)i);
        else
            printf("  %-12s %16s\n", hec_peak_name((enum hec_peak_kind)i), "unknown");
    if (part)
        printf("  vendor: share of what is stated for %s (%s)\n", part->name, part->source);
}

static int keep(const struct hec_peaks *peaks, struct hec_why *why) {
    char path[PATH_MAX];
    if (peaks->shared) {
        hec_warn("calibrate: not kept, since other processes used the device");
        return HEC_OK;
    }
    int err = hec_calibration_write(peaks, path, why);
    if (err == HEC_OK)
        hec_info("calibrate: kept in %s", path);
    return err;
}

static int one(struct job *job, const struct hec_device *device) {
    struct hec_peaks peaks;
    struct hec_why why = {""};
    char gpu[HEC_FORMAT_SIZE];
    int err;
    if (hec_args_has(&job->args, HEC_OPT_SHOW)) {
        err = hec_calibration_read(device->uuid, &peaks, &why);
    } else {
        err = calibrate_device(device, hec_args_has(&job->args, HEC_OPT_FORCE), &peaks, &why);
        if (err == HEC_OK)
            err = keep(&peaks, &why);
    }
    if (err < 0) {
        hec_error("calibrate: %s: %s", hec_format_gpu(gpu, device->index), why.text[0] ? why.text : hec_err_text(err));
        return err;
    }
    if (job->json)
        json_array_append_new(job->list, hec_calibration_json(&peaks));
    else
        print_peaks(&peaks, device->index);
    return HEC_OK;
}

/* Every visible device, or the one asked for. One that fails does not keep the others from their turn; the first
 * failure is returned. */
static int each(struct job *job, const struct hec_nvml_probed *probed, int count) {
    const double wanted = job->device;
    int err = HEC_OK, done = 0;
    for (int i = 0; i < count; i++) {
        const struct hec_device *device = &probed[i].device;
        if (wanted < 0 ? !device->visible : device->index != (int)wanted)
            continue;
        done++;
        int failed = one(job, device);
        err = err == HEC_OK ? failed : err;
    }
    if (done > 0)
        return err;
    if (wanted < 0)
        hec_error("calibrate: CUDA_VISIBLE_DEVICES hides every GPU");
    else
        hec_error("calibrate: there is no GPU %d", (int)wanted);
    return HEC_ERR_NOTFOUND;
}

static int print(struct job *job) {
    json_t *root = json_object();
    json_object_set_new(root, "schema", json_string(SCHEMA));
    json_object_set(root, "devices", job->list);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(root);
    if (!text)
        return HEC_ERR_NOMEM;
    puts(text);
    free(text);
    return HEC_OK;
}

static int calibrate(struct job *job, const char *spec) {
    struct hec_simulation *simulation = NULL;
    struct hec_nvml_probed *probed = NULL;
    struct hec_why why = {""};
    int err = spec ? hec_simulation_begin(spec, &simulation, &why) : HEC_OK;
    int count = err < 0 ? err
                        : hec_nvml_probe(spec ? hec_simulation_nvml(simulation) : NULL, getenv("CUDA_VISIBLE_DEVICES"),
                                         &probed, &why);
    if (count < 0) {
        hec_error("calibrate: %s", why.text[0] ? why.text : hec_err_text(count));
        err = count;
    } else {
        err = each(job, probed, count);
    }
    if (job->json && json_array_size(job->list) > 0) {
        int failed = print(job);
        err = err < 0 ? err : failed;
    }
    free(probed);
    hec_simulation_end(simulation);
    return err;
}

int hec_verb_calibrate(struct hec_args *args) {
    struct job job = {.args = *args, .list = json_array(), .device = -1};
    int err = hec_args_number(&job.args, HEC_OPT_DEVICE, 0, HEC_DEVICE_MAX - 1, &job.device);
    if (err == HEC_OK) {
        job.json = hec_args_has(&job.args, HEC_OPT_JSON);
        err = calibrate(&job, hec_args_value(&job.args, HEC_OPT_SIM));
    }
    json_decref(job.list);
    return err;
}
