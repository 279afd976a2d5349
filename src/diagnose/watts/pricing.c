#include "diagnose/watts/pricing.h"

#include "base/clock.h"
#include "diagnose/physics.h"
#include "diagnose/watts/watts.h"

#include <math.h>
#include <string.h>

#define LAUNCH_SD 0.1
/* Startup begins without a context (H200: 82 W of 120 W): what no reading covers of it may differ so much from the rest. */
#define EDGE_VARIES 0.35
/* The level itself: how well it is known by where it comes from. */
#define LEVEL_CALIBRATED_SD 0.05 /* this device at another temperature */
#define LEVEL_SPLIT_SD 0.05
#define LEVEL_ALONE_SD 0.1
#define LEVEL_PART_SD 0.08 /* two H100 of one host are 8 % apart */
#define LEVEL_EDGE_SD 0.2
#define LEVEL_LOWEST_SD 0.15
#define LEVEL_OF_LIMIT_SD 0.5
#define LEVEL_OF_MEAN_SD 0.5
/* Between kernels that were queued in time an H200 pauses for about 1 us; a launch takes 4 us and more. */
#define TIGHT_NS 3000
#define CHANCE 0.8 /* of compute comes in an order that came before, although nothing repeats: a few states at random */
#define ORDER_BITS 8 /* of each of the four pieces that an order is made of */
#define KIND_AGAIN 3
#define KIND_SD 0.1 /* how far kinds of kernels are apart, of the mean power */
#define ALONE_LEAST_S 0.1
#define FLOOR 0.9 /* of the least that the level may be, and of what an idle device took: no state takes less */
#define HALF 0.5
#define FILL_SD                                                                                                        \
    0.25 /* assumed, of what lies between idle level and limit. An H100 25 % full took 183 W; 270 are expected */
#define SLOW_NS (200 * HEC_NS_PER_MS)
#define NEVER_W 1e4  /* no device takes as much */
#define WELL 0.1     /* half an interval, of the watts: a state that is not known so well is not "measured" ... */
#define MATTERS 0.02 /* ... where it has so much of the joules */

static bool edge(int state) {
    return state == HEC_STATE_STARTUP || state == HEC_STATE_TAIL;
}

/* Waits with a context, known to be such. */
static bool waits(int state) {
    return hec_state_idle((enum hec_state)state) && !edge(state) && state != HEC_STATE_LAUNCH &&
           state != HEC_STATE_UNKNOWN;
}

struct hec_unmix_options hec_pricing_options(double limit_w, const struct hec_unmix_sensor *sensor) {
    struct hec_unmix_options options = {.classes = HEC_STATE_COUNT + HEC_PRICING_KINDS - 1,
                                        .limit_w = limit_w,
                                        .readings_first = true,
                                        .kin_sd = KIND_SD,
                                        .sensor = *sensor};
    for (int i = HEC_STATE_COUNT; i < options.classes; i++)
        options.kin[i] = 1 + HEC_STATE_COMPUTE;
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        options.quiet[edge(i)] |= (uint32_t)(waits(i) || edge(i)) << i;
    return options;
}

bool hec_pricing_tight(const struct hec_state_piece *piece) {
    return piece->state == HEC_STATE_LAUNCH && piece->end_ns - piece->start_ns < TIGHT_NS;
}

/* The class of kernels in this order: one of its own once it came some times, as in a loop, as long as there are any; the
 * others share those that there are. */
static int kind_of(struct hec_pricing_order *order, uint32_t hash, int64_t ns) {
    uint8_t *seen = &order->seen[hash >> 24];
    int kind = 0;
    while (kind < order->kinds && order->kind[kind] != hash)
        kind++;
    if (kind == order->kinds) {
        *seen += *seen < KIND_AGAIN;
        if (order->kinds < HEC_PRICING_KINDS && *seen == KIND_AGAIN)
            order->kind[order->kinds++] = hash;
        else
            kind = (int)(hash >> 16) % HEC_PRICING_KINDS;
    }
    order->all_ns += ns;
    order->again_ns += kind < order->kinds && order->kind[kind] == hash ? ns : 0;
    return kind ? HEC_STATE_COUNT + kind - 1 : HEC_STATE_COMPUTE;
}

/* A piece never waits for another rank on the device; and to the device it is one whether the program's own code runs or waits for
 * requests, or for another rank. */
