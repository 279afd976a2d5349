#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "diagnose/meter/meter.h"
#include "diagnose/physics.h"
#include "diagnose/states/inferred/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How far a reading of the engine is believed: its windows lie within some 10 ms. It counts the engine's own pauses between kernels
 * too, 0.3 to 2.3 us each (others.c); no kernel is shorter than 1 us. Of launches: one kernel is unlike another. */
#define PAUSE_OFF_NS 1000
#define KERNEL_NS 1000
#define ENGINE_BAND 0.03
#define ENGINE_PART 0.05
#define LAUNCH_PART 0.25
#define SHARED_PART 0.5 /* the same beside others: with one as busy, what takes turns takes up to twice as long */
#define USE_BAND 0.05
#define READING_LEAST_NS (400 * HEC_NS_PER_MS) /* closer ones are put together */
#define LAUNCHES_LEAST 100
#define INTERVALS_MOST 100000
/* Excess of what was read over all that calls allow: from there on waiting for a stream has not drained the device. */
#define EXCESS_GUESS 0.10
#define EXCESS_MOST 0.02
/* Without a source: busy share while launching and in between, where the device was behind, and where it had kept up. */
static const double behind_busy[2] = {0.95, 0.7}, kept_busy[2] = {0.5, 0.3};

enum { LAUNCHING, RUNNING };

void hec_inferred_share_init(struct hec_inferred_share *s) {
    memset(s, 0, sizeof *s);
}

void hec_inferred_share_free(struct hec_inferred_share *s) {
    free(s->list);
    memset(s, 0, sizeof *s);
}

/* In ascending order of their ends; the last one never ends. */
static int add_interval(struct hec_inferred_share *s, int64_t end_ns, double level) {
    if (!hec_list_room(s->list, s->count, s->capacity, 64))
        return HEC_ERR_NOMEM;
    s->list[s->count++] = (struct hec_inferred_interval){.end_ns = end_ns, .level = level};
    return 0;
}

struct readings {
    struct hec_inferred_share *share;
    int64_t from_ns, last_ns;
    double sum, weight;
    int err;
};

static void take_reading(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct readings *r = context;
    int64_t length = r->last_ns == INT64_MIN ? HEC_NS_PER_S / 2 : t_ns - r->last_ns;
    if (!valid || length <= 0 || r->err)
        return;
    r->sum += (double)value / 1e3 * (double)length;
    r->weight += (double)length;
    r->last_ns = t_ns;
    if (r->weight < (double)READING_LEAST_NS)
        return;
    r->err = add_interval(r->share, t_ns, r->sum / r->weight);
    r->sum = r->weight = 0;
}

static int read_levels(struct hec_meter *meter, enum hec_metric metric, int device, struct hec_inferred_share *share,
                       struct hec_why *why) {
    struct readings r = {.share = share, .last_ns = INT64_MIN};
    int err = meter ? hec_meter_read(meter, metric, device, take_reading, &r, why) : 0;
    return err ? err : r.err;
}

int hec_inferred_share_read(struct hec_inferred_share *share, const struct hec_inferred_use *use,
                            struct hec_meter *meter, struct hec_why *why) {
    int err = read_levels(meter, HEC_GPM_GR_ACTIVE, use->device, share, why);
    bool engine = share->count > 1;
    share->source = HEC_INFERRED_ENGINE;
    if (err || (engine && !share->shared))
        return err;
    share->waited = use->rest_ns > 0 ? use->waited_ns / use->rest_ns : 0;
    if (use->launches >= LAUNCHES_LEAST) {
        share->source = HEC_INFERRED_LAUNCHES;
        share->launch_ns = use->busy_ns / use->launches;
    }
    if (engine) /* of all processes on the device: what this one does is no more */
        return 0;
    share->count = 0;
    if (share->source == HEC_INFERRED_LAUNCHES) {
        int64_t length = (use->process->last_ns - use->process->first_ns) / INTERVALS_MOST;
        length = length > HEC_NS_PER_S ? length : HEC_NS_PER_S;
        for (int64_t t = use->process->first_ns; t < use->process->last_ns && !err; t += length)
            err = add_interval(share, t + length, NAN);
        return err;
    }
    share->source = HEC_INFERRED_USE;
    err = read_levels(meter, HEC_GPU_UTIL, use->device, share, why);
    if (err || share->count > 1)
        return err;
    share->count = 0;
    share->source = HEC_INFERRED_NOTHING;
    return add_interval(share, INT64_MAX, NAN);
}

void hec_inferred_share_begin(struct hec_inferred_share *s, enum hec_inferred_variant variant) {
    s->variant = variant;
    s->cursor = 0;
    memset(s->open_ns, 0, sizeof s->open_ns);
    memset(s->kept_ns, 0, sizeof s->kept_ns);
    memset(s->behind_ns, 0, sizeof s->behind_ns);
    for (size_t i = 0; i < s->count; i++)
        s->list[i] = (struct hec_inferred_interval){.end_ns = s->list[i].end_ns, .level = s->list[i].level};
}

