/* The quality gate on trainings that really train: a network of two layers learns to tell four classes, in this process. Reruns differ in
 * the order of their samples and in what they start from; honest reruns of B round every weight and activation to bfloat16. */
#include "prove/quality.h"
#include "prove_worlds.h"
#include "unit.h"

#define INPUTS 8
#define HIDDEN 16
#define CLASSES 4
#define SAMPLES 512
#define BATCH 16
#define STEPS 150
#define RERUNS 5

enum fault {
    NONE,
    BF16,
    ZERO_OUTPUT,
    NO_GRADIENT,
    GRADIENT_SCALE,
    LOSS_SCALE,
    OUTPUT_SCALE,
    SKIP,
    REPEAT,
    FROZEN,
    SHUFFLED
};

struct setting {
    enum fault fault;
    double by; /* how much of it */
};

static float inputs[SAMPLES][INPUTS];
static int labels[SAMPLES];

static void make_data(void) {
    double centre[CLASSES][INPUTS];
    world_state = 99;
    for (int c = 0; c < CLASSES; c++)
        for (int i = 0; i < INPUTS; i++)
            centre[c][i] = world_normal();
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = s % CLASSES;
        for (int i = 0; i < INPUTS; i++)
            inputs[s][i] = (float)(centre[labels[s]][i] + 0.8 * world_normal());
    }
}

static float rounded(float x, const struct setting *s) {
    uint32_t bits;
    if (s->fault != BF16)
        return x;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static double squares(const float *list, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)list[i] * (double)list[i];
    return sum;
}

#define LAYERS 2
#define NOTHING 1e-30

/* Norms as the hooks take them: of all in the first eight steps and in every eighth, of each layer in the first. */
struct norms {
    double all, first, layer[LAYERS];
    int steps;
};

static void add_norms(struct norms *n, int step, const double squares_of[LAYERS]) {
    double all = sqrt(squares_of[0] + squares_of[1]);
    if (step % 8 == 7 || step < HEC_GRADIENT_FIRST) {
        n->all += all;
        n->steps++;
    }
    for (int i = 0; i < LAYERS && step < HEC_GRADIENT_FIRST; i++)
        n->layer[i] += sqrt(squares_of[i]) / HEC_GRADIENT_FIRST;
    n->first += step < HEC_GRADIENT_FIRST ? all / HEC_GRADIENT_FIRST : 0;
}

static struct hec_gradients gradients_of(const struct norms *n) {
    struct hec_gradients out = hec_gradients_none();
    out.all = log(fmax(n->all / n->steps, NOTHING));
    out.first = log(fmax(n->first, NOTHING));
    for (int i = 0; i < HEC_GRADIENT_PARTS; i++)
        out.part[i] = log(fmax(i < LAYERS ? n->layer[i] : 0, NOTHING));
    return out;
}