#define PIECE_STATES (HEC_STATE_COUNT - 3)
_Static_assert(HEC_STATE_REQUESTS == HEC_STATE_COUNT - 2 && HEC_STATE_PEERS == HEC_STATE_COUNT - 1,
               "the others are numbered without a hole");

int hec_pricing_class(struct hec_pricing_order *order, const struct hec_state_piece *piece) {
    bool code = piece->state == HEC_STATE_REQUESTS || piece->state == HEC_STATE_PEERS;
    uint32_t state = code ? HEC_STATE_HOST : piece->state;
    uint32_t now = 1 + state - (state > HEC_STATE_WAITING) + PIECE_STATES * (uint32_t)piece->kernel_class;
    bool tight = hec_pricing_tight(piece);
    bool goes_on = now == order->now && piece->start_ns == order->end_ns; /* a kernel that was cut in two */
    order->end_ns = piece->end_ns;
    order->now = tight ? 0 : now;
    if (!tight && !goes_on) {
        order->before = order->before << ORDER_BITS | (now * 2654435761u >> (32 - ORDER_BITS));
        if (piece->state == HEC_STATE_COMPUTE)
            order->class = kind_of(order, order->before * 2654435761u, piece->end_ns - piece->start_ns);
    }
    return piece->state == HEC_STATE_COMPUTE || tight ? order->class : piece->state;
}

struct level {
    double watts, sd; /* sd in watts */
    double least;     /* what an idle device took in this run, with or without a context; 0: not seen */
};

double hec_watts_idle_of_part(const char *device) {
    const struct hec_part *part = hec_part_find(device);
    if (part && strcmp(part->id, "H200_SXM") == 0)
        return HEC_IDLE_H200_W;
    return part && strcmp(part->id, "H100_SXM") == 0 ? HEC_IDLE_H100_W : NAN;
}

static int find_level(const struct hec_pricing *p, struct hec_unmix *unmix, double mean, struct level *level) {
    const struct hec_energy *energy = p->energy;
    double seconds[2] = {0}, joules[2] = {0}, highest = NEVER_W;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        double watts, s;
        int err = hec_unmix_alone(unmix, i, &watts, &s);
        if (err)
            return err;
        if (s > 0 && (waits(i) || edge(i))) {
            seconds[edge(i)] += s;
            joules[edge(i)] += s * watts;
        }
    }
    /* idling takes no more than the least power that was seen with a context */
    if (energy->idle_context_s > 0 && energy->idle_unknown_max_joules > 0)
        highest = energy->idle_unknown_max_joules / energy->idle_context_s;
    double by_limit = HEC_IDLE_BY_LIMIT * p->limit_w, by_part = hec_watts_idle_of_part(p->device);
    /* of a device that never rests the lowest power that was seen is no more than a bound */
    bool lowest = energy->idle_source.id == HEC_REASON_LEVEL_LOWEST;
    if (lowest)
        highest = energy->idle_context_watts;
    int64_t reach_ns;
    int err = hec_unmix_reach(unmix, &reach_ns);
    if (err)
        return err;
    /* the split takes a sample for the mean of its own spacing */
    if (isfinite(energy->idle_context_watts) && reach_ns < SLOW_NS && !lowest)
        *level = (struct level){energy->idle_context_watts, LEVEL_SPLIT_SD};
    else if (seconds[0] >= ALONE_LEAST_S)
        *level = (struct level){joules[0] / seconds[0], LEVEL_ALONE_SD};
    else if (p->idle_w * (1 - 2 * LEVEL_CALIBRATED_SD) <= fmin(mean, highest))
        *level = (struct level){p->idle_w, LEVEL_CALIBRATED_SD};
    else if (by_part * (1 - 2 * LEVEL_PART_SD) <= fmin(mean, highest))
        *level = (struct level){by_part, LEVEL_PART_SD};
    else if (lowest)
        *level = (struct level){highest, fmax(LEVEL_LOWEST_SD, by_limit < highest ? 1 - by_limit / highest : 0)};
    else if (seconds[1] >= ALONE_LEAST_S && joules[1] / seconds[1] <= fmax(mean, highest))
        *level = (struct level){joules[1] / seconds[1], LEVEL_EDGE_SD};
    else if (highest < by_limit || (highest < mean && !isfinite(by_limit)))
        *level = (struct level){highest, LEVEL_LOWEST_SD};
    else if (isfinite(by_limit) && by_limit < mean)
        *level = (struct level){by_limit, LEVEL_OF_LIMIT_SD};
    else
        *level = (struct level){HEC_IDLE_BY_MEAN * mean, LEVEL_OF_MEAN_SD};
    level->sd *= level->watts;
    level->least = seconds[1] >= ALONE_LEAST_S ? fmin(joules[1] / seconds[1], level->watts) : 0;
    return 0;
}

