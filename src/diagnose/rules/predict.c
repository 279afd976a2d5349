#include "diagnose/rules/predict.h"

#include "base/clock.h"
#include "diagnose/replay/power.h"
#include "diagnose/replay/replay.h"
#include "diagnose/rules/pace.h"

#include <math.h>
#include <stdlib.h>

#define REST_MAX 16 /* findings whose edits are tried together */

/* What an edit alone gave when it was last asked for: the devices of a job have many findings with the same answer. */
struct asked {
    bool known;
    double value;
    struct hec_replay replay;
};

struct hec_predictor {
    struct hec_schedule schedule;
    struct hec_replay recorded;
    struct hec_replay before; /* the same without CUPTI: what answers are compared with */
    double waits_left; /* of the time in which the device does nothing, where CUPTI records nothing; 1: as recorded */
    struct hec_replay_power power;
    double widen;         /* of intervals: power.h */
    double data_s;        /* that the program waited for data in the stretch */
    double checkpoint_s;  /* that it saved its state in it, at work in between or in calls */
    double link_gb_per_s; /* that pinned copies reach; NAN unknown: the edit's own */
    struct hec_pace pace;
    struct asked *asked; /* by edit; malloc'ed */
    double cores;        /* share of the usable cores that the program takes as it is; NAN unknown */
};

/* ---- which edit answers a finding ---- */

struct answer {
    enum hec_edit edit; /* HEC_EDIT_COUNT: none */
    double value;       /* NAN: its own */
};

/* What is left of kernels' time, where a rule says how much of the run's time is saved in them. */
static double left_of_compute(const struct hec_facts *f, double saved) {
    double compute_s = f->device->ledger ? f->device->ledger->rows[HEC_STATE_COMPUTE].seconds : 0;
    return compute_s > 0 ? fmin(1, fmax(0, 1 - saved * f->run_s / compute_s)) : NAN;
}

enum { HEC_EDIT_NONE = HEC_EDIT_COUNT };
static const enum hec_edit edits_of[HEC_LEVER_COUNT] = {
#define HEC_LEVER(id, edit, name, parameters) [HEC_LEVER_##id] = (enum hec_edit)HEC_EDIT_##edit,
#include "diagnose/lever.def"
};

static struct answer answer_of(const struct hec_predictor *p, const struct hec_finding *finding) {
    enum hec_edit edit = edits_of[finding->lever.id];
    switch (edit) {
    case HEC_EDIT_PINNED:
    case HEC_EDIT_BATCHED:
        return (struct answer){edit, p->link_gb_per_s};
    case HEC_EDIT_BATCH:
        return (struct answer){finding->edit_value > 1 ? edit : HEC_EDIT_COUNT, finding->edit_value};
    default: /* of work on the device it is what predict_compute found */
        return (struct answer){edit, finding->edit_value};
    }
}

/* ---- replays ---- */

/* Of the device that does most. */
static double busiest(const struct hec_replay *r) {
    double most_s = 0;
    for (int d = 0; d < HEC_DEVICE_MAX; d++)
        most_s = fmax(most_s, r->busy_s[d]);
    return most_s;
}

static int replay(const struct hec_predictor *p, const struct hec_replay_edit *edits, size_t count,
                  struct hec_replay *out) {
    struct hec_replay_edit all[REST_MAX + 2] = {hec_edit_untraced(&p->schedule)};
    size_t first = p->schedule.graph_left < 1;
    for (size_t i = 0; i < count; i++)
        all[first + i] = edits[i];
    int err = hec_replay_run(&p->schedule, all, first + count, false, NULL, out);
    double busy_s = fmin(out->seconds, busiest(out));
    out->seconds = busy_s + p->waits_left * (out->seconds - busy_s);
    return err;
}

static int replay_alone(const struct hec_predictor *p, struct answer a, struct hec_replay *out) {
    struct asked *asked = &p->asked[a.edit];
    struct hec_replay_edit edit = hec_edit_with(a.edit, a.value);
    if (!asked->known || !(asked->value >= edit.value && asked->value <= edit.value)) {
        int err = replay(p, &edit, 1, &asked->replay);
        asked->known = !err;
        asked->value = edit.value;
        if (err)
            return err;
    }
    *out = asked->replay;
    return 0;
}

/* Kernels take as long when they are recorded; what lies between them takes longer, and no record says which part of it. So where the
 * program is known to go faster outside of windows, each part is taken to be shorter alike. */
static double waits_left(const struct hec_predictor *p) {
    double busy_s = busiest(&p->before), waits_s = p->before.seconds - busy_s;
    double left_s = p->schedule.untraced * p->recorded.recorded_s - busy_s;
    return isfinite(left_s) && waits_s > 0 ? fmin(1, fmax(0, left_s / waits_s)) : 1;
}

