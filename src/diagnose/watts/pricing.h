/* What each state of a device took: its watts by unmixing (unmix.h), with what is known of states beforehand.
 *
 * All idle states but startup and tail are one thing to the device, idling with a context, so their watts are near one
 * level. Host copies lie a few per cent above it. A gap of a microsecond between two kernels is no rest: it counts as the
 * kernels do. Work takes at least the level; where there is little of it, counters say how full the
 * device was, and with that about how much it took. Where power samples and the counter separate the states that matters
 * little; in a loop of equal short steps, in a run of seconds and for states of milliseconds it is what there is, and
 * the intervals are as wide as the beliefs. Figures: docs/decisions/0007-unmixing.md. */
#pragma once

#include "diagnose/reason.h"
#include "diagnose/states/ledger.h"
#include "diagnose/watts/unmix.h"

struct hec_energy;

struct hec_pricing {
    const struct hec_energy *energy; /* valid, joules > 0 */
    double limit_w;                  /* NAN unknown */
    const char *device;              /* what its driver calls it */
    double idle_w;                   /* with a context and no work, as hec calibrate measured it; NAN: it did not */
    double fill;                     /* of the device while it works: SMs, or memory, that are active; NAN: not known */
    const struct hec_pricing_order *order; /* after the last piece */
    int64_t tight_ns; /* of the launch state: in pieces that count as another class, of what was traced */
};

/* Of the unmixing of a device's states: a class for each, and compute in kinds, by what ran before a kernel: in a loop
 * the same kernels come in the same order, so that one that takes more than others does so at the same place of each step,
 * which no number of steps averages out. */
#define HEC_PRICING_KINDS 14
struct hec_unmix_options hec_pricing_options(double limit_w, const struct hec_unmix_sensor *sensor);
struct hec_pricing_order { /* start zeroed; one for each device */
    uint32_t before;       /* of what ran last, a hash */
    uint32_t now;
    int class;
    int64_t end_ns;
    uint32_t kind[HEC_PRICING_KINDS]; /* orders that came again and again, in the order of their first time */
    int kinds;
    uint8_t seen[256];        /* how often, by hash */
    int64_t all_ns, again_ns; /* of compute; of such kinds */
};
bool hec_pricing_tight(const struct hec_state_piece *piece); /* a gap that counts as the kernels around it */
/* The class of a piece, given in order. */
int hec_pricing_class(struct hec_pricing_order *order, const struct hec_state_piece *piece);

/* Puts watts and joules into the device's rows (hec_ledger_power). why: none, or why it could not; how: on what the watts
 * rest, none with why. 0 or HEC_ERR_NOMEM. */
int hec_price_device(struct hec_ledger_device *device, struct hec_unmix *unmix, const struct hec_pricing *pricing,
                     struct hec_reason *why, struct hec_reason *how);
/* When all is priced: where the intervals are wide, how is not measured. */
void hec_price_judge(const struct hec_ledger_device *device, struct hec_reason *how);
