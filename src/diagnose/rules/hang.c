/* Hang: what the device began last does not end. A trace shows what has ended, so after that it shows nothing; telemetry shows
 * that the device works on. */
#include "diagnose/rules/facts.h"

#include <math.h>

/* Where the program is meanwhile; NULL unknown. */
static const struct hec_source_line *waits_at(const struct hec_facts *f) {
    const struct hec_source_lines *source = &f->device->source;
    for (int i = 0; i < source->count; i++) /* the largest share is first */
        if (source->lines[i].state == HEC_STATE_TAIL)
            return &source->lines[i];
    return NULL;
}

bool hec_judge_hang(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_after *a = &f->device->after;
    const struct hec_source_line *line = waits_at(f);
    /* A program that goes on has work on the device that the trace does not show. */
    if (!a->works || a->goes_on || !(a->seconds >= HEC_HANG_SHARE * f->run_s) ||
        (line && line->share < HEC_HANG_ONE_LINE))
        return false;
    out->title = HEC_FACT(UNENDED, a->seconds, f->run_s - a->seconds);
    hec_finding_add(out, HEC_FACT(WORKS_ON, a->engine, a->watts));
    if (line && line->line > 0) {
        struct hec_evidence at = HEC_FACT(AT_PLACE, line->line);
        at.file = line->file;
        hec_finding_add_of(out, line->function, at);
    }
    out->confidence = line ? HEC_HANG_CONFIDENCE : HEC_HANG_CONFIDENCE_BLIND;
    return true;
}
