/* The report for programs: docs/report.schema.json. */
#include "diagnose/facts.h"
#include "diagnose/verdict.h"
#include "report/json_parts.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define number hec_json_number
#define integer json_integer
#define known_integer hec_json_known
#define string hec_json_string
#define text_or_null hec_json_text
#define set hec_json_set

static json_t *run_of(const struct hec_summary *s) {
    json_t *run = json_object();
    set(run, "command", string(s->command));
    set(run, "seconds", number(s->seconds));
    set(run, "exit_code", known_integer(s->exit_code));
    set(run, "started", text_or_null(s->started));
    set(run, "complete", json_boolean(s->complete));
    set(run, "in_progress", json_boolean(s->in_progress));
    set(run, "simulated", text_or_null(s->simulated));
    set(run, "imported", text_or_null(s->imported));
    set(run, "hostname", text_or_null(s->hostname));
    set(run, "file", text_or_null(s->file));
    set(run, "hec_version", text_or_null(s->hec_version));
    return run;
}

static const char *method_of(const struct hec_energy *e) {
    if (e->method == HEC_ENERGY_COUNTER)
        return e->simulated ? "simulated counter" : "counter";
    if (e->method == HEC_ENERGY_INTEGRAL)
        return e->simulated ? "simulated integral" : "integral";
    return "none";
}

static json_t *split_of(const struct hec_energy *e) {
    json_t *split = json_object();
    set(split, "work_joules", number(e->valid ? e->work_joules : NAN));
    set(split, "idle_context_joules", number(e->valid ? e->idle_context_joules : NAN));
    set(split, "idle_joules", number(e->valid ? e->idle_joules : NAN));
    set(split, "work_seconds", number(e->work_s));
    set(split, "idle_context_seconds", number(e->idle_context_s));
    set(split, "idle_seconds", number(e->idle_s));
    set(split, "idle_context_watts", number(e->idle_context_watts));
    set(split, "idle_context_joules_max", number(e->valid ? e->idle_unknown_max_joules : NAN));
    set(split, "source", text_or_null(e->idle_source));
    return split;
}

static json_t *energy_of(const struct hec_energy *e) {
    json_t *energy = json_object();
    set(energy, "joules", number(e->valid ? e->joules : NAN));
    set(energy, "valid", json_boolean(e->valid));
    set(energy, "why", text_or_null(e->why));
    set(energy, "method", json_string(method_of(e)));
    set(energy, "bound_joules", number(e->bound_joules));
    set(energy, "partial_joules", number(e->valid ? NAN : e->joules));
    set(energy, "coverage", e->method == HEC_ENERGY_NONE ? json_null() : number(e->coverage));
    set(energy, "disagreement", number(e->disagreement));
    set(energy, "counter_joules", number(e->counter_joules));
    set(energy, "integral_joules", number(e->integral_joules));
    set(energy, "window_seconds", number(e->window_s));
    set(energy, "quantum_seconds", number(e->quantum_s));
    set(energy, "counter_from_seconds", number(e->counter_from_s));
    set(energy, "counter_to_seconds", number(e->counter_to_s));
    set(energy, "outside_joules", number(e->method == HEC_ENERGY_COUNTER ? e->outside_joules : NAN));
    set(energy, "counter_readings", integer(e->readings));
    set(energy, "power_samples", integer(e->samples));
    set(energy, "sample_spacing_seconds", number(e->sample_spacing_s));
    set(energy, "gaps", integer(e->gaps));
    set(energy, "gap_seconds", number(e->gap_s));
    set(energy, "resets", integer(e->resets));
    set(energy, "split", split_of(e));
    return energy;
}

static json_t *power_of(const struct hec_device_summary *d) {
    json_t *power = json_object();
    set(power, "mean", number(d->power_w.mean));
    set(power, "median", number(d->power_w.median));
    set(power, "min", number(d->power_w.minimum));
    set(power, "max", number(d->power_w.maximum));
    set(power, "limit", number(d->power_limit_w));
    return power;
}

