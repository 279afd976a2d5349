/* Straggler: ranks wait inside collectives for one that begins them later. */
#include "diagnose/rules/straggler.h"

#include <math.h>

/* Of a loop, what the slow device does in one state, and the others in the mean. */
struct excess {
    enum hec_state state;
    double own_s, others_s;
};

/* The idle state that it has most more of: what its process does meanwhile. */
static struct excess excess_of(const struct hec_summary *s, const struct hec_device_diagnosis *slow, uint64_t devices) {
    struct excess most = {HEC_STATE_HOST, 0, 0};
    for (int state = 0; state < HEC_STATE_COUNT; state++) {
        struct excess e = {(enum hec_state)state, slow->steady->rows[state].seconds, 0};
        int others = 0;
        if (!hec_state_idle((enum hec_state)state) || state == HEC_STATE_STARTUP || state == HEC_STATE_TAIL ||
            state == HEC_STATE_UNKNOWN || state == HEC_STATE_PEERS)
            continue;
        for (int i = 0; i < s->device_count; i++)
            if (&s->devices[i] != slow && devices & hec_device_bit(s->devices[i].readings.device.index)) {
                e.others_s += s->devices[i].steady->rows[state].seconds;
                others++;
            }
        e.others_s = others ? e.others_s / others : 0;
        if (e.own_s - e.others_s > most.own_s - most.others_s)
            most = e;
    }
    return most;
}

static const struct hec_rank *rank_on(const struct hec_summary *s, int device) {
    for (int i = 0; i < s->job.rank_count; i++)
        if (s->job.ranks[i].devices & hec_device_bit(device) &&
            (s->job.ranks[i].collectives || s->job.collectives.inferred))
            return &s->job.ranks[i];
    return NULL;
}

/* Where the program of the one that waits is meanwhile. */
static void report_place(const struct hec_device_diagnosis *waits, double shared_s, struct hec_finding *out) {
    const struct hec_source_lines *source = &waits->steady_source;
    for (int i = 0; i < source->count; i++) { /* the largest share is first */
        const struct hec_source_line *line = &source->lines[i];
        if (line->state != HEC_STATE_PEERS || !line->line)
            continue;
        struct hec_evidence at = HEC_FACT(RANK_AT, shared_s, waits->readings.device.index, line->line);
        at.file = line->file;
        hec_finding_add_of(out, line->function, at);
        return;
    }
}

static void report_clocks(const struct hec_facts *f, const struct hec_device_diagnosis *waits,
                          struct hec_finding *out) {
    double its = f->device->readings.metric[HEC_GPU_SM_CLOCK].maximum;
    double theirs = waits->readings.metric[HEC_GPU_SM_CLOCK].maximum;
    int index = f->device->readings.device.index;
    if (!(its < (1 - HEC_STRAGGLER_CLOCK_LOWER) * theirs))
        return;
    hec_finding_add(out, HEC_FACT(RANK_CLOCK, its, theirs, index));
    out->lever = HEC_ANSWER(SLOW_DEVICE, index);
}

/* Whether one rank is late, and not now this one and now that one. */
static bool is_one(const struct hec_collectives *c, double more_work_s, double waiting_s) {
    return isfinite(c->slowest_share) ? c->slowest_share >= HEC_STRAGGLER_MOSTLY
                                      : more_work_s >= HEC_STRAGGLER_EXPLAINED * waiting_s;
}

/* Of the device that the others wait for. */
struct late {
    const struct hec_device_diagnosis *waits; /* the one that waits most */
    double work_s, slow_work_s, shared_s, in_use, waiting;
    bool one;  /* it is one rank that is late, */
    bool idle; /* not for more to compute, */
    bool told; /* and this state explains most of the waiting */
    struct excess e;
};

/* false: it is not that one, or they hardly wait. */
static bool find_late(const struct hec_facts *f, struct late *out) {
    const struct hec_collectives *c = &f->summary->job.collectives;
    if (c->count < 2 || c->slowest != f->device->readings.device.index || !f->device->steady)
        return false;
    out->waits = hec_summary_device(f->summary, c->waits_most);
    out->work_s = hec_ledger_work(out->waits->steady);
    out->slow_work_s = hec_ledger_work(f->device->steady);
    out->shared_s = hec_ledger_shared(out->waits->steady);
    out->in_use = out->work_s + out->shared_s;
    out->waiting = c->lost_s[c->waits_most];
    out->one = is_one(c, out->slow_work_s - out->work_s, out->waiting);
    double more_s =
        f->device->steady->rows[HEC_STATE_COMPUTE].seconds - out->waits->steady->rows[HEC_STATE_COMPUTE].seconds;
    out->idle = out->one && more_s < HEC_STRAGGLER_EXPLAINED * out->waiting;
    out->e = excess_of(f->summary, f->device, c->devices);
    out->told = out->idle && out->e.own_s - out->e.others_s >= HEC_STRAGGLER_EXPLAINED * out->waiting;
    return out->waiting >= HEC_STRAGGLER_LEAST_SKEW * out->in_use && (out->one || c->matched);
}

/* Of the waiting, what another finding says: checkpoints that one rank writes. */
static double said_elsewhere(const struct late *l) {
    return l->told && l->e.state == HEC_STATE_CHECKPOINT ? fmin(l->waiting, l->e.own_s - l->e.others_s) : 0;
}

/* Of the waiting, what goes with the code that one process alone runs, where stacks tell most of it: ranks wait for each other for other
 * reasons too, as the stages of a pipeline do, and that stays. */
