/* Checkpoint: the program saves its state, and the device waits. */
#include "diagnose/rules/waits.h"

#include <string.h>

static const struct hec_phase_summary *phase_of(const struct hec_facts *f) {
    for (int i = 0; i < f->summary->phase_count; i++)
        if (strcmp(f->summary->phases[i].name, "checkpoint") == 0)
            return &f->summary->phases[i];
    return NULL;
}

bool hec_judge_checkpoint(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_phase_summary *phase = phase_of(f);
    struct hec_waits w;
    if (!hec_waits_claim(f, HEC_CHECKPOINT_LEAST, &w, out)) {
        if (w.known || !phase || !(phase->seconds >= HEC_CHECKPOINT_LEAST * f->run_s))
            return false;
        out->title = HEC_FACT(WAIT_SHARE, phase->seconds / f->run_s);
        hec_finding_add(out, HEC_FACT(CHECKPOINT_TIME, phase->seconds, (double)phase->count));
        out->confidence = HEC_TELEMETRY_CONFIDENCE;
        hec_waits_save_seconds(f, phase->seconds, HEC_CHECKPOINT_PHASE_GOES_LOW, HEC_CHECKPOINT_PHASE_GOES, 1, out);
        return true;
    }
    if (phase && phase->count > 0)
        hec_finding_add(out, HEC_FACT(CHECKPOINTS, (double)phase->count, phase->seconds / (double)phase->count));
    return true;
}
