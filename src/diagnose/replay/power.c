#include "diagnose/replay/power.h"

#include "base/clock.h"
#include "diagnose/limits.h"
#include "diagnose/meter/joules.h"

#include <math.h>
#include <string.h>

#define ROUGH 0.5    /* width of the interval of watts, of them: more is not known */
#define MATTERS 0.02 /* of the stretch */
#define HIDDEN_MOST 0.1
#define APART 0.05 /* of processes whose shares of waiting differ */
/* The longest of the states in which the device waits for the host says it best. Launching is mixed with kernels; but for what
 * stacks say is a framework's code (launching_s), which is as long in one piece as the program's own. */
static const struct hec_ledger_row *waiting(const struct hec_ledger_row *rows, double launching_s) {
    static const enum hec_state waits[] = {HEC_STATE_DATA,  HEC_STATE_CHECKPOINT, HEC_STATE_HOST,     HEC_STATE_SYNC,
                                           HEC_STATE_ALLOC, HEC_STATE_LAUNCH,     HEC_STATE_REQUESTS, HEC_STATE_PEERS};
    const struct hec_ledger_row *longest = NULL;
    double most_ns = 0;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        const struct hec_ledger_row *row = &rows[waits[i]];
        double ns = (double)row->ns;
        ns += waits[i] == HEC_STATE_HOST ? launching_s * 1e9 : waits[i] == HEC_STATE_LAUNCH ? -launching_s * 1e9 : 0;
        if (isfinite(row->watts) && (!longest || ns > most_ns)) {
            longest = row;
            most_ns = ns;
        }
    }
    return longest;
}

/* What communication draws above idle while it goes beside work, of what it does alone. */
static const double hidden_draws[3] = {1, 0.5, 0};

/* Communication that nothing runs beside, without its waiting for other processes. */
static double comm_s(const struct hec_replay *r, int device) {
    return r->active_s[device] - r->work_s[device];
}

/* In communication, for other processes. */
static double waits_s(const struct hec_replay *r, int device) {
    return r->kernels_s[device] - r->active_s[device];
}

/* Larger kernels do in less time what smaller ones did: above idle it takes nearly the same joules. */
static double work_joules(const struct hec_replay_watts *w, int end, const struct hec_replay *r,
                          const struct hec_replay *recorded) {
    /* At most, at best guess, and at least: weights that are read once for more samples leave much less. */
    const double dynamic_stays[3] = {1, HEC_DYNAMIC_STAYS, HEC_DYNAMIC_STAYS_LEAST};
    double work_s = r->work_s[w->device], most_s = recorded->work_s[w->device];
    if (r->work == 1 || work_s >= most_s)
        return work_s * w->work[end] * (1 + r->hotter);
    double dynamic = fmax(0, w->work[end] - w->idle[end]) * (work_s + dynamic_stays[end] * (most_s - work_s));
    return work_s * w->idle[end] + dynamic;
}

static double joules_at(const struct hec_replay_watts *w, int end, const struct hec_replay *r,
                        const struct hec_replay *recorded) {
    double kernels_s = r->kernels_s[w->device], busy_s = r->busy_s[w->device];
    return work_joules(w, end, r, recorded) + comm_s(r, w->device) * w->comm[end] +
           waits_s(r, w->device) * w->wait[end] + (busy_s - kernels_s) * w->copy[end] +
           fmax(0, r->seconds - busy_s) * w->idle[end];
}

static bool sure(const struct hec_ledger_row *row) {
    return row->watts_high - row->watts_low <= ROUGH * row->watts;
}

/* joules: of the device in the recorded stretch. A copy alone draws little more than waiting: where it is not known how much, as much. */
static struct hec_replay_watts watts_of(const struct hec_ledger_device *d, double launching_s,
                                        const struct hec_replay *recorded, double joules) {
    const struct hec_ledger_row *idle = waiting(d->rows, launching_s), *comm = &d->rows[HEC_STATE_COMM],
                                *copy = &d->rows[HEC_STATE_COPY];
    struct hec_replay_watts w = {.device = d->device,
                                 .joules = joules,
                                 .comm_known = isfinite(comm->watts) && sure(comm),
                                 .work = {NAN, NAN, NAN},
                                 .idle = {NAN, NAN, NAN}}; /* which makes all of it unknown */
    if (!idle || !(recorded->work_s[d->device] > 0))
        return w;
    double watts[3] = {idle->watts_low, idle->watts, idle->watts_high}, mean = joules / recorded->seconds;
    for (int end = 0; end < 3; end++) {
        w.idle[end] = fmin(watts[end], mean); /* nothing draws less than a device that waits */
        w.copy[end] = isfinite(copy->watts) && sure(copy) ? fmax(copy->watts, w.idle[end]) : w.idle[end];
        w.comm[end] = w.comm_known ? comm->watts : NAN;
    }
    return w;
}

