/* dcgm-exporter's words: whose fields -d shows, and its file of fields, line by line. */
#include "agent/dcgm.h"
#include "unit.h"

static struct hec_dcgm_list list;
static struct hec_why why;

TEST(devices_that_are_shown) {
#define BITS(a, b) ((UINT64_MAX >> (63 - (b))) & (UINT64_MAX << (a)))
    static const struct {
        const char *text;
        bool instances;
        uint64_t gpus; /* 0 and no instances: refused */
    } cases[] = {
        {"f", true, UINT64_MAX},
        {"g", false, UINT64_MAX},
        {"i", true, 0},
        {"g+i", true, UINT64_MAX},
        {"i+g", true, UINT64_MAX},
        {"g:0", false, 1},
        {"g:3", false, 8},
        {"g:63", false, UINT64_C(1) << 63},
        {"g:0,2-4", false, BITS(0, 0) | BITS(2, 4)},
        {"g:2-2,1", false, 6},
        {"g:0-63", false, UINT64_MAX},
        {"g:0,2-4+i", true, 1 | BITS(2, 4)},
        {"i+g:5", true, 32},
        {"", false, 0},
        {"+", false, 0},
        {"x", false, 0},
        {"ff", false, 0},
        {"f+i", false, 0},
        {"i+i", false, 0},
        {"g+g", false, 0},
        {"g+g:1", false, 0},
        {"g:", false, 0},
        {"g:x", false, 0},
        {"g:1x", false, 0},
        {"g: 1", false, 0},
        {"g:-1", false, 0},
        {"g:1-", false, 0},
        {"g:1- 2", false, 0},
        {"g:1-+2", false, 0},
        {"g:4-2", false, 0},
        {"g:64", false, 0},
        {"g:0-64", false, 0},
        {"g:1,", false, 0},
        {"g:1,+i", false, 0},
        {"g1", false, 0},
        {"h:1", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_dcgm_devices devices;
        bool good = cases[i].instances || cases[i].gpus;
        int err = hec_dcgm_devices_parse(cases[i].text, &devices, &why);
        if (err != (good ? HEC_OK : HEC_ERR_USAGE))
            fail_msg("\"%s\": %d", cases[i].text, err);
        if (!good && strncmp(why.text, "-d takes f, g, i, g:0,2-4 or g+i, not ", 38) != 0)
            fail_msg("\"%s\": %s", cases[i].text, why.text);
        if (good && (devices.instances != cases[i].instances || devices.gpus != cases[i].gpus))
            fail_msg("\"%s\": %d, %llx", cases[i].text, devices.instances, (unsigned long long)devices.gpus);
        for (int gpu = 0; good && gpu < 64; gpu++)
            assert_int_equal(hec_dcgm_shows(&devices, gpu), cases[i].gpus >> gpu & 1);
    }
    struct hec_dcgm_devices devices;
    assert_int_equal(hec_dcgm_devices_parse("i:0", &devices, &why), HEC_ERR_USAGE);
    assert_string_equal(why.text, "-d: GPU instances are shown all or none (i), not by number");
    assert_int_equal(hec_dcgm_devices_parse("", &devices, &why), HEC_ERR_USAGE);
    assert_string_equal(why.text, "-d takes f, g, i, g:0,2-4 or g+i, not nothing");
    assert_int_equal(hec_dcgm_devices_parse("g:0-64", &devices, &why), HEC_ERR_USAGE);
    assert_string_equal(why.text, "-d takes f, g, i, g:0,2-4 or g+i, not \"g:0-64\"");
}

static int parse(const char *text, bool old) {
    why.text[0] = '\0';
    return hec_dcgm_list_parse(&list, text, strlen(text), old, &why);
}

TEST(a_file_of_fields) {
    assert_int_equal(parse("# a comment, with commas, of all\n"
                           "\n"
                           "  \t\r\n"
                           "DCGM_FI_DEV_SM_CLOCK,gauge,SM clock\n"
                           " DCGM_FI_DEV_GPU_UTIL\t,\tcounter , a, b and \"c\" \r\n",
                           false),
                     HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "line 5: expected `field, type, help`");
    assert_int_equal(parse("DCGM_FI_DEV_SM_CLOCK,gauge,SM clock\n"
                           " DCGM_FI_DEV_GPU_UTIL\t,\tcounter , \"a, b\" \r\n"
                           "DCGM_FI_PROF_NOT_KNOWN, gauge, -\n"
                           "dcgm_own_field, counter, -\n"
                           "DCGM_FI_DRIVER_VERSION, label, Driver",
                           false),
                     HEC_OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.chosen[0].field->name, "DCGM_FI_DEV_SM_CLOCK");
    assert_string_equal(list.chosen[0].help, "SM clock");
    assert_int_equal(list.chosen[0].kind, HEC_FAMILY_GAUGE);
    assert_string_equal(list.chosen[1].field->name, "DCGM_FI_DEV_GPU_UTIL");
    assert_string_equal(list.chosen[1].help, "a, b");
    assert_int_equal(list.chosen[1].kind, HEC_FAMILY_COUNTER); /* as the file says */
    assert_int_equal(list.chosen[2].kind, HEC_FAMILY_INFO);
    assert_int_equal(list.skipped_count, 2);
    assert_string_equal(list.skipped, "DCGM_FI_PROF_NOT_KNOWN, dcgm_own_field");
    assert_int_equal(parse("", false), HEC_OK);
    assert_int_equal(list.count + list.skipped_count, 0);
    assert_string_equal(list.skipped, "");
}

TEST(lines_that_are_refused) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"DCGM_FI_DEV_SM_CLOCK", "line 1: expected `field, type, help`"},
        {"DCGM_FI_DEV_SM_CLOCK, gauge", "line 1: expected `field, type, help`"},
        {"#\nDCGM_FI_DEV_SM_CLOCK, gauge, a, b", "line 2: expected `field, type, help`"},
        {"DCGM_FI_DEV_SM_CLOCK, gauge, \"a\" \"b\", c", "line 1: expected `field, type, help`"},
        {"DCGM_FI_DEV_SM_CLOCK, histogram, a", "line 1: the type is none of gauge, counter, label"},
        {"DCGM_FI_DEV_SM_CLOCK, gauges, a", "line 1: the type is none of gauge, counter, label"},
        {"DCGM_FI_DEV_SM_CLOCK, , a", "line 1: the type is none of gauge, counter, label"},
        {"FI_DEV_SM_CLOCK, gauge, a", "line 1: this is no field of DCGM"},
        {"DCGM_, gauge, a", "line 1: this is no field of DCGM"},
        {"DCGM_FI DEV, gauge, a", "line 1: this is no field of DCGM"},
        {"DCGM_FI-DEV, gauge, a", "line 1: this is no field of DCGM"},
        {", gauge, a", "line 1: this is no field of DCGM"},
        {"DCGM_FI_DEV_SM_CLOCK, gauge, a\n\nDCGM_FI_DEV_SM_CLOCK, gauge, a\n",
         "line 3: DCGM_FI_DEV_SM_CLOCK is there twice"},
        {"DCGM_FI_DEV_SM_CLOCK, label, a", "line 1: DCGM_FI_DEV_SM_CLOCK is no label"},
        {"DCGM_FI_DRIVER_VERSION, gauge, a", "line 1: DCGM_FI_DRIVER_VERSION is a label"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int err = parse(cases[i].text, false);
        if (err != HEC_ERR_CORRUPT || strcmp(why.text, cases[i].says) != 0)
            fail_msg("%s: %d, \"%s\"", cases[i].text, err, why.text);
    }
    char line[200] = "DCGM_";
    memset(line + 5, 'x', 95); /* the longest name, and one more */
    strcpy(line + 100, ", gauge, a");
    assert_int_equal(parse(line, false), HEC_OK);
    assert_int_equal(list.skipped_count, 1);
    strcpy(line + 100, "x, gauge, a");
    assert_int_equal(parse(line, false), HEC_ERR_CORRUPT);
}

