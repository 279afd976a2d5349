/* The ledger in the JSON report: devices[].ledger, ledger_why, source and kernel_classes of docs/report.schema.json. */
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

static json_t *classes_of(const struct hec_ledger_device *d) {
    json_t *rows = json_array();
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        if (!d->classes[c].ns)
            continue;
        json_t *row = json_object();
        set(row, "class", json_string(hec_kernel_class_name((enum hec_kernel_class)c)));
        set(row, "seconds", number((double)d->classes[c].ns / NS_PER_S));
        set(row, "share", number((double)d->classes[c].ns / (double)d->rows[HEC_STATE_COMPUTE].ns));
        json_array_append_new(rows, row);
    }
    return rows;
}

void hec_json_ledger(json_t *to, const struct hec_diagnosis *diagnosis, int device) {
    const char *why = "no activity of it was traced";
    const struct hec_ledger_device *d = hec_diagnosis_of(diagnosis, device, &why);
    set(to, "ledger", d ? rows_of(d) : json_array());
    set(to, "ledger_why", hec_json_text(why));
    set(to, "source", source_of(&diagnosis->source, device));
    set(to, "kernel_classes", d ? classes_of(d) : json_array());
}
