/* What a program says itself of its work (hec run --unit): a rate, and joules, of the lines in the loop or of all of them. */
#include "recorded_run.h"

#define WATTS 300

struct line {
    double t_s, number; /* NAN: not read */
};

static void say(int unit, const struct line *lines, int count) {
    for (int i = 0; i < count; i++) {
        fake_add(&run, HEC_PRINTED, unit, lines[i].t_s, isnan(lines[i].number) ? 0 : llround(lines[i].number * 1e6));
        struct fake_series *s = &run.series[run.series_count - 1];
        s->valid[s->count - 1] = !isnan(lines[i].number);
    }
}

/* 20 s of one H200, of which it works the last 17 at WATTS; what is said of `printed`. */
static void begin(const char *printed) {
    run_begin_with(20, WATTS, 900, 800, 300);
    run.input.printed = printed;
    run.input.printed_from = "stdout";
}

/* Marked steps of a second from then on; the first three are no part of the loop. */
static void steps(double from_s, int count) {
    fake_tl_init(&timeline);
    uint32_t thread = fake_tl_track(&timeline, HEC_TRACK_THREAD, 4321, HEC_DEVICE_NONE, 4321);
    for (int i = 0; i < count; i++)
        fake_tl_add(&timeline, HEC_ACTIVITY_STEP, thread, llround((from_s + i) * 1e9), llround((from_s + i + 1) * 1e9))
            ->detail = HEC_STEP_MARKED;
}

static const struct {
    const char *printed;
    struct line lines[6];
    int count, steps; /* from 4 s on */
    int64_t said, used;
    bool of_loop;
    double per_second, watts; /* NAN: not known */
} cases[] = {
    /* of counts the first line's time began before it */
    {"batch=n=([0-9]+)", {{4, 10}, {5, 20}, {6, 30}, {8, 40}}, 4, 0, 4, 4, false, 22.5, WATTS},
    {"batch=n=([0-9]+)", {{4, 10}, {5, NAN}, {6, 30}, {8, 40}}, 4, 0, 3, 3, false, 17.5, WATTS},
    {"batch=n=([0-9]+)", {{4, 10}}, 1, 0, 1, 1, false, NAN, NAN},
    {"batch=n=([0-9]+)", {{4, 10}, {4, 20}}, 2, 0, 2, 2, false, NAN, NAN},
    /* of rates the median */
    {"it/s=r=([0-9]+)", {{4, 7}, {5, 30}, {9, 5}}, 3, 0, 3, 3, false, 7, WATTS},
    {"it/s=r=([0-9]+)", {{4, 7}}, 1, 0, 1, 1, false, 7, NAN},
    {"it/s=r=([0-9]+)", {{4, 0}, {6, 0}}, 2, 0, 2, 2, false, 0, NAN},
    {"it/s=r=([0-9]+)", {{4, NAN}}, 1, 0, 0, 0, false, NAN, NAN},
    /* of the loop, which is from 7 s to 16 s, where there are enough lines in it */
    {"batch=n=([0-9]+)", {{4, 500}, {8, 10}, {10, 30}, {12, 50}, {17, 500}}, 5, 12, 5, 3, true, 20, WATTS},
    {"batch=n=([0-9]+)", {{6, 10}, {8, 10}, {17, 12}}, 3, 12, 3, 3, false, 2, WATTS},
    {"it/s=r=([0-9]+)", {{1, 500}, {8, 10}, {17, 500}}, 3, 12, 3, 1, true, 10, WATTS},
    {"it/s=r=([0-9]+)", {{5, 8}, {17, 4}}, 2, 12, 2, 2, false, 6, WATTS},
};

TEST(what_is_said_is_laid_over_the_run) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(cases[i].printed);
        say(0, cases[i].lines, cases[i].count);
        if (cases[i].steps)
            steps(4, cases[i].steps);
        summarise();
        assert_int_equal(summary.printed_count, 1);
        const struct hec_printed_summary *p = &summary.printed[0];
        double joules = cases[i].watts / cases[i].per_second;
        bool known = isnan(joules) ? isnan(p->joules_per_unit) : fabs(p->joules_per_unit - joules) < 0.01 * joules;
        bool rate =
            isnan(cases[i].per_second) ? isnan(p->per_second) : fabs(p->per_second - cases[i].per_second) < 1e-9;
        if (!known || !rate || p->lines != cases[i].said || p->used != cases[i].used || p->of_loop != cases[i].of_loop)
            fail_msg("case %d: %d lines, %d used, of loop %d, %g a second, %g J", (int)i, (int)p->lines, (int)p->used,
                     p->of_loop, p->per_second, p->joules_per_unit);
        assert_true(isnan(joules) == isnan(p->joules_per_unit_bound));
    }
}

/* Each line of the list is a unit, by its place; of one that cannot be read, what follows has no number. */
TEST(units_are_told_apart) {
    static const struct line counts[] = {{4, 1}, {5, 2}, {6, 4}}, rates[] = {{5, 9}, {7, 11}, {8, 10}};
    begin("batch=n=([0-9]+)\nit/s=r=([0-9]+)\nwrong\nlast=n=([0-9]+)\n");
    say(0, counts, 3);
    say(1, rates, 3);
    summarise();
    assert_int_equal(summary.printed_count, 2);
    assert_string_equal(summary.printed_from, "stdout");
    assert_string_equal(summary.printed[0].unit.name, "batch");
    assert_string_equal(summary.printed[1].unit.name, "it");
    assert_near(summary.printed[0].per_second, 3, 1e-9);
    assert_near(summary.printed[1].per_second, 10, 1e-9);
    for (int i = 0; i < 2; i++)
        assert_true(summary.printed[i].joules_per_unit_bound > 0 &&
                    summary.printed[i].joules_per_unit_bound < 0.25 * summary.printed[i].joules_per_unit);
    begin("");
    summarise();
    assert_int_equal(summary.printed_count, 0);
}

/* Without the energy of a device that was used there are no joules of a unit. */
TEST(without_energy_no_joules) {
    static const struct line counts[] = {{4, 1}, {5, 2}, {6, 4}};
    run_begin(20);
    run.devices[run.device_count++] = fake_device(0);
    fake_used(&run, 0, 4321);
    run.input.printed = "batch=n=([0-9]+)";
    say(0, counts, 3);
    summarise();
    assert_near(summary.printed[0].per_second, 3, 1e-9);
    assert_true(isnan(summary.printed[0].joules_per_unit) && isnan(summary.printed[0].joules_per_unit_bound));
}
