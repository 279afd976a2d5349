/* Compile: code is compiled or loaded again and again, long after the start. */
#include "diagnose/rules/waits.h"

bool hec_judge_compile(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    int64_t loads = f->device->calls ? f->device->calls->late_loads : 0;
    if (f->device->gaps && f->device->gaps->loads > loads)
        loads = f->device->gaps->loads;
    if (loads < HEC_COMPILE_LEAST_LOADS || (f->device->gaps && !f->device->gaps->loads_recur) ||
        !hec_waits_claim(f, HEC_COMPILE_LEAST, &w, out))
        return false;
    hec_finding_add(out, HEC_FACT(LOADS, (double)loads));
    return true;
}
