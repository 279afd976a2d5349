/* Host: the program's own code runs between launches, and the device waits for it. */
#include "diagnose/rules/waits.h"

#include <math.h>

static const struct hec_source_line *held_by(const struct hec_facts *f) {
    const struct hec_source_lines *source = &f->device->steady_source;
    for (int i = 0; i < source->count; i++) /* the largest share is first */
        if (source->lines[i].state == HEC_STATE_HOST)
            return &source->lines[i];
    return NULL;
}

static bool judge_telemetry(const struct hec_facts *f, struct hec_finding *out) {
    double sure = hec_use_waits(&f->device->readings);
    if (!sure)
        return false;
    out->title = HEC_FACT(ENGINE_IDLE, 1 - f->device->readings.activity.engine);
    hec_waits_report_use(f, true, out);
    hec_waits_report_cores(f, out);
    hec_finding_add(out, HEC_FACT(UNTRACED, NAN));
    out->lever = HEC_ANSWER(TRACE_WAITS);
    out->confidence = fmin(HEC_HOST_TELEMETRY_CONFIDENCE, sure);
    hec_waits_save_telemetry(f, f->device->readings.activity.engine, HEC_HOST_TELEMETRY_GOES, out);
    return true;
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    if (!hec_waits_claim(f, HEC_HOST_LEAST, &w, out))
        return !w.known && judge_telemetry(f, out);
    const struct hec_source_line *line = held_by(f);
    if (line && line->line > 0) {
        struct hec_evidence held = HEC_FACT(HELD_BY_LINE, line->seconds, line->line);
        held.file = line->file;
        hec_finding_add_of(out, line->function, held);
    }
    hec_waits_report_cores(f, out);
    return true;
}

bool hec_judge_host(const struct hec_facts *f, struct hec_finding *out) {
    if (!judge(f, out))
        return false;
    if (hec_summary_unhooked(
            f->summary)) /* a loader, a checkpoint or a compilation that no hook reported looks the same */
        out->confidence *= HEC_HOST_UNHOOKED;
    return true;
}