/* Trains; loss[STEPS], output[SAMPLES] of the first class after it. */
static struct hec_gradients train(struct setting s, uint64_t seed, double *loss, double *output) {
    float w1[HIDDEN][INPUTS], w2[CLASSES][HIDDEN], g1[HIDDEN][INPUTS], g2[CLASSES][HIDDEN];
    int told[SAMPLES];
    struct norms norms = {0};
    world_state = seed * 1000003;
    for (int h = 0; h < HIDDEN; h++)
        for (int i = 0; i < INPUTS; i++)
            w1[h][i] = (float)(0.35 * world_normal());
    for (int c = 0; c < CLASSES; c++)
        for (int h = 0; h < HIDDEN; h++)
            w2[c][h] = (float)(0.25 * world_normal());
    for (int i = 0; i < SAMPLES; i++)
        told[i] = s.fault == SHUFFLED && world_uniform() < s.by ? (int)(world_bits() % CLASSES) : labels[i];
    for (int step = 0; step <= STEPS; step++) {
        bool last = step == STEPS; /* of which only the outputs count */
        double sum = 0;
        memset(g1, 0, sizeof g1);
        memset(g2, 0, sizeof g2);
        for (int n = 0; n < (last ? SAMPLES : BATCH); n++) {
            int at = last ? n : (int)(world_bits() % (s.fault == REPEAT ? (uint64_t)s.by : SAMPLES));
            float hidden[HIDDEN], score[CLASSES], back[HIDDEN] = {0}, most = -1e30f, total = 0;
            for (int h = 0; h < HIDDEN; h++) {
                float x = 0;
                for (int i = 0; i < INPUTS; i++)
                    x += rounded(w1[h][i], &s) * inputs[at][i];
                hidden[h] = rounded(x > 0 ? x : 0, &s);
            }
            for (int c = 0; c < CLASSES; c++) {
                float x = 0;
                for (int h = 0; h < HIDDEN; h++)
                    x += rounded(w2[c][h], &s) * hidden[h];
                x *= s.fault == ZERO_OUTPUT ? 0 : s.fault == OUTPUT_SCALE ? (float)s.by : 1;
                score[c] = rounded(x, &s);
                most = fmaxf(most, score[c]);
            }
            if (last) {
                output[n] = score[0];
                continue;
            }
            for (int c = 0; c < CLASSES; c++)
                total += score[c] = expf(score[c] - most);
            sum -= log(fmaxf(score[told[at]] / total, 1e-30f));
            for (int c = 0; c < CLASSES; c++) {
                float d = score[c] / total - (float)(c == told[at]);
                for (int h = 0; h < HIDDEN; h++) {
                    g2[c][h] += d * hidden[h];
                    back[h] += d * w2[c][h];
                }
            }
            for (int h = 0; h < HIDDEN; h++)
                for (int i = 0; i < INPUTS && hidden[h] > 0; i++)
                    g1[h][i] += back[h] * inputs[at][i];
        }
        if (last)
            break;
        loss[step] = sum / BATCH * (s.fault == LOSS_SCALE ? s.by : 1);
        if ((s.fault == NO_GRADIENT && world_uniform() < s.by) || (s.fault == SKIP && step % (int)s.by))
            continue;
        float rate = 0.1f / BATCH * (s.fault == GRADIENT_SCALE ? (float)s.by : 1);
        float rates[LAYERS] = {s.fault == FROZEN && s.by == 1 ? 0 : rate, s.fault == FROZEN && s.by == 2 ? 0 : rate};
        add_norms(&norms, step,
                  (double[LAYERS]){(double)rates[0] * rates[0] * squares(g1[0], HIDDEN * INPUTS),
                                   (double)rates[1] * rates[1] * squares(g2[0], CLASSES * HIDDEN)});
        for (int h = 0; h < HIDDEN; h++)
            for (int i = 0; i < INPUTS; i++)
                w1[h][i] -= rates[0] * g1[h][i];
        for (int c = 0; c < CLASSES; c++)
            for (int h = 0; h < HIDDEN; h++)
                w2[c][h] -= rates[1] * g2[c][h];
    }
    return gradients_of(&norms);
}

struct reruns {
    double loss[RERUNS][STEPS], output[RERUNS][SAMPLES];
    struct hec_gradients gradients[RERUNS];
    struct hec_trajectory losses[RERUNS], outputs[RERUNS];
};

static void rerun(struct reruns *r, struct setting s, uint64_t seed) {
    for (int k = 0; k < RERUNS; k++) {
        r->gradients[k] = train(s, seed + (uint64_t)k, r->loss[k], r->output[k]);
        r->losses[k] = (struct hec_trajectory){r->loss[k], STEPS};
        r->outputs[k] = (struct hec_trajectory){r->output[k], SAMPLES};
    }
}

static struct reruns a, b;
static uint64_t first = 1; /* of A's reruns */

static struct hec_quality judged(struct setting s, uint64_t seed) {
    struct hec_quality q;
    rerun(&b, s, seed);
    assert_int_equal(hec_quality_judge(a.losses, RERUNS, b.losses, RERUNS, HEC_QUALITY_LOSS, 0, &q), 0);
    printf("%2d x %-5g start %+.3f (%+.3f %+.3f), mean %+.3f (%+.3f %+.3f), end %+.3f (%+.3f %+.3f): %s\n", s.fault,
           s.by, q.parts[0].difference, q.parts[0].low, q.parts[0].high, q.parts[1].difference, q.parts[1].low,
           q.parts[1].high, q.parts[2].difference, q.parts[2].low, q.parts[2].high,
           q.verdict == HEC_QUALITY_PASS   ? "pass"
           : q.verdict == HEC_QUALITY_FAIL ? "fail"
                                           : "cannot judge");
    return q;
}

TEST(corruptions_are_caught) {
    static const struct {
        enum fault fault;
        double by[6]; /* up to a 0 */
    } faults[] = {{ZERO_OUTPUT, {1}},      {NO_GRADIENT, {1, 0.5}},    {GRADIENT_SCALE, {0.1, 0.5, 4, 64, -1}},
                  {LOSS_SCALE, {0.5, 16}}, {OUTPUT_SCALE, {16, 0.06}}, {SKIP, {2, 4}},
                  {REPEAT, {16, 4}},       {FROZEN, {1, 2}},           {SHUFFLED, {1, 0.3}}};
    int caught = 0;
    uint64_t seed = 1000;
    rerun(&a, (struct setting){NONE}, first);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        for (const double *by = faults[i].by; *by != 0; by++, seed += 10)
            caught += judged((struct setting){faults[i].fault, *by}, seed).verdict == HEC_QUALITY_FAIL;
    printf("caught %d of 20\n", caught);
    assert_int_equal(caught, 20);
}