/* Of the launch state, the part in gaps between kernels that were queued in time. */
static double tight_part(const struct hec_ledger_device *d, const struct hec_pricing *p) {
    int64_t all = d->rows[HEC_STATE_LAUNCH].traced_ns;
    return all > 0 ? fmin(1, (double)p->tight_ns / (double)all) : 0;
}

/* What work takes, in watts. What the idle states leave of the joules says little where there is little work: with 20 ms of work in a
 * second, an idle level that is off by 5 W changes the work by 245 W. So it is weighed with a guess by how full the device is, between its
 * idle level and its limit. */
static struct level work_of(const struct hec_pricing *p, const struct level *idle, double idle_s, double busy_s,
                            double left_j, double mean) {
    bool limited = isfinite(p->limit_w);
    double most = limited ? fmax(HEC_WORK_BY_LIMIT * p->limit_w, idle->watts) : NEVER_W;
    double left = busy_s > 0 ? fmin(fmax(left_j / busy_s, idle->watts), most) : mean;
    double left_sd = fmax(left, limited ? HALF * p->limit_w : mean);
    if (!(busy_s > 0) || !limited)
        return (struct level){left, left_sd, 0};
    double above = p->limit_w - idle->watts, off = idle->sd * idle_s / busy_s;
    double usual = idle->watts + above * (isfinite(p->fill) ? p->fill : HALF);
    double usual_sd = above * (isfinite(p->fill) ? FILL_SD : HALF);
    double weight = usual_sd * usual_sd / (off * off + usual_sd * usual_sd);
    return (struct level){weight * left + (1 - weight) * usual, weight * left_sd + (1 - weight) * usual_sd, 0};
}

static int believe(const struct hec_ledger_device *d, const struct hec_pricing *p, struct hec_unmix *unmix) {
    struct level level;
    double seconds = 0, rest = p->energy->joules, busy = 0, idle_s = 0, tight = tight_part(d, p);
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        seconds += d->rows[i].seconds;
    double mean = p->energy->joules / fmax(seconds, 1e-9);
    int err = find_level(p, unmix, mean, &level);
    if (err)
        return err;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        double works = i == HEC_STATE_COMPUTE || i == HEC_STATE_COMM ? 1 : i == HEC_STATE_LAUNCH ? tight : 0;
        busy += works * d->rows[i].seconds;
        idle_s += (1 - works) * d->rows[i].seconds;
        rest -= (1 - works) * d->rows[i].seconds * level.watts * (i == HEC_STATE_COPY ? HEC_COPY_BY_IDLE : 1);
    }
    const struct level work = work_of(p, &level, idle_s, busy, rest, mean);
    double floor = FLOOR * fmax(level.watts - level.sd, level.least), w = level.watts;
    const struct hec_unmix_belief idle = {w, HEC_IDLE_SPREAD * w, 1, floor},
                                  edges = {w, HEC_IDLE_EDGE_SPREAD * w, 1, (1 - EDGE_VARIES) * floor},
                                  copy = {HEC_COPY_BY_IDLE * w, HEC_COPY_SPREAD * w, HEC_COPY_BY_IDLE, floor},
                                  working = {work.watts, work.sd, 0, floor}, launch = {w, LAUNCH_SD * w, 1, floor};
    const double above = p->limit_w - w; /* NAN: no limit is known */
    const struct hec_unmix_belief comm = {w + HEC_COMM_FILL * above, HEC_COMM_FILL_SD * above, 0, floor};
    hec_unmix_level(unmix, level.sd);
    double again = p->order->all_ns > 0 ? (double)p->order->again_ns / (double)p->order->all_ns : 0;
    hec_unmix_repeats(unmix, fmin(fmax((again - CHANCE) / (1 - CHANCE), 0), 1));
    for (int i = 0; i < HEC_STATE_COUNT && !err; i++)
        if (i != HEC_STATE_UNKNOWN)
            err = hec_unmix_believe(unmix, i,
                                    waits(i)                           ? &idle
                                    : edge(i)                          ? &edges
                                    : i == HEC_STATE_COPY              ? &copy
                                    : i == HEC_STATE_LAUNCH            ? &launch
                                    : i == HEC_STATE_COMM && above > 0 ? &comm
                                                                       : &working);
    return err;
}

