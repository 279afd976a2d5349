#include "diagnose/watts/watts.h"

#include "base/clock.h"
#include "base/list.h"
#include "diagnose/meter/meter.h"
#include "diagnose/physics.h"
#include "diagnose/watts/pricing.h"
#include "diagnose/watts/unmix_state.h"

#include <math.h>
#include <stdlib.h>

_Static_assert(HEC_STATE_COUNT + HEC_PRICING_KINDS - 1 <= HEC_UNMIX_CLASSES, "a class of unmix.h for each state");

#define WHOLE_NS (10000 * HEC_NS_PER_S) /* readings of so much are kept; of longer runs those of every nth minute */

/* ---- the tape ---- */

int hec_tape_add_slowly(struct hec_tape *tape, const struct hec_state_piece *piece, bool seen) {
    uint64_t length = (uint64_t)(piece->end_ns - piece->start_ns);
    if (!tape->count)
        tape->start_ns = tape->end_ns = piece->start_ns;
    if (piece->start_ns != tape->end_ns || tape->count + 3 > HEC_TAPE_WORDS)
        return 0;
    if (!hec_list_room(tape->words, tape->count + 2, tape->capacity, 4096))
        return HEC_ERR_NOMEM;
    tape->end_ns = piece->end_ns;
    tape->words[tape->count++] = hec_tape_word(piece, seen, length < HEC_TAPE_LONG ? length : HEC_TAPE_LONG);
    if (length >= HEC_TAPE_LONG) {
        tape->words[tape->count++] = (uint32_t)length;
        tape->words[tape->count++] = (uint32_t)(length >> 32);
    }
    return 0;
}

void hec_tape_free(struct hec_tape *tape) {
    free(tape->words);
    *tape = (struct hec_tape){0};
}

/* ---- one device ---- */

struct supply {
    const struct hec_device_summary *summary;
    struct hec_unmix *unmix;             /* NULL: nothing to solve */
    struct hec_class_profiler *profiler; /* NULL: it ran no kernels */
    bool has_peaks;                      /* it was calibrated */
    struct hec_peaks peaks;
    struct hec_pricing_order order;
    int64_t tight_ns; /* see pricing.h */
};

static int add_power(struct supply *s, int64_t t_ns, int64_t span_ns, double watts) {
    int err = hec_unmix_power(s->unmix, t_ns, span_ns, watts);
    return !err && s->profiler ? hec_class_profiler_power(s->profiler, t_ns, span_ns, watts) : err;
}

/* Between the instants at which two of the counter's values became current. */
static int add_counter(struct supply *s, int64_t start_ns, int64_t end_ns, double joules, double sigma_j) {
    int err = hec_unmix_window(s->unmix, start_ns, end_ns, joules, sigma_j);
    return !err && s->profiler ? hec_class_profiler_window(s->profiler, start_ns, end_ns, joules, sigma_j) : err;
}

/* ---- its energy in windows, each as short as its sensors say it: what the watts of states are unmixed from ---- */

#define MINUTE_NS (60 * HEC_NS_PER_S)
#define SPAN_MOST                                                                                                      \
    3 /* a sample so many usual spacings after the one before follows a gap: what it covers is not known */
#define SLACK_SHARE 4 /* ends of a counter's window are known to at least this fraction of its length */
#define WINDOW_MOST_NS (2 * HEC_NS_PER_S)

struct windows {
    struct supply *to;
    int64_t every, usual_ns, previous_ns;
    bool previous;
    struct edge {
        int64_t t_ns, slack_ns, mj;
        bool known;
    } edge;
    int err;
};

static bool counts(const struct windows *w, int64_t t_ns) {
    return w->every <= 1 || t_ns / MINUTE_NS % w->every == 0;
}

/* A sample: the mean over the span that ends at t. None where power is polled: what a value covers is not known. */
static void take_power(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct windows *w = context;
    int64_t span = t_ns - w->previous_ns;
    bool follows = w->previous && span > 0 && span <= SPAN_MOST * w->usual_ns;
    w->previous = valid;
    w->previous_ns = t_ns;
    span = 2 * span > 3 * w->usual_ns ? w->usual_ns : span; /* one before was lost */
    if (valid && follows && !w->err && counts(w, t_ns))
        w->err = add_power(w->to, t_ns, span, (double)value / 1e3);
}

/* A value became current within its slack before t. */
static void take_counter(void *context, const struct hec_counter_reading *reading) {
    int64_t t_ns = reading->t_ns, mj = reading->mj, slack_us = reading->slack_us;
    struct windows *w = context;
    if (w->err || slack_us < 0 || slack_us > WINDOW_MOST_NS / HEC_NS_PER_US || !counts(w, t_ns))
        return; /* where it lies is not known */
    struct edge now = {t_ns, slack_us * HEC_NS_PER_US, mj, true}, *from = &w->edge;
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
        w->err = add_counter(w->to, start, end, joules, sqrt((a * a + b * b) / 12) * watts);
    }
    *from = now;
}

