/* Compile: code is compiled or loaded again and again, long after the start. */
#include "diagnose/rules/waits.h"

#include <math.h>

/* It does not recur, and yet the run had little else. */
static bool set_up(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_source_lines *source = &f->device->source;
    double seconds = f->device->compiling_s;
    if (!(seconds >= HEC_COMPILE_SETUP_S && seconds >= HEC_COMPILE_SETUP * f->run_s))
        return false;
    out->title = HEC_FACT(COMPILING, seconds, f->run_s);
    for (int i = 0; i < source->count && !out->evidence_count; i++) /* the largest share is first */
        if (source->lines[i].state == HEC_STATE_STARTUP && source->lines[i].line > 0) {
            struct hec_evidence at = HEC_FACT(AT_PLACE, source->lines[i].line);
            at.file = source->lines[i].file;
            hec_finding_add_of(out, source->lines[i].function, at);
        }
    out->lever = HEC_ANSWER(KEEP_COMPILED);
    out->confidence = HEC_COMPILE_SETUP_CONFIDENCE;
    return out->evidence_count > 0;
}

bool hec_judge_compile(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    int64_t late = f->device->calls ? f->device->calls->late_loads : 0, loads = late;
    if (f->device->gaps && f->device->gaps->loads > loads)
        loads = f->device->gaps->loads;
    /* Without steps a launch that takes long is too little of a sign: the loop is not known as well, and where it began. */
    bool told = f->steps->count > 0 || late >= HEC_COMPILE_LEAST_LOADS || f->device->compiling_s > 0;
    if (!told || loads < HEC_COMPILE_LEAST_LOADS || (f->device->gaps && !f->device->gaps->loads_recur) ||
        !hec_waits_claim(f, HEC_COMPILE_LEAST, &w, out))
        return set_up(f, out);
    /* One version for all shapes is still to be compiled. */
    const struct hec_saving *goes = &hec_goes_of(out->cause)->part;
    double again = 1 - 1 / (double)loads;
    hec_waits_save(f, &w, out->cause, fmin(goes->low, again), goes->best * again, goes->high, out);
    hec_finding_add(out, HEC_FACT(LOADS, (double)loads));
    return true;
}
