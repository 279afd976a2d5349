#include "act/budget.h"

#include <math.h>
#include <string.h>

#define RUNG 0.05       /* of the device's own limit: from one to the next */
#define SETTLE_S 2.0    /* after a new limit: what is read is a mean of the last second */
#define WORK_S 5.0      /* of work that says what a limit does, ... */
#define CLOCKS_S 20.0   /* ... where clocks of moments are all that is known, */
#define TRAFFIC_LEAST 2 /* ... and so many readings of traffic, where there are any: */
#define TRAFFIC_S 120.0 /* a longer time without one, and there are none */
#define BUSY 0.5        /* from there on the device works */
#define BETTER 1.002    /* of work for a joule, from one limit to the next: less is noise */
#define WORSE 0.99      /* of the best: lower limits are worse still */
#define OTHER 0.1       /* what is read differs by so much from what was found: another part of the program */
#define AGAIN_S 600.0   /* what was found is found again */
#define IDLE_S 60.0     /* without work: what comes is another program */
#define USES 0.93       /* of its limit: the device may want more */
#define HEADROOM 1.15   /* of what it draws, where it wants no more, */
#define SPARE 0.02      /* and that of its own limit; a limit that would change by less stays */
#define ASIDE 1.05      /* of what a device that takes no part has drawn at most */
#define LEAST_W 1e-6
#define MOST_EVERY_S 10.0
#define MOSTS 6

static const struct {
    const char *name, *meaning;
    int slowdown_permille;
} classes[] = {
#define HEC_POWER_CLASS(id, name, slowdown, meaning) {name, meaning, slowdown},
#include "act/power_classes.def"
#undef HEC_POWER_CLASS
};

const char *hec_power_class_name(enum hec_power_class power_class) {
    return classes[power_class].name;
}

const char *hec_power_class_meaning(enum hec_power_class power_class) {
    return classes[power_class].meaning;
}

double hec_power_class_slowdown(enum hec_power_class power_class) {
    return classes[power_class].slowdown_permille / 1000.0;
}

enum hec_power_class hec_power_class_find(const char *name) {
    int i = 0;
    while (i < HEC_POWER_CLASS_COUNT && strcmp(classes[i].name, name) != 0)
        i++;
    return (enum hec_power_class)i;
}

static bool takes_part(const struct hec_budget_reading *reading) {
    return reading->there && reading->power_class < HEC_POWER_CLASS_COUNT && isfinite(reading->own_w);
}

/* ---- the limit at which a device does most for a joule ---- */

static double limit_of(const struct hec_budget_reading *reading, int rung) {
    return reading->own_w * (1 - rung * RUNG);
}

static void hold_rung(struct hec_budget_device *device, int rung, double passed_s) {
    device->rung = rung;
    device->since_s = passed_s;
    device->work_s = 0;
    device->traffics = 0;
    device->sums = (struct hec_budget_rung){0};
}

static void learn_anew(struct hec_budget_device *device, double passed_s) {
    device->best = 0;
    device->found = device->bound = device->measured = device->odd = false;
    hold_rung(device, 0, passed_s);
}

/* The budget holds it below the rung that it is at: it begins at the highest that it gets. */
static void begin_lower(struct hec_budget_device *device, const struct hec_budget_reading *reading, double passed_s) {
    int rung = device->rung;
    while (rung < HEC_BUDGET_RUNGS && limit_of(reading, rung) > device->limit_w)
        rung++;
    if (rung == HEC_BUDGET_RUNGS || limit_of(reading, rung) < reading->least_w)
        return; /* there is none */
    device->bound = true;
    hold_rung(device, rung, passed_s);
}

/* What the program does at one rung, by what it does at another. */
static double pace_of(const struct hec_budget_rung *rung, const struct hec_budget_rung *other) {
    double by_traffic = rung->traffic / other->traffic;
    return isfinite(by_traffic) ? by_traffic : rung->clock_mhz / other->clock_mhz;
}

static struct hec_budget_rung mean_of(const struct hec_budget_device *device) {
    return (struct hec_budget_rung){.clock_mhz = device->sums.clock_mhz / device->work_s,
                                    .traffic = device->sums.traffic / device->traffics,
                                    .watts = device->sums.watts / device->work_s,
                                    .work_w = device->sums.work_w / device->work_s};
}

