#include "prove/search.h"

#include "prove/student.h"

#include <math.h>
#include <stddef.h>

enum figure { COST, SPEED };

static double log_of(const struct hec_search_trial *t, enum figure figure) {
    return t->fate == HEC_SEARCH_FAILED ? NAN : log(figure == COST ? t->cost : t->speed);
}

/* ---- against the base ---- */

static bool ran(const struct hec_search_trial *t, uint32_t set, enum figure figure, int part) {
    return t->set == set && t->part == part && isfinite(log_of(t, figure));
}

/* The base as it was when trial `at` ran: between its neighbours in time. */
static double base_at(const struct hec_search_trial *trials, int count, int at, enum figure figure) {
    int before = at, after = at, part = trials[at].part;
    while (before >= 0 && !ran(&trials[before], 0, figure, part))
        before--;
    while (after < count && !ran(&trials[after], 0, figure, part))
        after++;
    double left = before >= 0 ? log_of(&trials[before], figure) : NAN;
    double right = after < count ? log_of(&trials[after], figure) : NAN;
    if (isnan(left) || isnan(right) || after == before)
        return isnan(left) ? right : left;
    return left + (right - left) * (at - before) / (after - before);
}

/* Sum of squares around the mean of a part's trials of a set; *freedom 0: not known. */
static double squares_of(const struct hec_search_trial *trials, int count, uint32_t set, enum figure figure, int part,
                         int *freedom) {
    double sum = 0, squares = 0;
    int n = 0;
    for (int i = 0; i < count; i++)
        if (ran(&trials[i], set, figure, part)) {
            sum += log_of(&trials[i], figure);
            n++;
        }
    for (int i = 0; i < count; i++)
        if (ran(&trials[i], set, figure, part))
            squares += pow(log_of(&trials[i], figure) - sum / n, 2);
    *freedom = n > 1 ? n - 1 : 0;
    return squares;
}

static bool is_first(const struct hec_search_trial *trials, int at) {
    for (int i = 0; i < at; i++)
        if (trials[i].set == trials[at].set && trials[i].part == trials[at].part)
            return false;
    return true;
}

/* Standard deviation of a trial, by those of the same set in the same part: the base's alone are few. *freedom 0: not known. */
static double spread(const struct hec_search_trial *trials, int count, enum figure figure, int *freedom) {
    double squares = 0;
    *freedom = 0;
    for (int i = 0, more; i < count; i++)
        if (is_first(trials, i)) {
            squares += squares_of(trials, count, trials[i].set, figure, trials[i].part, &more);
            *freedom += more;
        }
    return *freedom ? sqrt(squares / *freedom) : NAN;
}

/* Mean log of a set's figure by the base's; NAN: none. */
static double mean_of(const struct hec_search_trial *trials, int count, uint32_t set, enum figure figure, int *n) {
    double sum = 0;
    *n = 0;
    for (int i = 0; i < count; i++) {
        double effect = trials[i].set == set ? log_of(&trials[i], figure) - base_at(trials, count, i, figure) : NAN;
        if (isnan(effect))
            continue;
        sum += effect;
        ++*n;
    }
    return *n ? sum / *n : NAN;
}

static struct hec_search_ratio ratio_of(const struct hec_search_trial *trials, int count, uint32_t set,
                                        enum figure figure) {
    struct hec_search_ratio out = {.low = NAN, .high = NAN};
    int freedom;
    double mean = mean_of(trials, count, set, figure, &out.trials);
    double s = spread(trials, count, figure, &freedom);
    out.best = exp(mean);
    if (freedom && set && out.trials) { /* the base beside it is known from one or two trials of its own */
        double half = hec_student_quantile(0.975, freedom) * s * sqrt(1.0 / out.trials + 0.5);
        out.low = exp(mean - half);
        out.high = exp(mean + half);
    }
    return out;
}

struct hec_search_ratio hec_search_cost(const struct hec_search_trial *trials, int count, uint32_t set) {
    return ratio_of(trials, count, set, COST);
}

struct hec_search_ratio hec_search_speed(const struct hec_search_trial *trials, int count, uint32_t set) {
    return ratio_of(trials, count, set, SPEED);
}

/* ---- what follows ---- */

/* What came out worst: a set that ran in one part may fail in the other. */
static const struct hec_search_trial *find(const struct hec_search_trial *trials, int count, uint32_t set) {
    const struct hec_search_trial *found = NULL;
    for (int i = 0; i < count; i++)
        if (trials[i].set == set && (!found || trials[i].fate > found->fate))
            found = &trials[i];
    return found;
}

/* Log of its cost by the base's; NAN: it was not tried, failed, or is slower than allowed. */
static double effect_of(const struct hec_search_plan *plan, const struct hec_search_trial *trials, int count,
                        uint32_t set) {
    const struct hec_search_trial *t = find(trials, count, set);
    int n;
    if (set == 0)
        return 0;
    if (!t || t->fate != HEC_SEARCH_RAN || mean_of(trials, count, set, SPEED, &n) < log(1 - plan->slowdown_most))
        return NAN;
    return mean_of(trials, count, set, COST, &n);
}

/* With lever c, and without those that exclude it. */
static uint32_t joined(const struct hec_search_plan *plan, uint32_t set, int c) {
    return (set & ~plan->excludes[c]) | UINT32_C(1) << c;
}

