/* Host: the program's own code runs between launches, and the device waits for it. */
#include "diagnose/parallelism.h"
#include "diagnose/rules/straggler.h"
#include "diagnose/rules/waits.h"

#include <math.h>

static const struct hec_source_line *held_by(const struct hec_facts *f) {
    const struct hec_source_lines *source = &f->device->steady_source;
    for (int i = 0; i < source->count; i++) /* the largest share is first */
        if (source->lines[i].state == HEC_STATE_HOST &&
            (!source->lines[i].owners || source->lines[i].owners & (1u << HEC_CAUSE_HOST)))
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

/* A device that is ahead of another one of its job spins in communication where that one idles for its host's code. A step is shorter by
 * all that the slower host takes, so the device that idles less for such code spins less by the rest. Surely spun is what it communicates
 * for longer than the other one is busy at all. */
static double spun_s(const struct hec_facts *f, double own_s) {
    const struct hec_summary *s = f->summary;
    double comm_s = f->device->steady ? f->device->steady->rows[HEC_STATE_COMM].seconds : 0, most_s = 0;
    comm_s -= hec_collectives_lost(&s->job.collectives, f->device->readings.device.index);
    for (int i = 0; i < s->device_count && s->job.size > 1 && comm_s > 0; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        struct hec_facts other;
        struct hec_waits w;
        if (d == f->device || !d->steady || hec_rank_of(s->job.ranks, s->job.rank_count, d->readings.device.index) < 0)
            continue;
        hec_facts_gather(s, d, &other);
        hec_waits_gather(&other, &w);
        double busy_s = hec_ledger_work(d->steady) + hec_ledger_shared(d->steady) - hec_loop_idle_s(d);
        double more_s = w.owned_s[HEC_CAUSE_HOST] - hec_straggler_code_s(&other) - own_s;
        most_s = fmax(most_s, fmin(more_s, comm_s - busy_s));
    }
    return most_s;
}

static void save_spun(const struct hec_facts *f, const struct hec_waits *w, struct hec_finding *out) {
    const struct hec_saving *part = &hec_goes_of(HEC_CAUSE_HOST)->part;
    double seconds = spun_s(f, w->owned_s[HEC_CAUSE_HOST]);
    if (!(seconds > 0) || !f->device->ledger)
        return;
    double share = seconds / f->run_s, joules = seconds * f->device->ledger->rows[HEC_STATE_COMM].watts / f->run_j;
    if (w->work > 0)
        hec_finding_add(out, HEC_FACT(SPUN_FOR_CODE, seconds / w->work));
    hec_saving_add(&out->seconds, hec_saving_scaled((struct hec_saving){share, share, share}, 0, part->best, 1));
    if (isfinite(joules))
        hec_saving_add(&out->joules, hec_saving_scaled((struct hec_saving){joules, joules, joules}, 0, part->best, 1));
}

/* What the device does while that code runs it does beside what reads a number then. */
static void save_covered(const struct hec_facts *f, const struct hec_waits *w, struct hec_finding *out) {
    struct hec_finding covered = {.cause = HEC_CAUSE_HOST};
    hec_waits_save_seconds(f, w->covered_s, 0, hec_goes_of(HEC_CAUSE_HOST)->part.best, 1, &covered);
    hec_saving_add(&out->seconds, covered.seconds);
    hec_saving_add(&out->joules, covered.joules);
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    if (!hec_waits_claim(f, HEC_HOST_LEAST, &w, out))
        return !w.known && judge_telemetry(f, out);
    save_covered(f, &w, out);
    const struct hec_source_line *line = held_by(f);
    if (line && line->line > 0) {
        struct hec_evidence held = HEC_FACT(HELD_BY_LINE, line->seconds, line->line);
        held.file = line->file;
        hec_finding_add_of(out, line->function, held);
    }
    save_spun(f, &w, out);
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
