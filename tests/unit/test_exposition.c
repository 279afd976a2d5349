/* The text that Prometheus reads, and the tables of what stands in it. */
#include "agent/dcgm.h"
#include "agent/metrics.h"
#include "report/export/exposition.h"
#include "unit.h"

#define PROMETHEUS HEC_EXPOSITION_PROMETHEUS
#define OPENMETRICS HEC_EXPOSITION_OPENMETRICS

static struct hec_buf out;

static int setup(void **state) {
    (void)state;
    hec_buf_init(&out, 1u << 20);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hec_buf_free(&out);
    return 0;
}

/* A page of one family with one sample. */
static const char *page_of(enum hec_exposition_format format, const char *name, enum hec_family_kind kind,
                           const char *unit, const struct hec_label *labels, size_t count, double value) {
    struct hec_exposition page;
    hec_buf_clear(&out);
    hec_exposition_begin(&page, &out, format);
    hec_exposition_family(&page, name, kind, unit, "Help.");
    hec_exposition_sample(&page, labels, count, value);
    hec_exposition_end(&page);
    assert_int_equal(hec_buf_error(&out), 0);
    return hec_buf_text(&out);
}

/* The text between the quotes of the one label. */
static const char *label_of(const char *value) {
    static char text[2048];
    const char *page = page_of(PROMETHEUS, "m", HEC_FAMILY_GAUGE, NULL, &(struct hec_label){"l", value}, 1, 1);
    const char *from = strstr(page, "\nm{l=\"");
    assert_non_null(from);
    assert_string_equal(page + strlen(page) - 5, "\"} 1\n");
    snprintf(text, sizeof text, "%.*s", (int)(strlen(from) - 6 - 5), from + 6);
    return text;
}

static const char *value_of(double value) {
    const char *page = page_of(PROMETHEUS, "m", HEC_FAMILY_GAUGE, NULL, NULL, 0, value);
    return *page ? strrchr(page, ' ') + 1 : page;
}

TEST(test_formats) {
    struct hec_label labels[] = {{"gpu", "0"}, {"UUID", "GPU-1"}, {"pod", ""}, {"user", NULL}};
    assert_string_equal(page_of(PROMETHEUS, "a_joules_total", HEC_FAMILY_COUNTER, "joules", labels, 4, 1.5),
                        "# HELP a_joules_total Help.\n# TYPE a_joules_total counter\n"
                        "a_joules_total{gpu=\"0\",UUID=\"GPU-1\"} 1.5\n");
    assert_string_equal(page_of(OPENMETRICS, "a_joules_total", HEC_FAMILY_COUNTER, "joules", labels, 4, 1.5),
                        "# HELP a_joules Help.\n# TYPE a_joules counter\n# UNIT a_joules joules\n"
                        "a_joules_total{gpu=\"0\",UUID=\"GPU-1\"} 1.5\n# EOF\n");
    assert_string_equal(page_of(PROMETHEUS, "b_info", HEC_FAMILY_INFO, "", NULL, 0, 1),
                        "# HELP b_info Help.\n# TYPE b_info gauge\nb_info 1\n");
    assert_string_equal(page_of(OPENMETRICS, "b_info", HEC_FAMILY_INFO, "", NULL, 0, 1),
                        "# HELP b Help.\n# TYPE b info\nb_info 1\n# EOF\n");
    assert_string_equal(page_of(OPENMETRICS, "c_watts", HEC_FAMILY_GAUGE, "watts", labels + 2, 2, 7),
                        "# HELP c_watts Help.\n# TYPE c_watts gauge\n# UNIT c_watts watts\nc_watts 7\n# EOF\n");
}

/* A counter of dcgm-exporter keeps its name; a unit that the name does not end in is not said. */
TEST(test_openmetrics_names) {
    assert_string_equal(page_of(OPENMETRICS, "DCGM_ENERGY", HEC_FAMILY_COUNTER, "", NULL, 0, 3),
                        "# HELP DCGM_ENERGY Help.\n# TYPE DCGM_ENERGY unknown\nDCGM_ENERGY 3\n# EOF\n");
    assert_string_equal(page_of(PROMETHEUS, "DCGM_ENERGY", HEC_FAMILY_COUNTER, "", NULL, 0, 3),
                        "# HELP DCGM_ENERGY Help.\n# TYPE DCGM_ENERGY counter\nDCGM_ENERGY 3\n");
    assert_null(strstr(page_of(OPENMETRICS, "m_resets_total", HEC_FAMILY_COUNTER, "joules", NULL, 0, 3), "UNIT"));
    assert_null(strstr(page_of(OPENMETRICS, "kilowatts", HEC_FAMILY_GAUGE, "watts", NULL, 0, 3), "UNIT"));
}

