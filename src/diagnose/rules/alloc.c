/* Alloc: device or pinned memory is allocated and freed in the loop. */
#include "diagnose/rules/waits.h"

#include <math.h>

bool hec_judge_alloc(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    if ((f->device->gaps && !f->device->gaps->allocs_recur) ||
        !hec_waits_claim(f, HEC_ALLOC_LEAST, &w, out)) /* else it is set-up */
        return false;
    /* The allocator's own code, and caches that it left cold, are in what launches wait for. */
    double part = w.launches > 0 ? fmin(1, w.allocs / w.launches) : 0;
    hec_waits_save_more(f, &w, HEC_CAUSE_LAUNCH, 0, HEC_ALLOC_AROUND * part, part, out);
    if (w.allocs > 0)
        hec_finding_add(out, HEC_FACT(ALLOCATIONS, w.allocs, w.alloc_s));
    return true;
}
