/* `hec devices` and `hec doctor` as text and as JSON. */
#include "model/part.h"
#include "report/run/devices.h"
#include "report_json.h"

static const struct hec_report_style plain = {.columns = 80};

static struct hec_device h200(int index) {
    struct hec_device device = {.index = index,
                                .uuid = "GPU-1234",
                                .name = "NVIDIA H200",
                                .pci_bus_id = "00000000:18:00.0",
                                .driver = "580.159.04",
                                .architecture = "hopper",
                                .cuda_major = 9,
                                .memory_kib = 146800640,
                                .power_limit_mw = 700000,
                                .power_limit_default_mw = 700000,
                                .pcie_kib_per_s = -1,
                                .mig_enabled = -1,
                                .visible = 1,
                                .has_energy_counter = 1,
                                .has_power_history = 1,
                                .has_gpm = 1};
    return device;
}

static int count_of(const char *text, const char *what) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        count++;
    return count;
}

/* A line that starts with the label, then only spaces, then exactly this text: how wide the column of labels is, is the
 * page's affair. */
static bool has_row(const char *text, const char *label, const char *value) {
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n"), indent = strspn(line, " ");
        const char *at = line + indent;
        if (strncmp(at, label, strlen(label)) == 0) {
            at += strlen(label);
            size_t gap = strspn(at, " ");
            if (gap > 0 && strlen(value) == length - (size_t)(at + gap - line) &&
                strncmp(at + gap, value, strlen(value)) == 0)
                return true;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

TEST(devices_as_text) {
    struct hec_device device = h200(0);
    assert_int_equal(hec_report_devices(&device, 1, true, false, &plain, page()), 0);
    const char *text = hec_buf_text(&out);
    assert_true(has_row(text, "GPU 0", "NVIDIA H200"));
    SAYS("power limit 700 W", "\n*H200 SXM ", "\n H100 SXM ", "in this machine", "not measurements");
    for (int i = 0; i < hec_part_count(); i++)
        assert_non_null(strstr(text, hec_part_at(i)->name));
    lines(80);
}

TEST(each_source_is_printed_once_and_every_row_names_one) {
    assert_int_equal(hec_report_devices(NULL, 0, true, false, &plain, page()), 0);
    const char *text = hec_buf_text(&out);
    for (int i = 0; i < hec_part_count(); i++) {
        const struct hec_part *part = hec_part_at(i);
        assert_int_equal(count_of(text, part->source), 1); /* once, and not wrapped */
        char row[64];
        snprintf(row, sizeof row, "\n %-21s", part->name);
        const char *line = strstr(text, row);
        assert_non_null(line);
        line++;
        size_t length = strcspn(line, "\n");
        assert_int_equal(line[length - 2], ' ');
        char source[128];
        snprintf(source, sizeof source, "%c %s", line[length - 1], part->source);
        assert_non_null(strstr(text, source));
    }
    assert_int_equal(count_of(text, "halved"), 1);
    SAYS_NOT("nan");
}

TEST(what_a_part_does_not_state_is_unknown) {
    struct hec_device device = h200(0);
    strcpy(device.name, "Jetson AGX Orin");
    assert_int_equal(hec_report_devices(&device, 1, false, false, &plain, page()), 0);
    SAYS("peak FP16 unknown");
    SAYS_NOT("nan");
}

TEST(no_device_and_no_parts) {
    assert_int_equal(hec_report_devices(NULL, 0, false, false, &plain, page()), 0);
    assert_true(has_row(hec_buf_text(&out), "GPU", "none found"));
    assert_int_equal(count_of(hec_buf_text(&out), "\n"), 1);
    assert_int_equal(hec_report_devices(NULL, 0, false, true, &plain, page()), 0);
    parse();
    assert_int_equal(json_array_size(value_at("devices")), 0);
    assert_null(value_at("parts"));
}

TEST(devices_as_json) {
    struct hec_device devices[2] = {h200(0), h200(1)};
    strcpy(devices[1].name, "bad \xff name\n");
    assert_int_equal(hec_report_devices(devices, 2, true, true, &plain, page()), 0);
    parse();
    assert_text_at("schema", "hec.devices/1");
    assert_text_at("devices.0.part", "H200_SXM");
    assert_true(number_at("devices.0.power_limit_w") == 700);
    assert_null_at("devices.0.pcie_bytes_per_s"); /* unknown is not 0 */
    assert_null_at("devices.0.mig_enabled");
    assert_null_at("devices.1.part");
    assert_text_at("devices.1.name", "bad ? name?");
    const json_t *parts = value_at("parts");
    assert_int_equal(json_array_size(parts), hec_part_count());
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        if (strcmp(json_string_value(json_object_get(part, "id")), "T4") != 0)
            continue;
        const json_t *peak = json_object_get(part, "peak_dense_tflops");
        assert_true(json_is_null(json_object_get(peak, "fp64")));
        assert_true(json_real_value(json_object_get(peak, "fp16")) == 65);
        assert_true(json_is_real(json_object_get(peak, "fp8")));
        assert_true(json_real_value(json_object_get(peak, "fp8")) == 0);
    }
}

static void fill(struct hec_check_list *list) {
    struct hec_check *check;
    memset(list, 0, sizeof *list);
    hec_check_add(list, "host", "process tree", HEC_CHECK_OK, "/proc is read");
    check = hec_check_add(list, "cpu energy", "package", HEC_CHECK_MISSING, "no RAPL %s", "here");
    strcpy(check->remedy, "a machine that has it");
    check = hec_check_add(list, "host", "I/O", HEC_CHECK_LIMITED, "only partly");
    strcpy(check->cost, "4 us a process");
}

TEST(doctor_as_text) {
    struct hec_check_list list;
    fill(&list);
    assert_int_equal(hec_report_doctor(&list, false, &plain, page()), 0);
    const char *text = hec_buf_text(&out);
    /* one area's rows stand together */
    const char *host = strstr(text, "host"), *io = strstr(text, "I/O: only partly"), *cpu = strstr(text, "cpu energy");
    assert_true(host && io && cpu && host < io && io < cpu);
    assert_true(has_row(text, "missing", "package: no RAPL here"));
    SAYS("to enable it: a machine that has it", "cost: 4 us a process", "1 ok, 1 limited, 1 missing");
    lines(80);
}

TEST(doctor_as_json) {
    struct hec_check_list list;
    fill(&list);
    assert_int_equal(hec_report_doctor(&list, true, &plain, page()), 0);
    parse();
    assert_int_equal(json_array_size(value_at("checks")), 3);
    assert_text_at("checks.1.status", "missing");
    assert_null_at("checks.0.remedy");
    assert_int_equal(json_integer_value(value_at("missing")), 1);
}

TEST(too_many_checks_are_counted) {
    struct hec_check_list list;
    memset(&list, 0, sizeof list);
    for (int i = 0; i < HEC_CHECK_MAX + 3; i++)
        assert_non_null(hec_check_add(&list, "area", "name", HEC_CHECK_OK, "%d", i));
    assert_int_equal(list.count, HEC_CHECK_MAX);
    assert_int_equal(list.omitted, 3);
    assert_int_equal(hec_report_doctor(&list, false, &plain, page()), 0);
    SAYS("3 more rows");
}

TEST(a_full_buffer_is_an_error) {
    struct hec_device device = h200(0);
    for (int json = 0; json < 2; json++) {
        hec_buf_free(&out);
        hec_buf_init(&out, 100);
        assert_true(hec_report_devices(&device, 1, true, json, &plain, &out) < 0);
    }
}
