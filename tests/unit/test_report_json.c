/* The JSON report: keys, types and missing values, and that the published schema names exactly the keys that are printed. */
#include "report/run/report.h"
#include "unit/fake_run.h"
#include "unit.h"

#include <jansson.h>

static struct fake_run run;
static struct hec_summary summary;
static json_t *report, *schema;

static void build(void) {
    struct hec_price price = hec_price_default();
    assert_int_equal(hec_summary_build(&run.input, &price, &summary, NULL), 0);
}

static json_t *print(const struct hec_summary *summaries, size_t count) {
    struct hec_buf out;
    json_error_t error;
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_json(summaries, count, &out), 0);
    assert_int_equal(out.data[out.length - 1], '\n');
    json_t *root = json_loads(hec_buf_text(&out), JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail_msg("%s at line %d", error.text, error.line);
    hec_buf_free(&out);
    return root;
}

static json_t *at(json_t *root, const char *path) { /* "devices.0.energy.joules" */
    char key[64];
    while (root && *path) {
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        root = json_is_array(root) ? json_array_get(root, (size_t)atoi(key)) : json_object_get(root, key);
        path += length + (path[length] == '.');
    }
    return root;
}

static double real_at(const char *path) {
    json_t *value = at(report, path);
    if (!json_is_number(value))
        fail_msg("%s is no number", path);
    return json_number_value(value);
}

static void assert_null_at(const char *path) {
    json_t *value = at(report, path);
    if (!value || !json_is_null(value))
        fail_msg("%s is not null", path);
}

static void assert_text_at(const char *path, const char *text) {
    json_t *value = at(report, path);
    if (!json_is_string(value))
        fail_msg("%s is no text", path);
    assert_string_equal(json_string_value(value), text);
}

static void start(double seconds) {
    fake_init(&run, seconds);
    fake_worker(&run, 0, 620, 1000, 920, 450);
    fake_worker(&run, 1, 620, 1000, 920, 450);
    run.devices[1].visible = 0;
    fake_used(&run, 0, 4321);
}

static void finish(void) {
    json_decref(report);
    hec_summary_free(&summary);
    fake_free(&run);
}

TEST(test_contents) {
    start(13);
    run.units[run.unit_count].name = "sample";
    run.units[run.unit_count++].count = 26000;
    run.units[run.unit_count].name = "step";
    run.units[run.unit_count++].count = 203;
    build();
    report = print(&summary, 1);
    assert_text_at("schema", HEC_REPORT_SCHEMA);
    assert_text_at("run.command", "python train.py");
    assert_true(real_at("run.seconds") == 13);
    assert_true(real_at("run.exit_code") == 0);
    assert_true(json_is_true(at(report, "run.complete")));
    assert_null_at("run.simulated");
    assert_true(json_is_true(at(report, "devices.0.used")));
    assert_true(json_is_false(at(report, "devices.1.used")));
    assert_text_at("devices.0.energy.method", "counter");
    assert_true(json_is_true(at(report, "devices.0.energy.valid")));
    assert_null_at("devices.0.energy.why");
    assert_null_at("devices.0.energy.partial_joules");
    assert_true(fabs(real_at("devices.0.energy.joules") - 6522) < real_at("devices.0.energy.bound_joules"));
    assert_true(real_at("devices.0.energy.coverage") == 1);
    assert_true(fabs(real_at("devices.0.energy.disagreement")) < 0.01);
    assert_true(real_at("devices.0.power_w.limit") == 700);
    assert_true(real_at("devices.0.utilisation.sm") < 0.92);
    assert_text_at("findings.0.cause", "none");
    assert_true(json_array_size(at(report, "findings.0.evidence")) >= 2);
    assert_true(real_at("totals.joules") == real_at("devices.0.energy.joules"));
    assert_true(json_is_true(at(report, "totals.price.dollars_per_kwh_is_default")));
    assert_text_at("units.name", "sample");
    assert_true(real_at("units.per_second") == 2000);
    assert_true(fabs(real_at("units.joules_per_unit") * 26000 - real_at("totals.joules")) < 1e-3);
    assert_int_equal(json_array_size(at(report, "units_all")), 2);
    assert_null_at("host.package_joules");
    assert_true(real_at("self.cpu_seconds") == 0.05);
    finish();
}

TEST(test_invalid_is_null) {
    start(13);
    run.events[run.event_count++] = (struct fake_event){HEC_EVENT_DEVICE_LOST, 0, 12000000000, "lost"};
    run.input.exit_code = -1;
    build();
    report = print(&summary, 1);
    assert_null_at("devices.0.energy.joules");
    assert_true(real_at("devices.0.energy.partial_joules") > 0);
    assert_true(json_is_string(at(report, "devices.0.energy.why")));
    assert_null_at("devices.0.energy.split.work_joules");
    assert_null_at("totals.joules");
    assert_null_at("totals.dollars");
    assert_null_at("units.joules_per_unit");
    assert_null_at("run.exit_code");
    assert_text_at("events.0.kind", "device_lost");
    finish();
}