TEST(test_absent) {
    assert_string_equal(page_of(PROMETHEUS, "m", HEC_FAMILY_GAUGE, NULL, NULL, 0, NAN), "");
    assert_string_equal(page_of(PROMETHEUS, "m", HEC_FAMILY_GAUGE, NULL, NULL, 0, INFINITY), "");
    assert_string_equal(page_of(OPENMETRICS, "m_total", HEC_FAMILY_COUNTER, NULL, NULL, 0, -1), "# EOF\n");
    struct hec_exposition page;
    hec_buf_clear(&out);
    hec_exposition_begin(&page, &out, PROMETHEUS);
    hec_exposition_family(&page, "none", HEC_FAMILY_GAUGE, "", "Nothing of it.");
    hec_exposition_family(&page, "some", HEC_FAMILY_GAUGE, "", "A \\ and \"two\nlines\".");
    hec_exposition_sample(&page, NULL, 0, NAN);
    hec_exposition_sample(&page, NULL, 0, -2);
    hec_exposition_sample(&page, &(struct hec_label){"l", "x"}, 1, 0);
    hec_exposition_end(&page);
    assert_string_equal(hec_buf_text(&out), "# HELP some A \\\\ and \"two\\nlines\".\n# TYPE some gauge\nsome -2\n"
                                            "some{l=\"x\"} 0\n");
}

