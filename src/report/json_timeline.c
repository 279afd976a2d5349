/* The timeline in the JSON report: devices[].timeline, kernels, steps and trace of docs/report.schema.json. */
#include "base/trace.h"
#include "report/json_parts.h"
#include "report/timeline_words.h"

#define set hec_json_set
#define number hec_json_number

static json_t *micros(double seconds) {
    return number(seconds * 1e6);
}

static json_t *quantiles_of(const struct hec_quantiles *q, double scale) {
    json_t *row = json_object();
    set(row, "count", json_integer(q->count));
    set(row, "mean", number(q->mean * scale));
    set(row, "median", number(q->median * scale));
    set(row, "p90", number(q->p90 * scale));
    set(row, "p99", number(q->p99 * scale));
    set(row, "min", number(q->minimum * scale));
    set(row, "max", number(q->maximum * scale));
    return row;
}

static json_t *copied_of(const struct hec_device_timeline *d) {
    json_t *rows = json_array();
    for (int i = 0; i < HEC_COPY_DIRECTION_COUNT; i++)
        for (int k = 0; k < HEC_COPY_HOST_COUNT; k++) {
            const struct hec_copy_total *total = &d->copied[i][k];
            if (!total->count)
                continue;
            json_t *row = json_object();
            set(row, "direction", json_string(hec_copy_direction_name((enum hec_copy_direction)i)));
            set(row, "host_memory", json_string(hec_copy_host_name((enum hec_copy_host)k)));
            set(row, "count", json_integer(total->count));
            set(row, "bytes", number(total->bytes));
            set(row, "time_us", micros(total->seconds));
            set(row, "bytes_per_second", number(hec_copy_rate(total)));
            json_array_append_new(rows, row);
        }
    return rows;
}

json_t *hec_json_timeline(const struct hec_timeline *timeline, int device) {
    const struct hec_device_timeline *d = hec_timeline_of(timeline, device);
    if (!d)
        return json_null();
    json_t *row = json_object(), *queue = json_object();
    set(queue, "mean", number(d->queue_mean));
    set(queue, "max", number(d->queue_max));
    set(row, "from_seconds", number(d->from_s));
    set(row, "to_seconds", number(d->to_s));
    set(row, "window_us", micros(d->window_s));
    set(row, "traced_us", micros(d->traced_s));
    set(row, "busy_us", micros(d->busy_s));
    set(row, "idle_us", micros(d->idle_s));
    set(row, "compute_us", micros(d->compute_s));
    set(row, "non_compute_us", micros(d->non_compute_s));
    set(row, "comm_us", micros(d->comm_s));
    set(row, "copy_us", micros(d->copy_s));
    set(row, "comm_overlap", number(d->comm_overlap));
    set(row, "copy_overlap", number(d->copy_overlap));
    set(row, "kernels", json_integer(d->kernels));
    set(row, "copies", json_integer(d->copies));
    set(row, "memsets", json_integer(d->memsets));
    set(row, "graphs", json_integer(d->graphs));
    set(row, "streams", json_integer(d->streams));
    set(row, "kernel_sum_us", micros(d->kernel_sum_s));
    set(row, "memset_bytes", number(d->memset_bytes));
    set(row, "gaps_us", quantiles_of(&d->gap, 1e6));
    set(row, "launch_delay_us", quantiles_of(&d->launch_delay, 1e6));
    set(row, "kernel_us", quantiles_of(&d->kernel, 1e6));
    set(row, "queue", queue);
    set(row, "copied", copied_of(d));
    return row;
}

static json_t *dimensions(int64_t x, int64_t y, int64_t z) {
    return x < 0 ? json_null() : json_pack("[I,I,I]", (json_int_t)x, (json_int_t)y, (json_int_t)z);
}

