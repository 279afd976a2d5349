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

/* Joules that ranks lose by waiting for the one on this device; where collectives were not matched it is that one alone which waits for
 * none. */
static double lost_j(const struct hec_summary *s, int device) {
    const struct hec_collectives *c = &s->job.collectives;
    double joules = 0;
    if (!c->matched)
        return c->lost_j;
    for (int i = 0; i < s->job.rank_count; i++) {
        const struct hec_rank *r = &s->job.ranks[i];
        const struct hec_device_diagnosis *d = hec_rank_device(s, r);
        if (d && r->waited_s > 0 && d->readings.device.index != device)
            joules += r->waited_j * c->lost_s[d->readings.device.index] / r->waited_s;
    }
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
    double share = lost_j(f->summary, c->slowest) * seconds / c->lost_s[c->waits_most] / all_j;
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
