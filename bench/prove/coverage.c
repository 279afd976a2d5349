/* What intervals and verdicts of src/prove/compare.c are worth: worlds x runs a side. usage: coverage [EXPERIMENTS [RUNS]] */
#include "prove/compare.h"
#include "tests/unit/prove_worlds.h"

#include <stdio.h>

#define RUNS_MOST 10

struct tally {
    int covered, alarms, found;
    double half;
};

static void experiment(struct world *w, struct tally *tally) {
    struct hec_trial a[RUNS_MOST], b[RUNS_MOST];
    struct hec_comparison c[HEC_QUANTITY_COUNT];
    const struct hec_comparison *joules = &c[HEC_QUANTITY_JOULES_PER_UNIT];
    const double ratios[] = {1, 0.97};
    for (int k = 0; k < 2; k++) {
        w->ratio = ratios[k];
        world_draw(w, a, b);
        if (hec_compare(a, w->runs, b, w->runs, NULL, c))
            exit(1);
        if (k == 0) {
            tally->alarms += joules->shown != HEC_SHOWN_NOT;
            tally->covered += joules->ratio_low <= 1 && joules->ratio_high >= 1;
        } else {
            tally->found += joules->shown == HEC_SHOWN_BETTER;
            tally->covered += joules->ratio_low <= 0.97 && joules->ratio_high >= 0.97;
            tally->half += (joules->ratio_high - joules->ratio_low) / 2;
        }
        world_free(a, w->runs);
        world_free(b, w->runs);
    }
}

int main(int argc, char **argv) {
    int experiments = argc > 1 ? atoi(argv[1]) : 2000, only = argc > 2 ? atoi(argv[2]) : 0;
    static const int runs[] = {1, 2, 3, 5, 10}, blocks[] = {60, 200, 1000};
    static const double persistent[] = {0, 0.5, 0.9}, between[] = {0, 0.01, 0.05}, drift[] = {0, 0.03};
    world_state = 12;
    printf("of %d experiments each: interval covers, says A and A differ, shows 3 %%, mean half width\n", experiments);
    printf("runs blocks AR(1) between drift  covers  A/A   shows  half\n");
    for (size_t n = 0; n < 5; n++)
        for (size_t l = 0; l < (only && only != runs[n] ? 0 : n ? 1 : 3); l++)
            for (size_t d = 0; d < 2; d++)
                for (size_t p = 0; p < 3; p++)
                    for (size_t s = 0; s < 3; s++) {
                        struct world w = {runs[n],  n ? 100 : blocks[l], 0.05, persistent[p], between[s],
                                          drift[d], d ? 0.02 : 0};
                        struct tally t = {0};
                        for (int i = 0; i < experiments; i++)
                            experiment(&w, &t);
                        printf("%4d %6d %5.1f %6.0f %% %4.0f %% %6.1f %5.1f %6.1f %6.2f %%\n", w.runs, w.blocks,
                               w.persistent, 100 * w.between, 100 * w.drift, 50.0 * t.covered / experiments,
                               100.0 * t.alarms / experiments, 100.0 * t.found / experiments,
                               100 * t.half / experiments);
                    }
    return 0;
}
