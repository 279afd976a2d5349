#include "prove/check.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>

#define TRIALS_MOST 1000 /* nobody waits for more */

static int gather(const struct hec_experiment_trial *trials, int count, struct hec_trial *out) {
    static const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (trials[i].pair >= 0 && trials[i].side == 0)
            out[kept++] = (struct hec_trial){
                .whole = trials[i].steady, .run = trials[i].stopped ? unknown : trials[i].run, .pair = -1};
    return kept;
}

static bool known(enum hec_quantity quantity, const struct hec_trial *trials, int count) {
    for (int i = 0; i < count; i++)
        if (isnan(hec_quantity_value(quantity, &trials[i])))
            return false;
    return count > 0;
}

/* How many trials now would make the interval end where the limit is. It shrinks with their number alone as far as it comes from
 * them, and never below what the baseline's trials leave. */
static int needed(const struct hec_check_part *part, int baseline, int now) {
    double off = log1p(part->limit) - log(part->ratio), half = (log(part->high) - log(part->low)) / 2;
    double square = half * half / (off * off), share = 1.0 / baseline + 1.0 / now;
    double left = share / square - 1.0 / baseline; /* half^2 is in proportion to share */
    return isfinite(square) && left > 1.0 / TRIALS_MOST ? (int)ceil(1 / left) : 0;
}

static void judge(struct hec_check_part *part, const struct hec_comparison *c, int baseline, int now) {
    bool speed = hec_quantity_better(part->quantity) > 0;
    part->baseline = speed ? 1 / c->a : c->a;
    part->now = speed ? 1 / c->b : c->b;
    part->ratio = speed ? 1 / c->ratio : c->ratio;
    part->low = speed ? 1 / c->ratio_high : c->ratio_low;
    part->high = speed ? 1 / c->ratio_low : c->ratio_high;
    part->state = part->low > 1 + part->limit     ? HEC_CHECK_REGRESSED
                  : part->high <= 1 + part->limit ? HEC_CHECK_WITHIN
                                                  : HEC_CHECK_UNSURE;
    if (part->state == HEC_CHECK_UNSURE)
        part->trials_needed = needed(part, baseline, now);
}

int hec_check_judge(const struct hec_experiment_trial *baseline, int baseline_count,
                    const struct hec_experiment_trial *now, int now_count, const double limit[HEC_CHECKS],
                    struct hec_check *out) {
    static const enum hec_quantity by_unit[] = {HEC_QUANTITY_JOULES_PER_UNIT, HEC_QUANTITY_UNITS_PER_SECOND},
                                   of_trial[] = {HEC_QUANTITY_JOULES, HEC_QUANTITY_SECONDS};
    struct hec_trial *a = calloc((size_t)baseline_count + 1, sizeof *a), *b = calloc((size_t)now_count + 1, sizeof *b);
    struct hec_comparison compared[HEC_QUANTITY_COUNT];
    int err = a && b ? HEC_OK : HEC_ERR_NOMEM;
    *out = (struct hec_check){.state = HEC_CHECK_WITHIN};
    if (!err) {
        out->trials_baseline = gather(baseline, baseline_count, a);
        out->trials_now = gather(now, now_count, b);
        err = hec_compare(a, out->trials_baseline, b, out->trials_now, NULL, compared);
    }
    for (int i = 0; i < HEC_CHECKS && !err; i++) {
        bool unit = known(by_unit[i], a, out->trials_baseline) && known(by_unit[i], b, out->trials_now);
        struct hec_check_part *part = &out->part[i];
        *part = (struct hec_check_part){
            .asked = !isnan(limit[i]), .limit = limit[i], .quantity = unit ? by_unit[i] : of_trial[i]};
        judge(part, &compared[part->quantity], out->trials_baseline, out->trials_now);
        if (part->asked && (part->state == HEC_CHECK_REGRESSED || out->state == HEC_CHECK_WITHIN))
            out->state = part->state;
    }
    free(a);
    free(b);
    return err;
}