/* Joules that kernels drew, communication and waiting for other processes too. */
static double kernel_joules(const struct hec_replay_watts *w, int end, const struct hec_replay *recorded) {
    double kernels_s = recorded->kernels_s[w->device], busy_s = recorded->busy_s[w->device];
    return w->joules - (busy_s - kernels_s) * w->copy[end] - fmax(0, recorded->seconds - busy_s) * w->idle[end];
}

/* What waiting for other processes draws: where some wait more than others and all do alike otherwise, their joules say it (least
 * squares). NAN: they do not. */
static double waiting_watts(const struct hec_replay_power *power, const struct hec_replay *recorded) {
    double aa = 0, aw = 0, ww = 0, aj = 0, wj = 0;
    for (int i = 0; i < power->count; i++) {
        const struct hec_replay_watts *w = &power->of[i];
        double active_s = recorded->active_s[w->device], wait_s = waits_s(recorded, w->device);
        double joules = kernel_joules(w, 1, recorded);
        aa += active_s * active_s;
        aw += active_s * wait_s;
        ww += wait_s * wait_s;
        aj += active_s * joules;
        wj += wait_s * joules;
    }
    double apart = aa * ww - aw * aw;
    return apart > APART * aa * ww ? (aa * wj - aw * aj) / apart : NAN;
}

/* The rest of the joules goes to work, and to communication, which draws as much where it is not known what it does. Waiting for other
 * processes draws more than waiting for the host, and no more than work. */
static void settle(struct hec_replay_watts *w, const struct hec_replay *recorded, double waiting) {
    double alone_s = comm_s(recorded, w->device), wait_s = waits_s(recorded, w->device);
    double work_s = recorded->work_s[w->device], kernels_s = recorded->kernels_s[w->device];
    for (int end = 2; end >= 0; end--) { /* the most first, which leaves the least */
        double joules = kernel_joules(w, end, recorded), alike = joules / kernels_s;
        w->wait[end] = isnan(waiting) ? (end == 2 ? alike : w->idle[end]) : fmin(fmax(waiting, w->idle[end]), alike);
        joules -= wait_s * w->wait[end];
        w->comm_known &= joules >= alone_s * w->comm[end];
        w->work[end] = w->comm_known ? (joules - alone_s * w->comm[end]) / work_s : joules / (work_s + alone_s);
        w->comm[end] = w->comm_known ? w->comm[end] : w->work[end];
    }
}

/* Seconds of communication that went beside work; where it is known what communication draws they do not matter. NAN: too many. */
static double hidden_s(const struct hec_replay_watts *w, const struct hec_replay *before,
                       const struct hec_replay *after) {
    double seconds = comm_s(before, w->device) - comm_s(after, w->device);
    if (w->comm_known || fabs(seconds) <= MATTERS * before->seconds)
        return 0;
    return seconds > 0 && seconds <= HIDDEN_MOST * before->seconds ? seconds : NAN;
}

struct hec_saving hec_replay_power_saved(const struct hec_replay_power *power, const struct hec_replay *before,
                                         const struct hec_replay *after) {
    double saved[3];
    for (int end = 0; end < 3; end++) {
        double from = 0, to = 0;
        for (int i = 0; i < power->count; i++) {
            const struct hec_replay_watts *w = &power->of[i];
            from += joules_at(w, end, before, before);
            to += joules_at(w, end, after, before) +
                  hidden_s(w, before, after) * hidden_draws[end] * (w->comm[end] - w->idle[end]);
        }
        saved[end] = power->count > 0 && from > 0 ? 1 - to / from : NAN;
    }
    return (struct hec_saving){fmin(saved[0], saved[2]), saved[1], fmax(saved[0], saved[2])};
}