TEST(honest_reruns_pass) {
    int pass = 0;
    rerun(&a, (struct setting){NONE}, first);
    for (int i = 0; i < 20; i++)
        pass += judged((struct setting){BF16}, 5000 + 10 * (uint64_t)i).verdict == HEC_QUALITY_PASS;
    printf("passed %d of 20\n", pass);
    assert_int_equal(pass, 20);
}

/* Inference: value i is of the same input. Reruns of A differ in the last bits. */
TEST(outputs) {
    static double noisy[4][SAMPLES], other[SAMPLES];
    struct hec_trajectory of_a[4], of_b = {other, SAMPLES};
    struct hec_quality q;
    rerun(&a, (struct setting){NONE}, 1);
    for (int k = 0; k < 4; k++) {
        of_a[k] = (struct hec_trajectory){noisy[k], SAMPLES};
        for (int i = 0; i < SAMPLES; i++)
            noisy[k][i] = a.output[0][i] * (1 + 1e-6 * world_normal());
    }
    for (int fault = 0; fault < 7; fault++) {
        for (int i = 0; i < SAMPLES; i++) {
            double x = a.output[0][i];
            const double by[] = {rounded((float)x, &(struct setting){BF16}),
                                 0,
                                 0.5 * x,
                                 1.2 * x,
                                 a.output[0][(i + 1) % SAMPLES],
                                 i % 20 ? x : 0,
                                 i == 77 ? INFINITY : x};
            other[i] = by[fault];
        }
        assert_int_equal(hec_quality_judge(of_a, 4, &of_b, 1, HEC_QUALITY_OUTPUT, 0.02, &q), 0);
        assert_int_equal(q.verdict, fault ? HEC_QUALITY_FAIL : HEC_QUALITY_PASS);
        assert_int_equal(q.why, fault == 0   ? HEC_QUALITY_WITHIN
                                : fault == 6 ? HEC_QUALITY_NOT_FINITE
                                             : HEC_QUALITY_OFF);
    }
    memset(noisy, 0, sizeof noisy);
    assert_int_equal(hec_quality_judge(of_a, 4, of_a, 4, HEC_QUALITY_OUTPUT, 0, &q), 0);
    assert_true(q.verdict == HEC_QUALITY_CANNOT_JUDGE && q.why == HEC_QUALITY_A_FLAT);
}

static void assert_why(const struct hec_trajectory *x, int count_x, const struct hec_trajectory *y, int count_y,
                       double margin, enum hec_quality_why why) {
    struct hec_quality q;
    assert_int_equal(hec_quality_judge(x, count_x, y, count_y, HEC_QUALITY_LOSS, margin, &q), 0);
    assert_int_equal(q.why, why);
    assert_int_equal(q.verdict, why == HEC_QUALITY_WITHIN                                 ? HEC_QUALITY_PASS
                                : why == HEC_QUALITY_OFF || why == HEC_QUALITY_NOT_FINITE ? HEC_QUALITY_FAIL
                                                                                          : HEC_QUALITY_CANNOT_JUDGE);
}

static struct hec_quality with_gradients(struct hec_quality q) {
    assert_int_equal(hec_quality_gradients(a.gradients, RERUNS, b.gradients, RERUNS, &q), 0);
    return q;
}

/* Gradients can only fail what the losses let pass. In the first steps they are as much smaller as the fault says; in the mean of the run
 * less so, since what learns more slowly keeps larger ones. */
TEST(gradients) {
    static const struct setting wrong[] = {{GRADIENT_SCALE, 0.3}, {GRADIENT_SCALE, 0.5}, {GRADIENT_SCALE, 2},
                                           {GRADIENT_SCALE, 4},   {FROZEN, 1},           {FROZEN, 2}},
                                honest[] = {{BF16, 0}, {GRADIENT_SCALE, 1}, {GRADIENT_SCALE, 1.1}};
    rerun(&a, (struct setting){NONE}, first);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hec_quality q = with_gradients(judged(wrong[i], first + 300));
        printf("    its gradients (%d) x %.2g (%.2g to %.2g)\n", q.gradient, exp(q.gradients.difference),
               exp(q.gradients.low), exp(q.gradients.high));
        assert_int_equal(q.verdict, HEC_QUALITY_FAIL);
        assert_int_equal(q.why, HEC_QUALITY_GRADIENT);
        if (wrong[i].fault == FROZEN) {
            assert_int_equal(q.gradient, HEC_GRADIENT_PART + (int)wrong[i].by - 1);
            assert_true(q.gradients.difference < log(HEC_QUALITY_NO_GRADIENT));
        }
    }
    for (size_t i = 0; i < sizeof honest / sizeof honest[0]; i++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct hec_quality before = judged(honest[i], first + 1000 * seed), q = with_gradients(before);
            assert_int_equal(q.verdict, before.verdict);
            assert_int_equal(q.why, before.why);
        }
    struct hec_quality q = judged((struct setting){NONE}, 7);
    assert_int_equal(hec_quality_gradients(a.gradients, 1, b.gradients, RERUNS, &q), 0);
    assert_true(isnan(q.gradients.difference));
}

