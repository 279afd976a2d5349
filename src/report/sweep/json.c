/* A sweep for programs: sweep.def gives its fields. */
#define HEC_JSON_TABLE "report/sweep/sweep.def"
#include "base/trace.h"
#include "report/json_values.h"
#include "report/receipt/words.h"
#include "report/sweep/words.h"
#include "report/json_names.h"
#include "report/json_print.h"
#include "report/json_roots.h"

static json_t *range_of(const struct hec_sweep_interval *i) {
    return interval(i->low, i->value, i->high);
}

static json_t *values_of(const struct hec_sweep_parameter *p) {
    json_t *list = json_array();
    for (int i = 0; i < p->count; i++)
        json_array_append_new(list, of_EXACT(p->value[i]));
    return list;
}

static json_t *setting_of(const struct hec_sweep_report *r, int arm) {
    json_t *list = json_array();
    for (int i = 0; i < r->plan.parameters; i++) {
        int level = arm;
        for (int k = r->plan.parameters - 1; k > i; k--)
            level /= r->parameter[k].count;
        json_array_append_new(list, of_EXACT(r->parameter[i].value[level % r->parameter[i].count]));
    }
    return list;
}

static json_t *line_arms(const struct hec_sweep_line *line) {
    json_t *list = json_array();
    for (int i = 0; i < line->count; i++)
        json_array_append_new(list, json_integer(line->arm[i]));
    return list;
}

static json_t *notes_of(const struct hec_sweep_report *r) {
    char notes[HEC_SWEEP_NOTES][HEC_SWEEP_LINE];
    return strings_of(notes[0], sizeof notes[0], hec_sweep_notes(r, notes));
}

#include "report/json_objects.h"

json_t *hec_sweep_root(const struct hec_sweep_report *r) {
    return r->conditions.error ? NULL : json_sweep(r);
}

int hec_sweep_json(const struct hec_sweep_report *r, struct hec_buf *out) {
    json_t *root = hec_sweep_root(r);
    int err = r->conditions.error ? r->conditions.error : hec_json_print_rows(root, out);
    json_decref(root);
    return err;
}

#include "report/json_schema.h"

int hec_sweep_schema(struct hec_buf *out) {
    return HEC_JSON_SCHEMA(out, .id = "urn:hec:sweep:1", .title = "HEC sweep", .older = true,
                           .description =
                               "What `hec sweep --json` prints and `hec sweep -o` writes. Missing is null, never 0.",
                           .root = "sweep");
}