static void learn_rung(struct hec_budget_device *device, const struct hec_budget_reading *reading, double passed_s) {
    const struct hec_budget_rung now = mean_of(device), *best = &device->rungs[device->best];
    double pace = device->bound  ? now.clock_mhz / device->most_mhz
                  : device->rung ? pace_of(&now, &device->rungs[0])
                                 : 1;
    double of_best = device->measured ? pace_of(&now, best) * best->work_w / now.work_w : INFINITY;
    int next = device->rung + 1;
    if (pace * (1 + device->slowdown) < 1 || of_best < WORSE)
        next = HEC_BUDGET_RUNGS;
    else if (of_best > BETTER)
        device->best = device->rung;
    device->measured = true;
    device->rungs[device->rung] = now;
    while (next < HEC_BUDGET_RUNGS && limit_of(reading, next) > now.watts)
        next++; /* a limit that is not reached does nothing */
    device->found = next >= HEC_BUDGET_RUNGS || limit_of(reading, next) < reading->least_w;
    device->found_s = passed_s;
    hold_rung(device, device->found ? device->best : next, passed_s);
}

static bool differs(double now, double before) {
    return fabs(now / before - 1) > OTHER; /* not where one is not known */
}

/* The limit that was found is the best no more: what is read differs, twice in a row, or it is long ago. */
static void check_found(struct hec_budget_device *device, double passed_s) {
    const struct hec_budget_rung now = mean_of(device), *before = &device->rungs[device->best];
    bool by_traffic = isfinite(now.traffic / before->traffic); /* clocks are those of moments */
    bool odd = differs(now.watts, before->watts) ||
               (by_traffic ? differs(now.traffic, before->traffic) : differs(now.clock_mhz, before->clock_mhz));
    if ((odd && device->odd) || passed_s - device->found_s >= AGAIN_S) {
        learn_anew(device, passed_s);
        return;
    }
    device->odd = odd;
    hold_rung(device, device->rung, passed_s);
}

static void learn(struct hec_budget_device *device, const struct hec_budget_reading *reading, double passed_s,
                  double second_s) {
    if (isfinite(reading->clock_mhz))
        device->most_mhz = fmax(device->most_mhz, reading->clock_mhz);
    if (isfinite(reading->traffic))
        device->traffic_s = passed_s;
    if (!(reading->busy >= BUSY) || !isfinite(reading->watts) || !isfinite(reading->clock_mhz)) {
        if (passed_s - device->seen_s >= IDLE_S)
            learn_anew(device, passed_s);
        return;
    }
    device->seen_s = passed_s;
    if (device->limit_w < device->ceiling_w * (1 - SPARE)) {
        if (!device->found)
            begin_lower(device, reading, passed_s);
        return;
    }
    if (passed_s - device->since_s < SETTLE_S)
        return;
    device->work_s += second_s;
    device->sums.clock_mhz += second_s * reading->clock_mhz;
    device->sums.watts += second_s * reading->watts;
    device->sums.work_w += second_s * fmax(reading->watts - reading->idle_w, 1);
    if (isfinite(reading->traffic)) {
        device->sums.traffic += reading->traffic;
        device->traffics++;
    }
    bool by_traffic = passed_s - device->traffic_s < TRAFFIC_S;
    if (device->work_s < (by_traffic ? WORK_S : CLOCKS_S) || (by_traffic && device->traffics < TRAFFIC_LEAST))
        return;
    if (device->found)
        check_found(device, passed_s);
    else
        learn_rung(device, reading, passed_s);
}

/* ---- shares ---- */

static void remember_most(struct hec_budget_device *device, double watts, double passed_s) {
    if (passed_s - device->most_since_s >= MOST_EVERY_S) {
        memmove(&device->most_w[1], device->most_w, (MOSTS - 1) * sizeof device->most_w[0]);
        device->most_w[0] = 0;
        device->most_since_s = passed_s;
    }
    if (watts > device->most_w[0])
        device->most_w[0] = watts;
}

/* What may be drawn by a device whose limit is its own. */
static double set_aside(const struct hec_budget_device *device, const struct hec_budget_reading *reading) {
    double most = 0;
    for (int i = 0; i < MOSTS; i++)
        most = fmax(most, device->most_w[i]);
    return fmin(most * ASIDE, isfinite(reading->own_w) ? reading->own_w : INFINITY);
}

/* What the device can use now, at most its ceiling. */
static double use_of(const struct hec_budget_device *device, const struct hec_budget_reading *reading) {
    if (isnan(device->limit_w) || isnan(reading->watts) || reading->watts >= USES * device->limit_w)
        return device->ceiling_w;
    return fmin(device->ceiling_w, reading->watts * HEADROOM + SPARE * reading->own_w);
}

struct share {
    bool part;
    double limit_w, upto_w;
};

/* Up to `upto_w` of each device of the class, in equal parts. Returns what is left. */
static double fill(struct hec_budget *budget, enum hec_power_class power_class, struct share *shares, int count,
                   double left) {
    for (;;) {
        int open = 0;
        double least = INFINITY;
        for (int i = 0; i < count; i++) {
            double room = shares[i].upto_w - shares[i].limit_w;
            if (shares[i].part && budget->devices[i].power_class == power_class && room > LEAST_W) {
                open++;
                least = fmin(least, room);
            }
        }
        if (open == 0 || left <= 0)
            return left;
        double each = fmin(least, left / open);
        for (int i = 0; i < count; i++)
            if (shares[i].part && budget->devices[i].power_class == power_class &&
                shares[i].upto_w - shares[i].limit_w > LEAST_W)
                shares[i].limit_w =
                    each < least ? shares[i].limit_w + each : fmin(shares[i].upto_w, shares[i].limit_w + each);
        left -= each * open;
        if (each < least)
            return 0;
    }
}

