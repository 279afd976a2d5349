#include "prove/breakeven.h"

#include <math.h>

struct hec_breakeven hec_breakeven_after(double cost, const struct hec_comparison *saving) {
    if (saving->shown != HEC_SHOWN_BETTER || !(saving->difference < 0) || !(cost >= 0))
        return (struct hec_breakeven){false, NAN, NAN, NAN};
    if (cost == 0)
        return (struct hec_breakeven){true, 0, 0, 0};
    return (struct hec_breakeven){true, cost / -saving->difference, cost / -saving->difference_low,
                                  saving->difference_high < 0 ? cost / -saving->difference_high : INFINITY};
}
