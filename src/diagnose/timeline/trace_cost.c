#include "diagnose/timeline/trace_cost.h"

#include "base/clock.h"
#include "base/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS_MIN 6
#define WARM_UP 3u /* first steps, which do not count */
struct slowdown {
    double inside, after;  /* NAN: too few steps */
    double run, low, high; /* of all steps, those before with 0 */
};

#define BATCHES_MOST 8
#define BELIEVED 3 /* times the estimate of what trampolines and hooks cost */

/* Before the first window; in one; after the first, in none. */
enum stage { BEFORE, INSIDE, AFTER, STAGE_COUNT };
#define TERMS (STAGE_COUNT + 1) /* and the drift */

struct batch {
    enum stage stage;
    double length, t; /* median, in ns; middle, from -1 to 1 over all steps */
};

static enum stage stage_of(const struct hec_step *s, struct hec_intervals *traced) {
    if (s->end_ns <= traced->list[0].start_ns)
        return BEFORE;
    return hec_intervals_within(traced, s->start_ns, s->end_ns) > 0 ? INSIDE : AFTER;
}

/* Batches of one stage: contiguous steps of it. */
static size_t add_batches(const struct hec_step_list *steps, const uint8_t *stages, enum stage stage, double *scratch,
                          struct batch *to) {
    size_t count = 0, at = WARM_UP, made = 0;
    for (size_t i = at; i < steps->count; i++)
        count += stages[i] == stage;
    size_t batches = count / STEPS_MIN < BATCHES_MOST ? count / STEPS_MIN : BATCHES_MOST;
    for (size_t k = 0, taken = 0; k < batches; k++) {
        double sum = 0;
        size_t n = 0;
        for (; taken < (k + 1) * count / batches; at++)
            if (stages[at] == stage) {
                scratch[n++] = (double)(steps->list[at].end_ns - steps->list[at].start_ns);
                sum += (double)at;
                taken++;
            }
        hec_sort(scratch, n);
        to[made++] =
            (struct batch){stage, hec_sorted_quantile(scratch, n, 0.5), 2 * sum / (double)n / (double)steps->count - 1};
    }
    return made;
}

/* Inverts a symmetric matrix in place by Gauss-Jordan; false: singular. Terms that nothing determines have a 1 on the
 * diagonal. */
static bool invert(double m[TERMS][TERMS]) {
    double a[TERMS][2 * TERMS] = {{0}};
    for (int i = 0; i < TERMS; i++) {
        for (int k = 0; k < TERMS; k++)
            a[i][k] = m[i][k];
        a[i][TERMS + i] = 1;
    }
    for (int i = 0; i < TERMS; i++) {
        int best = i;
        for (int r = i + 1; r < TERMS; r++)
            best = fabs(a[r][i]) > fabs(a[best][i]) ? r : best;
        if (fabs(a[best][i]) < 1e-9)
            return false;
        for (int k = 0; k < 2 * TERMS; k++) {
            double swap = a[i][k];
            a[i][k] = a[best][k];
            a[best][k] = swap;
        }
        for (int r = 0; r < TERMS; r++) {
            double by = r == i ? 1 - 1 / a[i][i] : a[r][i] / a[i][i];
            for (int k = 0; k < 2 * TERMS; k++)
                a[r][k] -= by * a[i][k];
        }
    }
    for (int i = 0; i < TERMS; i++)
        for (int k = 0; k < TERMS; k++)
            m[i][k] = a[i][TERMS + k];
    return true;
}

/* Terms of a batch: 1, inside, after, drift. */
static void terms_of(const struct batch *b, double x[TERMS]) {
    x[BEFORE] = 1;
    x[INSIDE] = b->stage == INSIDE;
    x[AFTER] = b->stage == AFTER;
    x[STAGE_COUNT] = b->t;
}

