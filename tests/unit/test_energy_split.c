/* The split of energy in work, idle with a context and idle, on runs of known truth. */
#include "base/clock.h"
#include "diagnose/meter/energy.h"
#include "diagnose/meter/split.h"
#include "report/words/reasons.h"
#include "unit.h"

static struct hec_energy energy;

static int64_t ns(double seconds) {
    return llround(seconds * 1e9);
}

/* What the meter says of a run without length. */
static void know_nothing(void) {
    struct hec_energy_meter meter;
    hec_energy_init(&meter, &(struct hec_energy_options){0});
    hec_energy_finish(&meter, &energy);
}

static void total(double joules, double seconds) {
    know_nothing();
    energy.valid = true;
    energy.joules = joules;
    energy.coverage = 1;
    energy.window_s = seconds;
}

static void assert_adds_up(void) {
    assert_near(energy.work_joules + energy.idle_context_joules + energy.idle_joules, energy.joules,
                1e-9 * energy.joules);
    assert_near(energy.work_s + energy.idle_context_s + energy.idle_s, energy.window_s, 1e-6);
}

static struct hec_split *split;

static void power(double from, double to, double watts) {
    for (double t = from; t < to - 1e-9; t += 0.02)
        hec_split_power(split, ns(t), ns(t + 0.02), watts);
}

static void begin(double seconds) {
    assert_int_equal(hec_split_create(ns(seconds), &split), 0);
}

/* A reading of the contexts each second: of one from the `from`th on. */
static void contexts(int seconds, int from) {
    for (int i = 0; i <= seconds; i++)
        hec_split_contexts(split, ns(i), i >= from, true);
}

/* With all that was read; of so many joules. */
static void end(double joules, double seconds) {
    hec_split_contexts_end(split);
    total(joules, seconds);
    hec_split_result(split, &energy);
    hec_split_free(split);
}

/* 0-2 s no context at 82 W, 2-5 s a context at 120 W, 5-15 s work at 600 W with an activity of `share`. */
static void plain(double share) {
    begin(15);
    power(0, 2, 82);
    power(2, 5, 120);
    power(5, 15, 600);
    hec_split_activity(split, 0, ns(5), 0);
    hec_split_activity(split, ns(5), ns(15), share);
    contexts(15, 2);
}

#define PLAIN_J (2 * 82 + 3 * 120 + 10 * 600)

TEST(test_plain) {
    plain(1);
    end(PLAIN_J, 15);
    assert_adds_up();
    assert_near(energy.idle_context_watts, 120, 0.01);
    assert_near(energy.idle_joules, 164, 1);
    assert_near(energy.idle_context_joules, 360, 6);
    assert_near(energy.work_joules, 6000, 6);
    assert_near(energy.work_s, 10, 0.05);
    assert_non_null(strstr(HEC_SAY(&energy.idle_source), "measured in this run"));
}

TEST(test_partly_active) {
    plain(0.75);
    end(PLAIN_J, 15);
    assert_adds_up();
    assert_near(energy.idle_context_s, 3 + 2.5, 0.05);
    assert_near(energy.idle_context_joules, 5.5 * 120, 6);
}

/* The total is the counter's; levels from samples that say 2 % more are put on its scale. */
TEST(test_scaled_to_the_counter) {
    plain(1);
    hec_split_contexts_end(split);
    total(PLAIN_J / 1.02, 15);
    energy.disagreement = 0.02;
    hec_split_result(split, &energy);
    hec_split_free(split);
    assert_adds_up();
    assert_near(energy.idle_context_watts, 120 / 1.02, 0.01);
}

/* Where two readings of the contexts differ, power decides: the context came at 2.4 s, the readings say 2 or 3 s. */
TEST(test_context_between_readings) {
    begin(10);
    power(0, 2.4, 82);
    power(2.4, 10, 120);
    hec_split_activity(split, 0, ns(10), 0);
    contexts(10, 3);
    end(2.4 * 82 + 7.6 * 120, 10);
    assert_adds_up();
    assert_near(energy.idle_s, 2.4, 0.05);
    assert_near(energy.work_joules, 0, 6);
}

/* Never idle with a context: no level, so no split, but a statement of how much it can be. */
TEST(test_unknown_level) {
    begin(10);
    power(0, 10, 500);
    hec_split_activity(split, 0, ns(10), 0.9);
    contexts(10, 0);
    end(5000, 10);
    assert_true(isnan(energy.work_joules));
    assert_true(isnan(energy.idle_context_joules));
    assert_near(energy.idle_unknown_max_joules, 1 * 500, 1);
    assert_non_null(strstr(HEC_SAY(&energy.idle_source), "unknown: "));
}

