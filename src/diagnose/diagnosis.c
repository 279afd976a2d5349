#include "diagnose/diagnosis.h"

#include "base/clock.h"
#include "diagnose/feed.h"
#include "diagnose/inferred.h"
#include "diagnose/pricing.h"
#include "diagnose/unmix.h"
#include "diagnose/use.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(HEC_STATE_COUNT + HEC_PRICING_KINDS - 1 <= HEC_UNMIX_CLASSES, "a class of unmix.h for each state");

#define WHOLE_NS (10000 * HEC_NS_PER_S) /* readings of so much are kept; of longer runs those of every nth minute */
#define MINUTE_NS (60 * HEC_NS_PER_S)
#define SPAN_MOST                                                                                                      \
    3 /* a sample so many usual spacings after the one before follows a gap: what it covers is not known */
#define SLACK_SHARE 4 /* ends of a counter's window are known to at least this fraction of its length */
#define WINDOW_MOST_NS (2 * HEC_NS_PER_S)
#define SPACING_DEFAULT_NS (20 * HEC_NS_PER_MS)

/* What is known of one device beyond its states. */
struct supply {
    const struct hec_device_summary *summary;
    struct hec_unmix *unmix;             /* NULL: nothing to solve */
    struct hec_class_profiler *profiler; /* NULL: it ran no kernels */
    int64_t minutes;                     /* every so many counts */
    bool has_peaks;                      /* it was calibrated */
    struct hec_peaks peaks;
    struct hec_pricing_order order;
    int64_t tight_ns; /* see pricing.h */
    int err;
    /* of the series at hand */
    int64_t usual_ns, previous_ns;
    bool previous;
    struct hec_slack {
        int64_t t_ns, slack_ns;
    } * slacks;
    size_t slack_count, slack_capacity, slack_at;
    struct edge {
        int64_t t_ns, slack_ns, mj;
        bool known;
    } edge;
};

struct build {
    struct hec_steady steady[HEC_DEVICE_MAX]; /* by hec_device.index */
    struct hec_step_summary *steps;           /* the same; malloc'ed */
    struct hec_ledger_builder *ledger, *steady_ledger;
    struct hec_gaps gaps;
    struct hec_calls *calls;
    struct hec_source_builder *source, *steady_source;
    struct supply *supplies;
    int supply_count;
    struct hec_inferred *inferred; /* NULL: CUPTI saw all that is told */
    const struct hec_timeline *told;
    bool active[HEC_DEVICE_MAX]; /* has pieces */
};

/* ---- readings ---- */

static bool counts(const struct supply *s, int64_t t_ns) {
    return s->minutes <= 1 || t_ns / MINUTE_NS % s->minutes == 0;
}

static void take_power(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct supply *s = context;
    int64_t span = t_ns - s->previous_ns;
    bool follows = s->previous && span > 0 && span <= SPAN_MOST * s->usual_ns;
    s->previous = valid;
    s->previous_ns = t_ns;
    span = 2 * span > 3 * s->usual_ns ? s->usual_ns : span; /* one before was lost */
    if (valid && follows && !s->err && counts(s, t_ns)) {
        s->err = hec_unmix_power(s->unmix, t_ns, span, (double)value / 1e3);
        if (!s->err && s->profiler)
            s->err = hec_class_profiler_power(s->profiler, t_ns, span, (double)value / 1e3);
    }
}

static void take_slack(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct supply *s = context;
    if (!valid || s->err || value < 0 || value > WINDOW_MOST_NS / HEC_NS_PER_US || !counts(s, t_ns))
        return;
    if (s->slack_count == s->slack_capacity) {
        size_t capacity = s->slack_capacity ? 2 * s->slack_capacity : 1024;
        struct hec_slack *grown = realloc(s->slacks, capacity * sizeof *grown);
        if (!grown) {
            s->err = HEC_ERR_NOMEM;
            return;
        }
        s->slacks = grown;
        s->slack_capacity = capacity;
    }
    s->slacks[s->slack_count++] = (struct hec_slack){t_ns, value * HEC_NS_PER_US};
}

