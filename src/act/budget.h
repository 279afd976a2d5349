/* How the GPUs of a node share a budget of watts. Pure: readings in, limits of power out; agent/power.h reads and writes.
 *
 *     hec_budget_begin(&budget, watts)
 *     hec_budget_divide(&budget, passed_s, readings, count, limits)      once in every second or so
 *
 * A device takes part when all who hold it are in a class (power_classes.def) and its limit may be set. What the others may draw is set
 * aside: what they have drawn at most in the last minute, and a twentieth. Of the rest each gets the lowest limit that it takes. Then
 * class by class, in equal parts, what it can use now; then, in the same order, up to its own limit, so that a rise finds room. So the
 * limits of those that take part, and what is set aside, are never more than the budget, where that can be.
 *
 * A class that may be slower finds the limit at which its device does most for a joule: lower limits one after the other, each held for
 * some seconds while the device works. What a program moves to and from memory for a piece of work is the same at any limit, so traffic
 * a second goes as its work does. Where traffic is not known the SM clock stands for it, which falls at least as fast as work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEC_BUDGET_DEVICES 64
#define HEC_BUDGET_RUNGS 16

enum hec_power_class {
#define HEC_POWER_CLASS(id, name, slowdown, meaning) HEC_POWER_##id,
#include "act/power_classes.def"
#undef HEC_POWER_CLASS
    HEC_POWER_CLASS_COUNT, /* none */
};

const char *hec_power_class_name(enum hec_power_class power_class);
const char *hec_power_class_meaning(enum hec_power_class power_class);
/* 0.05: the class may be so much slower, unless it is said otherwise. */
double hec_power_class_slowdown(enum hec_power_class power_class);
/* HEC_POWER_CLASS_COUNT: there is none of that name. */
enum hec_power_class hec_power_class_find(const char *name);

struct hec_budget_reading {
    bool there;                       /* the device is known */
    enum hec_power_class power_class; /* HEC_POWER_CLASS_COUNT: it does not take part */
    uint64_t holders;                 /* who holds it: another number, other programs */
    double least_w, own_w;            /* the lowest limit that it takes, and its own: NAN where it cannot be set */
    double watts;                     /* mean of the last second or so; NAN: not known */
    double idle_w;                    /* what it draws without work; 0: not known */
    double clock_mhz;                 /* of the SMs; NAN: not known */
    double
        traffic; /* bytes a second to and from memory since the reading before, in any unit; NAN: nothing new is known */
    double busy; /* 0 to 1: the share of time with kernels; NAN: not known */
};

struct hec_budget_rung { /* means while it was held and the device worked */
    double clock_mhz, traffic, watts;
    double work_w; /* of those, what it draws for its work */
};

struct hec_budget_device {
    enum hec_power_class power_class;
    uint64_t holders;
    double slowdown;  /* what was allowed */
    double limit_w;   /* what was asked for last; NAN: its own */
    double ceiling_w; /* what it may have at most, whatever the budget has */
    double most_w[6]; /* drawn at most, in each of the last six times ten seconds */
    double most_since_s;
    /* The limit at which it does most for a joule. Rung r: own * (1 - r / 20). */
    int rung, best;                  /* held, and the best so far */
    bool found;                      /* no more is tried */
    bool bound;                      /* what was found began below its own limit: the budget held it there */
    bool measured, odd;              /* a rung was; the last look at what was found showed something else */
    double most_mhz;                 /* the highest clock that was seen */
    double found_s, since_s, seen_s; /* when the best was found, the rung was begun, the device worked last */
    double traffic_s;                /* when there was traffic to read last */
    double work_s; /* of work since the rung was begun; then readings of traffic, and sums over both */
    int traffics;
    struct hec_budget_rung sums;
    struct hec_budget_rung rungs[HEC_BUDGET_RUNGS];
};

struct hec_budget {
    double watts;
    double slowdown
        [HEC_POWER_CLASS_COUNT]; /* 0.05: a class may be so much slower; hec_budget_begin sets power_classes.def's */
    double passed_s;
    double short_w; /* by which the budget cannot hold: what is set aside, and the lowest limits, are more */
    struct hec_budget_device devices[HEC_BUDGET_DEVICES];
};

void hec_budget_begin(struct hec_budget *budget, double watts);
/* passed_s: of a clock that does not go back. limits: watts; NAN for a device that keeps, or is to have again, its own. */
void hec_budget_divide(struct hec_budget *budget, double passed_s, const struct hec_budget_reading *readings, int count,
                       double *limits);
