/* What a comparison shows, and what it cannot. */
#include "report/compare_words.h"

#include <math.h>
#include <string.h>

const char *hec_verdict_name(enum hec_verdict verdict) {
    static const char *const names[] = {"not_shown", "saved", "lost", "faster", "slower"};
    return (unsigned)verdict < HEC_VERDICT_COUNT ? names[verdict] : "?";
}

const char *hec_shown_name(enum hec_shown shown) {
    static const char *const names[] = {"not_shown", "better", "worse", "changed", "unknown"};
    return (unsigned)shown <= HEC_SHOWN_UNKNOWN ? names[shown] : "?";
}

/* ---- what is known ---- */

bool hec_versus_by_step(const struct hec_versus *v) {
    return hec_side_unit(v->side)[0] && v->side[0].runs[0].paced.work == HEC_PACED_BY_STEP;
}

/* Of whole runs: figures of other amounts of work are not comparable. */
bool hec_versus_equal_work(const struct hec_versus *v) {
    double a = v->side[0].runs[0].units[0].count;
    if (!hec_side_unit(v->side)[0])
        return true; /* as far as is known */
    for (int at = 0; at < 2; at++)
        for (int i = 0; i < v->side[at].count; i++)
            if (fabs(v->side[at].runs[i].units[0].count - a) > 0.001 * a)
                return false;
    return true;
}

bool hec_versus_has_interval(const struct hec_versus *v, enum hec_quantity quantity) {
    const struct hec_comparison *c = &v->quantity[quantity];
    return isfinite(c->ratio_low) && isfinite(c->ratio_high) &&
           (hec_quantity_of_whole_runs(quantity) ? c->between_runs && hec_versus_equal_work(v)
                                                 : c->between_runs || hec_versus_by_step(v));
}

/* What a unit takes, where all runs count the same one; else what a run takes. */
enum hec_quantity hec_versus_energy(const struct hec_versus *v) {
    return hec_side_unit(v->side)[0] && v->quantity[HEC_QUANTITY_JOULES_PER_UNIT].shown != HEC_SHOWN_UNKNOWN
               ? HEC_QUANTITY_JOULES_PER_UNIT
               : HEC_QUANTITY_JOULES;
}

enum hec_quantity hec_versus_time(const struct hec_versus *v) {
    return hec_side_unit(v->side)[0] && v->quantity[HEC_QUANTITY_UNITS_PER_SECOND].shown != HEC_SHOWN_UNKNOWN
               ? HEC_QUANTITY_UNITS_PER_SECOND
               : HEC_QUANTITY_SECONDS;
}

enum hec_shown hec_versus_shown(const struct hec_versus *v, enum hec_quantity quantity) {
    enum hec_shown shown = v->quantity[quantity].shown;
    return shown == HEC_SHOWN_UNKNOWN || hec_versus_has_interval(v, quantity) ? shown : HEC_SHOWN_NOT;
}

enum hec_verdict hec_versus_verdict(const struct hec_versus *v) {
    enum hec_shown energy = hec_versus_shown(v, hec_versus_energy(v)), time = hec_versus_shown(v, hec_versus_time(v));
    if (energy == HEC_SHOWN_UNKNOWN)
        return time == HEC_SHOWN_BETTER  ? HEC_VERDICT_FASTER
               : time == HEC_SHOWN_WORSE ? HEC_VERDICT_SLOWER
                                         : HEC_VERDICT_NOT_SHOWN;
    return energy == HEC_SHOWN_BETTER  ? HEC_VERDICT_SAVED
           : energy == HEC_SHOWN_WORSE ? HEC_VERDICT_LOST
                                       : HEC_VERDICT_NOT_SHOWN;
}
