/* What NVML costs and how its sensors behave on this machine, as JSON. Needs no GPU software but the driver:
 *
 *   cc -O2 -D_GNU_SOURCE -Isrc bench/gpu/nvml_probe.c src/driver/nvml.c src/base/error.c -ldl -lm -o nvml_probe
 *   ./nvml_probe [path of libnvidia-ml.so.1] [device index]
 *
 * Run it beside a steady load to see the hardware counters move. Takes about 15 s. */
#include "driver/nvml.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct hec_nvml nvml;
static hec_nvml_device device;

static double clock_s(clockid_t id) {
    struct timespec ts;
    clock_gettime(id, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double now_s(void) {
    return clock_s(CLOCK_MONOTONIC);
}

static double wall_offset_s(void) {
    double before = now_s(), wall = clock_s(CLOCK_REALTIME), after = now_s();
    return wall - (before + after) / 2;
}

static void sleep_s(double seconds) {
    struct timespec ts = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
    if (seconds > 0)
        nanosleep(&ts, NULL);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* {"min":..,"median":..,"p95":..,"max":..} of n values, which are sorted in place */
static void print_spread(const char *name, double *values, int n, double factor) {
    if (n == 0) {
        printf("\"%s\": null", name);
        return;
    }
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    printf("\"%s\": {\"min\": %.3f, \"median\": %.3f, \"p95\": %.3f, \"max\": %.3f, \"n\": %d}", name,
           values[0] * factor, values[n / 2] * factor, values[n * 95 / 100] * factor, values[n - 1] * factor, n);
}

static struct hec_nvml_sample samples[1024];
static struct hec_nvml_process processes[1024];
static struct hec_nvml_process_utilization utilizations[1024];
static hec_nvml_gpm_sample gpm[2];
static unsigned long long wide;
static unsigned number;

static int do_field(unsigned id) {
    struct hec_nvml_field field = {.id = id};
    int code = nvml.field_values(device, 1, &field);
    return code ? code : field.code;
}
static int do_samples(void) {
    int type;
    number = 1024;
    return nvml.samples(device, HEC_NVML_SAMPLES_TOTAL_POWER, 0, &type, &number, samples);
}

/* name, symbol it needs, repeats, expression */
/* clang-format off */
#define CALLS(X) \
    X(energy, energy, 60, nvml.energy(device, &wide)) \
    X(energy_field, field_values, 60, do_field(83)) \
    X(instant, field_values, 300, do_field(HEC_NVML_FIELD_POWER_INSTANT)) \
    X(memory_temperature, field_values, 300, do_field(HEC_NVML_FIELD_MEMORY_TEMPERATURE)) \
    X(usage, power_usage, 300, nvml.power_usage(device, &number)) \
    X(limit, power_limit_enforced, 300, nvml.power_limit_enforced(device, &number)) \
    X(sm_clock, clock, 300, nvml.clock(device, HEC_NVML_CLOCK_SM, &number)) \
    X(reasons, clocks_event_reasons, 300, nvml.clocks_event_reasons(device, &wide)) \
    X(temperature, temperature, 300, nvml.temperature(device, HEC_NVML_TEMPERATURE_GPU, &number)) \
    X(utilization, utilization, 300, nvml.utilization(device, &(struct hec_nvml_utilization){0})) \
    X(memory, memory_v2, 300, nvml.memory_v2(device, &(struct hec_nvml_memory_v2){.version = HEC_NVML_MEMORY_V2})) \
    X(samples, samples, 30, do_samples()) \
    X(compute, compute_processes, 30, (number = 1024, nvml.compute_processes(device, &number, processes))) \
    X(graphics, graphics_processes, 30, (number = 1024, nvml.graphics_processes(device, &number, processes))) \
    X(process_utilization, process_utilization, 30, \
      (number = 1024, nvml.process_utilization(device, utilizations, &number, 0))) \
    X(gpm_sample, gpm_sample_get, 100, gpm[0] ? nvml.gpm_sample_get(device, gpm[0]) : HEC_NVML_NOT_SUPPORTED)

#define DEFINE(name, symbol, repeats, expression) \
    static int call_##name(void) { return expression; }
CALLS(DEFINE)

/* clang-format on */
#define ROW(name, symbol, repeats, expression) {#name, HEC_NVML_SYMBOL_##symbol, call_##name, repeats},
static const struct {
    const char *name;
    enum hec_nvml_symbol symbol;
    int (*call)(void);
    int repeats;
} calls[] = {CALLS(ROW)};

static void print_calls(void) {
    printf("\"calls\": [");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        double took[300], cpu = 0;
        int code = 0;
        printf("%s\n  {\"call\": \"%s\", ", i ? "," : "", calls[i].name);
        if (!nvml.version[calls[i].symbol]) {
            printf("\"code\": \"FUNCTION_NOT_FOUND\"}");
            continue;
        }
        for (int n = 0; n < calls[i].repeats; n++) {
            double t0 = now_s(), cpu0 = clock_s(CLOCK_THREAD_CPUTIME_ID);
            code = calls[i].call();
            cpu += clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu0;
            took[n] = now_s() - t0;
        }
        printf("\"code\": \"%s\", \"cpu_us_mean\": %.1f, ", hec_nvml_code_text(code), cpu / calls[i].repeats * 1e6);
        print_spread("wall_us", took, calls[i].repeats, 1e6);
        printf("}");
    }
    printf("\n],\n");
}

/* Tight readings for 6 s: every change of the value brackets an edge. Residuals against the best regular grid show how
 * regular the edges are; a bracket is two calls wide. */
static void print_energy_grid(void) {
    enum { MAX = 400 };
    static double early[MAX], late[MAX], middle[MAX], residual[MAX], step[MAX];
    int edges = 0;
    double end = now_s() + 6, t0, t1;
    unsigned long long before = 0, first = 0, last = 0;
    double before_t0 = 0;
    if (!nvml.energy || nvml.energy(device, &before)) {
        printf("\"energy_grid\": null,\n");
        return;
    }
    first = before;
    before_t0 = now_s();
    do {
        t0 = now_s();
        if (nvml.energy(device, &wide))
            break;
        t1 = now_s();
        if (wide != before && edges < MAX) {
            early[edges] = before_t0;
            late[edges] = t1;
            middle[edges] = (before_t0 + t1) / 2;
            step[edges++] = (double)(wide - before);
        }
        before = last = wide;
        before_t0 = t0;
    } while (t1 < end);
    printf("\"energy_grid\": {\"edges\": %d, \"mean_watts\": %.1f", edges, (double)(last - first) / 6e3);
    if (edges > 3) {
        double period = (middle[edges - 1] - middle[1]) / (edges - 2), sum_k = 0, sum_t = 0, kk = 0, kt = 0;
        double lower = -INFINITY, upper = INFINITY; /* of the phase, if the value is taken anywhere inside a call */
        for (int i = 1; i < edges; i++) { /* least squares over edge numbers, so that a missed edge does not matter */
            double k = round((middle[i] - middle[1]) / period);
            sum_k += k, sum_t += middle[i] - middle[1], kk += k * k, kt += k * (middle[i] - middle[1]);
        }
        int n = edges - 1;
        period = (n * kt - sum_k * sum_t) / (n * kk - sum_k * sum_k);
        double phase = (sum_t - period * sum_k) / n;
        for (int i = 1; i < edges; i++) {
            double k = round((middle[i] - middle[1] - phase) / period), at = middle[1] + phase + k * period;
            residual[i - 1] = middle[i] - at;
            lower = fmax(lower, early[i] - at);
            upper = fmin(upper, late[i] - at);
        }
        /* negative: no regular grid agrees with every reading */
        printf(", \"period_ms\": %.4f, \"phase_known_to_ms\": %.3f, ", period * 1e3, (upper - lower) * 1e3);
        print_spread("residual_ms", residual, n, 1e3);
        printf(", ");
        print_spread("step_mj", step + 1, n, 1);
    }
    printf("},\n");
}

/* Every 7 ms for 3 s: when does the history grow, by how much, and how old is its newest sample? */
static void print_history(void) {
    enum { POLLS = 420 };
    static double lag[POLLS], growth[POLLS], gap[POLLS], spacing[1024];
    unsigned long long newest = 0;
    int n = 0, grown = 0, spaced = 0;
    double last_growth = 0;
    if (!nvml.samples || do_samples()) {
        printf("\"history\": null,\n");
        return;
    }
    unsigned first_count = number;
    for (unsigned i = 1; i < number; i++)
        if (samples[i - 1].time_us)
            spacing[spaced++] = ((double)samples[i].time_us - (double)samples[i - 1].time_us) * 1e-6;
    for (int poll = 0; poll < POLLS; poll++, sleep_s(0.007)) {
        unsigned long long top = newest;
        int fresh = 0;
        if (do_samples())
            continue;
        double now = now_s();
        for (unsigned i = 0; i < number; i++) {
            fresh += samples[i].time_us > newest;
            if (samples[i].time_us > top)
                top = samples[i].time_us;
        }
        lag[n++] = now - ((double)top * 1e-6 - wall_offset_s());
        if (newest && fresh) {
            growth[grown] = fresh;
            gap[grown++] = last_growth > 0 ? now - last_growth : 0;
            last_growth = now;
        }
        newest = top;
    }
    printf("\"history\": {\"samples\": %u, ", first_count);
    print_spread("spacing_ms", spacing, spaced, 1e3);
    printf(", ");
    print_spread("newest_is_old_ms", lag, n, 1e3);
    printf(", ");
    print_spread("grows_by", growth, grown, 1);
    printf(", ");
    print_spread("grows_every_ms", gap, grown, 1e3);
    printf("},\n");
}

static void print_gpm(void) {
    static const double windows[] = {0.020, 0.050, 0.095, 0.105, 0.110, 0.120, 0.150, 0.250};
    static const unsigned ids[] = {1, 2, 3, 5, 10, 12, 20, 21, 60, 61};
    enum { IDS = sizeof ids / sizeof ids[0] };
    printf("\"gpm\": [");
    for (size_t w = 0; gpm[0] && gpm[1] && w < sizeof windows / sizeof windows[0]; w++)
        for (int repeat = 0; repeat < 3; repeat++) {
            struct hec_nvml_gpm_metrics request = {.version = 1, .count = IDS, .sample1 = gpm[0], .sample2 = gpm[1]};
            for (int i = 0; i < IDS; i++)
                request.metrics[i].id = ids[i];
            int code = nvml.gpm_sample_get(device, gpm[0]);
            double t0 = now_s();
            sleep_s(windows[w]);
            double t1 = now_s();
            code = code ? code : nvml.gpm_sample_get(device, gpm[1]);
            double t2 = now_s();
            code = code ? code : nvml.gpm_metrics(&request);
            printf("%s\n  {\"window_ms\": %.1f, \"code\": \"%s\", \"metrics_us\": %.1f", w || repeat ? "," : "",
                   (t1 - t0) * 1e3, hec_nvml_code_text(code), (now_s() - t2) * 1e6);
            for (int i = 0; i < IDS; i++)
                if (request.metrics[i].code || !isfinite(request.metrics[i].value))
                    printf(", \"%u\": \"%s\"", ids[i],
                           request.metrics[i].code ? hec_nvml_code_text(request.metrics[i].code) : "not a number");
                else
                    printf(", \"%u\": %.3f", ids[i], request.metrics[i].value);
            printf("}");
        }
    printf("\n]\n");
}

int main(int argc, char **argv) {
    struct hec_why why;
    double t0 = now_s();
    if (hec_nvml_load(argc > 1 && argv[1][0] ? argv[1] : NULL, &nvml, &why) != HEC_OK) {
        fprintf(stderr, "nvml_probe: %s\n", why.text);
        return 1;
    }
    double t1 = now_s();
    int code = nvml.init();
    double t2 = now_s();
    if (code || (code = nvml.device_by_index(argc > 2 ? (unsigned)atoi(argv[2]) : 0, &device))) {
        fprintf(stderr, "nvml_probe: %s\n", hec_nvml_code_text(code));
        return 1;
    }
    char name[HEC_NVML_NAME_SIZE] = "", driver[64] = "";
    nvml.device_name(device, name, sizeof name);
    if (nvml.driver_version)
        nvml.driver_version(driver, sizeof driver);
    struct hec_nvml_gpm_support support = {.version = 1};
    if (nvml.gpm_support && !nvml.gpm_support(device, &support) && support.supported)
        for (int i = 0; i < 2; i++)
            if (nvml.gpm_sample_alloc(&gpm[i]))
                gpm[i] = NULL;
    printf("{\"device\": \"%s\", \"driver\": \"%s\", \"load_ms\": %.2f, \"init_ms\": %.2f,\n", name, driver,
           (t1 - t0) * 1e3, (t2 - t1) * 1e3);
    print_calls();
    print_energy_grid();
    print_history();
    print_gpm();
    printf("}\n");
    return 0;
}