/* Windows between the instants at which the counter's values became current: each lies within its slack before t. */
static void take_counter(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct supply *s = context;
    if (!valid || s->err)
        return;
    while (s->slack_at < s->slack_count && s->slacks[s->slack_at].t_ns < t_ns)
        s->slack_at++;
    if (s->slack_at == s->slack_count || s->slacks[s->slack_at].t_ns != t_ns)
        return; /* where it lies is not known */
    struct edge now = {t_ns, s->slacks[s->slack_at].slack_ns, value, true}, *from = &s->edge;
    int64_t start = from->t_ns - from->slack_ns / 2, end = now.t_ns - now.slack_ns / 2;
    if (from->known && now.mj < from->mj)
        from->known = false; /* reset */
    if (from->known && end - start > WINDOW_MOST_NS)
        from->known = false; /* the shares of a long one are all alike */
    if (from->known && SLACK_SHARE * (from->slack_ns + now.slack_ns) / 2 > end - start)
        return; /* wait for one that is far enough off */
    if (from->known) {
        double joules = (double)(now.mj - from->mj) / 1e3, watts = joules * HEC_NS_PER_S / (double)(end - start);
        double a = (double)from->slack_ns / HEC_NS_PER_S, b = (double)now.slack_ns / HEC_NS_PER_S;
        double sigma_j = sqrt((a * a + b * b) / 12) * watts;
        s->err = hec_unmix_window(s->unmix, start, end, joules, sigma_j);
        if (!s->err && s->profiler)
            s->err = hec_class_profiler_window(s->profiler, start, end, joules, sigma_j);
    }
    *from = now;
}

static int read_supply(const struct hec_summary_input *input, const struct hec_timeline *told, struct supply *s,
                       struct hec_why *why) {
    const struct hec_device_summary *d = s->summary;
    struct hec_unmix_sensor sensor = {0, 0};
    s->has_peaks = input->peaks && input->peaks(input->context, &d->device, &s->peaks) == 0 && !s->peaks.simulated;
    const struct hec_peak *window = &s->peaks.peak[HEC_PEAK_SENSOR_WINDOW],
                          *delay = &s->peaks.peak[HEC_PEAK_SENSOR_DELAY];
    if (s->has_peaks && window->value > 0 && delay->value > 0)
        sensor = (struct hec_unmix_sensor){llround(window->value), llround(delay->value)};
    const struct hec_unmix_options options = hec_pricing_options(d->power_limit_w, &sensor);
    int subject = d->device.index, err = hec_class_profiler_begin(told, d, &sensor, &s->profiler);
    s->minutes = d->energy.window_s > 0 ? 1 + (int64_t)(d->energy.window_s * HEC_NS_PER_S) / WHOLE_NS : 1;
    if (!err && s->profiler)
        err = hec_class_profiler_read(s->profiler, input, s->minutes, why);
    if (err || !d->energy.valid || !(d->energy.joules > 0))
        return err;
    if ((err = hec_unmix_begin(&options, &s->unmix)) != 0)
        return err;
    s->usual_ns =
        d->energy.sample_spacing_s > 0 ? llround(d->energy.sample_spacing_s * HEC_NS_PER_S) : SPACING_DEFAULT_NS;
    if (d->device.has_power_history > 0) /* polled, what a value covers is not known */
        err = hec_feed(input, HEC_GPU_POWER, subject, take_power, s, why);
    if (!err)
        err = hec_feed(input, HEC_GPU_ENERGY_SLACK, subject, take_slack, s, why);
    if (!err)
        err = hec_feed(input, HEC_GPU_ENERGY, subject, take_counter, s, why);
    free(s->slacks);
    s->slacks = NULL;
    return err ? err : s->err;
}

/* ---- the pass over the states ---- */

static int take_tables(void *context, const struct hec_timeline_tables *tables) {
    struct build *b = context;
    b->calls = hec_calls_begin(tables);
    return b->calls ? 0 : HEC_ERR_NOMEM;
}

