/* How far apart launches of graphs are, where their nodes are recorded and where they are not. */
#include "diagnose/replay/cadence.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#define US INT64_C(1000)

/* Two graphs a step, the second right behind the first; every so manyth step takes a second. A host that is ahead of its device launches
 * some steps at once, and then waits until there is room. */
struct loop {
    int steps;
    int64_t step_ns;
    int stops, ahead; /* 0: never */
};

static struct hec_cadence launches_of(const struct loop *loop) {
    struct hec_cadence launches = {0};
    int64_t now = 0, free_ns = 0;
    for (int i = 0; i < loop->steps; i++) {
        free_ns += loop->step_ns + (loop->stops && i % loop->stops == 0 ? 1000000 * US : 0);
        assert_int_equal(hec_cadence_add(&launches, now), 0);
        assert_int_equal(hec_cadence_add(&launches, now + 10 * US), 0);
        now = loop->ahead && (i + 1) % loop->ahead ? now + 20 * US : free_ns;
    }
    return launches;
}

static double ratio_of(const struct loop *elsewhere, const struct loop *here) {
    struct hec_cadence a = launches_of(elsewhere), b = launches_of(here);
    double ratio;
    assert_int_equal(hec_cadence_ratio(&a, &b, &ratio), 0);
    free(a.begin_ns);
    free(b.begin_ns);
    return ratio;
}

TEST(test_ratio) {
    static const struct {
        struct loop elsewhere, here;
        double ratio;
    } cases[] = {
        {{1000, 600 * US}, {400, 800 * US}, 0.75},
        {{1000, 600 * US, .stops = 100}, {400, 800 * US}, 0.75}, /* stops are no steps */
        {{60, 600 * US}, {400, 800 * US}, NAN},                  /* too few */
        {{1000, 600 * US}, {60, 800 * US}, NAN},
        {{0, 600 * US}, {0, 800 * US}, NAN},
        {{1000, 600 * US, .ahead = 20}, {400, 800 * US}, NAN}, /* in bursts */
        {{1000, 600 * US}, {400, 800 * US, .ahead = 20}, NAN},
        {{3000, 600 * US, .ahead = 400}, {1000, 800 * US, .ahead = 400}, NAN},
        {{1000, 0}, {400, 800 * US}, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double ratio = ratio_of(&cases[i].elsewhere, &cases[i].here);
        if (isnan(cases[i].ratio) ? !isnan(ratio) : !(fabs(ratio - cases[i].ratio) < 0.01))
            fail_msg("%zu: %g", i, ratio);
    }
}

/* More launches than are kept change nothing. */
TEST(test_most) {
    struct hec_cadence launches = {0};
    for (int64_t i = 0; i < HEC_CADENCE_MOST + 5; i++)
        assert_int_equal(hec_cadence_add(&launches, i), 0);
    assert_int_equal(launches.count, HEC_CADENCE_MOST);
    free(launches.begin_ns);
}