/* More workers take more cores: with all that there are loading is faster by what was free. */
static void bound_by_cores(const struct hec_predictor *p, struct hec_replay *r) {
    r->seconds = fmax(r->seconds, p->data_s * p->cores); /* a NAN gives way */
}

/* What sets the pace from outside goes on as it does, but for a loader that is answered. */
static void bound_by_pace(const struct hec_predictor *p, bool loads, struct hec_replay *r) {
    if (p->pace.by != HEC_PACE_LOADER || !loads)
        r->seconds = fmax(r->seconds, p->pace.least * p->before.seconds);
}

/* Of several answers together, one of them to loading where loads. */
static void bound(const struct hec_predictor *p, bool loads, struct hec_replay *r) {
    if (loads)
        bound_by_cores(p, r);
    bound_by_pace(p, loads, r);
}

static double saved(const struct hec_predictor *p, const struct hec_replay *r) {
    return 1 - r->seconds / p->before.seconds;
}

/* Several jobs in one schedule: who is not in a collective knows nothing of the others; nor does who was recorded at another time. */
static bool one_job(const struct hec_schedule *s) {
    return s->process_count == 1 || (s->group_count > 0 && !hec_schedule_apart(s));
}

/* The slowest of the devices that are used. */
static double link_of(const struct hec_summary *summary) {
    double rate = NAN;
    for (int i = 0; i < summary->device_count; i++)
        if (summary->devices[i].readings.used && summary->devices[i].readings.device.pcie_kib_per_s > 0)
            rate =
                fmin(rate, HEC_COPY_LINK_REACH * 1024e-9 * (double)summary->devices[i].readings.device.pcie_kib_per_s);
    return rate;
}

int hec_predictor_begin(struct hec_meter *meter, const struct hec_summary *summary, struct hec_schedule *schedule,
                        struct hec_predictor **out, struct hec_why *why) {
    struct hec_predictor *p = calloc(1, sizeof *p);
    struct hec_replay usual;
    struct asked *asked = calloc(HEC_EDIT_COUNT, sizeof *asked);
    *out = NULL;
    if (!p || !asked) {
        free(p);
        free(asked);
        hec_schedule_free(schedule);
        return HEC_ERR_NOMEM;
    }
    p->asked = asked;
    p->schedule = *schedule;
    p->waits_left = 1;
    *schedule = (struct hec_schedule){0};
    int err = hec_replay_run(&p->schedule, NULL, 0, false, NULL, &p->recorded);
    if (!err)
        err = replay(p, NULL, 0, &p->before);
    if (!err) {
        p->waits_left = waits_left(p);
        err = replay(p, NULL, 0, &p->before);
    }
    if (!err)
        err = hec_replay_run(&p->schedule, NULL, 0, true, NULL, &usual);
    bool sound = !err && one_job(&p->schedule) && p->before.seconds > 0 &&
                 fabs(usual.seconds / p->recorded.recorded_s - 1) <= HEC_REPLAY_TRUST;
    if (sound)
        err = hec_replay_power_find(meter, summary, &p->schedule, &p->recorded, &p->power, why);
    for (size_t i = 0; i < p->schedule.count; i++) {
        const struct hec_schedule_call *c = &p->schedule.calls[i];
        p->data_s += (double)c->data_ns / HEC_NS_PER_S;
        p->checkpoint_s +=
            ((double)c->checkpoint_ns + (c->flags & HEC_CALL_IN_CHECKPOINT ? (double)(c->end_ns - c->begin_ns) : 0)) /
            HEC_NS_PER_S;
    }
    for (int i = 0; i < summary->device_count; i++)
        if (summary->devices[i].readings.used && p->pace.by == HEC_PACE_OWN)
            p->pace = hec_pace_of(summary, &summary->devices[i]);
    p->widen = hec_proofs_widen(summary);
    p->link_gb_per_s = link_of(summary);
    p->cores = summary->host.cores_usable > 0 ? summary->host.tree_cores / summary->host.cores_usable : NAN;
    if (sound && !err)
        *out = p;
    else
        hec_predictor_end(p);
    return err;
}

void hec_predictor_end(struct hec_predictor *p) {
    if (!p)
        return;
    hec_schedule_free(&p->schedule);
    free(p->asked);
    free(p);
}

/* ---- a finding ---- */

static int predict_with(const struct hec_predictor *p, struct answer a, struct hec_finding *finding) {
    struct hec_replay r;
    int err = replay_alone(p, a, &r);
    if (err)
        return err;
    if (a.edit == HEC_EDIT_DATA)
        bound_by_cores(p, &r);
    double seconds = saved(p, &r);
    finding->step_seconds = hec_proofs_seconds(a.edit, (struct hec_saving){seconds, seconds, seconds}, p->widen);
    finding->step_joules = hec_proofs_joules(a.edit, hec_replay_power_saved(&p->power, &p->before, &r), p->widen);
    finding->replayed = true;
    finding->proven = hec_proofs_known(a.edit);
    return 0;
}