/* Means over the run: ratios 0..1, bytes a second. */
static json_t *utilisation_of(const struct hec_device_summary *d) {
    static const struct {
        const char *key;
        enum hec_metric metric;
    } rows[] = {
        {"gpu", HEC_GPU_UTIL},
        {"memory", HEC_GPU_MEM_UTIL},
        {"engine", HEC_GPM_GR_ACTIVE},
        {"sm", HEC_GPM_SM_ACTIVE},
        {"occupancy", HEC_GPM_SM_OCCUPANCY},
        {"tensor", HEC_GPM_TENSOR_ACTIVE},
        {"dram", HEC_GPM_DRAM_ACTIVE},
        {"fp64", HEC_GPM_FP64_ACTIVE},
        {"fp32", HEC_GPM_FP32_ACTIVE},
        {"fp16", HEC_GPM_FP16_ACTIVE},
        {"integer", HEC_GPM_INTEGER_ACTIVE},
        {"pcie_rx_bytes_per_second", HEC_GPM_PCIE_RX},
        {"pcie_tx_bytes_per_second", HEC_GPM_PCIE_TX},
        {"nvlink_rx_bytes_per_second", HEC_GPM_NVLINK_RX},
        {"nvlink_tx_bytes_per_second", HEC_GPM_NVLINK_TX},
    };
    json_t *utilisation = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        set(utilisation, rows[i].key, number(d->metric[rows[i].metric].mean));
    return utilisation;
}

static const char *unit_of(enum hec_metric metric) {
    const char *unit = hec_metric_info(metric)->unit;
    if (strcmp(unit, "permille") == 0)
        return "1";
    if (strcmp(unit, "KiB") == 0)
        return "bytes";
    return strcmp(unit, "KiB/s") == 0 ? "bytes/s" : unit;
}

static json_t *metrics_of(const struct hec_device_summary *d) {
    json_t *metrics = json_object();
    for (int i = 0; i < HEC_METRIC_COUNT; i++) {
        const struct hec_stat *stat = &d->metric[i];
        if (!stat->count)
            continue;
        json_t *row = json_object();
        set(row, "unit", json_string(unit_of((enum hec_metric)i)));
        set(row, "mean", number(stat->mean));
        set(row, "median", number(stat->median));
        set(row, "min", number(stat->minimum));
        set(row, "max", number(stat->maximum));
        set(row, "count", integer(stat->count));
        set(metrics, hec_metric_info((enum hec_metric)i)->name, row);
    }
    return metrics;
}

static json_t *throttled_of(const struct hec_device_summary *d) {
    json_t *throttled = json_object();
    set(throttled, "power", number(d->throttled_share[HEC_THROTTLE_POWER]));
    set(throttled, "thermal", number(d->throttled_share[HEC_THROTTLE_THERMAL]));
    set(throttled, "hardware", number(d->throttled_share[HEC_THROTTLE_HARDWARE]));
    set(throttled, "other", number(d->throttled_share[HEC_THROTTLE_OTHER]));
    return throttled;
}

static json_t *verdict_of(const struct hec_device_summary *d) {
    const struct hec_verdict *v = &d->verdict;
    json_t *verdict = json_object(), *evidence = json_array();
    set(verdict, "kind", json_string(hec_verdict_name(v->kind)));
    set(verdict, "title", json_string(hec_verdict_title(v->kind)));
    set(verdict, "confidence", number(v->confidence));
    set(verdict, "sentence", string(v->sentence));
    for (int i = 0; i < v->evidence_count; i++)
        json_array_append_new(evidence, string(v->evidence[i]));
    set(verdict, "evidence", evidence);
    set(verdict, "active_from_seconds", number(d->activity.from_s));
    set(verdict, "active_to_seconds", number(d->activity.to_s));
    return verdict;
}

