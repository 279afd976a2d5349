/* The ledger of a device: every nanosecond of the run in one state, every millijoule too.
 *
 * Time is exact where it was traced. Time that was not (between the windows of a duty-cycled trace) is shared out in the
 * proportions of the traced time with the same phase of the program (data, checkpoint or neither: those are known
 * outside of the windows too); startup and tail are known and take no part in it. The bounds are 95 % intervals from the
 * variation between windows: the ratio estimator's variance, n/(n-1) sum (y - R m)^2 / (sum m)^2 for windows of lengths m
 * with y in the state (Cochran, Sampling Techniques, 3rd ed., 6.4); a state that was never seen in n windows is below 3/n
 * of the time. With fewer than two windows the bounds are all or nothing. Where busy time was inferred, the bounds are
 * what it may have been (inferred.h). Rows add up to the window exactly, in
 * nanoseconds. */
#pragma once

#include "diagnose/states/state.h"

struct hec_ledger_row {
    int64_t traced_ns;                         /* seen */
    int64_t ns;                                /* with its share of what was not traced */
    double seconds, seconds_low, seconds_high; /* ns, and its 95 % interval */
    double step_seconds;                       /* mean over the steps that were traced wholly; NAN without */
    /* By hec_ledger_power; NAN before and where it could not. */
    double joules, watts, watts_low, watts_high;
    double step_joules; /* mean of a step: step_seconds at the row's joules a second; NAN without */
    int64_t mj;         /* joules, exactly; 0 where unknown */
};

/* Of compute: classes add up to its row, in time and, where their watts were given, in energy. */
struct hec_ledger_class {
    int64_t traced_ns, ns;
    double joules, watts, watts_low, watts_high; /* NAN without */
    int64_t mj;
};

/* How it is known when a device was busy. */
enum hec_ledger_basis {
    HEC_LEDGER_MEASURED, /* CUPTI saw its activities, in all of the time or in windows all over it */
    HEC_LEDGER_GLIMPSE,  /* in a short window; else as CALLS */
    HEC_LEDGER_CALLS,    /* inferred from calls and telemetry (inferred.h) */
    HEC_LEDGER_UNUSED,   /* by telemetry next to nothing ran on it: tail while it had a context, startup for the rest */
    HEC_LEDGER_BASIS_COUNT
};
const char *hec_ledger_basis_name(enum hec_ledger_basis basis); /* "measured": stable, in JSON */

struct hec_ledger_device {
    int device;
    enum hec_ledger_basis basis;
    int64_t from_ns, to_ns;
    int64_t window_ns; /* to - from: sum of all rows */
    int64_t traced_ns; /* sum of the rows' traced_ns */
    int64_t windows;   /* of the trace that the shares come from; 0: traced throughout */
    int64_t steps;     /* traced wholly */
    /* Until when it last waited for requests (0: never), and steps that were traced until then. */
    int64_t requests_ns, requests_steps;
    struct hec_ledger_row rows[HEC_STATE_COUNT];
    struct hec_ledger_class classes[HEC_KERNEL_CLASS_COUNT];
    double joules;       /* the total given; NAN before hec_ledger_power */
    double discrepancy;  /* what the watts made of it, by the total, less 1; NAN before */
    bool waiting_likely; /* the row of waiting is inferred (hec_ledger_wait) */
};

struct hec_ledger {
    struct hec_ledger_device *devices; /* by first appearance; malloc'ed */
    int device_count;
};

/* Builds ledgers from pieces; to be fed by a visitor of states, alone or beside others. */
struct hec_ledger_builder;
struct hec_ledger_builder *hec_ledger_begin(void); /* NULL: no memory */
/* Kept until the last piece, or until NULL is given: pieces that come then are of no step. */
void hec_ledger_steps(struct hec_ledger_builder *builder, const struct hec_device_steps *steps);
int hec_ledger_piece(struct hec_ledger_builder *builder, int device, const struct hec_state_piece *piece);
/* *out is complete (free it) but for power; on HEC_ERR_NOMEM empty. Frees the builder. */
int hec_ledger_end(struct hec_ledger_builder *builder, struct hec_ledger *out);
void hec_ledger_abandon(struct hec_ledger_builder *builder); /* NULL is fine */
void hec_ledger_free(struct hec_ledger *ledger);

struct hec_ledger_watts {
    double watts, low, high;
};
/* Share of its time in use (all but startup and tail) in which the device was busy, 0..1. window_ns > 0. */
double hec_ledger_busy(const struct hec_ledger_device *device);

/* Seconds of what a device does by itself: all but communication, waiting for other ranks, start-up, tail and what is unknown. */
double hec_ledger_work(const struct hec_ledger_device *device);

/* Seconds of what it does with other ranks, on the device or on the host, waiting for them included; before hec_ledger_wait. */
double hec_ledger_shared(const struct hec_ledger_device *device);

/* So long of communication the device did nothing but wait for other ranks: that goes into a row of its own, at the watts of
 * communication, so that rows still add up. Last of all: pieces of states know nothing of it. likely: it is inferred; then all of it may
 * have been communication. */
void hec_ledger_wait(struct hec_ledger_device *device, double seconds, bool likely);

/* Widens the bounds of a ledger's seconds so that they hold those of another one, of the same run by other assumptions. */
void hec_ledger_widen(struct hec_ledger *ledger, const struct hec_ledger *other);

/* Prices each state; the rows' joules then add up to total_mj exactly: the products are scaled to it (`discrepancy` says
 * by how much: the solver's constraint leaves little) and rounded by largest remainder. classes: watts of each kernel
 * class, whose mean then takes the place of watts[COMPUTE], and so do its bounds; NULL: compute is one. False, and nothing
 * changes, where a state (or class) with time has no watts (NAN), a power is negative, or all that is left to carry a total
 * is 0 W: missing is not zero. */
bool hec_ledger_power(struct hec_ledger_device *device, const struct hec_ledger_watts watts[HEC_STATE_COUNT],
                      const struct hec_ledger_watts *classes, int64_t total_mj);

/* Shares of `total` in proportion to weights >= 0 that add up to it exactly, by largest remainder (of equal ones the
 * earlier). All 0 when the weights are. */
void hec_ledger_apportion(const double *weights, int count, int64_t total, int64_t *shares);