static struct hec_inferred_interval *at(struct hec_inferred_share *s, int64_t t_ns) {
    while (s->cursor && s->list[s->cursor - 1].end_ns > t_ns)
        s->cursor--;
    while (s->cursor + 1 < s->count && s->list[s->cursor].end_ns <= t_ns)
        s->cursor++;
    return &s->list[s->cursor];
}

void hec_inferred_share_add(struct hec_inferred_share *s, const struct hec_inferred_part *part, int64_t seen_ns) {
    double length = (double)(part->end_ns - part->start_ns), left = length > 0 ? 1 - (double)seen_ns / length : 0;
    for (int64_t from = part->start_ns; from < part->end_ns;) {
        struct hec_inferred_interval *i = at(s, from);
        bool last = s->cursor + 1 == s->count;
        int64_t to = last || i->end_ns > part->end_ns ? part->end_ns : i->end_ns;
        i->ns[part->class] += left * (double)(to - from);
        i->seen_ns += (1 - left) * (double)(to - from);
        from = to;
    }
    if (part->class == HEC_INFERRED_LAUNCHING || part->class == HEC_INFERRED_RUNNING)
        s->open_ns[part->class == HEC_INFERRED_RUNNING] += left * length;
}

void hec_inferred_share_rest(struct hec_inferred_share *s, int64_t start_ns, int64_t end_ns) {
    for (int64_t from = start_ns; from < end_ns;) {
        struct hec_inferred_interval *i = at(s, from);
        int64_t to = s->cursor + 1 == s->count || i->end_ns > end_ns ? end_ns : i->end_ns;
        i->rest_ns += (double)(to - from);
        from = to;
    }
}

void hec_inferred_share_launches(struct hec_inferred_share *s, int64_t t_ns, double count) {
    at(s, t_ns)->launches += count;
}

void hec_inferred_share_drained(struct hec_inferred_share *s, bool behind) {
    for (int i = 0; i < 2; i++) {
        (behind ? s->behind_ns : s->kept_ns)[i] += s->open_ns[i];
        s->open_ns[i] = 0;
    }
}

/* ---- answers ---- */

static double part_of(double x, double of) {
    return of > 0 ? fmin(1, fmax(0, x / of)) : 1;
}

static bool least(const struct hec_inferred_share *s) {
    return s->variant == HEC_INFERRED_LEAST_BETWEEN || s->variant == HEC_INFERRED_LEAST_WITHIN;
}

static bool most(const struct hec_inferred_share *s) {
    return s->variant == HEC_INFERRED_MOST_BETWEEN || s->variant == HEC_INFERRED_MOST_WITHIN;
}

/* Others have their turns. With the engine's counter alone they are taken to be idle at the best guess, as neighbours mostly are. */
static bool takes_turns(const struct hec_inferred_share *s) {
    return s->shared && (s->source != HEC_INFERRED_ENGINE || least(s) || most(s));
}

static double open_of(const struct hec_inferred_interval *i) {
    return i->ns[HEC_INFERRED_LAUNCHING] + i->ns[HEC_INFERRED_RUNNING];
}

/* Busy for so long. What calls leave open was idle for the rest: first between launches, or first within. Where others have
 * their turns, so was what was waited through: last of all, first of all, or each for the same part. */
static void fill(const struct hec_inferred_share *s, struct hec_inferred_interval *i, double busy_ns) {
    static const enum hec_inferred_class orders[][3] = {
        {HEC_INFERRED_RUNNING, HEC_INFERRED_LAUNCHING, HEC_INFERRED_BUSY},
        {HEC_INFERRED_LAUNCHING, HEC_INFERRED_RUNNING, HEC_INFERRED_BUSY},
        {HEC_INFERRED_BUSY, HEC_INFERRED_LAUNCHING, HEC_INFERRED_RUNNING},
    };
    bool within = s->variant == HEC_INFERRED_LEAST_WITHIN || s->variant == HEC_INFERRED_MOST_WITHIN;
    bool turns = takes_turns(s), waits = turns && s->variant == HEC_INFERRED_LEAST_WITHIN;
    bool even = turns && !least(s) && !most(s);
    double all = open_of(i) + i->ns[HEC_INFERRED_BUSY], idle = fmax(0, all - fmax(0, busy_ns)), left = idle;
    for (int k = 0; k < (turns ? 3 : 2); k++) {
        enum hec_inferred_class class = orders[waits ? 2 : within][k];
        double takes = even ? idle * i->ns[class] / fmax(1, all) : fmin(left, i->ns[class]);
        i->busy[class] = part_of(i->ns[class] - takes, i->ns[class]);
        left -= takes;
    }
}