/* The rule says how long kernels would take; the replay, how much of that a step is shorter by: where the host is in the way it is
 * less. How far both are off is in the proofs. */
static int predict_compute(const struct hec_predictor *p, const struct hec_facts *f, struct hec_finding *finding) {
    struct hec_replay r;
    finding->edit_value = left_of_compute(f, finding->seconds.best);
    if (isnan(finding->edit_value))
        return 0;
    const struct answer a = {HEC_EDIT_COMPUTE, finding->edit_value};
    int err = predict_with(p, a, finding);
    if (!err)
        err = replay_alone(p, a, &r);
    if (err)
        return err;
    /* The rule also says how much more what stays draws; at most it is saved what as many watts leave. */
    struct hec_saving saves = hec_replay_power_saved(&p->power, &p->before, &r);
    r.hotter = finding->hotter;
    double high = saves.high;
    saves = hec_replay_power_saved(&p->power, &p->before, &r);
    saves.high = fmax(saves.high, high);
    finding->step_joules = hec_proofs_joules(a.edit, saves, p->widen);
    return 0;
}

static double steady_share(const struct hec_facts *f, enum hec_state state) {
    const struct hec_ledger_device *steady = f->device->steady;
    return steady && steady->window_ns > 0 ? steady->rows[state].seconds * 1e9 / (double)steady->window_ns : 0;
}

/* What stacks tell apart from the program's own code is one with it in a recorded schedule, which has no stacks: so of waiting
 * for data it has less than the ledger. */
static bool told_by_stacks(const struct hec_predictor *p, const struct hec_facts *f) {
    const struct hec_ledger_device *steady = f->device->steady;
    double data = steady_share(f, HEC_STATE_DATA);
    double code = f->device->ledger ? f->device->ledger->rows[HEC_STATE_HOST].seconds : 0;
    return f->device->compiling_s > 0 || f->device->launching_s > code / 2 ||
           (steady && steady->rows[HEC_STATE_REQUESTS].seconds > 0) || p->data_s < data / 2 * p->recorded.recorded_s;
}

/* A state is saved once in hundreds of steps: a schedule of a second or two has none of it, or one where there are fewer as a rule. The
 * ledger has all of them. */
static bool saves_otherwise(const struct hec_predictor *p, const struct hec_facts *f) {
    double share = steady_share(f, HEC_STATE_CHECKPOINT), here = p->checkpoint_s / p->recorded.recorded_s;
    return here < share / 2 || (share > 0 && here > 2 * share);
}

int hec_predict(const struct hec_predictor *p, const struct hec_facts *f, struct hec_finding *finding) {
    if (!p || !isfinite(finding->seconds.best))
        return 0;
    struct answer a = answer_of(p, finding);
    bool code = a.edit == HEC_EDIT_HOST || a.edit == HEC_EDIT_DATA;
    /* Without steps the schedule is of all of the run, what is held between two works with it, which rules leave out. */
    bool holds = f && !f->device->steps.count && f->device->hold.to_ns > f->device->hold.from_ns;
    if (a.edit == HEC_EDIT_COUNT || (code && f && (holds || told_by_stacks(p, f))) ||
        (a.edit == HEC_EDIT_CHECKPOINT && f && saves_otherwise(p, f)))
        return 0;
    if (a.edit == HEC_EDIT_FUSE && isnan(a.value)) /* nobody saw which kernels */
        return 0;
    return a.edit == HEC_EDIT_COMPUTE ? predict_compute(p, f, finding) : predict_with(p, a, finding);
}

void hec_predictor_stretch(const struct hec_predictor *p, int device, double *seconds, double *joules) {
    *seconds = p->recorded.recorded_s;
    *joules = device >= 0 && device < HEC_DEVICE_MAX ? p->power.joules[device] : NAN;
}

/* What is tried together with the others. */
static bool joins(const struct hec_predictor *p, const struct hec_finding *f, struct hec_replay_edit *edit) {
    struct answer a = answer_of(p, f);
    if (!f->replayed || !(fmax(f->step_seconds.best, f->joules_ruled ? NAN : f->step_joules.best) >= HEC_FINDING_WORTH))
        return false;
    *edit = hec_edit_with(a.edit, a.value);
    return true;
}

/* Of the host's: those of the device's work need a rule to say what is left of it. */
static const enum hec_edit limits[] = {HEC_EDIT_DATA,  HEC_EDIT_HOST,       HEC_EDIT_GRAPHS, HEC_EDIT_WAITS,
                                       HEC_EDIT_ALLOC, HEC_EDIT_CHECKPOINT, HEC_EDIT_PINNED};