/* Where A does not learn, only the first steps say something; what is a small part of all may be anything, as rounding is. */
TEST(gradients_that_count) {
    struct hec_quality flat = {.verdict = HEC_QUALITY_CANNOT_JUDGE, .why = HEC_QUALITY_A_FLAT}, q;
    rerun(&a, (struct setting){NONE}, first);
    rerun(&b, (struct setting){NONE}, first + 50);
    for (int k = 0; k < RERUNS; k++) {
        b.gradients[k].all += 3;
        a.gradients[k].part[5] = a.gradients[k].first + log(1e-8);
        b.gradients[k].part[5] = a.gradients[k].first + log(0.01);
    }
    q = with_gradients(flat);
    assert_int_equal(q.why, HEC_QUALITY_A_FLAT);
    assert_int_not_equal(q.gradient, HEC_GRADIENT_ALL);
    q = with_gradients((struct hec_quality){.verdict = HEC_QUALITY_PASS});
    assert_true(q.why == HEC_QUALITY_GRADIENT && q.gradient == HEC_GRADIENT_ALL);
    for (int k = 0; k < RERUNS; k++) {
        b.gradients[k].all = NAN;
        b.gradients[k].part[5] = a.gradients[k].first + log(0.1);
    }
    q = with_gradients(flat);
    assert_true(q.why == HEC_QUALITY_GRADIENT && q.gradient == HEC_GRADIENT_PART + 5);
    b.gradients[2] = hec_gradients_none(); /* not known of all */
    q = with_gradients(flat);
    assert_int_equal(q.why, HEC_QUALITY_A_FLAT);
}

TEST(what_cannot_be_judged) {
    rerun(&a, (struct setting){NONE}, 1);
    rerun(&b, (struct setting){NONE}, 7000);
    assert_why(a.losses, RERUNS, b.losses, RERUNS, 0, HEC_QUALITY_WITHIN);
    assert_why(a.losses, RERUNS, b.losses, RERUNS, 0.001, HEC_QUALITY_SPREAD);
    assert_why(a.losses, RERUNS, a.losses, RERUNS, 0.001, HEC_QUALITY_SPREAD); /* not significant is no pass */
    assert_why(a.losses, RERUNS, b.losses, 1, 0.3, HEC_QUALITY_WITHIN);
    assert_why(a.losses, 1, b.losses, RERUNS, 0, HEC_QUALITY_FEW_RERUNS);
    assert_why(a.losses, 0, b.losses, RERUNS, 0, HEC_QUALITY_NOTHING);
    assert_why(a.losses, RERUNS, b.losses, 0, 0, HEC_QUALITY_NOTHING);
    b.losses[2].count = HEC_QUALITY_VALUES_LEAST - 1;
    assert_why(a.losses, RERUNS, b.losses, RERUNS, 0, HEC_QUALITY_NOTHING);
    b.losses[2].count = 120; /* what all have in common */
    assert_why(a.losses, RERUNS, b.losses, RERUNS, 0, HEC_QUALITY_WITHIN);
    b.loss[1][119] = NAN;
    assert_why(a.losses, RERUNS, b.losses, RERUNS, 0, HEC_QUALITY_NOT_FINITE);
    assert_why(b.losses, RERUNS, a.losses, RERUNS, 0, HEC_QUALITY_A_NOT_FINITE);
    rerun(&b, (struct setting){NO_GRADIENT, 1}, 1); /* what does not learn is nothing to compare with */
    assert_why(b.losses, RERUNS, a.losses, RERUNS, 0, HEC_QUALITY_A_FLAT);
    for (int k = 0; k < RERUNS; k++) /* alike bit for bit, and less than bf16 tells apart */
        for (int i = 0; i < STEPS; i++) {
            a.loss[k][i] = 2.26e-5 * (1 - 1e-6 * i);
            b.loss[k][i] = 1.004 * a.loss[k][i];
        }
    assert_why(a.losses, RERUNS, b.losses, RERUNS, 0, HEC_QUALITY_A_FLAT);
}

/* HEC_TEST_SEED: other reruns of A. */
static int set_up(void **state) {
    (void)state;
    if (getenv("HEC_TEST_SEED"))
        first = strtoull(getenv("HEC_TEST_SEED"), NULL, 10);
    make_data();
    return 0;
}

ALL_TESTS(set_up, NULL)
