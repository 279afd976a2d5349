/* Properties of the energy figure over thousands of random runs of known truth: the bound holds in every one, and it
 * is not absurdly wide. */
#include "diagnose/limits.h"
#include "report/words/reasons.h"
#include "unit/energy_world.h"
#include "unit.h"

static struct world world;

static void random_power(double seconds, unsigned long long seed) {
    world_init(&world, seconds, seed);
    double kind = world_random(&world);
    double low = world_between(&world, 70, 250), high = world_between(&world, 250, 700);
    if (kind < 0.25) {
        world_constant(&world, high);
    } else if (kind < 0.6) {
        double period = world_between(&world, 0.06, 3), phase = world_between(&world, 0, 1);
        world_square(&world, low, high, period, phase);
    } else {
        double t = world_between(&world, 0, 0.3);
        world_step(&world, -WORLD_BEFORE_S, low);
        while (t < seconds + 1 && world.count < WORLD_STEPS_MAX - 1) {
            world_step(&world, t, world_between(&world, 80, 700));
            t += world_between(&world, 0.02, 1);
        }
    }
    world.quantum_phase_s = world_between(&world, 0, world.quantum_s);
    world.sample_phase_s = world_between(&world, 0, world.sample_s);
    world.sample_lag_s = world_between(&world, 0, 0.01); /* measured: the history is 10 ms late */
    if (world_random(&world) < 0.5) /* half of the collectors wait for the history to pass the end */
        world.history_beyond_s = 0.04;
    double slack = world_random(&world);
    world.slack_s = slack < 0.5 ? 0.005 : slack < 0.8 ? 0.02 : 0.09;
    world.read_every_s = world_between(&world, 0.1, 3);
}

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Runs whose history goes beyond their end apart from those in which the last sample hides what came after it. */
struct tally {
    double errors[2][4096], bounds[2][4096];
    int count[2], valid;
};

static void check(struct tally *tally, int run) {
    struct hec_energy energy;
    world_measure(&world, &energy);
    if (energy.coverage < HEC_ENERGY_COVERAGE_MIN) { /* then joules is what the readings cover, not the run */
        assert_false(energy.valid);
        return;
    }
    double truth = world_truth(&world), error = fabs(energy.joules - truth);
    if (!(error <= energy.bound_joules))
        fail_msg("run %d of %.3f s: %.3f J, truth %.3f J, bound %.3f J (%s)", run, world.seconds, energy.joules, truth,
                 energy.bound_joules, HEC_SAY(&energy.why));
    if (energy.bound_joules > HEC_ENERGY_BOUND_MAX * energy.joules)
        assert_false(energy.valid);
    assert_true(energy.valid == !energy.why.id);
    int seen = world.history_beyond_s > 0;
    tally->errors[seen][tally->count[seen]] = error;
    tally->bounds[seen][tally->count[seen]++] = energy.bound_joules;
    tally->valid += energy.valid;
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count ? values[count / 2] : NAN;
}

/* The bound is no wider than 5 x the error that occurs, and what the samples' step (and, where the end is not seen, a
 * sample and its lateness at full power) may hide. */
static void report(struct tally *tally, const char *name, double small_j) {
    for (int seen = 0; seen < 2; seen++) {
        double error = median(tally->errors[seen], tally->count[seen]);
        double bound = median(tally->bounds[seen], tally->count[seen]);
        print_message("%s, end %s: %d runs, median error %.3f J, median bound %.3f J, largest error %.3f J\n", name,
                      seen ? "seen" : "not seen", tally->count[seen], error, bound,
                      tally->errors[seen][tally->count[seen] - 1]);
        assert_true(bound <= 5 * error + small_j + (seen ? 0 : 0.03 * 770));
    }
    print_message("%s: %d valid\n", name, tally->valid);
}

TEST(test_counter_bound_holds) {
    static struct tally tally;
    for (int run = 0; run < 2400; run++) {
        random_power(0.3 * pow(70, (double)(run % 200) / 199), 1000u + (unsigned)run); /* 0.3 s to 21 s */
        check(&tally, run);
    }
    report(&tally, "counter", 4);
    assert_true(tally.valid > 2400 / 2);
}

TEST(test_reset_bound_holds) {
    static struct tally tally;
    for (int run = 0; run < 600; run++) {
        random_power(2 + run % 20, 70000u + (unsigned)run);
        world.reset_s = world_between(&world, 0.1, world.seconds - 0.1);
        check(&tally, run);
    }
    report(&tally, "with a reset", 25);
}

TEST(test_integral_bound_holds) {
    static struct tally tally;
    for (int run = 0; run < 1000; run++) {
        random_power(0.3 * pow(70, (double)(run % 200) / 199), 90000u + (unsigned)run);
        world.no_counter = true;
        if (run % 3 == 0) { /* a short hole */
            world.hole_from_s = world_between(&world, 0, world.seconds);
            world.hole_to_s = world.hole_from_s + world_between(&world, 0.02, 0.01 * world.seconds + 0.02);
        }
        check(&tally, run);
    }
    /* the 5 % for a power that no counter checks are the bound here, and the synthetic sensor has no such error */
    report(&tally, "integral", 0.06 * 5000);
}

TEST(test_counter_alone_bound_holds) {
    static struct tally tally;
    for (int run = 0; run < 600; run++) {
        random_power(1 + run % 20, 190000u + (unsigned)run);
        world.no_power = true;
        check(&tally, run);
    }
    report(&tally, "counter without power", 90);
}
