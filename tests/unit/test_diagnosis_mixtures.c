/* The whole diagnosis, from activities and readings to seconds and joules by state, of random runs whose truth is known and
 * whose sensor is not: what is called measured holds, and what is rough does at least. HEC_TEST_RUNS: runs a cell;
 * HEC_TEST_SEED: other ones; HEC_TEST_ROWS: prints each. The full table: bench/unmix/run coverage. */
#include "unit/diagnosis_world.h"
#include "unit.h"

#define RUNS 6 /* a cell: enough to see 85 % from 95 % over all cells of a sensor */

static struct world world;

static int permille(int part, int whole) {
    return whole ? (int)(1000.0 * part / whole + 0.5) : 1000;
}

static void add(struct reported *sum, const struct reported *t) {
    sum->runs += t->runs;
    sum->rows += t->rows;
    sum->covered += t->covered;
    sum->narrow += t->narrow;
    sum->narrow_off += t->narrow_off;
    sum->beyond += t->beyond;
}

/* Rows of a run err together: of n rows that hold with 95 %, n/2 independent ones would leave as many out as these, so
 * a label may be 3 standard errors of that below. */
static int least(int rows) {
    return (int)(1000 * (0.95 - 3 * sqrt(0.95 * 0.05 / fmax(rows / 2.0, 1))));
}

static void hold(double window_ms) {
    static const double steps_ms[] = {0, 20, 200, 600};
    int runs = getenv("HEC_TEST_RUNS") ? atoi(getenv("HEC_TEST_RUNS")) : RUNS;
    uint64_t seed = getenv("HEC_TEST_SEED") ? strtoull(getenv("HEC_TEST_SEED"), NULL, 10) : 1;
    struct score all = {0};
    print_message("sensor of %g ms, seed %llu, %d runs a cell\n", window_ms, (unsigned long long)seed, runs);
    for (int c = 0; c < 8; c++) {
        const struct cell cell = {window_ms, steps_ms[c / 2], c % 2 ? 0.1 : 0};
        struct score score = {0};
        for (int i = 0; i < runs; i++)
            run_one(&world, seed * 1000000 + (uint64_t)(c * 10000 + i) + (uint64_t)window_ms * 100, &cell, &score);
        assert_int_equal(score.unpriced, 0);
        assert_true(score.worst_s <= 0.01);
        for (int label = 0; label < LABELS; label++) {
            const struct reported *t = &score.by[label];
            print_message("  steps of %3g ms, kernels +-%2.0f %%, %s: %d runs, %d of %d rows hold\n", cell.step_ms,
                          100 * cell.kernel_spread, label == MEASURED ? "measured" : "rough", t->runs, t->covered,
                          t->rows);
            assert_true(permille(t->covered, t->rows) >= least(t->rows));
            add(&all.by[label], t);
        }
        /* a loop of 20 ms tells little: its watts are no measurement */
        if (cell.step_ms == 20)
            assert_true(4 * score.by[MEASURED].runs <= score.runs + 4);
    }
    for (int label = 0; label < LABELS; label++) {
        const struct reported *t = &all.by[label];
        print_message("  %s: %d of %d rows hold\n", label == MEASURED ? "measured" : "rough", t->covered, t->rows);
        assert_int_equal(t->beyond, 0);
        assert_true(permille(t->covered, t->rows) >= least(t->rows));
    }
    assert_true(all.by[MEASURED].runs > 0);
    assert_true(permille(all.by[MEASURED].narrow_off, all.by[MEASURED].narrow) <=
                1000 - least(all.by[MEASURED].narrow));
}

TEST(sensors) {
    hold(20);
    hold(100);
    hold(1000);
}