TEST(test_labels) {
    assert_string_equal(label_of("a\\b\"c"), "a\\\\b\\\"c");
    assert_string_equal(label_of("x\"} 1\nevil{l=\"y"), "x\\\"} 1?evil{l=\\\"y"); /* no second sample */
    assert_string_equal(label_of("caf\xc3\xa9"), "caf\xc3\xa9");
    assert_string_equal(label_of("\xff\xc0\xaf\xed\xa0\x80z"), "??????z");
    assert_string_equal(label_of("\x1b[2Jx\r\xe2\x80\xae"), "?[2Jx??");
    char huge[5000];
    memset(huge, 'n', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_int_equal(strlen(label_of(huge)), HEC_EXPOSITION_VALUE_SIZE - 1);
    memcpy(huge + HEC_EXPOSITION_VALUE_SIZE - 3, "\xe2\x82\xac", 3); /* a character that no longer fits */
    assert_int_equal(strlen(label_of(huge)), HEC_EXPOSITION_VALUE_SIZE - 3);
}

TEST(test_values) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0\n"},
        {-0.0, "0\n"},
        {120, "120\n"},
        {0.25, "0.25\n"},
        {-0.007, "-0.007\n"},
        {691.12, "691.12\n"},
        {1e15, "1e+15\n"},
        {8007199254.741, "8007199254.741\n"},
        {0.1 + 0.2, "0.30000000000000004\n"},
        {1.0 / 1024, "0.0009765625\n"},
        {0x1p-1074, "4.94065645841247e-324\n"},
        {123456789.5, "123456789.5\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(value_of(cases[i].value), cases[i].text);
    for (double value = 1e-9; value < 1e18; value *= 1.37)
        assert_true(strtod(value_of(value), NULL) == value);
    for (int i = 0; i < 100000; i++)
        assert_true(strtod(value_of(i / 1000.0), NULL) == i / 1000.0);
}

TEST(test_otlp) {
    struct hec_exposition page;
    struct hec_label labels[] = {{"gpu", "0"}, {"pod", NULL}, {"command", "a\"\n\\"}};
    hec_buf_clear(&out);
    hec_exposition_begin_otlp(&page, &out, &(struct hec_label){"host.name", "n1"}, 1, 1700000000000000001);
    hec_exposition_family(&page, "none", HEC_FAMILY_GAUGE, "", "Nothing of it.");
    hec_exposition_sample(&page, NULL, 0, NAN);
    hec_exposition_family(&page, "e_joules_total", HEC_FAMILY_COUNTER, "joules", "Said \"so\".");
    hec_exposition_sample(&page, labels, 3, 1.5);
    hec_exposition_sample(&page, labels, 1, 2);
    hec_exposition_family(&page, "b_info", HEC_FAMILY_INFO, "", "B.");
    hec_exposition_sample(&page, NULL, 0, 1);
    hec_exposition_end(&page);
    assert_string_equal(
        hec_buf_text(&out),
        "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"host.name\",\"value\":{\"stringValue\":\"n1\"}}]},"
        "\"scopeMetrics\":[{\"scope\":{\"name\":\"hec\",\"version\":\"" HEC_VERSION "\"},\"metrics\":[\n"
        "{\"name\":\"e_joules_total\",\"description\":\"Said \\\"so\\\".\",\"unit\":\"J\",\"sum\":{\"aggregationTemporality\":2,"
        "\"isMonotonic\":true,\"dataPoints\":[{\"attributes\":[{\"key\":\"gpu\",\"value\":{\"stringValue\":\"0\"}},"
        "{\"key\":\"command\",\"value\":{\"stringValue\":\"a\\\"?\\\\\"}}],\"timeUnixNano\":\"1700000000000000001\",\"asDouble\":1.5},"
        "{\"attributes\":[{\"key\":\"gpu\",\"value\":{\"stringValue\":\"0\"}}],"
        "\"timeUnixNano\":\"1700000000000000001\",\"asDouble\":2}]}},\n"
        "{\"name\":\"b_info\",\"description\":\"B.\",\"unit\":\"\",\"gauge\":{\"dataPoints\":[{\"attributes\":[],"
        "\"timeUnixNano\":\"1700000000000000001\",\"asDouble\":1}]}}]}]}]}\n");
}

static bool is_name(const char *name) {
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(name);
}

TEST(test_tables) {
    for (int i = 0; i < HEC_AGENT_METRIC_COUNT; i++) {
        const struct hec_agent_metric_info *m = hec_agent_metric_info((enum hec_agent_metric)i);
        size_t length = strlen(m->name);
        bool ours = strncmp(m->name, "hec_", 4) == 0; /* or what all that Prometheus scrapes say of their process */
        assert_true(is_name(m->name) && (ours || strncmp(m->name, "process_", 8) == 0));
        assert_true((m->kind == HEC_FAMILY_COUNTER) == (strcmp(m->name + length - 6, "_total") == 0));
        assert_true((m->kind == HEC_FAMILY_INFO) == (strcmp(m->name + length - 5, "_info") == 0));
        assert_true(m->help[strlen(m->help) - 1] == '.');
        if (*m->unit) { /* a unit is said in OpenMetrics: the name ends in it */
            assert_non_null(strstr(page_of(OPENMETRICS, m->name, m->kind, m->unit, NULL, 0, 1), "\n# UNIT "));
        }
        /* what a target's own labels would hide */
        assert_null(strstr(m->labels, " job"));
        assert_null(strstr(m->labels, "instance"));
    }
    const struct hec_dcgm_field *field, *other;
    for (size_t i = 0; (field = hec_dcgm_field(i)); i++) {
        assert_true(is_name(field->name));
        for (size_t k = 0; (other = hec_dcgm_field(k)); k++)
            assert_true(k == i || strcmp(field->name, other->name) != 0);
        /* a total is made of a rate, and counts */
        assert_true(field->how != HEC_DCGM_TOTAL || field->kind == HEC_FAMILY_COUNTER);
        assert_true((field->how == HEC_DCGM_VALUE || field->how == HEC_DCGM_TOTAL || field->how == HEC_DCGM_SHARE) ==
                    (field->metric != HEC_DCGM_NONE));
        assert_true(field->how != HEC_DCGM_SHARE || field->plus != HEC_DCGM_NONE);
        assert_true(field->how != HEC_DCGM_LABEL || field->kind == HEC_FAMILY_INFO);
        assert_true((field->how == HEC_DCGM_ABSENT) == (field->why != NULL)); /* who looks for it is told why */
        if (field->how == HEC_DCGM_TOTAL)
            assert_non_null(strstr(hec_metric_info(field->metric)->unit, "/s"));
    }
}

static bool lists(const struct hec_dcgm_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->chosen[i].field->name, name) == 0)
            return true;
    return false;
}

