/* What a run of any size keeps in memory has an end, and what is beyond it still counts. */
#include "diagnose/timeline/device.h"
#include "diagnose/timeline/steps.h"
#include "timeline_run.h"

#define MS INT64_C(1000000)

/* All are counted, with their units; durations are of those in the list. */
TEST(steps_beyond_the_list) {
    const int64_t beyond = 1000, count = HEC_STEPS_KEPT + beyond;
    timeline_begin(NULL);
    for (int64_t i = 0; i < count; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_STEP, process, i * MS, i * MS + MS / 2);
        a->detail = HEC_STEP_MARKED;
        a->amount = i < HEC_STEPS_KEPT ? 2 : 3;
    }
    build();
    assert_int_equal(made.steps.count, count);
    assert_int_equal(made.steps.examined, HEC_STEPS_KEPT);
    assert_int_equal(made.steps.duration.count, HEC_STEPS_KEPT);
    assert_true(made.steps.units == 2.0 * HEC_STEPS_KEPT + 3.0 * (double)beyond);
}

TEST(windows_beyond_the_list) {
    struct hec_windows windows = {0};
    for (int i = 0; i < HEC_WINDOWS_KEPT + 10; i++)
        assert_int_equal(hec_windows_add(&windows, &(struct hec_window){1, 1, 2 * i, 2 * i + 1}), 0);
    assert_int_equal(windows.count, HEC_WINDOWS_KEPT);
    hec_windows_free(&windows);
}

/* Twenty names of kernels; `devices` leaves room for so many rows. */
static int rows_of(size_t devices, struct hec_kernel_row **rows) {
    enum { NAMES = 20 };
    static char text[NAMES + 1][16];
    static char *names[NAMES + 1];
    static struct hec_kernel kernels[NAMES + 1];
    static uint8_t classes[NAMES + 1];
    static struct hec_kernel_count counts[NAMES + 1];
    struct hec_timeline_tables tables = {
        .names = names, .name_count = NAMES + 1, .kernels = kernels, .classes = classes, .kernel_count = NAMES + 1};
    struct hec_timeline_device device = {.device = 3, .kernels = counts, .kernel_count = NAMES + 1};
    for (uint32_t i = 1; i <= NAMES; i++) {
        snprintf(text[i], sizeof text[i], "k%02u", i);
        names[i] = text[i];
        kernels[i] = (struct hec_kernel){.id = i, .name = i};
        /* the first ten take one second each, the others two to eleven */
        counts[i] = (struct hec_kernel_count){i, 1, 1000, i <= 10 ? 1e9 : (i - 9) * 1e9};
    }
    int count = 0;
    *rows = NULL;
    assert_int_equal(hec_timeline_kernel_rows(&device, &tables, NULL, devices, rows, &count), 0);
    return count;
}

TEST(kernels_beyond_their_rows) {
    static const struct {
        size_t devices;
        int rows, alone; /* alone: names with a row of their own */
    } cases[] = {{1, 20, 20}, {32768 / 20, 20, 20}, {32768 / 16, 16, 15}, {32768 / 8, 8, 7}, {32768 / 2, 2, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct hec_kernel_row *rows;
        int count = rows_of(cases[c].devices, &rows), alone = 0;
        double seconds = 0, share = 0;
        int64_t kernels = 0;
        assert_int_equal(count, cases[c].rows);
        for (int i = 0; i < count; i++) {
            seconds += rows[i].seconds;
            kernels += rows[i].count;
            share += rows[i].share;
            alone += strcmp(rows[i].name, "(other kernels)") != 0;
            assert_int_equal(rows[i].device, 3);
            assert_true(i == 0 || rows[i].seconds <= rows[i - 1].seconds);
        }
        assert_int_equal(alone, cases[c].alone);
        assert_true(fabs(seconds - 75) < 1e-9 && fabs(share - 1) < 1e-9);
        assert_int_equal(kernels, 210);
        /* those with a row are those with most time */
        for (int i = 0; i < count && cases[c].alone < 11; i++)
            assert_true(rows[i].name[0] == '(' || rows[i].seconds > 12 - cases[c].alone - 0.5);
        free(rows);
    }
}