/* More names than fit are counted all the same. */
TEST(many_that_are_not_known) {
    static char text[64 * 200];
    size_t length = 0;
    for (int i = 0; i < 100; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "DCGM_%0*d, gauge, a\n", 60, i);
    assert_int_equal(hec_dcgm_list_parse(&list, text, length, false, &why), HEC_OK);
    assert_int_equal(list.skipped_count, 100);
    assert_in_range(strlen(list.skipped), sizeof list.skipped - 1 - 67, sizeof list.skipped - 1);
    assert_int_equal((strlen(list.skipped) + 2) % 67, 0); /* whole names */
}

static size_t of_set(enum hec_dcgm_set set) {
    size_t count = 0;
    for (size_t i = 0; hec_dcgm_field(i); i++)
        count += hec_dcgm_field(i)->set == set;
    return count;
}

TEST(lists_that_are_built_in) {
    size_t by_default = of_set(HEC_DCGM_DEFAULT), listed = of_set(HEC_DCGM_LISTED), old = of_set(HEC_DCGM_OLD);
    assert_true(by_default > 10 && listed > 3 && old > 3);
    for (int i = 0; i < 4; i++) {
        hec_dcgm_list_default(&list, i & 1, i & 2);
        assert_int_equal(list.count, by_default + (i & 1 ? listed : 0) + (i & 2 ? old : 0));
        assert_string_equal(list.chosen[0].field->name, "DCGM_FI_DEV_SM_CLOCK");
        assert_string_equal(list.chosen[0].help, "SM clock frequency (in MHz).");
    }
    const struct hec_dcgm_field *first = list.chosen[list.count - 1].field; /* an old one */
    char line[200];
    snprintf(line, sizeof line, "%s, gauge, mine\n", first->name);
    assert_int_equal(parse(line, true), HEC_OK); /* named by the file: not added again */
    assert_int_equal(list.count, old);
    assert_string_equal(list.chosen[0].help, "mine");
    assert_null(hec_dcgm_field(1000));
}

/* Of fields that not all devices have, which do. */
TEST(needs) {
    size_t with = 0, without = 0;
    for (size_t i = 0; hec_dcgm_field(i); i++) {
        const struct hec_dcgm_field *field = hec_dcgm_field(i);
        const char *needed = hec_dcgm_needs(field);
        (needed ? with++ : without++);
        if (field->metric == HEC_GPU_SM_CLOCK)
            assert_null(needed);
        if (field->metric == HEC_GPM_GR_ACTIVE)
            assert_true(needed && strlen(needed) > 5);
    }
    assert_true(with > 5 && without > 5);
}