static json_t *device_of(const struct hec_summary *s, const struct hec_device_summary *d) {
    json_t *device = json_object();
    set(device, "index", integer(d->device.index));
    set(device, "uuid", text_or_null(d->device.uuid));
    set(device, "name", text_or_null(d->device.name));
    set(device, "pci_bus_id", text_or_null(d->device.pci_bus_id));
    set(device, "architecture", text_or_null(d->device.architecture));
    set(device, "driver", text_or_null(d->device.driver));
    set(device, "memory_bytes", d->device.memory_kib > 0 ? integer(d->device.memory_kib * 1024) : json_null());
    set(device, "mig", d->device.mig_enabled < 0 ? json_null() : json_boolean(d->device.mig_enabled));
    set(device, "simulated", json_boolean(d->device.simulated));
    set(device, "visible", json_boolean(d->device.visible));
    set(device, "used", json_boolean(d->used));
    set(device, "used_why", string(d->used_why));
    set(device, "shared_with", integer(d->shared_with));
    set(device, "energy", energy_of(&d->energy));
    set(device, "power_w", power_of(d));
    set(device, "utilisation", utilisation_of(d));
    set(device, "throttled", throttled_of(d));
    set(device, "timeline", hec_json_timeline(&s->timeline, d->device.index));
    set(device, "steps", hec_json_steps(hec_facts_steps(s, d->device.index)));
    hec_json_ledger(device, &s->diagnosis, d->device.index);
    set(device, "verdict", verdict_of(d));
    set(device, "metrics", metrics_of(d));
    return device;
}

static json_t *totals_of(const struct hec_summary *s) {
    json_t *totals = json_object(), *price = json_object();
    int used = 0;
    for (int i = 0; i < s->device_count; i++)
        used += s->devices[i].used;
    set(price, "dollars_per_kwh", number(s->price.dollars_per_kwh));
    set(price, "dollars_per_kwh_is_default", json_boolean(s->price.dollars_default));
    set(price, "grams_co2_per_kwh", number(s->price.grams_co2_per_kwh));
    set(price, "grams_co2_per_kwh_is_default", json_boolean(s->price.carbon_default));
    set(price, "dollars_per_gpu_hour", number(s->price.dollars_per_gpu_hour > 0 ? s->price.dollars_per_gpu_hour : NAN));
    set(totals, "devices_used", integer(used));
    set(totals, "joules", number(s->joules));
    set(totals, "bound_joules", number(s->bound_joules));
    set(totals, "dollars", number(s->dollars));
    set(totals, "grams_co2", number(s->grams_co2));
    set(totals, "unavailable", text_or_null(s->energy_unavailable));
    set(totals, "price", price);
    return totals;
}

static json_t *host_of(const struct hec_host_summary *h) {
    json_t *host = json_object();
    set(host, "cores", h->cores > 0 ? integer(h->cores) : json_null());
    set(host, "cpu_busy", number(h->cpu_busy));
    set(host, "tree_cpu_seconds", number(h->tree_cpu_seconds));
    set(host, "tree_cores", number(h->tree_cores));
    set(host, "tree_rss_max_bytes", number(h->rss_max_bytes));
    set(host, "tree_read_bytes", number(h->read_bytes));
    set(host, "tree_written_bytes", number(h->written_bytes));
    set(host, "tree_disk_read_bytes", number(h->disk_read_bytes));
    set(host, "tree_switches_voluntary", number(h->switches_voluntary));
    set(host, "tree_switches_involuntary", number(h->switches_involuntary));
    set(host, "tree_processes", h->processes > 0 ? integer(h->processes) : json_null());
    set(host, "package_joules", number(h->package_joules));
    set(host, "package_why", text_or_null(h->package_why));
    set(host, "dram_joules", number(h->dram_joules));
    set(host, "dram_why", text_or_null(h->dram_why));
    return host;
}

