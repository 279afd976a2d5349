#include "prove/tune.h"

#include "prove/student.h"

#include <math.h>
#include <string.h>

#define BURSTS                                                                                                         \
    1.25 /* a program in bursts draws more than its mean for moments: a limit below so many times that may bind */
#define OWN_LEAST 3 /* blocks of its own setting before anything is tried */
/* What is tried is kept after three pairs at the earliest, of two blocks each, and has to pay for at least as long. */
#define PAYS_BLOCKS (2 * 2 * HEC_SEQUENTIAL_PAIRS_LEAST)
#define LOST_MOST 2 /* a block may lose so many times what the slowdown that is allowed would cost it */
#define CLEARLY_SLOWER                                                                                                 \
    0.015           /* than allowed: no limit below is tried. Two blocks differ by 0.6 % on H200s (docs/tune.md) */
#define DEARER 0.02 /* than the best so far, twice: no limit below is tried */
#define SAVES_LEAST 0.005 /* by its one block, or it is not confirmed */
#define AGAIN_FIRST 4 /* blocks of a held setting before its own is measured again; each time twice as many, up to: */
#define AGAIN_MOST 32
#define NEWEST 4         /* pairs that say whether a held setting still pays */
#define CHANGED 0.1      /* of the program's own pace or watts: it is another program now */
#define CHANGED_SPREAD 6 /* or so many spreads, where that is more */
#define FAST 3           /* standard errors: its own pace is surely not faster */