static bool fit(const struct batch *batches, size_t count, const double shares[STAGE_COUNT], struct slowdown *out) {
    double inverse[TERMS][TERMS] = {{0}}, moments[TERMS] = {0}, c[TERMS] = {0}, x[TERMS], rest = 0;
    bool known[TERMS] = {false};
    int degrees = (int)count;
    for (size_t i = 0; i < count; i++) {
        terms_of(&batches[i], x);
        for (int r = 0; r < TERMS; r++) {
            known[r] |= x[r] != 0;
            moments[r] += x[r] * batches[i].length;
            for (int k = 0; k < TERMS; k++)
                inverse[r][k] += x[r] * x[k];
        }
    }
    for (int r = 0; r < TERMS; r++) {
        inverse[r][r] += known[r] ? 0 : 1;
        degrees -= known[r];
    }
    if (degrees < 1 || !invert(inverse))
        return false;
    for (int r = 0; r < TERMS; r++)
        for (int k = 0; k < TERMS; k++)
            c[r] += inverse[r][k] * moments[k];
    for (size_t i = 0; i < count; i++) {
        double y = batches[i].length;
        terms_of(&batches[i], x);
        for (int r = 0; r < TERMS; r++)
            y -= c[r] * x[r];
        rest += y * y;
    }
    /* a step before the first window, where most of those are */
    double before = 0, n = 0, variance = 0;
    for (size_t i = 0; i < count; i++)
        if (batches[i].stage == BEFORE) {
            before += batches[i].length;
            n++;
        }
    before /= n;
    double weight[TERMS] = {0, known[INSIDE] ? shares[INSIDE] : 0, known[AFTER] ? shares[AFTER] : 0, 0};
    if (known[INSIDE] != known[AFTER]) /* what is unknown is taken for the other */
        weight[known[INSIDE] ? INSIDE : AFTER] = shares[INSIDE] + shares[AFTER];
    for (int r = 0; r < TERMS; r++)
        for (int k = 0; k < TERMS; k++)
            variance += weight[r] * inverse[r][k] * weight[k];
    double half = hec_student_975(degrees) * sqrt(fmax(0, variance) * rest / degrees) / before;
    out->inside = known[INSIDE] ? c[INSIDE] / before : NAN;
    out->after = known[AFTER] ? c[AFTER] / before : NAN;
    out->run = (weight[INSIDE] * c[INSIDE] + weight[AFTER] * c[AFTER]) / before;
    out->low = out->run - half;
    out->high = out->run + half;
    return before > 0 && isfinite(out->run) && isfinite(half);
}

/* What CUPTI does to the steps of a process, by those before its first window: parts of a step's length then, with 95 %
 * intervals. Each stage (before, inside of windows, after the first one and outside) is cut into batches of six steps and
 * more, eight at most; a batch counts by its median, so that checkpoints and odd steps do not. Least squares on the
 * batches: a level of each stage and one drift in time for all, Student's t. Between batches lies what steps that follow
 * each other have in common; the drift is there so that a program that grows slower by itself is not put down to CUPTI:
 * the interval is the wider for it. False: no three batches before, or no two from the first window on. */
static bool slowdown_of(const struct hec_step_list *steps, struct hec_intervals *traced, struct slowdown *out) {
    struct batch batches[STAGE_COUNT * BATCHES_MOST];
    double shares[STAGE_COUNT] = {0}, *scratch = malloc((steps->count + 1) * sizeof *scratch);
    uint8_t *stages = malloc(steps->count + 1);
    size_t before = 0, count = 0;
    bool known = false;
    if (scratch && stages && steps->count > WARM_UP && !traced->everywhere && traced->count) {
        for (size_t i = 0; i < steps->count; i++) {
            stages[i] = (uint8_t)stage_of(&steps->list[i], traced);
            shares[stages[i]] += 1 / (double)steps->count;
        }
        count = before = add_batches(steps, stages, BEFORE, scratch, batches);
        count += add_batches(steps, stages, INSIDE, scratch, batches + count);
        count += add_batches(steps, stages, AFTER, scratch, batches + count);
        known = before >= 3 && count >= before + 2 && fit(batches, count, shares, out);
    }
    free(scratch);
    free(stages);
    return known;
}