static void find_steady(struct build *b, const struct hec_device_steps *steps) {
    hec_ledger_steps(b->ledger, steps);
    hec_ledger_steps(b->steady_ledger, steps);
    for (int device = 0; device < HEC_DEVICE_MAX; device++)
        b->steady[device] = hec_steady_of(hec_device_steps_of(steps, device));
}

static const struct hec_steady *steady_of(const struct build *b, int device) {
    static const struct hec_steady unknown = {0};
    return device >= 0 && device < HEC_DEVICE_MAX ? &b->steady[device] : &unknown;
}

static int take_steps(void *context, const struct hec_device_steps *steps) {
    struct build *b = context;
    find_steady(b, steps);
    hec_calls_steps(b->calls, steps);
    b->steps = calloc(HEC_DEVICE_MAX, sizeof *b->steps);
    int err = b->steps ? 0 : HEC_ERR_NOMEM;
    for (int device = 0; device < HEC_DEVICE_MAX && !err; device++) {
        int same = 0; /* a process with many devices is summed up once */
        while (same < device && steps->of[same] != steps->of[device])
            same++;
        if (same < device)
            b->steps[device] = b->steps[same];
        else if (steps->of[device])
            err = hec_step_survey_result(steps->survey, steps->tables, steps->of[device], &b->steps[device]);
    }
    return err;
}

static int take_activities(void *context, const struct hec_activity *activities, size_t count) {
    hec_calls_activities(((struct build *)context)->calls, activities, count);
    return 0;
}

static struct supply *supply_of(struct build *b, int device) {
    for (int i = 0; i < b->supply_count; i++)
        if (b->supplies[i].summary->device.index == device)
            return &b->supplies[i];
    return NULL;
}

/* Part of the time in which kernels ran that the device did nothing but communicate, where it was seen. */
static double comm_share(const struct hec_timeline *told, int device) {
    for (int i = 0; told && i < told->device_count; i++) {
        const struct hec_device_timeline *t = &told->devices[i];
        double alone = t->comm_s * (1 - (isfinite(t->comm_overlap) ? t->comm_overlap : 0));
        if (t->device == device && alone > 0)
            return alone / (t->compute_s + alone);
    }
    return 0;
}

/* Of kernels that nobody saw, so much is communication as of those in the glimpse. */
static int in_parts(struct build *b, int device, const struct hec_state_piece *piece,
                    int (*take)(struct build *b, int device, const struct hec_state_piece *piece)) {
    struct hec_state_piece compute = *piece, comm = *piece;
    bool seen = !b->inferred || piece->state != HEC_STATE_COMPUTE ||
                hec_inferred_seen(b->inferred, device, piece->start_ns, piece->end_ns);
    double share = seen ? 0 : comm_share(b->told, device);
    if (!(share > 0))
        return take(b, device, piece);
    compute.end_ns -= (int64_t)(share * (double)(piece->end_ns - piece->start_ns));
    comm.start_ns = compute.end_ns;
    comm.state = HEC_STATE_COMM;
    comm.kernel_class = HEC_KERNEL_CLASS_COMM;
    int err = compute.start_ns < compute.end_ns ? take(b, device, &compute) : 0;
    return !err && comm.start_ns < comm.end_ns ? take(b, device, &comm) : err;
}

static int give_piece(struct build *b, int device, const struct hec_state_piece *piece) {
    struct supply *s = supply_of(b, device);
    struct hec_state_piece inside;
    int err = hec_ledger_piece(b->ledger, device, piece);
    if (device >= 0 && device < HEC_DEVICE_MAX)
        b->active[device] = true;
    if (!err && hec_steady_clip(steady_of(b, device), piece, &inside)) {
        err = hec_ledger_piece(b->steady_ledger, device, &inside);
        if (!err)
            err = hec_gaps_piece(&b->gaps, device, &inside, steady_of(b, device)->known);
    }
    hec_calls_piece(b->calls, device, piece);
    if (!err && s && s->unmix && piece->traced) {
        int class = hec_pricing_class(&s->order, piece);
        if (hec_pricing_tight(piece))
            s->tight_ns += piece->end_ns - piece->start_ns;
        err = hec_unmix_piece(s->unmix, class, piece->start_ns, piece->end_ns);
    }
    bool seen = !b->inferred || hec_inferred_seen(b->inferred, device, piece->start_ns, piece->end_ns);
    if (!err && s && s->profiler && seen)
        err = hec_class_profiler_piece(s->profiler, piece);
    return err;
}