static json_t *kernel_of(const struct hec_kernel_row *k) {
    json_t *row = json_object();
    set(row, "device", hec_json_known(k->device));
    set(row, "name", hec_json_string(k->name));
    set(row, "count", json_integer(k->count));
    set(row, "time_us", micros(k->seconds));
    set(row, "share", number(k->share));
    set(row, "mean_us", number(k->mean_us));
    set(row, "min_us", number(k->minimum_us));
    set(row, "max_us", number(k->maximum_us));
    set(row, "communication", json_boolean(k->kernel_class == HEC_KERNEL_CLASS_COMM));
    set(row, "configurations", json_integer(k->configurations));
    set(row, "grid", dimensions(k->grid[0], k->grid[1], k->grid[2]));
    set(row, "block", dimensions(k->block[0], k->block[1], k->block[2]));
    set(row, "registers", hec_json_known(k->registers));
    set(row, "static_shared_bytes", hec_json_known(k->static_shared_bytes));
    set(row, "dynamic_shared_bytes", hec_json_known(k->dynamic_shared_bytes));
    set(row, "occupancy_limit", number(k->occupancy_limit));
    set(row, "occupancy_limiter", hec_json_text(k->occupancy_limiter));
    return row;
}

json_t *hec_json_kernels(const struct hec_timeline *timeline) {
    json_t *rows = json_array();
    for (int i = 0; i < timeline->kernel_count; i++)
        json_array_append_new(rows, kernel_of(&timeline->kernels[i]));
    return rows;
}

json_t *hec_json_steps(const struct hec_step_summary *s) {
    json_t *row = json_object(), *loss = json_object();
    set(loss, "count", json_integer(s->values));
    set(loss, "first", number(s->value_first));
    set(loss, "last", number(s->value_last));
    set(row, "source", json_string(hec_step_source_name(s->source)));
    set(row, "confidence", number(s->confidence));
    set(row, "unit", hec_json_text(s->unit));
    set(row, "count", json_integer(s->count));
    set(row, "examined", json_integer(s->examined));
    set(row, "mean_ms", number(s->duration.mean * 1e3));
    set(row, "median_ms", number(s->duration.median * 1e3));
    set(row, "p90_ms", number(s->duration.p90 * 1e3));
    set(row, "p99_ms", number(s->duration.p99 * 1e3));
    set(row, "min_ms", number(s->duration.minimum * 1e3));
    set(row, "max_ms", number(s->duration.maximum * 1e3));
    set(row, "samples_per_step", number(s->samples_per_step));
    set(row, "units", number(s->units));
    set(row, "data_seconds", number(s->data_s));
    set(row, "data_share", number(hec_step_data_share(s)));
    set(row, "busy_share", number(s->busy_share));
    set(row, "pid", s->source == HEC_STEP_NONE ? json_null() : json_integer(s->pid));
    set(row, "loss", loss);
    return row;
}

json_t *hec_json_trace(const struct hec_timeline *timeline) {
    const struct hec_trace_cost *t = &timeline->trace;
    json_t *row = json_object();
    set(row, "mode", json_string(hec_trace_mode_name(t->mode)));
    set(row, "why", hec_json_text(t->why));
    set(row, "processes", json_integer(t->processes));
    set(row, "coverage", number(t->coverage));
    set(row, "windows", json_integer(t->windows));
    set(row, "records", json_integer(t->records));
    set(row, "dropped", json_integer(t->dropped));
    set(row, "lost", json_integer(t->lost));
    set(row, "bad", json_integer(t->bad));
    set(row, "overhead", number(t->overhead));
    set(row, "overhead_low", number(t->overhead_low));
    set(row, "overhead_high", number(t->overhead_high));
    set(row, "overhead_inside", number(t->overhead_inside));
    set(row, "overhead_after", number(t->overhead_after));
    set(row, "overhead_measured", json_boolean(t->overhead_measured));
    set(row, "overhead_unknown", json_boolean(t->overhead_unknown));
    set(row, "self_cpu_seconds", number(t->self_cpu_s));
    set(row, "holder", hec_json_text(t->holder));
    set(row, "holder_seconds", number(t->holder[0] ? t->holder_s : NAN));
    set(row, "cupti_version", hec_json_known(t->cupti_version));
    set(row, "library", hec_json_text(t->library));
    set(row, "stacks", json_integer(timeline->stacks));
    return row;
}