/* Of samples and counter readings those of every so many minutes. 0, HEC_ERR_NOMEM or what the input returned. */
static int read_windows(struct hec_meter *meter, struct supply *s, int64_t every, struct hec_why *why) {
    const struct hec_device_summary *d = s->summary;
    double spacing_s = d->energy.sample_spacing_s;
    struct windows w = {.to = s, .every = every};
    w.usual_ns = spacing_s > 0 ? llround(spacing_s * HEC_NS_PER_S) : HEC_POWER_SAMPLE_NS;
    int err = 0;
    if (d->device.has_power_history > 0)
        err = hec_meter_read(meter, HEC_GPU_POWER, d->device.index, take_power, &w, why);
    if (!err)
        err = hec_meter_counter(meter, d->device.index, take_counter, &w, why);
    return err ? err : w.err;
}

static int read_supply(struct hec_meter *meter, const struct hec_device_timeline *reported, struct supply *s,
                       struct hec_why *why) {
    const struct hec_summary_input *input = meter->input;
    const struct hec_device_summary *d = s->summary;
    struct hec_unmix_sensor sensor = {0, 0};
    s->has_peaks = input->peaks && input->peaks(input->context, &d->device, &s->peaks) == 0 && !s->peaks.simulated;
    const struct hec_peak *window = &s->peaks.peak[HEC_PEAK_SENSOR_WINDOW],
                          *delay = &s->peaks.peak[HEC_PEAK_SENSOR_DELAY];
    if (s->has_peaks && window->value > 0 && delay->value > 0)
        sensor = (struct hec_unmix_sensor){llround(window->value), llround(delay->value)};
    const struct hec_unmix_options options = hec_pricing_options(d->power_limit_w, &sensor);
    int64_t every = 1; /* minute counts */
    int err = 0;
    /* else readings show nothing of these kernels, or nobody asks for their classes */
    if (d->others == HEC_OTHERS_IDLE && !input->schedule)
        err = hec_class_profiler_begin(reported, d, &sensor, &s->profiler);
    if (d->energy.window_s > 0)
        every = 1 + (int64_t)(d->energy.window_s * HEC_NS_PER_S) / WHOLE_NS;
    if (!err && s->profiler)
        err = hec_class_profiler_read(s->profiler, meter, every, why);
    if (err || !d->energy.valid || !(d->energy.joules > 0))
        return err;
    err = hec_unmix_begin(&options, &s->unmix);
    return err ? err : read_windows(meter, s, every, why);
}

/* The tape for one of those that are fed from it. */
struct player {
    const struct hec_tape *tape;
    struct supply *supply;
    struct hec_class_profiler *profiler;
    int err;
};

static int take_state(const struct player *p, const struct hec_state_piece *piece) {
    struct supply *s = p->supply;
    if (!piece->traced)
        return 0;
    if (hec_pricing_tight(piece))
        s->tight_ns += piece->end_ns - piece->start_ns;
    return hec_unmix_piece(s->unmix, hec_pricing_class(&s->order, piece), piece->start_ns, piece->end_ns);
}

/* Inline, so that it is made for either. */
static inline void play(struct player *p, bool classes) {
    const struct hec_tape *tape = p->tape;
    struct hec_state_piece piece = {.end_ns = tape->start_ns};
    for (size_t at = 0; at < tape->count && !p->err;) {
        uint32_t word = tape->words[at++];
        uint64_t length = word >> (2 + HEC_TAPE_STATE_BITS + HEC_TAPE_CLASS_BITS);
        if (length == HEC_TAPE_LONG) {
            length = tape->words[at] | (uint64_t)tape->words[at + 1] << 32;
            at += 2;
        }
        piece.start_ns = piece.end_ns;
        piece.end_ns += (int64_t)length;
        piece.traced = word & 1;
        piece.state = word >> 2 & ((1 << HEC_TAPE_STATE_BITS) - 1);
        piece.kernel_class = word >> (2 + HEC_TAPE_STATE_BITS) & ((1 << HEC_TAPE_CLASS_BITS) - 1);
        if (!classes)
            p->err = take_state(p, &piece);
        else if (word & 2)
            p->err = hec_class_profiler_piece(p->profiler, &piece);
    }
}

static void play_states(void *player) {
    play(player, false);
}

static void play_classes(void *player) {
    play(player, true);
}