static int take_piece(void *context, int device, const struct hec_state_piece *piece) {
    return in_parts(context, device, piece, give_piece);
}

static int take_sample(void *context, int device, const struct hec_state_sample *sample) {
    struct build *b = context;
    int err = hec_source_sample(b->source, device, sample);
    const struct hec_steady *steady = steady_of(b, device);
    bool inside = !steady->known || (sample->t_ns >= steady->from_ns && sample->t_ns < steady->to_ns);
    return !err && inside ? hec_source_sample(b->steady_source, device, sample) : err;
}

/* ---- what else may have been ---- */

static int steps_again(void *context, const struct hec_device_steps *steps) {
    find_steady(context, steps);
    return 0;
}

static int give_again(struct build *b, int device, const struct hec_state_piece *piece) {
    struct hec_state_piece inside;
    int err = hec_ledger_piece(b->ledger, device, piece);
    return !err && hec_steady_clip(steady_of(b, device), piece, &inside)
               ? hec_ledger_piece(b->steady_ledger, device, &inside)
               : err;
}

static int piece_again(void *context, int device, const struct hec_state_piece *piece) {
    return in_parts(context, device, piece, give_again);
}

/* The seconds' bounds: the ledgers of the other possibilities. */
static int widen(struct hec_inferred *inferred, const struct hec_timeline *told, struct hec_diagnosis *out,
                 struct hec_why *why) {
    int err = 0;
    for (int v = HEC_INFERRED_GUESS + 1; v < HEC_INFERRED_VARIANT_COUNT && !err; v++) {
        struct build b = {
            .ledger = hec_ledger_begin(), .steady_ledger = hec_ledger_begin(), .inferred = inferred, .told = told};
        const struct hec_state_visitor visitor = {.context = &b, .steps = steps_again, .piece = piece_again};
        const struct hec_timeline_input *timeline;
        struct hec_ledger ledger = {0}, steady = {0};
        err = b.ledger && b.steady_ledger ? hec_inferred_input(inferred, v, &timeline, why) : HEC_ERR_NOMEM;
        if (!err)
            err = hec_states_build(timeline, NULL, &visitor, why);
        if (!err) {
            err = hec_ledger_end(b.ledger, &ledger);
            b.ledger = NULL;
        }
        if (!err) {
            err = hec_ledger_end(b.steady_ledger, &steady);
            b.steady_ledger = NULL;
        }
        if (!err) {
            hec_ledger_widen(&out->ledger, &ledger);
            hec_ledger_widen(&out->steady, &steady);
        }
        hec_ledger_free(&ledger);
        hec_ledger_free(&steady);
        hec_ledger_abandon(b.ledger);
        hec_ledger_abandon(b.steady_ledger);
    }
    return err;
}

/* ---- a device that is held and not used ---- */

static bool unused(const struct build *b, const struct supply *s) {
    int device = s ? s->summary->device.index : -1;
    return device >= 0 && device < HEC_DEVICE_MAX && !b->active[device] && s->summary->used &&
           hec_use_nothing(s->summary) > 0;
}

/* Making the context is all that was done on it: what follows is tail. Where the energy's split does not say when there was
 * one, there was one throughout. */
