/* The JSON report: keys, types and missing values, and that the published schema names exactly the keys that are printed. */
#include "report/run/report.h"
#include "recorded_run.h"
#include "report_json.h"

static void print(const struct hec_summary *summaries, size_t count) {
    assert_int_equal(hec_report_json(summaries, count, page()), 0);
    assert_int_equal(out.data[out.length - 1], '\n');
    parse();
}

static void build(void) {
    summarise();
    print(&summary, 1);
}

static void start(double seconds) {
    run_begin_with(seconds, 620, 1000, 920, 450);
    fake_worker(&run, 1, 620, 1000, 920, 450);
    run.devices[1].visible = 0;
}

TEST(test_contents) {
    start(13);
    fake_unit(&run, "sample", 26000);
    fake_unit(&run, "step", 203);
    build();
    assert_text_at("schema", HEC_REPORT_SCHEMA);
    assert_text_at("run.command", "python train.py");
    assert_true(number_at("run.seconds") == 13);
    assert_true(number_at("run.exit_code") == 0);
    assert_true(json_is_true(value_at("run.complete")));
    assert_null_at("run.simulated");
    assert_true(json_is_true(value_at("devices.0.used")));
    assert_true(json_is_false(value_at("devices.1.used")));
    assert_text_at("devices.0.energy.method", "counter");
    assert_true(json_is_true(value_at("devices.0.energy.valid")));
    assert_null_at("devices.0.energy.why");
    assert_null_at("devices.0.energy.partial_joules");
    assert_true(fabs(number_at("devices.0.energy.joules") - 6522) < number_at("devices.0.energy.bound_joules"));
    assert_true(number_at("devices.0.energy.coverage") == 1);
    assert_true(fabs(number_at("devices.0.energy.disagreement")) < 0.01);
    assert_true(number_at("devices.0.power_w.limit") == 700);
    assert_true(number_at("devices.0.utilisation.sm") < 0.92);
    assert_text_at("findings.0.cause", "none");
    assert_true(json_array_size(value_at("findings.0.evidence")) >= 2);
    assert_true(number_at("totals.joules") == number_at("devices.0.energy.joules"));
    assert_true(json_is_true(value_at("totals.price.dollars_per_kwh_is_default")));
    assert_text_at("units.name", "sample");
    assert_true(number_at("units.per_second") == 2000);
    assert_true(fabs(number_at("units.joules_per_unit") * 26000 - number_at("totals.joules")) < 1e-3);
    assert_int_equal(json_array_size(value_at("units_all")), 2);
    assert_null_at("host.package_joules");
    assert_true(number_at("self.cpu_seconds") == 0.05);
}

TEST(test_invalid_is_null) {
    start(13);
    fake_event(&run, HEC_EVENT_DEVICE_LOST, 0, 12000000000, "lost");
    run.input.exit_code = -1;
    build();
    assert_null_at("devices.0.energy.joules");
    assert_true(number_at("devices.0.energy.partial_joules") > 0);
    assert_true(json_is_string(value_at("devices.0.energy.why")));
    assert_null_at("devices.0.energy.split.work_joules");
    assert_null_at("totals.joules");
    assert_null_at("totals.dollars");
    assert_null_at("units.joules_per_unit");
    assert_null_at("run.exit_code");
    assert_text_at("events.0.kind", "device_lost");
}

TEST(test_simulated) {
    start(13);
    run.devices[0].simulated = run.devices[1].simulated = 1;
    run.input.simulated = "h200";
    build();
    assert_text_at("devices.0.energy.method", "simulated counter");
    assert_text_at("run.simulated", "h200");
}

TEST(test_no_gpu) {
    run_begin(3);
    build();
    assert_int_equal(json_array_size(value_at("devices")), 0);
    assert_text_at("totals.unavailable", "no GPU was found");
    assert_null_at("totals.joules");
    assert_text_at("units.name", "run");
}

TEST(test_several_make_an_array) {
    run_begin(3);
    build();
    struct hec_summary two[2] = {summary, summary};
    print(two, 2);
    assert_int_equal(json_array_size(report), 2);
    assert_text_at("1.schema", HEC_REPORT_SCHEMA);
}

/* Text from outside may be anything; the report stays valid JSON. */
TEST(test_hostile_text) {
    start(13);
    run.input.command = "a\x01\xff\xc3(\"\\ \x1b[31m\xed\xa0\x80 caf\xc3\xa9";
    fake_unit(&run, "\xf0\x28\x8c\x28", 1);
    memset(run.devices[0].name, '\xc3', sizeof run.devices[0].name - 1);
    build();
    assert_text_at("run.command", "a??"
                                  "?(\"\\ ?[31m??? caf\xc3\xa9");
}

TEST(test_buffer_too_small) {
    start(13);
    build();
    page();
    hec_buf_init(&out, 1000);
    assert_true(hec_report_json(&summary, 1, &out) < 0);
}

TEST(test_schema_names_every_key) {
    start(13);
    fake_phase(&run, "train", 10);
    fake_event(&run, HEC_EVENT_NOTE, -1, 0, "a note");
    build();
    assert_schema(hec_report_schema, "report", "report", true);
    json_t *kinds = value_at("$defs.event.properties.kind.enum"); /* of the schema */
    assert_int_equal(json_array_size(kinds), HEC_EVENT_COUNT);
    for (int i = 0; i < HEC_EVENT_COUNT; i++)
        assert_string_equal(json_string_value(json_array_get(kinds, (size_t)i)),
                            hec_event_name((enum hec_event_kind)i));
}