/* A starved loop: 70 ms idle in every 100 ms, so that no window of the counters is quiet, but many power samples are. */
TEST(test_estimated_level) {
    for (int mixture = 0; mixture < 3; mixture++) {
        begin(10);
        for (int i = 0; i < 500; i++) {
            double starved = i % 5 < 3 ? 120 : i % 5 == 3 ? 300 : 500;
            double mixed[] = {120 + i % 10 * 45,
                              290}; /* idle for shorter than a sample: no plateau, or one of mixtures */
            power(i * 0.02, (i + 1) * 0.02, mixture ? mixed[mixture - 1] : starved);
        }
        hec_split_activity(split, 0, ns(10), 0.3);
        contexts(10, 0);
        end(mixture == 0 ? 2320 : mixture == 1 ? 3225 : 2900, 10);
        if (mixture) {
            assert_true(isnan(energy.idle_context_joules));
        } else {
            assert_adds_up();
            assert_near(energy.idle_context_joules, 7 * 120, 1);
            assert_non_null(strstr(HEC_SAY(&energy.idle_source), "estimated"));
        }
    }
}

TEST(test_no_context_readings) {
    begin(10);
    power(0, 10, 500);
    hec_split_activity(split, 0, ns(10), 0.9);
    end(5000, 10);
    assert_true(isnan(energy.work_joules));
    assert_true(isnan(energy.idle_unknown_max_joules));
}

/* A driver that lists no context while the device works is not believed. */
TEST(test_contradiction) {
    begin(10);
    power(0, 10, 500);
    hec_split_activity(split, 0, ns(10), 0.9);
    contexts(10, 11);
    end(5000, 10);
    assert_true(isnan(energy.work_joules));
    assert_non_null(strstr(HEC_SAY(&energy.idle_source), "listed no context"));
}

/* A day: memory stays what it is for ten minutes, and the sums still hold. */
TEST(test_a_day) {
    const int day = 86400;
    begin(day);
    for (int i = 0; i < day; i++) {
        bool busy = i % 1000 >= 300;
        hec_split_power(split, ns(i), ns(i + 1), busy ? 600 : 120);
        hec_split_activity(split, ns(i), ns(i + 1), busy);
        hec_split_contexts(split, ns(i), 1, true);
    }
    end(0.3 * day * 120 + 0.7 * day * 600, day);
    assert_adds_up();
    assert_near(energy.idle_context_joules / (0.3 * day * 120), 1, 0.01);
}

TEST(test_no_length) {
    assert_int_equal(hec_split_create(0, &split), 0);
    hec_split_power(split, ns(-1), ns(1), 100);
    hec_split_contexts(split, 0, 1, true);
    hec_split_contexts_end(split);
    know_nothing();
    hec_split_result(split, &energy);
    assert_true(isnan(energy.work_joules));
    hec_split_free(split);
}

/* ---- each figure, to the bin ---- */

/* 4 s without a context at 80 W, then one: 6 s idle at 120 W and 10 s of work at 500 W, as the samples say; bins are of 20 ms.
 * What is in `with` changes before the result. */
static void known_run(void (*with)(void)) {
    begin(20);
    power(0, 4, 80);
    power(4, 10, 120);
    power(10, 20, 500);
    hec_split_activity(split, 0, ns(10), 0);
    hec_split_activity(split, ns(10), ns(20), 1);
    for (int i = 0; i <= 1000; i++)
        hec_split_contexts(split, ns(0.02 * i), i >= 200, true);
    if (with)
        with();
    end(4 * 80 + 6 * 120 + 10 * 500, 20);
}

static void coarse(void) {
    hec_split_coarse(split);
}

static void copies(void) {
    hec_split_copies(split);
}

/* By the samples: 4 s without, where the bin between two readings that differ has its watts, and 6 s with. */
static void assert_idle(double scale) {
    assert_adds_up();
    assert_near(energy.idle_s, 4, 1e-4);
    assert_near(energy.idle_context_s, 6, 1e-4);
    assert_near(energy.work_s, 10, 1e-4);
    assert_near(energy.idle_joules, 320 * scale, 0.01);
    assert_near(energy.idle_context_watts, 120 * scale, 1e-3);
    assert_near(energy.idle_context_joules, 720 * scale, 0.02);
    assert_true(isnan(energy.idle_unknown_max_joules));
}