static double mean(const double *values, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

static int owns(const struct hec_tune *t) {
    return t->own < HEC_TUNE_OWN ? t->own : HEC_TUNE_OWN;
}

/* Of the log of a block's seconds a unit, by how neighbours differ: drift cancels. NAN: fewer than two blocks. */
static double spread(const struct hec_tune *t) {
    double squares = 0;
    int count = 0;
    for (int i = t->own - owns(t) + 1; i < t->own; i++, count++) {
        double step = log(t->own_seconds[i % HEC_TUNE_OWN] / t->own_seconds[(i - 1) % HEC_TUNE_OWN]);
        squares += step * step;
    }
    return count ? sqrt(squares / count / 2) : NAN;
}

double hec_tune_own_seconds(const struct hec_tune *t) {
    if (owns(t) < 2)
        return NAN;
    return mean(t->own_seconds, owns(t)) * (1 - FAST * spread(t) / sqrt(owns(t)));
}

static void begin_anew(struct hec_tune *t) {
    t->phase = HEC_TUNE_WATCHES;
    t->own = t->lasts = t->at = t->blocks = 0;
    memset(t->screened, 0, sizeof t->screened);
    memset(t->confirmed, 0, sizeof t->confirmed);
    t->saving = (struct hec_look){.low = 0, .high = INFINITY, .ratio = NAN};
}

void hec_tune_begin(struct hec_tune *t, const struct hec_tune_plan *plan) {
    *t = (struct hec_tune){.plan = *plan, .harm.most = plan->harm_most};
    begin_anew(t);
}

/* ---- what to try ---- */

/* The next limit that may bind and is not out; 0: none. Where even the lowest is above what the program draws, none does. */
static int next_limit(const struct hec_tune *t, int after) {
    bool any = t->plan.watts[t->plan.settings - 1] < t->own_watts;
    for (int i = after + 1; any && i < t->plan.settings; i++)
        if (t->plan.watts[i] < BURSTS * t->own_watts && !t->screened[i].out)
            return i;
    return 0;
}

/* The one of those that were tried which saves most and is not refused; 0: none saves. */
static int best_limit(const struct hec_tune *t) {
    int best = 0;
    for (int i = 1; i < t->plan.settings; i++) {
        const struct hec_tune_known *k = &t->screened[i];
        bool fits = k->pairs && !k->out && !t->confirmed[i].out && k->joules[0] < -SAVES_LEAST &&
                    k->seconds[0] < log1p(t->plan.slowdown_most);
        if (fits && (!best || k->joules[0] < t->screened[best].joules[0]))
            best = i;
    }
    return best;
}

static void confirm_next(struct hec_tune *t) {
    t->at = best_limit(t);
    t->phase = t->at ? HEC_TUNE_CONFIRMS : HEC_TUNE_RESTS;
    t->asked += t->at != 0;
    t->blocks = 0;
    t->found_own_seconds = mean(t->own_seconds, owns(t));
}

static void walk_on(struct hec_tune *t, bool stop) {
    int next = stop ? 0 : next_limit(t, t->at);
    t->phase = HEC_TUNE_WALKS;
    t->at = next;
    if (!next)
        confirm_next(t);
}

struct hec_tune_step hec_tune_next(struct hec_tune *t, double passed_s) {
    if (t->phase == HEC_TUNE_WATCHES && t->own >= OWN_LEAST)
        walk_on(t, false);
    if (t->phase == HEC_TUNE_HOLDS)
        return (struct hec_tune_step){.setting = t->blocks >= t->again ? 0 : t->at};
    bool tries = (t->phase == HEC_TUNE_WALKS || t->phase == HEC_TUNE_CONFIRMS) && t->lasts && t->last[0].setting == 0;
    double lost_most_s = LOST_MOST * t->plan.slowdown_most * t->plan.block_s;
    tries = tries && hec_harm_allows(&t->harm, passed_s, lost_most_s + t->step_s + t->plan.react_s) &&
            (t->plan.whole_s <= 0 || passed_s + PAYS_BLOCKS * t->plan.block_s <= t->plan.whole_s);
    return tries ? (struct hec_tune_step){t->at, true, lost_most_s} : (struct hec_tune_step){0};
}

/* ---- what came of it ---- */

/* Out of the newest pairs. */
static double newest(const double *values, int pairs, int most) {
    int count = pairs < most ? pairs : most;
    return mean(values + pairs - count, count);
}

/* How well the mean of so many pairs is known, one-sided at 95 %: each has one block against two. */
static double reach(const struct hec_tune *t, int pairs) {
    return hec_student_quantile(0.95, owns(t) - 1) * spread(t) * sqrt(1.5 / pairs);
}

static void add_pair(struct hec_tune_known *k, double joules, double seconds) {
    if (k->pairs == HEC_TUNE_PAIRS) {
        memmove(k->joules, k->joules + 1, sizeof k->joules - sizeof k->joules[0]);
        memmove(k->seconds, k->seconds + 1, sizeof k->seconds - sizeof k->seconds[0]);
        k->pairs--;
    }
    k->joules[k->pairs] = joules;
    k->seconds[k->pairs++] = seconds;
}

/* What pairs so far show of the setting's joules. The rate of false claims is shared out over all settings that are ever asked of:
 * 6 / (pi n)^2 of it for the nth, which adds up to all of it. */
static struct hec_look look(const struct hec_tune *t, const struct hec_tune_known *k, double expected) {
    double a[HEC_TUNE_PAIRS], b[HEC_TUNE_PAIRS];
    for (int i = 0; i < k->pairs; i++) {
        a[i] = 1;
        b[i] = exp(k->joules[i]);
    }
    double part = 6 / (M_PI * M_PI * t->asked * t->asked);
    struct hec_sequential_options options = {.alpha = t->plan.alpha * part, .expected = exp(expected)};
    return hec_sequential_look(a, b, k->pairs, &options);
}

static void take_walked(struct hec_tune *t, double joules, double seconds) {
    add_pair(&t->screened[t->at], joules, seconds);
    double best = 0;
    for (int i = 1; i < t->at; i++)
        if (t->screened[i].pairs)
            best = fmin(best, t->screened[i].joules[0]);
    t->blocks = joules > best + DEARER ? t->blocks + 1 : 0;
    walk_on(t, seconds > log1p(t->plan.slowdown_most) + CLEARLY_SLOWER || t->blocks >= 2);
}

static void take_confirmed(struct hec_tune *t, double joules, double seconds) {
    struct hec_tune_known *k = &t->confirmed[t->at];
    add_pair(k, joules, seconds);
    t->saving = look(t, k, t->screened[t->at].joules[0]);
    double slower = mean(k->seconds, k->pairs), most = log1p(t->plan.slowdown_most), wide = reach(t, k->pairs);
    if (t->saving.step == HEC_LOOK_BETTER && slower + wide <= most) {
        t->phase = HEC_TUNE_HOLDS;
        t->blocks = 0;
        t->again = AGAIN_FIRST;
        t->lasts = 0;
    } else if (k->pairs == HEC_TUNE_PAIRS || t->saving.step == HEC_LOOK_WORSE || slower - wide > most) {
        k->out = true;
        confirm_next(t);
    }
}

/* A held setting that pays no more, or slows the program down by too much: all begins anew. */
static void take_held(struct hec_tune *t, double joules, double seconds) {
    struct hec_tune_known *k = &t->confirmed[t->at];
    bool all = k->pairs < HEC_TUNE_PAIRS;
    add_pair(k, joules, seconds);
    if (all)
        t->saving = look(t, k, t->screened[t->at].joules[0]);
    t->again = t->again * 2 < AGAIN_MOST ? t->again * 2 : AGAIN_MOST;
    int count = k->pairs < NEWEST ? k->pairs : NEWEST;
    if (newest(k->joules, k->pairs, NEWEST) >= 0 ||
        newest(k->seconds, k->pairs, NEWEST) - reach(t, count) > log1p(t->plan.slowdown_most)) {
        t->restarts++;
        begin_anew(t);
    }
}

static void take_pair(struct hec_tune *t, const struct hec_tune_block *after) {
    const struct hec_tune_block *middle = &t->last[0], *before = &t->last[1];
    double joules = log(middle->joules / middle->units) -
                    (log(before->joules / before->units) + log(after->joules / after->units)) / 2;
    double seconds = log(middle->seconds / middle->units) -
                     (log(before->seconds / before->units) + log(after->seconds / after->units)) / 2;
    if (!isfinite(joules) || !isfinite(seconds))
        return;
    if (t->phase == HEC_TUNE_WALKS)
        take_walked(t, joules, seconds);
    else if (t->phase == HEC_TUNE_CONFIRMS)
        take_confirmed(t, joules, seconds);
    else if (t->phase == HEC_TUNE_HOLDS)
        take_held(t, -joules, -seconds);
}

/* Another pace, or other watts, than before. */
static bool differs(const struct hec_tune *t, const struct hec_tune_block *own) {
    double limit = fmax(CHANGED, CHANGED_SPREAD * spread(t));
    double seconds = log(own->seconds / own->units / mean(t->own_seconds, owns(t)));
    double watts = log(own->watts / t->own_watts);
    return owns(t) >= OWN_LEAST && !(fabs(seconds) <= limit && fabs(watts) <= limit);
}

/* One block that differs is left out: an evaluation, a checkpoint. Two in a row are another program: what was found was found for the one
 * before. Whether the block counts. */
static bool take_own(struct hec_tune *t, const struct hec_tune_block *block) {
    t->odd = differs(t, block) ? t->odd + 1 : 0;
    if (t->odd == 1)
        return false;
    if (t->odd == 2) {
        t->restarts++;
        begin_anew(t);
    }
    t->own_seconds[t->own % HEC_TUNE_OWN] = block->seconds / block->units;
    t->own_draws[t->own % HEC_TUNE_OWN] = block->watts;
    t->own++;
    t->own_watts = mean(t->own_draws, owns(t));
    return true;
}

/* The limit is too low, and so are those below. */
static void take_cut(struct hec_tune *t) {
    for (int i = t->at; i < t->plan.settings; i++)
        t->screened[i].out = true;
    if (t->phase == HEC_TUNE_WALKS)
        walk_on(t, true);
    else
        confirm_next(t);
}

/* The joules of a block that was cut are not known: those of the program at its own setting, which draws more. */
static void sum_up(struct hec_tune *t, const struct hec_tune_block *block, bool held) {
    double watts = block->joules / block->seconds;
    if (block->setting == 0 && isfinite(watts))
        t->own_power = watts;
    double joules = (block->cut || !isfinite(watts) ? t->own_power : watts) * block->whole_s;
    t->passed_s += block->whole_s;
    t->joules += joules;
    if (!held)
        return;
    t->held_s += block->whole_s;
    t->saved += joules * (1 / t->saving.ratio - 1);
    t->saved_low += joules * (1 / t->saving.high - 1);
    t->saved_high += joules * (1 / t->saving.low - 1);
}

struct hec_tune_net hec_tune_net(const struct hec_tune *t) {
    double tried = t->harm.spent * t->own_power;
    if (t->held_s <= 0)
        return (struct hec_tune_net){.share = NAN, .low = NAN, .high = NAN};
    return (struct hec_tune_net){.share = (t->saved - tried) / (t->joules + t->saved),
                                 .low = (t->saved_low - tried) / (t->joules + t->saved_low),
                                 .high = (t->saved_high - tried) / (t->joules + t->saved_high),
                                 .held = t->held_s / t->passed_s};
}

void hec_tune_block(struct hec_tune *t, const struct hec_tune_block *block) {
    bool own = block->setting == 0, tried = !own && t->phase != HEC_TUNE_HOLDS, counts = !block->cut;
    sum_up(t, block, !own && !tried);
    if (tried)
        hec_harm_charge(&t->harm, block->whole_s - block->whole_units * hec_tune_own_seconds(t));
    if (own) {
        t->step_s = fmax(t->step_s, block->step_s);
        counts = counts && take_own(t, block);
    } else if (tried && block->cut) {
        take_cut(t);
    }
    bool pairs = counts && t->lasts == 2 && !t->last[0].cut && !t->last[1].cut &&
                 t->last[0].setting != block->setting && t->last[1].setting == block->setting;
    if (pairs && (own || t->phase == HEC_TUNE_HOLDS))
        take_pair(t, block);
    t->last[1] = t->last[0];
    t->last[0] = *block;
    t->last[0].cut = !counts;
    t->lasts += t->lasts < 2;
    if (t->phase == HEC_TUNE_HOLDS)
        t->blocks = block->setting == t->at ? t->blocks + 1 : 0;
}

double hec_tune_slowdown(const struct hec_tune *t) {
    const struct hec_tune_known *k = &t->confirmed[t->at];
    return t->phase == HEC_TUNE_HOLDS ? expm1(mean(k->seconds, k->pairs)) : NAN;
}