/* ---- all processes ---- */

static void text(char *to, size_t size, const char *from) {
    if (!to[0])
        snprintf(to, size, "%s", from);
}

static double positive(int64_t value) {
    return value > 0 ? (double)value : 0;
}

static int64_t add_positive(int64_t a, int64_t b) {
    int64_t sum;
    return b > 0 && !__builtin_add_overflow(a, b, &sum) ? sum : a;
}

/* How long a process was traced and could have been. */
static double life_of(const struct hec_tracer *t) {
    return t->last_ns > t->first_ns ? (double)t->last_ns - (double)t->first_ns : 0;
}

static double traced_of(const struct hec_tracer *t) {
    return fmin(positive(t->traced_ns), life_of(t));
}

void hec_trace_cost_of(const struct hec_timeline_tables *tables, const struct hec_step_list *steps,
                       struct hec_intervals *traced, double hooks_share, struct hec_trace_cost *out) {
    double life = 0, seen = 0, estimated = 0, estimated_life = 0, held = 0, self = 0;
    const struct hec_tracer *of_steps = NULL;
    *out = (struct hec_trace_cost){
        .mode = HEC_TRACE_OFF,
        .coverage = NAN,
        .overhead = NAN,
        .overhead_low = NAN,
        .overhead_high = NAN,
        .overhead_inside = NAN,
        .overhead_after = NAN,
        .self_cpu_s = NAN,
        .cupti_version = -1,
    };
    for (size_t i = 0; i < tables->tracer_count; i++) {
        const struct hec_tracer *t = &tables->tracers[i];
        out->processes++;
        out->mode = t->mode > out->mode && t->mode < HEC_TRACE_MODE_COUNT ? t->mode : out->mode;
        out->records = add_positive(out->records, t->records);
        out->dropped = add_positive(out->dropped, t->dropped);
        out->lost = add_positive(out->lost, t->lost);
        out->bad = add_positive(out->bad, t->bad);
        out->windows = add_positive(out->windows, t->windows);
        self += positive(t->self_ns);
        life += life_of(t);
        seen += traced_of(t);
        if (t->estimate_ppm >= 0 && life_of(t) > 0) {
            estimated += (double)t->estimate_ppm / 1e6 * life_of(t);
            estimated_life += life_of(t);
        }
        if (t->holder[0] && (!out->holder[0] || positive(t->holder_ns) > held)) {
            out->holder[0] = '\0';
            text(out->holder, sizeof out->holder, t->holder);
            held = positive(t->holder_ns);
        }
        out->why = out->why.id ? out->why : hec_reason_said(t->why);
        text(out->library, sizeof out->library, t->library);
        out->cupti_version = t->cupti_version > out->cupti_version ? t->cupti_version : out->cupti_version;
        if (steps && t->pid == steps->pid)
            of_steps = t;
    }
    out->holder_s = held / HEC_NS_PER_S;
    if (!tables->tracer_count)
        return;
    out->self_cpu_s = self / HEC_NS_PER_S;
    if (life > 0)
        out->coverage = seen / life;
    double estimate = estimated_life > 0 ? estimated / estimated_life : NAN;
    if (hooks_share > 0)
        estimate = fmax(0, estimate) + hooks_share;
    double beside = fmax(0, estimate);
    struct slowdown slow;
    if (of_steps && slowdown_of(steps, traced, &slow)) {
        out->overhead = slow.run + beside;
        out->overhead_low = slow.low;
        out->overhead_high = slow.high + BELIEVED * beside;
        out->overhead_inside = slow.inside;
        out->overhead_after = slow.after;
        out->overhead_measured = true;
    } else if (seen > 0 || out->windows > 0) {
        out->overhead_unknown = true;
    } else if (isfinite(estimate)) {
        out->overhead = estimate;
        out->overhead_low = 0;
        out->overhead_high = BELIEVED * estimate;
    }
}