static int parse(struct hec_dcgm_list *list, const char *text, struct hec_why *why) {
    return hec_dcgm_list_parse(list, text, strlen(text), false, why);
}

TEST(test_dcgm_list) {
    struct hec_dcgm_list list;
    struct hec_why why;
    hec_dcgm_list_default(&list, true, false);
    assert_int_equal(list.count, 26); /* of default-counters.csv */
    assert_true(lists(&list, "DCGM_FI_DEV_GPU_TEMP") && !lists(&list, "DCGM_FI_PROF_SM_ACTIVE"));
    assert_true(lists(&list, "DCGM_FI_DEV_ENC_UTIL"));
    hec_dcgm_list_default(&list, false, false);
    assert_int_equal(list.count, 18); /* without those that nobody is known to ask for */
    assert_true(lists(&list, "DCGM_FI_DEV_FB_FREE") && !lists(&list, "DCGM_FI_DEV_ENC_UTIL"));
    assert_false(lists(&list, "dcgm_gpu_utilization"));
    hec_dcgm_list_default(&list, true, true);
    assert_true(lists(&list, "dcgm_gpu_utilization") && lists(&list, "DCGM_FI_DEV_GPU_TEMP"));

    assert_int_equal(parse(&list,
                           "# Format\n\nDCGM_FI_DEV_DEC_UTIL ,   gauge, Decoder utilization (in %).\r\n"
                           "  \nDCGM_FI_PROF_SM_ACTIVE, counter, \"ours, with a comma\"\n"
                           "DCGM_FI_DRIVER_VERSION,        label, Driver Version\n"
                           "DCGM_EXP_P2P_STATUS, counter, not ours\nDCGM_FI_DEV_NVLINK_COUNT, gauge, nor this",
                           &why),
                     0);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.chosen[0].field->name, "DCGM_FI_DEV_DEC_UTIL");
    assert_string_equal(list.chosen[0].help, "Decoder utilization (in %).");
    assert_string_equal(list.chosen[1].help, "ours, with a comma");
    assert_int_equal(list.chosen[1].kind, HEC_FAMILY_COUNTER);
    assert_int_equal(list.skipped_count, 2);
    assert_string_equal(list.skipped, "DCGM_EXP_P2P_STATUS, DCGM_FI_DEV_NVLINK_COUNT");
    assert_int_equal(parse(&list, "", &why), 0);
    assert_int_equal(list.count, 0);

    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"DCGM_FI_DEV_GPU_TEMP, gauge", "line 1: expected `field, type, help`"},
        {"#\nDCGM_FI_DEV_GPU_TEMP, gauge, a, b", "line 2: expected `field, type, help`"},
        {"DCGM_FI_DEV_GPU_TEMP, histogram, x", "line 1: the type is none of gauge, counter, label"},
        {"gpu_temp, gauge, x", "line 1: this is no field of DCGM"},
        {"DCGM_{a=\"\"}, gauge, x", "line 1: this is no field of DCGM"},
        {"DCGM_FI_DEV_GPU_TEMP, label, x", "line 1: DCGM_FI_DEV_GPU_TEMP is no label"},
        {"DCGM_FI_DEV_GPU_TEMP,gauge,x\nDCGM_FI_DEV_GPU_TEMP,gauge,x", "line 2: DCGM_FI_DEV_GPU_TEMP is there twice"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(parse(&list, wrong[i].text, &why), HEC_ERR_CORRUPT);
        assert_string_equal(why.text, wrong[i].why);
    }
}

/* Many names that are skipped, each with room left: what is kept of them stays in bounds. */
TEST(test_dcgm_flood) {
    struct hec_dcgm_list list;
    hec_buf_clear(&out);
    for (int i = 0; i < 1000; i++)
        hec_buf_printf(&out, "DCGM_FI_%d, gauge, %300s\n", i, "h");
    assert_int_equal(parse(&list, hec_buf_text(&out), NULL), 0);
    assert_int_equal(list.skipped_count, 1000);
    assert_true(strlen(list.skipped) < sizeof list.skipped);
}

ALL_TESTS(setup, teardown)
