/* Quiet: there is no work to do. The device waits because the program waits for requests. No change of code gives that time
 * back, so nothing is claimed to be saved. */
#include "diagnose/rules/waits.h"

#include <math.h>

static const struct hec_source_line *waits_at(const struct hec_facts *f) {
    const struct hec_source_lines *source = &f->device->source;
    for (int i = 0; i < source->count; i++) /* the largest share is first */
        if (source->lines[i].state == HEC_STATE_REQUESTS)
            return &source->lines[i];
    return NULL;
}

bool hec_judge_quiet(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_ledger_row *row = f->device->ledger ? &f->device->ledger->rows[HEC_STATE_REQUESTS] : NULL;
    double share = row ? row->seconds / f->run_s : 0, cores = f->summary->host.tree_cores;
    if (!row || !(share >= HEC_QUIET_LEAST) || !(row->seconds >= HEC_QUIET_LEAST_S))
        return false;
    /* The thread that waits computes for the rest of the time at most. */
    bool fed = cores >= 1 - share + HEC_QUIET_FED_CORES;
    out->title = fed ? HEC_FACT(FED, row->seconds, share) : HEC_FACT(NO_WORK, row->seconds, share);
    const struct hec_source_line *line = waits_at(f);
    if (line && line->line > 0) {
        struct hec_evidence at = HEC_FACT(AT_PLACE, line->line);
        at.file = line->file;
        hec_finding_add_of(out, line->function, at);
    }
    if (row->watts > 0)
        hec_finding_add(out, HEC_FACT(HELD_POWER, row->watts));
    const struct hec_stat *clock = &f->device->readings.metric[HEC_GPU_SM_CLOCK];
    if (share > HEC_QUIET_MOSTLY && clock->maximum > 0 && clock->median >= HEC_IDLE_CLOCKS * clock->maximum)
        hec_finding_add(out, HEC_FACT(HELD_CLOCK, clock->median, clock->maximum));
    hec_waits_report_cores(f, out);
    if (fed)
        out->lever = HEC_ANSWER(CHEAPER_INPUT);
    else
        out->states = 1u << HEC_STATE_REQUESTS;
    out->confidence = fed ? HEC_QUIET_FED_CONFIDENCE : HEC_QUIET_CONFIDENCE;
    return out->evidence_count > 0;
}