int hec_replay_power_find(struct hec_meter *meter, const struct hec_summary *summary, const struct hec_schedule *s,
                          const struct hec_replay *recorded, struct hec_replay_power *out, struct hec_why *why) {
    const int64_t begin_ns = s->count ? s->calls[0].begin_ns + s->lag_ns : 0;
    const int64_t edge[2] = {begin_ns, begin_ns + llround(recorded->recorded_s * HEC_NS_PER_S)};
    int err = 0;
    out->count = 0;
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        out->joules[i] = NAN;
    for (int i = 0; i < summary->device_count && !err; i++) {
        const struct hec_device_diagnosis *d = &summary->devices[i];
        int device = d->readings.device.index;
        struct hec_joules of_stretch = {NAN, NAN};
        if (!d->ledger || device < 0 || device >= HEC_DEVICE_MAX || !(recorded->busy_s[device] > 0))
            continue;
        err = hec_meter_joules(meter, &d->readings, edge, 1, &of_stretch, why);
        out->joules[device] = of_stretch.joules;
        out->of[out->count++] = watts_of(d->ledger, d->launching_s, recorded, of_stretch.joules);
    }
    double waiting = waiting_watts(out, recorded);
    for (int i = 0; i < out->count; i++)
        settle(&out->of[i], recorded, waiting);
    return err;
}

/* With L(s) = -ln(1 - s) + 0.05: what is left of a step after fixes that each leave a share is the product of those, and -ln(1 - s) adds
 * up. Proven L over replayed L is lognormal about exp(mean), by edit; two predictive standard deviations are the interval. */

#define DEVIATIONS 2.0
#define MOST 0.999   /* of a step that can be saved */
#define NOTHING 0.05 /* a saving so small may as well be nothing, or twice as much: added to L */

struct spread {
    int count; /* proofs */
    double mean, spread;
};

static const struct {
    struct spread seconds, joules;
} proofs[HEC_EDIT_COUNT] = {
#define HEC_REPLAY_PROOF(edit, count, seconds_mean, seconds_spread, joules_mean, joules_spread)                        \
    [HEC_EDIT_##edit] = {{count, seconds_mean, seconds_spread}, {count, joules_mean, joules_spread}},
#define HEC_PROOF_DEVICE(name)
#include "diagnose/replay/proofs.def"
#undef HEC_REPLAY_PROOF
#undef HEC_PROOF_DEVICE
};

static const char *const devices[] = {
#define HEC_REPLAY_PROOF(...)
#define HEC_PROOF_DEVICE(name) name,
#include "diagnose/replay/proofs.def"
};

static bool proven_on(const char *device) {
    bool any = false;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        any |= strstr(device, devices[i]) != NULL;
    return any;
}

double hec_proofs_widen(const struct hec_summary *summary) {
    bool device = false;
    for (int i = 0; i < summary->device_count; i++)
        device = device || (summary->devices[i].readings.used && proven_on(summary->devices[i].readings.device.name));
    return device && summary->pytorch[0] ? 1 : HEC_PROOFS_ELSEWHERE;
}

bool hec_proofs_known(enum hec_edit edit) {
    return proofs[edit].seconds.count > 0;
}

double hec_proofs_scaled(double saving, double by) {
    double l = NOTHING - log(1 - fmin(MOST, fmax(0, saving)));
    return 1 - exp(fmin(0, NOTHING - l * exp(by)));
}

static struct hec_saving widened(struct spread s, struct hec_saving replayed, double widen) {
    if (isnan(replayed.best))
        return replayed;
    double mean = s.count > 0 ? s.mean : 0, spread = DEVIATIONS * widen * (s.count > 0 ? s.spread : HEC_PROOFS_NONE);
    double best = fmin(MOST, fmax(0, replayed.best));
    return (struct hec_saving){fmin(best, hec_proofs_scaled(replayed.low, mean - spread)), best,
                               fmax(best, hec_proofs_scaled(replayed.high, mean + spread))};
}

struct hec_saving hec_proofs_seconds(enum hec_edit edit, struct hec_saving replayed, double widen) {
    return widened(proofs[edit].seconds, replayed, widen);
}

struct hec_saving hec_proofs_joules(enum hec_edit edit, struct hec_saving replayed, double widen) {
    return widened(proofs[edit].joules, replayed, widen);
}