TEST(test_simulated) {
    start(13);
    run.devices[0].simulated = run.devices[1].simulated = 1;
    run.input.simulated = "h200";
    build();
    report = print(&summary, 1);
    assert_text_at("devices.0.energy.method", "simulated counter");
    assert_text_at("run.simulated", "h200");
    finish();
}

TEST(test_no_gpu) {
    fake_init(&run, 3);
    build();
    report = print(&summary, 1);
    assert_int_equal(json_array_size(at(report, "devices")), 0);
    assert_text_at("totals.unavailable", "no GPU was found");
    assert_null_at("totals.joules");
    assert_text_at("units.name", "run");
    finish();
}

TEST(test_several_make_an_array) {
    fake_init(&run, 3);
    build();
    struct hec_summary two[2] = {summary, summary};
    report = print(two, 2);
    assert_int_equal(json_array_size(report), 2);
    assert_text_at("1.schema", HEC_REPORT_SCHEMA);
    finish();
}

/* Text from outside may be anything; the report stays valid JSON. */
TEST(test_hostile_text) {
    start(13);
    run.input.command = "a\x01\xff\xc3(\"\\ \x1b[31m\xed\xa0\x80 caf\xc3\xa9";
    run.units[run.unit_count].name = "\xf0\x28\x8c\x28";
    run.units[run.unit_count++].count = 1;
    memset(run.devices[0].name, '\xc3', sizeof run.devices[0].name - 1);
    build();
    report = print(&summary, 1);
    assert_text_at("run.command", "a??"
                                  "?(\"\\ ?[31m??? caf\xc3\xa9");
    finish();
}

TEST(test_buffer_too_small) {
    struct hec_buf out;
    start(13);
    build();
    hec_buf_init(&out, 1000);
    assert_true(hec_report_json(&summary, 1, &out) < 0);
    hec_buf_free(&out);
    report = NULL;
    finish();
}

/* Compare an object with the schema's definition: the same keys, all of them required and none other allowed. */
static void compare(json_t *value, json_t *definition, const char *where) {
    const char *key;
    json_t *member, *reference = json_object_get(definition, "$ref");
    if (reference)
        definition = json_object_get(json_object_get(schema, "$defs"), strrchr(json_string_value(reference), '/') + 1);
    json_t *properties = json_object_get(definition, "properties");
    if (json_is_array(value)) {
        size_t i;
        json_array_foreach(value, i, member) compare(member, json_object_get(definition, "items"), where);
        return;
    }
    if (!json_is_object(value) || json_is_object(json_object_get(definition, "additionalProperties")))
        return;
    assert_true(json_is_false(json_object_get(definition, "additionalProperties")));
    if (json_object_size(value) != json_object_size(properties) ||
        json_object_size(properties) != json_array_size(json_object_get(definition, "required")))
        fail_msg("%s: %zu keys, the schema has %zu, %zu of them required", where, json_object_size(value),
                 json_object_size(properties), json_array_size(json_object_get(definition, "required")));
    json_object_foreach(value, key, member) {
        json_t *inner = json_object_get(properties, key);
        if (!inner)
            fail_msg("%s.%s is not in the schema", where, key);
        compare(member, inner, key);
    }
}

TEST(test_schema_names_every_key) {
    json_error_t error;
    schema = json_load_file(HEC_SOURCE_DIR "/docs/report.schema.json", 0, &error);
    assert_non_null(schema);
    start(13);
    run.phases[run.phase_count].name = "train";
    run.phases[run.phase_count++].count = 10;
    run.events[run.event_count++] = (struct fake_event){HEC_EVENT_NOTE, -1, 0, "a note"};
    build();
    report = print(&summary, 1);
    compare(report, json_object_get(json_object_get(schema, "$defs"), "report"), "report");
    json_t *kinds = at(schema, "$defs.event.properties.kind.enum");
    assert_int_equal(json_array_size(kinds), HEC_EVENT_COUNT);
    for (int i = 0; i < HEC_EVENT_COUNT; i++)
        assert_string_equal(json_string_value(json_array_get(kinds, (size_t)i)),
                            hec_event_name((enum hec_event_kind)i));
    json_decref(schema);
    finish();
}

/* docs/report.schema.json is what `hec report --schema` prints. */
TEST(test_schema_is_published) {
    struct hec_buf out;
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_schema(&out), 0);
    json_t *made = json_loads(hec_buf_text(&out), JSON_REJECT_DUPLICATES, NULL);
    json_t *published = json_load_file(HEC_SOURCE_DIR "/docs/report.schema.json", 0, NULL);
    assert_non_null(made);
    assert_non_null(published);
    if (!json_equal(made, published))
        fail_msg("docs/report.schema.json is old: hec report --schema >docs/report.schema.json");
    json_decref(made);
    json_decref(published);
    hec_buf_free(&out);
}
