/* After how much work tuning has paid: what it cost to find and prove a saving, against the saving on each unit of work (or step). */
#ifndef HEC_PROVE_BREAKEVEN_H
#define HEC_PROVE_BREAKEVEN_H

#include "prove/compare.h"

/* After how much work, and the soonest and latest by the 95 % interval of the saving. */
struct hec_breakeven {
    bool shown;                   /* false: no saving is shown, and nothing below is known */
    double work, soonest, latest; /* units or steps; INFINITY: the interval holds no saving at its end */
};

/* cost: joules or seconds of everything that would not have been spent otherwise: trials of A and B, compiling, tuning. saving: of the same
 * by a unit or a step (HEC_QUANTITY_JOULES_PER_UNIT, HEC_QUANTITY_SECONDS_PER_STEP). A cost of 0 has paid at once; of a cost
 * that is not known (NAN) or negative nothing is. */
struct hec_breakeven hec_breakeven_after(double cost, const struct hec_comparison *saving);

#endif