static json_t *unit_row(const struct hec_summary *s, const struct hec_unit_summary *u) {
    json_t *unit = json_object(), *devices = json_array();
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].used && (u->devices >> s->devices[i].device.index & 1))
            json_array_append_new(devices, integer(s->devices[i].device.index));
    set(unit, "name", string(u->name));
    set(unit, "count", number(u->count));
    set(unit, "is_default", json_boolean(u->is_default));
    set(unit, "per_second", number(u->per_second));
    set(unit, "joules_per_unit", number(u->joules_per_unit));
    set(unit, "joules_per_unit_bound", number(u->joules_per_unit_bound));
    set(unit, "dollars_per_unit", number(u->dollars_per_unit));
    set(unit, "grams_co2_per_unit", number(u->grams_co2_per_unit));
    set(unit, "devices", devices);
    return unit;
}

static json_t *self_of(const struct hec_self_summary *h) {
    json_t *self = json_object();
    set(self, "cpu_seconds", number(h->cpu_seconds));
    set(self, "cpu_share", number(h->cpu_share));
    set(self, "rss_max_bytes", number(h->rss_max_bytes));
    set(self, "file_bytes", number(h->file_bytes));
    set(self, "start_seconds", number(h->start_seconds));
    set(self, "joules", number(h->joules));
    return self;
}

static json_t *report_of(const struct hec_summary *s) {
    json_t *report = json_object(), *devices = json_array(), *units = json_array(), *phases = json_array();
    json_t *events = json_array();
    for (int i = 0; i < s->device_count; i++)
        json_array_append_new(devices, device_of(s, &s->devices[i]));
    for (int i = 0; i < s->unit_count; i++)
        json_array_append_new(units, unit_row(s, &s->units[i]));
    for (int i = 0; i < s->phase_count; i++) {
        json_t *phase = json_object();
        set(phase, "name", string(s->phases[i].name));
        set(phase, "seconds", number(s->phases[i].seconds));
        set(phase, "count", integer(s->phases[i].count));
        json_array_append_new(phases, phase);
    }
    for (int i = 0; i < s->event_count; i++) {
        json_t *event = json_object();
        set(event, "kind", json_string(hec_event_name(s->events[i].kind)));
        set(event, "device", known_integer(s->events[i].device));
        set(event, "seconds", number(s->events[i].t_s));
        set(event, "text", string(s->events[i].text));
        json_array_append_new(events, event);
    }
    set(report, "schema", json_string(HEC_REPORT_SCHEMA));
    set(report, "run", run_of(s));
    set(report, "totals", totals_of(s));
    set(report, "units", s->unit_count ? unit_row(s, &s->units[0]) : json_null());
    set(report, "units_all", units);
    hec_json_findings(report, &s->findings);
    set(report, "devices", devices);
    set(report, "kernels", hec_json_kernels(&s->timeline));
    set(report, "steps", hec_json_steps(&s->timeline.steps));
    set(report, "trace", hec_json_trace(&s->timeline));
    set(report, "host", host_of(&s->host));
    set(report, "phases", phases);
    set(report, "events", events);
    set(report, "events_omitted", integer(s->events_omitted));
    set(report, "self", self_of(&s->self));
    return report;
}

static int add_bytes(const char *data, size_t size, void *out) {
    return hec_buf_add(out, data, size) < 0 ? -1 : 0;
}

int hec_report_json(const struct hec_summary *summaries, size_t count, struct hec_buf *out) {
    json_t *root = count == 1 ? report_of(&summaries[0]) : json_array();
    for (size_t i = 0; i < count && count != 1; i++)
        json_array_append_new(root, report_of(&summaries[i]));
    if (!root)
        return HEC_ERR_NOMEM;
    int failed = json_dump_callback(root, add_bytes, out, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    json_decref(root);
    if (!failed)
        hec_buf_puts(out, "\n");
    return hec_buf_error(out) ? hec_buf_error(out) : failed ? HEC_ERR_NOMEM : HEC_OK;
}
