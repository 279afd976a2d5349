/* The report for programs: json.def gives its fields, docs/report.schema.json is made from the same table. */
#define HEC_JSON_TABLE "report/run/json.def"
#include "report/words/facts.h"
#include "report/words/findings.h"
#include "report/words/reasons.h"
#include "report/words/results.h"
#include "report/run/parallelism.h"
#include "report/run/ranks.h"
#include "report/words/screen.h"
#include "report/words/summary.h"
#include "report/json_names.h"
#include "report/json_print.h"
#include "report/json_roots.h"
#include "report/json_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* By their names, which a space separates. */
static json_t *numbers_of(const char *names, const double *value) {
    json_t *numbers = json_object();
    for (; *names; names += names[0] == ' ') {
        char name[48];
        int length = (int)strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", length, names);
        json_object_set_new(numbers, name, of_NUMBER(*value++));
        names += length;
    }
    return numbers;
}

/* Room for what report/words/facts.h puts together. */
#define WORDS ((char[HEC_FACT_SIZE]){""})

static const char *headline_of(const struct hec_summary *s, char words[HEC_FACT_SIZE]) {
    hec_headline(words, HEC_FACT_SIZE, s);
    return words;
}

#define SCREEN (&(struct hec_screen){.count = 0})

static const struct hec_screen *screen_of(const struct hec_summary *s, struct hec_screen *screen) {
    const struct hec_report_style style = {.utf8 = true};
    hec_screen_of(s, &style, "FILE", screen);
    return screen;
}

#define PARALLELISM (&(struct hec_parallelism){.devices = 0})
#define COMMAND ((char[2304]){""})

static const struct hec_parallelism *parallelism_of(const struct hec_summary *s, struct hec_parallelism *out) {
    hec_parallelism_find(s, out);
    return out;
}

static json_t *lacks_of(uint32_t lacks) {
    json_t *list = json_array();
    for (int i = 0; i < HEC_LACKS; i++)
        if (lacks >> i & 1)
            json_array_append_new(list, json_string(hec_lack_name((enum hec_lack)i)));
    return list;
}

static json_t *caveats_of(const struct hec_summary *s) {
    char text[HEC_CAVEATS_MAX][160];
    int count = hec_caveats(s, text);
    return strings_of(text[0], sizeof text[0], count);
}

static json_t *share_of(const struct hec_roofline_share *share) {
    return interval(share->low, share->value, share->high);
}

static json_t *saving_of(const struct hec_saving *saving) {
    return interval(saving->low, saving->best, saving->high);
}

static json_t *speed_of(const struct hec_summary *s, const struct hec_finding *f) {
    struct hec_speed speed = hec_finding_speed(s, f);
    return interval(speed.low, speed.best, speed.high);
}

static json_t *dimensions(int64_t x, int64_t y, int64_t z) {
    return x < 0 ? json_null() : json_pack("[I,I,I]", (json_int_t)x, (json_int_t)y, (json_int_t)z);
}

/* ---- values that take more than an expression ---- */

static const char *method_of(const struct hec_energy *e) {
    if (e->method == HEC_ENERGY_COUNTER)
        return e->simulated ? "simulated counter" : "counter";
    if (e->method == HEC_ENERGY_INTEGRAL)
        return e->simulated ? "simulated integral" : "integral";
    return "none";
}

static const char *unit_of(enum hec_metric metric) {
    const char *unit = hec_metric_info(metric)->unit;
    if (strcmp(unit, "permille") == 0)
        return "1";
    if (strcmp(unit, "KiB") == 0)
        return "bytes";
    return strcmp(unit, "KiB/s") == 0 ? "bytes/s" : unit;
}

static const struct hec_copy_total *copied_at(const struct hec_device_timeline *d, int i) {
    return &d->copied[i / HEC_COPY_HOST_COUNT][i % HEC_COPY_HOST_COUNT];
}

/* The ledger where CUPTI saw the kernels; NULL where their kinds are not known. */
static const struct hec_ledger_device *classified(const struct hec_device_diagnosis *d) {
    return d->ledger && d->ledger->basis < HEC_LEDGER_CALLS ? d->ledger : NULL;
}

static const char *shared_with(const struct hec_class_profile *profile, enum hec_kernel_class class) {
    int with = profile ? profile->class[class].merged_with : -1;
    return with >= 0 ? hec_kernel_class_name((enum hec_kernel_class)with) : "";
}

static json_t *metrics_of(const struct hec_device_summary *d);

/* ---- the objects ---- */

#include "report/json_objects.h"

static json_t *metrics_of(const struct hec_device_summary *d) {
    json_t *metrics = json_object();
    for (int i = 0; i < HEC_METRIC_COUNT; i++)
        if (d->metric[i].count)
            json_object_set_new(metrics, hec_metric_info((enum hec_metric)i)->name,
                                json_statistics((enum hec_metric)i, &d->metric[i]));
    return metrics;
}

const char *hec_json_unit(enum hec_metric metric) {
    const char *unit = unit_of(metric);
    return strcmp(unit, "mW") == 0 ? "W" : unit;
}

json_t *hec_report_root(const struct hec_summary *summary) {
    return json_report(summary);
}

int hec_report_json(const struct hec_summary *summaries, size_t count, struct hec_buf *out) {
    json_t *root = count == 1 ? json_report(&summaries[0]) : json_array();
    for (size_t i = 0; i < count && count != 1; i++)
        json_array_append_new(root, json_report(&summaries[i]));
    return hec_json_print(root, out);
}

int hec_parallelism_json(const struct hec_summary *s, struct hec_buf *out) {
    struct hec_parallelism p;
    json_t *root = json_parallelism(s, parallelism_of(s, &p), true);
    json_object_set_new(root, "schema", json_string(HEC_PARALLELISM_SCHEMA));
    return hec_json_print(root, out);
}

#include "report/json_schema.h"

int hec_report_schema(struct hec_buf *out) {
    return HEC_JSON_SCHEMA(
        out, .id = "urn:hec:report:2", .title = "HEC report",
        .description = "What `hec report --json` prints: one report, or an array of reports when several files are "
                       "given. Missing is null, never 0. Ratios are 0..1.",
        .root = "report", .or_list = true);
}
