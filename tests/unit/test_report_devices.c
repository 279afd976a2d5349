/* `hec devices` and `hec doctor` as text and as JSON. */
#include "model/part.h"
#include "report/run/devices.h"
#include "report/run/doctor.h"
#include "unit.h"

#include <jansson.h>

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

static json_t *parsed(struct hec_buf *out) {
    json_error_t error;
    json_t *root = json_loads(hec_buf_text(out), 0, &error);
    if (!root)
        fail_msg("line %d: %s", error.line, error.text);
    return root;
}

static void no_line_is_wider_than(const char *text, size_t columns) {
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        if (length > columns)
            fail_msg("%zu columns: %.*s", length, (int)length, line);
        line += length + (line[length] == '\n');
    }
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
    struct hec_buf out;
    struct hec_device device = h200(0);
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_devices(&device, 1, true, false, &plain, &out), 0);
    const char *text = hec_buf_text(&out);
    assert_true(has_row(text, "GPU 0", "NVIDIA H200"));
    assert_non_null(strstr(text, "power limit 700 W"));
    assert_non_null(strstr(text, "\n*H200 SXM "));
    assert_non_null(strstr(text, "\n H100 SXM "));
    assert_non_null(strstr(text, "in this machine"));
    assert_non_null(strstr(text, "not measurements"));
    for (int i = 0; i < hec_part_count(); i++)
        assert_non_null(strstr(text, hec_part_at(i)->name));
    no_line_is_wider_than(text, 80);
    hec_buf_free(&out);
}

TEST(each_source_is_printed_once_and_every_row_names_one) {
    struct hec_buf out;
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_devices(NULL, 0, true, false, &plain, &out), 0);
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
    assert_null(strstr(text, "nan"));
    hec_buf_free(&out);
}

TEST(what_a_part_does_not_state_is_unknown) {
    struct hec_buf out;
    struct hec_device device = h200(0);
    strcpy(device.name, "Jetson AGX Orin");
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_devices(&device, 1, false, false, &plain, &out), 0);
    assert_non_null(strstr(hec_buf_text(&out), "peak FP16 unknown"));
    assert_null(strstr(hec_buf_text(&out), "nan"));
    hec_buf_free(&out);
}

TEST(no_device_and_no_parts) {
    struct hec_buf out;
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_devices(NULL, 0, false, false, &plain, &out), 0);
    assert_true(has_row(hec_buf_text(&out), "GPU", "none found"));
    assert_int_equal(count_of(hec_buf_text(&out), "\n"), 1);
    hec_buf_clear(&out);
    assert_int_equal(hec_report_devices(NULL, 0, false, true, &plain, &out), 0);
    json_t *root = parsed(&out);
    assert_int_equal(json_array_size(json_object_get(root, "devices")), 0);
    assert_null(json_object_get(root, "parts"));
    json_decref(root);
    hec_buf_free(&out);
}

TEST(devices_as_json) {
    struct hec_buf out;
    struct hec_device devices[2] = {h200(0), h200(1)};
    strcpy(devices[1].name, "bad \xff name\n");
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_devices(devices, 2, true, true, &plain, &out), 0);
    json_t *root = parsed(&out);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "hec.devices/1");
    const json_t *list = json_object_get(root, "devices");
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "part")), "H200_SXM");
    assert_true(json_real_value(json_object_get(json_array_get(list, 0), "power_limit_w")) == 700);
    assert_true(json_is_null(json_object_get(json_array_get(list, 0), "pcie_bytes_per_s"))); /* unknown is not 0 */
    assert_true(json_is_null(json_object_get(json_array_get(list, 0), "mig_enabled")));
    assert_true(json_is_null(json_object_get(json_array_get(list, 1), "part")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "name")), "bad ? name?");
    const json_t *parts = json_object_get(root, "parts");
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
    json_decref(root);
    hec_buf_free(&out);
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
    struct hec_buf out;
    fill(&list);
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_doctor(&list, false, &plain, &out), 0);
    const char *text = hec_buf_text(&out);
    /* one area's rows stand together */
    const char *host = strstr(text, "host"), *io = strstr(text, "I/O: only partly"), *cpu = strstr(text, "cpu energy");
    assert_true(host && io && cpu && host < io && io < cpu);
    assert_true(has_row(text, "missing", "package: no RAPL here"));
    assert_non_null(strstr(text, "to enable it: a machine that has it"));
    assert_non_null(strstr(text, "cost: 4 us a process"));
    assert_non_null(strstr(text, "1 ok, 1 limited, 1 missing"));
    assert_null(strchr(text, '\033'));
    no_line_is_wider_than(text, 80);
    hec_buf_free(&out);
}

TEST(doctor_as_json) {
    struct hec_check_list list;
    struct hec_buf out;
    fill(&list);
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_doctor(&list, true, &plain, &out), 0);
    json_t *root = parsed(&out);
    const json_t *checks = json_object_get(root, "checks");
    assert_int_equal(json_array_size(checks), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(checks, 1), "status")), "missing");
    assert_true(json_is_null(json_object_get(json_array_get(checks, 0), "remedy")));
    assert_int_equal(json_integer_value(json_object_get(root, "missing")), 1);
    json_decref(root);
    hec_buf_free(&out);
}

TEST(too_many_checks_are_counted) {
    struct hec_check_list list;
    memset(&list, 0, sizeof list);
    for (int i = 0; i < HEC_CHECK_MAX + 3; i++)
        assert_non_null(hec_check_add(&list, "area", "name", HEC_CHECK_OK, "%d", i));
    assert_int_equal(list.count, HEC_CHECK_MAX);
    assert_int_equal(list.omitted, 3);
    struct hec_buf out;
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_doctor(&list, false, &plain, &out), 0);
    assert_non_null(strstr(hec_buf_text(&out), "3 more rows"));
    hec_buf_free(&out);
}

TEST(a_full_buffer_is_an_error) {
    struct hec_buf out;
    struct hec_device device = h200(0);
    hec_buf_init(&out, 100);
    assert_true(hec_report_devices(&device, 1, true, false, &plain, &out) < 0);
    hec_buf_free(&out);
    hec_buf_init(&out, 100);
    assert_true(hec_report_devices(&device, 1, true, true, &plain, &out) < 0);
    hec_buf_free(&out);
}
