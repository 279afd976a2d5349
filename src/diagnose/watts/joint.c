#include "diagnose/watts/joint.h"

#include "base/clock.h"
#include "diagnose/physics.h"

#include <math.h>

#define ALONE_LEAST_S 0.1
#define ALONE_PART 0.8 /* of compute time, in classes that were seen alone */
#define UNTRACED_MOST 0.05
#define DIFFER 0.1  /* standard deviation of the classes' watts over compute time, as a part of the mean */
#define KNOWN 0.03  /* half an interval's joules, of all joules: the most of a class that is reported */
#define AGREES 0.25 /* what the watts make of all joules */
/* Beliefs, as in pricing.c. */
#define HALF 0.5
#define FLOOR 0.9

static int group_of(int state) {
    switch (state) {
    case HEC_STATE_STARTUP:
    case HEC_STATE_TAIL:
        return HEC_JOINT_EDGE;
    case HEC_STATE_COPY:
        return HEC_JOINT_COPY;
    case HEC_STATE_COMM:
        return HEC_JOINT_COMM;
    default:
        return HEC_JOINT_IDLE;
    }
}

/* What exceeds the power limit for tens of milliseconds until the device holds itself down: it varies in itself. */
static bool bursts(int class) {
    return class == HEC_KERNEL_CLASS_GEMM || class == HEC_KERNEL_CLASS_CONV || class == HEC_KERNEL_CLASS_ATTENTION ||
           class == HEC_KERNEL_CLASS_GRAPH;
}

void hec_joint_quiet(int groups, const int *class_of, struct hec_unmix_options *options) {
    for (int g = 0; g < groups; g++)
        if (g != HEC_JOINT_EDGE && g != HEC_JOINT_COMM && (g < HEC_JOINT_FIRST || !bursts(class_of[g])))
            options->quiet[0] |= 1u << g;
    options->quiet[1] = 1u << HEC_JOINT_IDLE | 1u << HEC_JOINT_COPY; /* the last set that fits is a sample's */
    options->quiet[2] = 1u << HEC_JOINT_EDGE;
}

static int believe(const struct hec_ledger_device *ledger, const struct hec_joint *j, double idle_w) {
    double rest = j->energy->joules, busy = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        bool works = i == HEC_STATE_COMPUTE || i == HEC_STATE_COMM;
        busy += works ? ledger->rows[i].seconds : 0;
        rest -= works ? 0 : ledger->rows[i].seconds * idle_w * (i == HEC_STATE_COPY ? HEC_COPY_BY_IDLE : 1);
    }
    double mean = busy > 0 ? fmax(rest / busy, idle_w) : idle_w;
    double sd = fmax(mean, isfinite(j->limit_w) ? HALF * j->limit_w : 0);
    const struct hec_unmix_belief idle = {idle_w, HEC_IDLE_SPREAD * idle_w, 0, 0},
                                  edge = {idle_w, HEC_IDLE_EDGE_SPREAD * idle_w, 0, 0},
                                  copy = {HEC_COPY_BY_IDLE * idle_w, HEC_COPY_SPREAD * idle_w, 0, FLOOR * idle_w},
                                  work = {mean, sd, 0, FLOOR * idle_w};
    int err = 0;
    for (int g = 0; g < j->groups && !err; g++)
        err = hec_unmix_believe(j->unmix, g,
                                g == HEC_JOINT_EDGE   ? &edge
                                : g == HEC_JOINT_IDLE ? &idle
                                : g == HEC_JOINT_COPY ? &copy
                                                      : &work);
    return err;
}

static int add_untraced(const struct hec_ledger_device *ledger, const struct hec_joint *j) {
    int err = 0;
    for (int i = 0; i < HEC_STATE_COUNT && !err; i++) {
        int64_t extra = ledger->rows[i].ns - ledger->rows[i].traced_ns;
        if (i != HEC_STATE_COMPUTE && extra > 0)
            err = hec_unmix_extra(j->unmix, group_of(i), (double)extra / HEC_NS_PER_S);
    }
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT && !err; c++) {
        int64_t extra = ledger->classes[c].ns - ledger->classes[c].traced_ns;
        if (extra > 0)
            err = hec_unmix_extra(j->unmix, j->group[c], (double)extra / HEC_NS_PER_S);
    }
    return err;
}