static int add_unused(struct build *b, int64_t end_ns) {
    int err = 0;
    for (int i = 0; i < b->supply_count && !err; i++) {
        const struct hec_device_summary *d = b->supplies[i].summary;
        double without_s = isfinite(d->energy.idle_s) ? d->energy.idle_s : 0;
        int64_t held_ns = llround(fmin(without_s * HEC_NS_PER_S, (double)end_ns));
        const struct hec_state_piece pieces[] = {
            {.start_ns = 0, .end_ns = held_ns, .state = HEC_STATE_STARTUP, .traced = true},
            {.start_ns = held_ns, .end_ns = end_ns, .state = HEC_STATE_TAIL, .traced = true}};
        for (int k = 0; k < 2 && !err && unused(b, &b->supplies[i]); k++)
            if (pieces[k].start_ns < pieces[k].end_ns)
                err = hec_ledger_piece(b->ledger, d->device.index, &pieces[k]);
    }
    return err;
}

/* Its energy is split already: without a context, and the rest. */
static void price_unused(struct hec_ledger_device *d, const struct hec_energy *energy, char why[256], char how[160]) {
    struct hec_ledger_watts watts[HEC_STATE_COUNT] = {{0}};
    double rest_s = d->rows[HEC_STATE_TAIL].seconds, without_s = d->rows[HEC_STATE_STARTUP].seconds;
    double without_j = without_s > 0 ? energy->idle_joules : 0;
    watts[HEC_STATE_STARTUP].watts = without_j / without_s;
    watts[HEC_STATE_TAIL].watts = (energy->joules - without_j) / rest_s;
    for (int i = 0; i < HEC_STATE_COUNT; i++) /* as exact as the whole */
        watts[i].low = watts[i].high = watts[i].watts;
    if (energy->valid && hec_ledger_power(d, watts, NULL, llround(energy->joules * 1e3)))
        snprintf(how, 160, "measured: the energy while the device had a context, and while it had none");
    else
        snprintf(why, 256, "%s", energy->why[0] ? energy->why : "the device's energy was not measured");
}

/* ---- watts ---- */

static int price_device(struct hec_ledger_device *d, struct supply *s, char why[256], char how[160]) {
    const struct hec_energy *energy = s ? &s->summary->energy : NULL;
    if (!energy || !s->unmix) {
        snprintf(why, 256, "%s", energy && energy->why[0] ? energy->why : "the device's energy was not measured");
        return 0;
    }
    const struct hec_pricing pricing = {energy,
                                        s->summary->power_limit_w,
                                        s->summary->device.name,
                                        s->has_peaks ? s->peaks.peak[HEC_PEAK_IDLE_POWER].value : NAN,
                                        &s->order,
                                        s->tight_ns};
    return hec_price_device(d, s->unmix, &pricing, why, how);
}

/* After the states: classes take shares of compute. */
static int profile_device(struct hec_ledger_device *d, struct supply *s, struct hec_class_profile *out) {
    if (!s) {
        const struct hec_device_summary nothing = {.device = {.index = d->device, .has_gpm = -1}};
        hec_class_profile_none(&nothing, d, NULL, out);
        return 0;
    }
    const struct hec_peaks *measured = s->has_peaks ? &s->peaks : NULL;
    if (s->profiler)
        return hec_class_profiler_end(s->profiler, d, measured, out);
    hec_class_profile_none(s->summary, d, measured, out);
    return 0;
}

/* ---- the whole ---- */