/* Of the launch state a part counts as compute. */
static void blend(struct hec_ledger_watts *launch, const struct hec_ledger_watts *compute, double part) {
    double rest = 1 - part;
    if (!isfinite(launch->watts) || rest < 1e-12) { /* all of it */
        *launch = *compute;
        return;
    }
    launch->watts = part * compute->watts + rest * launch->watts;
    launch->low = part * compute->low + rest * launch->low;
    launch->high = part * compute->high + rest * launch->high;
}

/* On what the watts rest: docs/energy.md. */
static const enum hec_reason_id bases[] = {
    [HEC_UNMIX_NOTHING] = HEC_REASON_NONE,
    [HEC_UNMIX_SAMPLES] = HEC_REASON_MEASURED_SAMPLES,
    [HEC_UNMIX_WINDOWS] = HEC_REASON_MEASURED_COUNTER,
    [HEC_UNMIX_BELIEFS] = HEC_REASON_ROUGH_LEVEL,
};
static const enum hec_reason_id inferred[] = {
    /* of seconds that are themselves inferred */
    [HEC_UNMIX_NOTHING] = HEC_REASON_NONE,
    [HEC_UNMIX_SAMPLES] = HEC_REASON_ROUGH_CALLS_SAMPLES,
    [HEC_UNMIX_WINDOWS] = HEC_REASON_ROUGH_CALLS_COUNTER,
    [HEC_UNMIX_BELIEFS] = HEC_REASON_ROUGH_LEVEL,
};

int hec_price_device(struct hec_ledger_device *d, struct hec_unmix *unmix, const struct hec_pricing *pricing,
                     struct hec_reason *why, struct hec_reason *how) {
    struct hec_ledger_watts watts[HEC_STATE_COUNT];
    struct hec_unmix_result result;
    int err = 0;
    double tight = tight_part(d, pricing);
    for (int i = 0; i < HEC_STATE_COUNT && !err; i++) {
        double extra = (double)(d->rows[i].ns - d->rows[i].traced_ns) / HEC_NS_PER_S;
        double as_compute = i == HEC_STATE_LAUNCH ? tight * extra : 0;
        err = extra > 0 ? hec_unmix_extra(unmix, i, extra - as_compute) : 0;
        err = err || !(as_compute > 0) ? err : hec_unmix_extra(unmix, HEC_STATE_COMPUTE, as_compute);
    }
    hec_unmix_total(unmix, pricing->energy->joules, pricing->energy->bound_joules);
    if (!err)
        err = believe(d, pricing, unmix);
    if (!err)
        err = hec_unmix_solve(unmix, &result);
    if (err == HEC_ERR_NOMEM)
        return err;
    if (err || !result.valid) {
        *why = err ? HEC_BECAUSE(READINGS_SENSELESS) : HEC_BECAUSE(READINGS_FEW);
        return 0;
    }
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        const struct hec_unmix_class *c = &result.class[i];
        double unseen = edge(i) && c->seconds > 0 ? EDGE_VARIES * (1 - c->seen_s / c->seconds) * c->value : 0;
        watts[i] = (struct hec_ledger_watts){c->value, fmax(c->low - unseen, 0), c->high + unseen};
    }
    if (tight > 0)
        blend(&watts[HEC_STATE_LAUNCH], &watts[HEC_STATE_COMPUTE], tight);
    if (hec_ledger_power(d, watts, NULL, llround(pricing->energy->joules * 1e3)))
        how->id = (d->basis == HEC_LEDGER_MEASURED ? bases : inferred)[result.basis];
    else
        *why = HEC_BECAUSE(NOT_SEPARATED);
    return 0;
}

void hec_price_judge(const struct hec_ledger_device *d, struct hec_reason *how) {
    double widest = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        const struct hec_ledger_row *row = &d->rows[i];
        if (row->joules > MATTERS * d->joules)
            widest = fmax(widest, (row->watts_high - row->watts_low) / 2 / row->watts);
    }
    if (widest > WELL && hec_reason_measured(how))
        *how = HEC_BECAUSE_OF(ROUGH_WIDE, widest);
}