TEST(test_each_figure) {
    known_run(NULL);
    assert_idle(1);
    assert_int_equal(energy.idle_source.id, HEC_REASON_LEVEL_MEASURED);
    assert_near(energy.idle_source.LEVEL_MEASURED.seconds, 6 - 2 * 0.02, 1e-4); /* a quiet bin's neighbours are quiet */
    known_run(coarse);
    assert_idle(1);
    assert_int_equal(energy.idle_source.id, HEC_REASON_LEVEL_UTILISATION);
    assert_near(energy.idle_source.LEVEL_UTILISATION.seconds, 6 - 2 * 0.02, 1e-4);
    known_run(copies); /* a copy looks idle: at most what the lowest power with a context says */
    assert_int_equal(energy.idle_source.id, HEC_REASON_LEVEL_COPIES);
    assert_true(isnan(energy.idle_context_joules) && isnan(energy.work_joules));
    assert_near(energy.idle_unknown_max_joules, 720, 0.02);
    assert_near(energy.idle_joules, 320, 0.01);
    assert_near(energy.work_s, 10, 1e-4);
}

/* Utilisation of a second calls quiet what is not: power far above the least with a context is no level. */
TEST(test_coarse_levels_are_low_ones) {
    for (int is_coarse = 0; is_coarse < 2; is_coarse++) {
        begin(10);
        power(0, 5, 120);
        power(5, 7, 1.14 * 120);
        power(7, 10, 1.16 * 120);
        hec_split_activity(split, 0, ns(10), 0);
        contexts(10, 0);
        if (is_coarse)
            hec_split_coarse(split);
        end(5 * 120 + 2 * 1.14 * 120 + 3 * 1.16 * 120, 10);
        assert_near(energy.idle_context_watts, is_coarse ? (5 + 2 * 1.14) * 120 / 7 : energy.joules / 10, 0.01);
        assert_near(energy.idle_context_s, 10, 1e-4);
        assert_near(energy.work_joules, energy.joules - 10 * energy.idle_context_watts, 0.02);
    }
}

/* Where no time is idle with a context no level of it is needed. */
TEST(test_level_not_needed) {
    begin(10);
    power(0, 10, 80);
    hec_split_activity(split, 0, ns(10), 0);
    contexts(10, 11);
    end(800, 10);
    assert_int_equal(energy.idle_source.id, HEC_REASON_LEVEL_NOT_NEEDED);
    assert_near(energy.idle_context_joules, 0, 0);
    assert_near(energy.idle_joules, 800, 1e-2);
    assert_near(energy.work_joules, 0, 1e-2);
    assert_adds_up();
}

/* A tenth of the run without a reading of the activity is too much; less is not. A context that is not known to have been absent counts. */
TEST(test_activity_of_nine_tenths) {
    for (int little = 0; little < 2; little++) {
        begin(20);
        power(0, 20, 120);
        hec_split_activity(split, 0, ns(little ? 17.94 : 18.06), 0);
        contexts(20, 0);
        end(2400, 20);
        assert_int_equal(energy.idle_source.id, little ? HEC_REASON_LEVEL_NO_ACTIVITY : HEC_REASON_LEVEL_MEASURED);
        assert_int_equal(isnan(energy.work_s), little);
        if (!little) {
            assert_near(energy.idle_context_s, 18.06, 1e-3); /* the rest may be work */
            assert_near(energy.work_s, 1.94, 1e-3);
        }
    }
    begin(20); /* without a context there is nothing to be active in */
    power(0, 20, 80);
    hec_split_activity(split, 0, ns(10), 0);
    contexts(20, 21);
    end(1600, 20);
    assert_int_equal(energy.idle_source.id, HEC_REASON_LEVEL_NOT_NEEDED);
    assert_near(energy.idle_s, 20, 1e-4);
}

/* A hundredth of the run active without a context listed is a contradiction; a little less is not. */
TEST(test_little_contradiction) {
    for (int much = 0; much < 2; much++) {
        begin(20);
        power(0, 20, 100);
        hec_split_activity(split, 0, ns(much ? 0.24 : 0.16), 0.06);
        hec_split_activity(split, ns(much ? 0.24 : 0.16), ns(20), 0);
        contexts(20, 21);
        end(2000, 20);
        assert_int_equal(energy.idle_source.id, much ? HEC_REASON_LEVEL_CONTRADICTED : HEC_REASON_LEVEL_NOT_NEEDED);
    }
}

/* A context whose reading failed is not known to go on. */
TEST(test_missing_contexts) {
    begin(10);
    power(0, 4, 80);
    power(4, 10, 120);
    hec_split_activity(split, 0, ns(10), 0);
    for (int i = 0; i <= 10; i++)
        hec_split_contexts(split, ns(i), i >= 4, i < 7);
    end(4 * 80 + 6 * 120, 10);
    assert_near(energy.idle_s, 4, 1e-4);
    assert_near(energy.idle_context_s, 6, 1e-4);                                /* by its power */
    assert_near(energy.idle_source.LEVEL_MEASURED.seconds, 2 - 2 * 0.02, 1e-4); /* 4 to 6 s were read */
    assert_adds_up();
}
