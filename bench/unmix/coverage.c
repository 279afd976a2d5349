/* How often the 95 % intervals of states' watts hold, by sensor, step, kernels and label. Arguments: runs a cell (200),
 * first seed (1), first cell (0), beyond the last (24), 1: with a calibrated sensor (0). Prints a Markdown table. */
#include "unit/diagnosis_world.h"

static struct world world;

static double percent(int part, int whole) {
    return whole ? 100.0 * part / whole : NAN;
}

static void print_label(const char *label, const struct reported *t) {
    if (t->runs)
        printf(" %s | %d | %d | %.1f | %.1f | %.1f |\n", label, t->runs, t->rows, percent(t->covered, t->rows),
               100 * t->widths / t->large, percent(t->off, t->large));
}

int main(int argc, char **argv) {
    static const double windows_ms[] = {20, 100, 1000}, steps_ms[] = {0, 20, 200, 600}, spreads[] = {0, 0.1};
    int runs = argc > 1 ? atoi(argv[1]) : 200, from = argc > 3 ? atoi(argv[3]) : 0, to = argc > 4 ? atoi(argv[4]) : 24;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (from == 0)
        printf(
            "| sensor | steps | kernels | label | runs | rows | intervals that hold %% | mean half width %% | off by > 3 "
            "%% |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (int c = from; c < to; c++) {
        struct cell cell = {windows_ms[c / 8], steps_ms[c / 2 % 4], spreads[c % 2], argc > 5 && atoi(argv[5])};
        struct score score = {0};
        char step[32] = "random";
        for (int i = 0; i < runs; i++)
            run_one(&world, seed * 1000000 + (uint64_t)(c * 10000 + i), &cell, &score);
        if (cell.step_ms > 0)
            snprintf(step, sizeof step, "%g ms", cell.step_ms);
        for (int k = 0; k < LABELS; k++)
            if (score.by[k].runs) {
                printf("| %g ms | %s | %s |", cell.window_ms, step, cell.kernel_spread > 0 ? "+-10 %" : "equal");
                print_label(k == MEASURED ? "measured" : "rough", &score.by[k]);
            }
        if (score.unpriced || score.by[0].beyond + score.by[1].beyond)
            printf("%d without joules, %d out of order\n", score.unpriced, score.by[0].beyond + score.by[1].beyond);
        fflush(stdout);
    }
    return 0;
}