static bool known(const struct hec_unmix_result *r, const struct hec_joint *j) {
    for (int g = 0; g < j->groups; g++) {
        const struct hec_unmix_class *u = &r->class[g];
        double half_j = (u->high - u->low) / 2 * u->seconds;
        if (u->seconds > 0 && (u->merged_with >= 0 || !(half_j <= KNOWN * j->energy->joules)))
            return false;
    }
    return fabs(r->joules - j->energy->joules) <= AGREES * j->energy->joules;
}

static bool differ(const struct hec_unmix_result *r, const struct hec_joint *j) {
    double seconds = 0, sum = 0, squares = 0;
    for (int g = HEC_JOINT_FIRST; g < j->groups; g++) {
        const struct hec_unmix_class *u = &r->class[g];
        if (u->seconds > 0) {
            seconds += u->seconds;
            sum += u->seconds * u->value;
            squares += u->seconds * u->value * u->value;
        }
    }
    double mean = sum / seconds;
    return seconds > 0 && squares / seconds - mean * mean > DIFFER * DIFFER * mean * mean;
}

/* Of the launch state: idling, and what counts as the kernels around it. */
static struct hec_ledger_watts launch_watts(const struct hec_ledger_device *ledger, const struct hec_joint *j,
                                            const struct hec_unmix_result *r) {
    int64_t all = ledger->rows[HEC_STATE_LAUNCH].traced_ns, rest = all;
    struct hec_ledger_watts sum = {0, 0, 0};
    for (int g = j->groups - 1; g >= HEC_JOINT_IDLE; g--) {
        int64_t ns = g == HEC_JOINT_IDLE ? rest : g >= HEC_JOINT_FIRST ? j->tight_ns[g] : 0;
        const struct hec_unmix_class *u = &r->class[g];
        if (ns <= 0)
            continue;
        rest -= ns;
        sum.watts += (double)ns / (double)all * u->value;
        sum.low += (double)ns / (double)all * u->low;
        sum.high += (double)ns / (double)all * u->high;
    }
    return sum;
}

/* Whether most compute time is of classes that were each seen alone: only such readings prove that classes are kept
 * apart. In a loop of short steps none is, and a fit of their mixtures may be wrong with narrow intervals. */
static int seen_alone(const struct hec_ledger_device *ledger, const struct hec_joint *j, bool *seen) {
    double all = 0, part = 0;
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        double watts, seconds;
        int err = hec_unmix_alone(j->unmix, j->group[c], &watts, &seconds);
        if (err)
            return err;
        all += (double)ledger->classes[c].ns;
        part += seconds >= ALONE_LEAST_S ? (double)ledger->classes[c].ns : 0;
    }
    *seen = all > 0 && part >= ALONE_PART * all;
    return 0;
}

int hec_joint_price(struct hec_ledger_device *ledger, const struct hec_joint *j, bool *done) {
    struct hec_ledger_watts watts[HEC_STATE_COUNT], classes[HEC_KERNEL_CLASS_COUNT];
    struct hec_unmix_result r;
    double idle_w, idle_s;
    bool seen = false;
    *done = false;
    int err = hec_unmix_alone(j->unmix, HEC_JOINT_IDLE, &idle_w, &idle_s);
    if (err || !(idle_s >= ALONE_LEAST_S) || !(idle_w > 0) || !isfinite(ledger->joules) ||
        (double)ledger->traced_ns < (1 - UNTRACED_MOST) * (double)ledger->window_ns)
        return err;
    err = seen_alone(ledger, j, &seen);
    if (err || !seen)
        return err;
    err = add_untraced(ledger, j);
    hec_unmix_total(j->unmix, j->energy->joules, j->energy->bound_joules);
    if (!err)
        err = believe(ledger, j, idle_w);
    if (!err)
        err = hec_unmix_solve(j->unmix, &r);
    if (err)
        return err == HEC_ERR_NOMEM ? err : 0;
    if (!r.valid || !known(&r, j) || !differ(&r, j))
        return 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        const struct hec_unmix_class *u = &r.class[group_of(i)];
        watts[i] = (struct hec_ledger_watts){u->value, u->low, u->high};
    }
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        const struct hec_unmix_class *u = &r.class[j->group[c]];
        classes[c] = (struct hec_ledger_watts){u->value, u->low, u->high};
    }
    if (ledger->rows[HEC_STATE_LAUNCH].traced_ns > 0)
        watts[HEC_STATE_LAUNCH] = launch_watts(ledger, j, &r);
    *done = hec_ledger_power(ledger, watts, classes, llround(j->energy->joules * 1e3));
    return 0;
}