static double goes_with_code(const struct hec_collectives *c, const struct late *l) {
    bool code = l->told && (l->e.state == HEC_STATE_HOST || l->e.state == HEC_STATE_DATA);
    bool told = code && c->own_s >= HEC_STRAGGLER_EXPLAINED * (l->e.own_s - l->e.others_s);
    return told ? fmin(l->waiting, c->own_s) : l->waiting;
}

double hec_straggler_checkpoint_s(const struct hec_facts *f) {
    struct late l;
    return find_late(f, &l) ? said_elsewhere(&l) : 0;
}

double hec_straggler_code_s(const struct hec_facts *f) {
    const struct hec_collectives *c = &f->summary->job.collectives;
    struct late l;
    return find_late(f, &l) && l.idle ? fmin(c->own_code_s, l.waiting) : 0;
}

bool hec_judge_straggler(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_collectives *c = &f->summary->job.collectives;
    struct late l;
    /* One finding a run, with the device that the others wait for: the lines are its own. */
    if (!find_late(f, &l) || !(l.waiting - said_elsewhere(&l) >= HEC_STRAGGLER_LEAST_SKEW * l.in_use))
        return false;
    const struct hec_device_diagnosis *waits = l.waits;
    const struct hec_ledger_row *its = f->device->steady->rows;
    const struct hec_rank *rank = rank_on(f->summary, c->slowest);
    double work_s = l.work_s, slow_work_s = l.slow_work_s, shared_s = l.shared_s, in_use = l.in_use,
           waiting = l.waiting, all = 0;
    double compute_s = waits->steady->rows[HEC_STATE_COMPUTE].seconds, slow_compute_s = its[HEC_STATE_COMPUTE].seconds;
    bool one = l.one, late = l.idle;
    double goes = fmin(goes_with_code(c, &l), waiting - said_elsewhere(&l)) / waiting;
    struct excess e = l.e;
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        all += c->lost_s[i];
    out->title = c->inferred ? HEC_FACT(RANK_LIKELY, waiting / in_use, c->slowest, c->waits_most)
                 : one       ? HEC_FACT(RANK_WAITS, waiting / in_use, c->slowest, c->waits_most)
                             : HEC_FACT(RANKS_IN_TURN, all / c->count / in_use);
    if (rank && c->inferred)
        hec_finding_add(out, HEC_FACT(RANK_UNSEEN, rank->held_s, c->slowest, rank->held_j));
    else if (rank)
        hec_finding_add(out, HEC_FACT(RANK_LAST, (double)rank->last, c->slowest, (double)rank->collectives,
                                      rank->held_s, rank->held_j));
    if (l.told)
        hec_finding_add_of(out, hec_state_name(e.state), HEC_FACT(RANK_STATE, e.own_s, c->slowest, e.others_s));
    else
        hec_finding_add(out,
                        HEC_FACT(RANK_WORK, slow_work_s, c->slowest, c->waits_most, work_s, c->count, c->mean_work_s));
    hec_finding_add(out, HEC_FACT(RANK_COMPUTE, slow_compute_s, compute_s));
    if (c->on_host)
        report_place(waits, shared_s, out);
    else
        hec_finding_add(out, HEC_FACT(RANK_COMM, shared_s, c->waited_s[c->waits_most]));
    if (c->waited_s[c->waits_most] - waiting >= HEC_STRAGGLER_LEAST_SKEW * in_use)
        hec_finding_add(out, HEC_FACT(RANK_OWN_HOST, c->waited_s[c->waits_most] - waiting, c->waits_most));
    if (late)
        out->lever = HEC_ANSWER(SLOW_HOST, c->slowest);
    report_clocks(f, waits, out);
    out->confidence = c->inferred  ? HEC_STRAGGLER_CONFIDENCE_INFERRED
                      : c->matched ? HEC_STRAGGLER_CONFIDENCE_MATCHED
                                   : HEC_STRAGGLER_CONFIDENCE;
    out->devices = c->devices;
    /* Even shares: all take the mean. Work moves and is still paid for, and so is what a rank alone does for no work; the waiting of all
     * devices goes. */
    double sooner = goes * (late ? waiting - c->lost_s[c->slowest] : all / c->count) / f->run_s;
    double joules = goes * c->lost_j;
    double idle_w =
        f->device->ledger ? f->device->ledger->rows[e.state].watts : NAN; /* only the whole run's is priced */
    if (late && e.own_s > e.others_s && isfinite(idle_w))
        joules += fmin(e.own_s - e.others_s, goes * waiting) * idle_w;
    joules /= f->summary->joules;
    sooner = fmax(0, sooner);
    out->seconds = hec_saving_scaled((struct hec_saving){sooner, sooner, sooner}, HEC_STRAGGLER_GOES_LOW,
                                     HEC_STRAGGLER_GOES, HEC_STRAGGLER_GOES_HIGH);
    if (f->summary->joules > 0 && f->run_j > 0)
        out->joules =
            hec_saving_scaled((struct hec_saving){joules, joules, joules}, HEC_STRAGGLER_GOES_LOW, HEC_STRAGGLER_GOES,
                              HEC_STRAGGLER_GOES_HIGH * (c->estimated ? HEC_STRAGGLER_ESTIMATED_WIDER : 1));
    out->estimated = c->estimated;
    out->states = 1u << (late ? e.state : HEC_STATE_COMM);
    return true;
}
