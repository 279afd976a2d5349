/* The findings in the JSON report: findings, scale_out and latency of docs/report.schema.json. */
#include "report/json_parts.h"

#define set hec_json_set
#define number hec_json_number

json_t *hec_json_interval(double low, double value, double high) {
    if (!isfinite(value))
        return json_null();
    json_t *values = json_array();
    json_array_append_new(values, number(low));
    json_array_append_new(values, number(value));
    json_array_append_new(values, number(high));
    return values;
}

static json_t *source_of(const struct hec_finding *f) {
    json_t *lines = json_array();
    for (int i = 0; i < f->line_count; i++) {
        json_t *line = json_object();
        set(line, "file", hec_json_text(f->lines[i].file));
        set(line, "line", f->lines[i].line > 0 ? json_integer(f->lines[i].line) : json_null());
        set(line, "function", hec_json_text(f->lines[i].function));
        set(line, "share", number(f->lines[i].share));
        json_array_append_new(lines, line);
    }
    return lines;
}

static json_t *finding_of(const struct hec_finding *f) {
    json_t *finding = json_object(), *evidence = json_array(), *predicted = json_object();
    for (int i = 0; i < f->evidence_count; i++)
        json_array_append_new(evidence, hec_json_string(f->evidence[i]));
    set(predicted, "seconds_fraction", hec_json_interval(f->seconds.low, f->seconds.best, f->seconds.high));
    set(predicted, "joules_fraction", hec_json_interval(f->joules.low, f->joules.best, f->joules.high));
    set(finding, "cause", json_string(hec_cause_name(f->cause)));
    set(finding, "device", json_integer(f->device));
    set(finding, "confidence", number(f->confidence));
    set(finding, "title", hec_json_string(f->title));
    set(finding, "evidence", evidence);
    set(finding, "lever", hec_json_text(f->lever));
    set(finding, "predicted", predicted);
    set(finding, "estimated", json_boolean(f->estimated));
    set(finding, "source", source_of(f));
    return finding;
}

static json_t *scale_out_of(const struct hec_scale_out *s) {
    json_t *scale = json_object();
    set(scale, "verdict", json_string(hec_scale_name(s->verdict)));
    set(scale, "utilisation", number(s->utilisation));
    set(scale, "recoverable", number(s->recoverable));
    set(scale, "why", hec_json_text(s->why));
    return scale;
}

static json_t *latency_of(const struct hec_latency *l) {
    if (!l->valid)
        return json_null();
    json_t *latency = json_object();
    set(latency, "total_seconds", number(l->total_s));
    set(latency, "compute_seconds", number(l->compute_s));
    set(latency, "memory_seconds", number(l->memory_s));
    set(latency, "batching_seconds", number(l->batching_s));
    set(latency, "transport_seconds", number(l->transport_s));
    set(latency, "host_seconds", number(l->host_s));
    return latency;
}

void hec_json_findings(json_t *to, const struct hec_findings *findings) {
    json_t *list = json_array();
    for (int i = 0; i < findings->count; i++)
        json_array_append_new(list, finding_of(&findings->list[i]));
    set(to, "findings", list);
    set(to, "scale_out", scale_out_of(&findings->scale_out));
    set(to, "latency", latency_of(&findings->latency));
}