static int build_all(struct build *b, const struct hec_summary_input *input, const struct hec_timeline_input *timeline,
                     const struct hec_timeline *told, struct hec_diagnosis *out, struct hec_why *why) {
    const struct hec_state_visitor visitor = {b, take_tables, take_steps, take_piece, take_sample, take_activities};
    int err =
        b->ledger && b->steady_ledger && b->supplies ? hec_source_begin(timeline, &b->source, why) : HEC_ERR_NOMEM;
    if (!err)
        err = hec_source_begin(timeline, &b->steady_source, why);
    for (int i = 0; i < b->supply_count && !err; i++)
        err = read_supply(input, told, &b->supplies[i], why);
    if (err || (err = hec_states_build(timeline, NULL, &visitor, why)) != 0)
        return err;
    hec_ledger_steps(b->ledger, NULL);
    hec_gaps_end(&b->gaps);
    out->gaps = b->gaps;
    b->gaps = (struct hec_gaps){NULL, 0};
    if ((err = add_unused(b, timeline->end_ns)) != 0)
        return err;
    err = hec_ledger_end(b->ledger, &out->ledger);
    b->ledger = NULL;
    if (!err) {
        err = hec_ledger_end(b->steady_ledger, &out->steady);
        b->steady_ledger = NULL;
    }
    if (err)
        return err;
    for (int i = 0; b->inferred && i < out->ledger.device_count; i++)
        out->ledger.devices[i].basis = hec_inferred_basis(b->inferred, out->ledger.devices[i].device);
    for (int i = 0; b->inferred && i < out->steady.device_count; i++)
        out->steady.devices[i].basis = hec_inferred_basis(b->inferred, out->steady.devices[i].device);
    for (int i = 0; i < out->ledger.device_count; i++)
        if (unused(b, supply_of(b, out->ledger.devices[i].device)))
            out->ledger.devices[i].basis = HEC_LEDGER_UNUSED;
    out->why = calloc((size_t)out->ledger.device_count + 1, sizeof *out->why);
    out->how = calloc((size_t)out->ledger.device_count + 1, sizeof *out->how);
    out->calls = calloc((size_t)out->ledger.device_count + 1, sizeof *out->calls);
    out->profiles = calloc((size_t)out->ledger.device_count + 1, sizeof *out->profiles);
    out->steps = calloc((size_t)out->ledger.device_count + 1, sizeof *out->steps);
    err = out->why && out->how && out->calls && out->profiles && out->steps ? 0 : HEC_ERR_NOMEM;
    if (!err)
        hec_calls_end(b->calls);
    for (int i = 0; i < out->ledger.device_count && !err; i++) {
        struct hec_ledger_device *d = &out->ledger.devices[i];
        hec_calls_of(b->calls, d->device, &out->calls[i]);
        if (b->steps && d->device >= 0 && d->device < HEC_DEVICE_MAX)
            out->steps[i] = b->steps[d->device];
        if (d->basis == HEC_LEDGER_UNUSED)
            price_unused(d, &supply_of(b, d->device)->summary->energy, out->why[i], out->how[i]);
        else
            err = price_device(d, supply_of(b, d->device), out->why[i], out->how[i]);
        if (!err)
            err = profile_device(d, supply_of(b, d->device), &out->profiles[i]);
        if (!err)
            hec_price_judge(d, out->how[i]);
    }
    if (err)
        return err;
    struct hec_source_builder *source = b->source, *steady_source = b->steady_source;
    b->source = NULL;
    err = hec_source_end(source, &out->ledger, HEC_DIAGNOSIS_LINES, &out->source);
    if (err)
        return err;
    b->steady_source = NULL;
    return hec_source_end(steady_source, &out->steady, HEC_DIAGNOSIS_LINES, &out->steady_source);
}

static int some(void *found, const struct hec_activity *activities, size_t count) {
    (void)activities;
    *(bool *)found |= count > 0;
    return count > 0; /* one is enough */
}

/* Another pass over the kernels, only for runs in which something can be told. */
static int build_modules(const struct hec_timeline_input *timeline, struct hec_source_modules *out,
                         struct hec_why *why) {
    const uint32_t kinds = HEC_ACTIVITY_BIT(HEC_ACTIVITY_RANGE) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_OPERATOR);
    bool found = false;
    int err = timeline->activities ? timeline->activities(timeline->context, kinds, some, &found, why) : 0;
    if (err < 0 && err != HEC_ERR_NOTFOUND)
        return err;
    return found ? hec_source_modules_build(timeline, HEC_DIAGNOSIS_MODULES, out, why) : 0;
}

