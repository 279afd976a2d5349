/* Compile: code is compiled or loaded again and again, long after the start. */
#include "diagnose/rules/waits.h"

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
    int64_t loads = f->device->calls ? f->device->calls->late_loads : 0;
    if (f->device->gaps && f->device->gaps->loads > loads)
        loads = f->device->gaps->loads;
    if (loads < HEC_COMPILE_LEAST_LOADS || (f->device->gaps && !f->device->gaps->loads_recur) ||
        !hec_waits_claim(f, HEC_COMPILE_LEAST, &w, out))
        return set_up(f, out);
    hec_finding_add(out, HEC_FACT(LOADS, (double)loads));
    return true;
}
