/* Checkpoint: the program saves its state, and the device waits. */
#include "diagnose/rules/straggler.h"
#include "diagnose/rules/waits.h"

#include <math.h>
#include <string.h>

static const struct hec_phase_summary *phase_of(const struct hec_facts *f) {
    for (int i = 0; i < f->summary->phase_count; i++)
        if (strcmp(f->summary->phases[i].name, "checkpoint") == 0)
            return &f->summary->phases[i];
    return NULL;
}

/* Joules that ranks wait for the one on this device; where collectives were not matched it is that one alone which waits for none. */
static double waiting_j(const struct hec_job_diagnosis *job, int device) {
    double joules = 0;
    if (!job->collectives.matched)
        return job->collectives.waiting_j;
    for (int i = 0; i < job->rank_count; i++)
        joules += job->ranks[i].waited_s > 0 && !(job->ranks[i].devices & hec_device_bit(device))
                      ? job->ranks[i].waited_j
                      : 0;
    return joules;
}

/* One rank writes them, and the others wait for it meanwhile: their joules go with its own. */
static void others_wait(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_collectives *c = &f->summary->job.collectives;
    double seconds = hec_straggler_checkpoint_s(f), all_j = f->summary->joules;
    if (!(seconds > 0))
        return;
    hec_finding_add(out, HEC_FACT(CHECKPOINT_WAITED, seconds, c->slowest));
    out->devices = c->devices;
    double share = waiting_j(&f->summary->job, c->slowest) * seconds / c->waited_s[c->waits_most] / all_j;
    if (!(f->run_j > 0) || !(all_j > 0) || !isfinite(share))
        return;
    out->joules = hec_saving_scaled(out->joules, f->run_j / all_j, f->run_j / all_j, f->run_j / all_j);
    hec_saving_add(&out->joules, hec_saving_scaled((struct hec_saving){share, share, share}, HEC_STRAGGLER_GOES_LOW,
                                                   HEC_STRAGGLER_GOES, 1));
    out->estimated |= c->estimated;
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
    others_wait(f, out);
    return true;
}