/* States and classes share nothing but the tape, which is long: at once where the input can. */
static int play_all(const struct hec_summary_input *input, struct supply *s, const struct hec_tape *tape) {
    struct player states = {.tape = tape, .supply = s}, classes = {.tape = tape, .profiler = s->profiler};
    struct hec_task tasks[2];
    size_t count = 0;
    if (s->unmix)
        tasks[count++] = (struct hec_task){play_states, &states};
    if (s->profiler)
        tasks[count++] = (struct hec_task){play_classes, &classes};
    hec_tasks_run(input->together, tasks, count);
    return states.err ? states.err : classes.err;
}

/* ---- the whole ---- */

/* The others' watts come on top of any state's, by as much as they worked then: nobody knows. */
static void price_shared(const struct hec_device_summary *device, struct hec_ledger_device *d, struct hec_reason *how) {
    if (device->others == HEC_OTHERS_IDLE || !how->id)
        return;
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        d->rows[i].watts_low = d->rows[i].watts_high = NAN;
    for (int i = 0; i < HEC_KERNEL_CLASS_COUNT; i++)
        d->classes[i].watts_low = d->classes[i].watts_high = NAN;
    *how = device->others == HEC_OTHERS_BUSY ? HEC_BECAUSE(ROUGH_OTHERS) : HEC_BECAUSE(ROUGH_MAYBE_OTHERS);
}

static struct hec_reason no_energy(const struct hec_energy *energy) {
    return energy->why.id ? energy->why : HEC_BECAUSE(NO_DEVICE_ENERGY);
}

/* Its energy is split already: without a context, and the rest. */
static void price_unused(struct hec_ledger_device *d, const struct hec_energy *energy, struct hec_watts *out) {
    struct hec_ledger_watts watts[HEC_STATE_COUNT] = {{0}};
    double rest_s = d->rows[HEC_STATE_TAIL].seconds, without_s = d->rows[HEC_STATE_STARTUP].seconds;
    double without_j = without_s > 0 ? energy->idle_joules : 0;
    watts[HEC_STATE_STARTUP].watts = without_j / without_s;
    watts[HEC_STATE_TAIL].watts = (energy->joules - without_j) / rest_s;
    for (int i = 0; i < HEC_STATE_COUNT; i++) /* as exact as the whole */
        watts[i].low = watts[i].high = watts[i].watts;
    if (energy->valid && hec_ledger_power(d, watts, NULL, llround(energy->joules * 1e3)))
        out->how = HEC_BECAUSE(MEASURED_CONTEXT);
    else
        out->why = no_energy(energy);
}

/* Idle time adds to none of these counters. */
static double fill_of(const struct hec_device_summary *d) {
    double engine = d->metric[HEC_GPM_GR_ACTIVE].mean;
    double most = fmax(d->metric[HEC_GPM_SM_ACTIVE].mean, d->metric[HEC_GPM_DRAM_ACTIVE].mean);
    return d->activity.has_gpm && d->others == HEC_OTHERS_IDLE && engine > 0 ? fmin(1, most / engine) : NAN;
}

static int price(struct supply *s, struct hec_ledger_device *ledger, struct hec_watts *out) {
    const struct hec_energy *energy = &s->summary->energy;
    if (!s->unmix) {
        out->why = no_energy(energy);
        return 0;
    }
    const struct hec_pricing pricing = {energy,
                                        s->summary->power_limit_w,
                                        s->summary->device.name,
                                        s->has_peaks ? s->peaks.peak[HEC_PEAK_IDLE_POWER].value : NAN,
                                        fill_of(s->summary),
                                        &s->order,
                                        s->tight_ns};
    return hec_price_device(ledger, s->unmix, &pricing, &out->why, &out->how);
}

/* After the states: classes take shares of compute. */
static int profile(struct supply *s, struct hec_ledger_device *ledger, struct hec_class_profile *out) {
    const struct hec_peaks *measured = s->has_peaks ? &s->peaks : NULL;
    if (s->profiler)
        return hec_class_profiler_end(s->profiler, ledger, measured, out);
    hec_class_profile_none(s->summary, ledger, measured, out);
    return 0;
}

int hec_watts_price(struct hec_meter *meter, const struct hec_device_timeline *timeline,
                    const struct hec_device_summary *device, const struct hec_tape *tape,
                    struct hec_ledger_device *ledger, struct hec_watts *out, struct hec_why *why) {
    static const struct hec_tape none = {0};
    struct supply s = {.summary = device};
    bool unused = ledger->basis == HEC_LEDGER_UNUSED;
    int err = read_supply(meter, timeline, &s, why);
    if (!err)
        err = play_all(meter->input, &s, tape ? tape : &none);
    if (!err && unused)
        price_unused(ledger, &device->energy, out);
    else if (!err)
        err = price(&s, ledger, out);
    if (!err)
        price_shared(device, ledger, &out->how);
    if (!err)
        err = profile(&s, ledger, &out->profile);
    if (!err)
        hec_price_judge(ledger, &out->how);
    hec_unmix_free(s.unmix);
    hec_class_profiler_free(s.profiler);
    return err;
}