/* Limits that would change by little stay, where the budget holds all the same. */
static void settle(struct hec_budget *budget, const struct hec_budget_reading *readings, struct share *shares,
                   int count, double watts) {
    double kept[HEC_BUDGET_DEVICES], sum = 0;
    for (int i = 0; i < count; i++) {
        double before = budget->devices[i].limit_w;
        shares[i].limit_w = floor(shares[i].limit_w + LEAST_W);
        kept[i] = fabs(shares[i].limit_w - before) < SPARE * readings[i].own_w ? before : shares[i].limit_w;
        sum += shares[i].part ? kept[i] : 0;
    }
    for (int i = 0; i < count && sum <= watts; i++)
        shares[i].limit_w = kept[i];
}

static void follow_class(struct hec_budget_device *device, const struct hec_budget_reading *reading,
                         const double *slowdown, double passed_s) {
    enum hec_power_class now = takes_part(reading) ? reading->power_class : HEC_POWER_CLASS_COUNT;
    double allowed = now < HEC_POWER_CLASS_COUNT ? slowdown[now] : 0;
    if (device->power_class == now && device->holders == reading->holders && device->slowdown == allowed)
        return;
    if (device->power_class != HEC_POWER_CLASS_COUNT && now == HEC_POWER_CLASS_COUNT && isfinite(reading->own_w))
        device->most_w[0] = reading->own_w; /* what it draws without a limit is not known */
    device->power_class = now;
    device->holders = reading->holders;
    device->slowdown = allowed;
    device->seen_s = passed_s;
    learn_anew(device, passed_s);
}

void hec_budget_begin(struct hec_budget *budget, double watts) {
    *budget = (struct hec_budget){.watts = watts, .passed_s = NAN};
    for (int c = 0; c < HEC_POWER_CLASS_COUNT; c++)
        budget->slowdown[c] = hec_power_class_slowdown((enum hec_power_class)c);
    for (int i = 0; i < HEC_BUDGET_DEVICES; i++)
        budget->devices[i] =
            (struct hec_budget_device){.power_class = HEC_POWER_CLASS_COUNT, .limit_w = NAN, .traffic_s = -TRAFFIC_S};
}

void hec_budget_divide(struct hec_budget *budget, double passed_s, const struct hec_budget_reading *readings, int count,
                       double *limits) {
    struct share shares[HEC_BUDGET_DEVICES] = {0};
    double left = budget->watts;
    double second_s = isfinite(budget->passed_s) ? passed_s - budget->passed_s : 0;
    budget->passed_s = passed_s;
    for (int i = 0; i < count; i++) {
        struct hec_budget_device *device = &budget->devices[i];
        remember_most(device, readings[i].watts, passed_s);
        follow_class(device, &readings[i], budget->slowdown, passed_s);
        shares[i].part = takes_part(&readings[i]);
        if (!shares[i].part) {
            left -= readings[i].there ? set_aside(device, &readings[i]) : 0;
            continue;
        }
        if (device->slowdown > 0)
            learn(device, &readings[i], passed_s, second_s);
        device->ceiling_w = limit_of(&readings[i], device->rung);
        shares[i].limit_w = readings[i].least_w;
        left -= readings[i].least_w;
    }
    budget->short_w = fmax(0, -left);
    double parts_w = fmax(0, left);
    for (int i = 0; i < count; i++)
        parts_w += shares[i].part ? readings[i].least_w : 0;
    for (int now = 1; now >= 0; now--) { /* what can be used now, then what may be later */
        for (int i = 0; i < count; i++)
            if (shares[i].part)
                shares[i].upto_w = now ? use_of(&budget->devices[i], &readings[i]) : budget->devices[i].ceiling_w;
        for (int power_class = 0; power_class < HEC_POWER_CLASS_COUNT; power_class++)
            left = fill(budget, (enum hec_power_class)power_class, shares, count, left);
    }
    settle(budget, readings, shares, count, parts_w);
    for (int i = 0; i < count; i++) {
        struct hec_budget_device *device = &budget->devices[i];
        if (device->bound && left >= readings[i].own_w - shares[i].limit_w)
            learn_anew(device, passed_s); /* the budget has room for it again */
        device->limit_w = shares[i].part ? shares[i].limit_w : NAN;
        limits[i] = device->limit_w;
    }
}
