/* The ledger in the JSON report: devices[].ledger, ledger_basis, ledger_why, ledger_how, source, kernel_classes and
 * compute of docs/report.schema.json. */
#include "report/json_parts.h"

#define set hec_json_set
#define number hec_json_number

#define NS_PER_S 1e9

static json_t *row_of(enum hec_state state, const struct hec_ledger_row *r) {
    json_t *row = json_object();
    set(row, "state", json_string(hec_state_name(state)));
    set(row, "seconds", number(r->seconds));
    set(row, "seconds_low", number(r->seconds_low));
    set(row, "seconds_high", number(r->seconds_high));
    set(row, "traced_seconds", number((double)r->traced_ns / NS_PER_S));
    set(row, "step_ms", number(r->step_seconds * 1e3));
    set(row, "joules", number(r->joules));
    set(row, "watts", number(r->watts));
    set(row, "watts_low", number(r->watts_low));
    set(row, "watts_high", number(r->watts_high));
    return row;
}

static json_t *rows_of(const struct hec_ledger_device *d) {
    json_t *rows = json_array();
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        if (d->rows[i].ns)
            json_array_append_new(rows, row_of((enum hec_state)i, &d->rows[i]));
    return rows;
}

static json_t *modules_of(const struct hec_source_modules *modules, int device) {
    json_t *rows = json_array();
    for (int i = 0; i < modules->count; i++) {
        const struct hec_source_module *m = &modules->modules[i];
        if (m->device != device)
            continue;
        json_t *row = json_object();
        set(row, "name", hec_json_text(m->name));
        set(row, "by", json_string(hec_activity_kind_name(m->by)));
        set(row, "launches", json_integer(m->launches));
        set(row, "seconds", number(m->seconds));
        set(row, "share", number(m->share));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *source_of(const struct hec_source_lines *source, int device) {
    json_t *rows = json_array();
    for (int i = 0; i < source->count; i++) {
        const struct hec_source_line *l = &source->lines[i];
        if (l->device != device)
            continue;
        json_t *row = json_object();
        set(row, "state", json_string(hec_state_name(l->state)));
        set(row, "file", hec_json_text(l->file));
        set(row, "line", l->line > 0 ? json_integer(l->line) : json_null());
        set(row, "function", hec_json_text(l->function));
        set(row, "share", number(l->share));
        set(row, "seconds", number(l->seconds));
        set(row, "joules", number(l->joules));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *share_of(const struct hec_roofline_share *share) {
    return hec_json_interval(share->low, share->value, share->high);
}

static json_t *counters_of(const struct hec_roofline_input *in) {
    json_t *counters = json_object();
    set(counters, "sm_active", share_of(&in->sm_active));
    set(counters, "occupancy", share_of(&in->occupancy));
    set(counters, "tensor", share_of(&in->pipe[HEC_PIPE_TENSOR]));
    set(counters, "fp32", share_of(&in->pipe[HEC_PIPE_FP32]));
    set(counters, "fp16", share_of(&in->pipe[HEC_PIPE_FP16]));
    set(counters, "dram", share_of(&in->dram));
    return counters;
}

static json_t *roofline_of(const struct hec_roofline_point *p, const struct hec_roofline_peaks *peaks) {
    json_t *roofline = json_object();
    set(roofline, "flops", number(p->flops));
    set(roofline, "bytes_per_s", number(p->bytes_per_s));
    set(roofline, "intensity", number(p->intensity));
    set(roofline, "ridge", number(p->ridge));
    set(roofline, "of_attainable", number(p->of_attainable));
    set(roofline, "precision", isfinite(p->flops) ? json_string(hec_precision_name(p->precision)) : json_null());
    set(roofline, "limit", json_string(hec_roofline_limit_name(p->limit)));
    set(roofline, "certain", json_boolean(p->certain));
    set(roofline, "source", json_string(hec_roofline_source(peaks)));
    return roofline;
}

/* What the counters of the run say of a class, or of all compute; null where they say nothing. */
static void add_profile(json_t *to, const struct hec_class_profile *profile, const struct hec_class_row *row) {
    bool known = profile && profile->has_counters;
    set(to, "counters", known ? counters_of(&row->counters) : json_null());
    set(to, "roofline", known ? roofline_of(&row->point, &profile->peaks) : json_null());
}

static json_t *classes_of(const struct hec_ledger_device *d, const struct hec_class_profile *profile) {
    json_t *rows = json_array();
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        const struct hec_ledger_class *class = &d->classes[c];
        int with = profile ? profile->class[c].merged_with : -1;
        if (!class->ns)
            continue;
        json_t *row = json_object();
        set(row, "class", json_string(hec_kernel_class_name((enum hec_kernel_class)c)));
        set(row, "seconds", number((double)class->ns / NS_PER_S));
        set(row, "share", number((double)class->ns / (double)d->rows[HEC_STATE_COMPUTE].ns));
        set(row, "joules", number(class->joules));
        set(row, "watts", number(class->watts));
        set(row, "watts_low", number(class->watts_low));
        set(row, "watts_high", number(class->watts_high));
        add_profile(row, profile, profile ? &profile->class[c] : NULL);
        set(row, "counters_shared_with",
            with >= 0 ? json_string(hec_kernel_class_name((enum hec_kernel_class)with)) : json_null());
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *compute_of(const struct hec_class_profile *profile) {
    if (!profile)
        return json_null();
    json_t *compute = json_object();
    add_profile(compute, profile, &profile->all);
    set(compute, "why", hec_json_text(profile->why));
    return compute;
}

void hec_json_ledger(json_t *to, const struct hec_diagnosis *diagnosis, int device) {
    const char *why = "no activity of it was traced";
    const struct hec_ledger_device *d = hec_diagnosis_of(diagnosis, device, &why);
    const struct hec_class_profile *profile = hec_diagnosis_profile(diagnosis, device);
    set(to, "ledger", d ? rows_of(d) : json_array());
    set(to, "ledger_basis", d ? json_string(hec_ledger_basis_name(d->basis)) : json_null());
    set(to, "ledger_why", hec_json_text(why));
    set(to, "ledger_how", hec_json_text(hec_diagnosis_how(diagnosis, device)));
    set(to, "source", source_of(&diagnosis->source, device));
    set(to, "modules", modules_of(&diagnosis->modules, device));
    set(to, "kernel_classes", d && d->basis != HEC_LEDGER_CALLS ? classes_of(d, profile) : json_array());
    set(to, "compute", compute_of(profile));
}