static bool is_found(const struct hec_findings *findings, enum hec_cause cause) {
    for (int i = 0; i < findings->count; i++)
        if (findings->list[i].cause == cause)
            return true;
    return false;
}

/* What holds a step up once all answers are there, and did not show before. edits: theirs, with room for one more; after: their replay. */
static int predict_next(const struct hec_predictor *p, struct hec_replay_edit *edits, size_t count,
                        const struct hec_replay *after, bool loads, struct hec_findings *findings) {
    double least_s =
        fmin((1 - HEC_FINDING_NEXT) * after->seconds, after->seconds - HEC_FINDING_WORTH * p->before.seconds);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct hec_replay r;
        if (is_found(findings, hec_edit_info(limits[i])->cause))
            continue;
        edits[count] = hec_edit_with(limits[i], limits[i] == HEC_EDIT_PINNED ? p->link_gb_per_s : NAN);
        int err = replay(p, edits, count + 1, &r);
        if (err)
            return err;
        bound(p, loads || limits[i] == HEC_EDIT_DATA, &r);
        r.hotter = after->hotter;
        if (r.seconds > least_s)
            continue;
        least_s = r.seconds;
        findings->next = hec_edit_info(limits[i])->cause;
        findings->next_seconds = (after->seconds - r.seconds) / p->before.seconds;
        findings->next_joules = hec_replay_power_saved(&p->power, &p->before, &r).best -
                                hec_replay_power_saved(&p->power, &p->before, after).best;
    }
    return 0;
}

int hec_predict_rest(const struct hec_predictor *p, struct hec_findings *findings) {
    struct hec_replay_edit edits[REST_MAX + 1];
    struct hec_replay before, after;
    size_t count = 0;
    bool loads = false;
    double denser = 1;
    if (!p)
        return 0;
    before = p->before;
    for (int i = 0; i < findings->count && count < REST_MAX; i++) {
        struct hec_finding *f = &findings->list[i];
        if (!joins(p, f, &edits[count]))
            continue;
        count++;
        loads = loads || f->cause == HEC_CAUSE_DATA;
        int err = replay(p, edits, count, &after);
        if (err)
            return err;
        bound(p, loads, &after);
        denser *= answer_of(p, f).edit == HEC_EDIT_COMPUTE ? 1 + f->hotter : 1;
        after.hotter = denser - 1;
        f->rest_seconds = fmax(0, (before.seconds - after.seconds) / p->before.seconds);
        findings->together_seconds = fmax(0, saved(p, &after));
        struct hec_saving first = hec_replay_power_saved(&p->power, &p->before, &before);
        struct hec_saving all = hec_replay_power_saved(&p->power, &p->before, &after);
        bool joules = isfinite(f->step_joules.best) && !f->joules_ruled;
        f->rest_joules = !joules ? NAN : count == 1 ? f->step_joules.best : fmax(0, all.best - first.best);
        findings->together_joules = joules ? fmax(0, all.best) : NAN;
        before = after;
    }
    /* without steps the stretch may have a start-up in it, which no answer shortens */
    return count && p->schedule.steps > 0 ? predict_next(p, edits, count, &before, loads, findings) : 0;
}

int hec_predict_lanes(const struct hec_predictor *p, const struct hec_findings *findings,
                      struct hec_step_lanes *recorded, struct hec_step_lanes *answered, int *count) {
    struct hec_replay_edit edits[REST_MAX];
    struct hec_replay unchanged, all = {0}, bounded;
    size_t joined = 0;
    bool loads = false;
    *count = 0;
    *recorded = *answered = (struct hec_step_lanes){.device = -1};
    for (int i = 0; p && i < findings->count && joined < REST_MAX; i++)
        if (joins(p, &findings->list[i], &edits[joined])) {
            joined++;
            loads = loads || findings->list[i].cause == HEC_CAUSE_DATA;
        }
    if (!joined)
        return 0;
    struct hec_lanes_step step;
    int err = hec_lanes_begin(&p->schedule, &step);
    if (!err)
        err = hec_replay_run(&p->schedule, NULL, 0, false, &step.before, &unchanged);
    if (!err)
        err = hec_replay_run(&p->schedule, edits, joined, false, &step.after, &all);
    bounded = all;
    if (!err)
        bound(p, loads, &bounded);
    if (!err && bounded.seconds <= all.seconds) {
        hec_lanes_draw(&p->schedule, &step, &unchanged, &all, HEC_LANE_COLUMNS_MOST, recorded, answered);
        *count = recorded->device < 0 ? 0 : (int)joined;
    }
    hec_lanes_end(&step);
    return err;
}
