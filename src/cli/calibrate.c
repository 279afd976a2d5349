/* hec calibrate: measure what the devices reach, or show what was measured. */
#include "cli/calibrate.h"

#include "base/log.h"
#include "cli/calibration.h"
#include "cli/cli.h"
#include "launch/simulation.h"
#include "observe/nvml/probe.h"
#include "report/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        err = hec_calibrate_device(device, hec_args_has(&job->args, HEC_OPT_FORCE), &peaks, &why);
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

int hec_verb_calibrate(int argc, char **argv) {
    struct job job = {.list = json_array(), .device = -1};
    int err = hec_args_parse(HEC_VERB_CALIBRATE, argc, argv, &job.args);
    if (err == HEC_OK && job.args.rest_count > 0) {
        hec_error("calibrate takes no operand: \"%s\"", job.args.rest[0]);
        err = HEC_ERR_USAGE;
    }
    if (err == HEC_OK)
        err = hec_args_number(&job.args, HEC_OPT_DEVICE, 0, HEC_DEVICE_MAX - 1, &job.device);
    if (err == HEC_OK) {
        job.json = hec_args_has(&job.args, HEC_OPT_JSON);
        err = calibrate(&job, hec_args_value(&job.args, HEC_OPT_SIM));
    }
    json_decref(job.list);
    return err > 0 ? 0 : hec_err_exit_status(err);
}