/* The lever that joined a set failed, did nothing, or cost so much that it is not asked again. */
static bool is_out(const struct hec_search_plan *plan, const struct hec_search_trial *trials, int count, uint32_t set,
                   uint32_t with) {
    int n;
    return find(trials, count, with)->fate != HEC_SEARCH_RAN ||
           mean_of(trials, count, with, COST, &n) > effect_of(plan, trials, count, set) + HEC_SEARCH_WORSE;
}

/* Whether c may be asked beside the set: not while the one that it comes after is out of it, nor what one of the set has come after. */
static bool may_join(const struct hec_search_plan *plan, uint32_t set, int c, bool replace) {
    for (int d = 0; d < plan->candidates; d++) {
        uint32_t passed = set & (UINT32_C(1) << d) ? plan->after[d] : 0;
        while (passed && passed != UINT32_C(1) << c)
            passed = plan->after[__builtin_ctz(passed)];
        if (passed)
            return false;
    }
    return plan->after[c] ? (plan->after[c] & set) != 0 : replace || !(plan->excludes[c] & set);
}

static uint32_t best_tried(const struct hec_search_plan *plan, const struct hec_search_trial *trials, int count) {
    uint32_t best = 0;
    double least = -HEC_SEARCH_GAIN;
    for (int i = 0; i < count; i++) {
        double effect = effect_of(plan, trials, count, trials[i].set);
        if (effect < least) {
            least = effect;
            best = trials[i].set;
        }
    }
    return best;
}

static struct hec_search_step end_with(const struct hec_search_plan *plan, const struct hec_search_trial *trials,
                                       int count, uint32_t best) {
    const struct hec_search_trial *t = find(trials, count, best);
    bool worth = effect_of(plan, trials, count, best) <= log(1 - plan->saving_least);
    if (worth && t && t->part) /* blocks are short: what they save is more than how they differ anyway */
        worth = hec_search_cost(trials, count, best).high < 1;
    return (struct hec_search_step){true, worth ? best : 0};
}

/* By how much the log of a set's cost has to be lower, to be better: a trial is one figure, a set of blocks the mean of some. */
static double gain_of(const struct hec_search_trial *trials, int count, int part) {
    int freedom;
    double squares = squares_of(trials, count, 0, COST, part, &freedom);
    double times = part && freedom ? fmax(HEC_SEARCH_NOISE, hec_student_quantile(0.975, freedom)) : 0;
    double floor = times > 0 ? times * sqrt(squares / freedom / HEC_SEARCH_BLOCKS) : 0;
    return fmax(HEC_SEARCH_GAIN, floor);
}

static int known(const struct hec_search_trial *trials, int count, uint32_t set) {
    int n = 0;
    for (int i = 0; i < count; i++)
        n += trials[i].set == set ? (trials[i].part && trials[i].fate == HEC_SEARCH_RAN ? 1 : HEC_SEARCH_BLOCKS) : 0;
    return n;
}

/* One block says that a set does not help, or, beside two of the base, that it helps much; else two have to say that it helps. *base: such
 * a second one is what lacks. */
static bool seems_better(const struct hec_search_plan *plan, const struct hec_search_trial *trials, int count,
                         uint32_t set, uint32_t with, bool *base) {
    double gain = effect_of(plan, trials, count, set) - effect_of(plan, trials, count, with);
    int freedom, part = find(trials, count, with)->part;
    squares_of(trials, count, 0, COST, part, &freedom);
    bool much = gain > fmax(-log(1 - HEC_SEARCH_LARGE), gain_of(trials, count, part));
    *base = much && !freedom && trials[count - 1].set; /* one whose cost is not known is not asked for again */
    return gain > HEC_SEARCH_GAIN && !(much && freedom);
}

static struct hec_search_step try_set(const struct hec_search_plan *plan, const struct hec_search_trial *trials,
                                      int count, uint32_t set) {
    int every = plan->part ? HEC_SEARCH_BLOCKS : HEC_SEARCH_BASE_EVERY, since = every;
    for (int i = 0; i < count; i++)
        if (trials[i].set == 0 && trials[i].part == plan->part)
            since = count - 1 - i;
    return (struct hec_search_step){.set = since >= every ? 0 : set};
}

struct hec_search_step hec_search_next(const struct hec_search_plan *plan, const struct hec_search_trial *trials,
                                       int count, bool spent) {
    uint32_t set = 0, out = 0;
    if (spent)
        return end_with(plan, trials, count, best_tried(plan, trials, count));
    for (bool grew = true, replace = false; grew || !replace;) {
        replace = !grew; /* what has no place yet goes first */
        grew = false;
        for (int c = 0; c < plan->candidates; c++) {
            uint32_t with = joined(plan, set, c);
            if (with == set || ((out | plan->closed) & UINT32_C(1) << c) || !may_join(plan, set, c, replace))
                continue;
            int blocks = known(trials, count, with);
            bool base = false;
            if (!blocks || (blocks < HEC_SEARCH_BLOCKS && seems_better(plan, trials, count, set, with, &base)))
                return try_set(plan, trials, count, base ? 0 : with);
            if (is_out(plan, trials, count, set, with))
                out |= UINT32_C(1) << c;
            else if (effect_of(plan, trials, count, with) <
                     effect_of(plan, trials, count, set) - gain_of(trials, count, find(trials, count, with)->part)) {
                set = with;
                grew = true;
            }
        }
    }
    return end_with(plan, trials, count, set);
}