static void fill_engine(const struct hec_inferred_share *s, struct hec_inferred_interval *i, double length_ns) {
    double band = ENGINE_BAND + ENGINE_PART * i->level;
    double level = least(s) ? fmax(0, i->level - band) : most(s) ? fmin(1, i->level + band) : i->level;
    double recorded = fmax(0, length_ns - i->rest_ns), whole = fmax(0, recorded - i->seen_ns);
    double launches = recorded > 0 ? i->launches * whole / recorded : 0;
    double pause = least(s)  ? HEC_ENGINE_PAUSE_NS + PAUSE_OFF_NS
                   : most(s) ? HEC_ENGINE_PAUSE_NS - PAUSE_OFF_NS
                             : HEC_ENGINE_PAUSE_NS;
    fill(s, i, fmax(level * whole - launches * pause, fmin(level * whole, launches * KERNEL_NS)));
    double slack = most(s) ? EXCESS_MOST : EXCESS_GUESS;
    double excess = (i->level - slack) * whole - i->ns[HEC_INFERRED_BUSY] - open_of(i);
    if (!least(s) && excess > 0)
        i->busy[HEC_INFERRED_IDLE] = part_of(excess + (most(s) ? 0 : slack * whole), i->ns[HEC_INFERRED_IDLE]);
}

/* Without a source: busy shares by what waits have shown, or all or nothing. */
static void guess(const struct hec_inferred_share *s, struct hec_inferred_interval *i) {
    for (int k = LAUNCHING; k <= RUNNING; k++) {
        double all = s->behind_ns[k] + s->kept_ns[k] + s->open_ns[k];
        double sum = behind_busy[k] * s->behind_ns[k] + kept_busy[k] * s->kept_ns[k] + 0.5 * s->open_ns[k];
        double share = least(s) ? 0 : most(s) ? 1 : all > 0 ? sum / all : 0.5;
        i->busy[k == LAUNCHING ? HEC_INFERRED_LAUNCHING : HEC_INFERRED_RUNNING] = share;
    }
    if (s->shared && least(s))
        i->busy[HEC_INFERRED_BUSY] = 0;
    if (s->source != HEC_INFERRED_NOTHING) {
        double high = fmin(1, i->level + USE_BAND) * fmax(0, i->ns[HEC_INFERRED_IDLE] + i->ns[HEC_INFERRED_BUSY] +
                                                                 i->ns[HEC_INFERRED_COPYING] + open_of(i));
        double now = i->busy[HEC_INFERRED_LAUNCHING] * i->ns[HEC_INFERRED_LAUNCHING] +
                     i->busy[HEC_INFERRED_RUNNING] * i->ns[HEC_INFERRED_RUNNING] +
                     i->busy[HEC_INFERRED_BUSY] * i->ns[HEC_INFERRED_BUSY];
        if (now > high)
            fill(s, i, high);
    }
}

void hec_inferred_share_end(struct hec_inferred_share *s) {
    double carried = 0, off = s->shared ? SHARED_PART : LAUNCH_PART, part = least(s) ? 1 - off : most(s) ? 1 + off : 1;
    for (size_t k = 0; k < s->count; k++) {
        struct hec_inferred_interval *i = &s->list[k];
        double counted = i->seen_ns, rest = i->rest_ns;
        for (int c = 0; c < HEC_INFERRED_CLASS_COUNT; c++) {
            counted += i->ns[c];
            i->busy[c] = c == HEC_INFERRED_BUSY || c == HEC_INFERRED_COPYING;
        }
        bool whole = k && k + 1 < s->count; /* the ends are as long as what was counted of them */
        double length = whole ? (double)(i->end_ns - s->list[k - 1].end_ns) : counted + rest;
        if (s->source == HEC_INFERRED_ENGINE && !takes_turns(s)) {
            fill_engine(s, i, length);
        } else if (s->source == HEC_INFERRED_LAUNCHES) {
            double seen = counted > 0 ? i->seen_ns / counted : 0,
                   wanted = part * s->launch_ns * i->launches * (1 - seen);
            double possible = i->ns[HEC_INFERRED_BUSY] + open_of(i), can = possible;
            if (isfinite(i->level))
                can = fmin(can, fmin(1, i->level + USE_BAND) * fmax(0, length - rest - i->seen_ns));
            fill(s, i, fmin(can, wanted + carried));
            carried = fmin(possible, fmax(0, wanted + carried - can)); /* launched, and done later */
        } else {
            guess(s, i);
        }
    }
    s->cursor = 0;
}

double hec_inferred_share_waited(const struct hec_inferred_share *s) {
    bool within = s->variant == HEC_INFERRED_LEAST_WITHIN || s->variant == HEC_INFERRED_MOST_WITHIN;
    return !s->shared ? 0 : within ? 1 : least(s) || most(s) ? 0 : s->waited;
}

double hec_inferred_share_of(struct hec_inferred_share *s, enum hec_inferred_class class, int64_t t_ns,
                             int64_t *until_ns) {
    const struct hec_inferred_interval *i = at(s, t_ns);
    *until_ns = s->cursor + 1 == s->count ? INT64_MAX : i->end_ns;
    return i->busy[class];
}