int hec_diagnosis_build(const struct hec_summary_input *input, const struct hec_timeline_input *timeline,
                        const struct hec_timeline *told, const struct hec_device_summary *devices, int device_count,
                        struct hec_diagnosis *out, struct hec_why *why) {
    struct build b = {.ledger = hec_ledger_begin(),
                      .steady_ledger = hec_ledger_begin(),
                      .supplies = calloc((size_t)device_count + 1, sizeof *b.supplies),
                      .told = told};
    memset(out, 0, sizeof *out);
    for (int i = 0; b.supplies && i < device_count; i++)
        b.supplies[b.supply_count++].summary = &devices[i];
    const struct hec_timeline_input *read = timeline;
    int err = hec_inferred_begin(input, timeline, &b.inferred, why);
    if (!err && b.inferred)
        err = hec_inferred_input(b.inferred, HEC_INFERRED_GUESS, &read, why);
    if (!err)
        err = build_all(&b, input, read, told, out, why);
    if (!err)
        err = build_modules(timeline, &out->modules, why);
    if (!err && b.inferred)
        err = widen(b.inferred, told, out, why);
    hec_inferred_free(b.inferred);
    hec_ledger_abandon(b.ledger);
    hec_ledger_abandon(b.steady_ledger);
    hec_calls_free(b.calls);
    hec_source_abandon(b.source);
    hec_source_abandon(b.steady_source);
    hec_gaps_free(&b.gaps);
    for (int i = 0; i < b.supply_count; i++) {
        hec_unmix_free(b.supplies[i].unmix);
        hec_class_profiler_free(b.supplies[i].profiler);
    }
    free(b.supplies);
    free(b.steps);
    if (err)
        hec_diagnosis_free(out);
    return err == HEC_ERR_NOMEM ? hec_fail(why, err, "out of memory") : err;
}

void hec_diagnosis_free(struct hec_diagnosis *diagnosis) {
    hec_ledger_free(&diagnosis->ledger);
    hec_source_lines_free(&diagnosis->source);
    hec_ledger_free(&diagnosis->steady);
    hec_source_lines_free(&diagnosis->steady_source);
    hec_source_modules_free(&diagnosis->modules);
    hec_gaps_free(&diagnosis->gaps);
    free(diagnosis->why);
    free(diagnosis->how);
    free(diagnosis->calls);
    free(diagnosis->steps);
    free(diagnosis->profiles);
    diagnosis->why = NULL;
    diagnosis->how = NULL;
    diagnosis->calls = NULL;
    diagnosis->steps = NULL;
    diagnosis->profiles = NULL;
}

static int at(const struct hec_diagnosis *diagnosis, int device) {
    for (int i = 0; i < diagnosis->ledger.device_count; i++)
        if (diagnosis->ledger.devices[i].device == device)
            return i;
    return -1;
}

const struct hec_ledger_device *hec_diagnosis_of(const struct hec_diagnosis *diagnosis, int device, const char **why) {
    int i = at(diagnosis, device);
    if (i >= 0 && why)
        *why = diagnosis->why[i];
    return i >= 0 ? &diagnosis->ledger.devices[i] : NULL;
}

const char *hec_diagnosis_how(const struct hec_diagnosis *diagnosis, int device) {
    int i = at(diagnosis, device);
    return i >= 0 && diagnosis->how ? diagnosis->how[i] : "";
}

const struct hec_call_facts *hec_diagnosis_calls(const struct hec_diagnosis *diagnosis, int device) {
    int i = at(diagnosis, device);
    return i >= 0 && diagnosis->calls ? &diagnosis->calls[i] : NULL;
}

const struct hec_step_summary *hec_diagnosis_steps(const struct hec_diagnosis *diagnosis, int device) {
    int i = at(diagnosis, device);
    return i >= 0 && diagnosis->steps && diagnosis->steps[i].count ? &diagnosis->steps[i] : NULL;
}

const struct hec_class_profile *hec_diagnosis_profile(const struct hec_diagnosis *diagnosis, int device) {
    int i = at(diagnosis, device);
    return i >= 0 && diagnosis->profiles ? &diagnosis->profiles[i] : NULL;
}

const struct hec_ledger_device *hec_diagnosis_steady(const struct hec_diagnosis *diagnosis, int device) {
    for (int i = 0; i < diagnosis->steady.device_count; i++)
        if (diagnosis->steady.devices[i].device == device)
            return &diagnosis->steady.devices[i];
    return NULL;
}
