/* Whose joules they were: each increment of one device's energy counter is divided among the tenants that hold the device.
 * Pure: the caller reads counters, processes and clocks, and passes what it read. One object a device, no threads.
 *
 * Joules are integers (uJ), divided by largest remainders: at any time the sum over all rows and parts is exactly the sum of
 * what was added. What becomes of an increment:
 *
 *   idle          what the device draws while no kernel runs: the floor by the interval's length. It belongs in equal parts to the
 *                 tenants that hold the device, and to nobody where there are none.
 *   active        the rest, divided by SM utilisation. That of a tenant counts by the watts that go with it, where power has shown
 *                 them (agent/draws.h). Counter and utilisation are not of quite the same time: what a tenant got too much or
 *                 too little of in one interval is made good in the next ones.
 *   unattributed  what nobody can say whose it was: the agent did not look, several tenants ran and the driver does not say how
 *                 much each, or nobody is listed who may have run.
 *
 * The floor is an estimate: the lowest mean power, over some seconds that agree with each other, while no kernel ran; one with a
 * context on the device and one without. It is made of readings of the power, which come every second, not of increments: the
 * counter of a real device is read every 5 s or so. Until there is one, what devices of that kind idle at stands for it
 * (hec_shares_assume); where that is not known either, an increment is idle only where no kernel ran.
 *
 * Rows are bounded. A tenant that ended keeps its row, so that its last value is scraped: three lags, or HEC_SHARES_KEEP_NS where
 * nothing is late. Then the one that ended first makes room for a new tenant, and its joules go on in the row "(ended)". A job ends
 * with its last step: its rows stay together until then. While fewer than half of the rows are free or may be made free, the steps of
 * a job share its row, so that many short jobs are one row each. A tenant for whom there is no room shares
 * the row "(other)". So no row's figures ever fall while it is there, and no joule leaves the sum. In Prometheus:
 *   - sum without (...) of all series is the device's counter at every scrape, "(ended)" included;
 *   - over time, increase() counts the joules of an evicted tenant twice where it includes command="(ended)", whose jumps are
 *     old joules: leave it out there (the series of the tenant itself was counted while it was there);
 *   - a tenant that comes back after its eviction begins at 0, which Prometheus takes for a reset of the counter, rightly. */
#pragma once

#include "agent/draws.h"
#include "agent/identity.h"
#include "agent/waste.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far the active joules of a tenant may be off. Three reasons, which are added up in three ways:
 *
 *   turns    of whose turn it is the driver sees only samples. Errors of different times are independent: variances add.
 *   figures  what each tenant draws for its utilisation is fitted. Such an error stays until more is learned: it adds as it is.
 *   floor    the idle floor is an estimate, and what is above it is active. The same holds.
 *
 * The three are independent of each other. A tenant that is alone on the device has but the last. */
struct hec_share_error {
    double turns_uj2;  /* variance */
    double figures_uj; /* standard deviation */
    double floor_uj;   /* at most so much */
};

/* Of joules of which nothing was noted, as by an older version; it stays unknown whatever is added. */
struct hec_share_error hec_share_error_unknown(void);
/* The true value is within so much in 95 of 100 cases; NAN: not known. */
double hec_share_error_bound_uj(const struct hec_share_error *error);

#define HEC_SHARES_ROWS_MAX HEC_DRAWS_MAX
#define HEC_SHARES_KEEP_NS                                                                                             \
    (300 * HEC_NS_PER_S) /* without a lag, which tells how often is scraped: several slow scrapes */
#define HEC_SHARES_KEEP_LEAST_NS                                                                                       \
    (20 * HEC_NS_PER_S) /* and a scrape, where its owner has more than others who need a row */
#define HEC_SHARES_UNKNOWN (-1)
#define HEC_SHARES_WHOLE (-1) /* not in a MIG instance */

enum hec_shares_part { HEC_SHARES_ACTIVE, HEC_SHARES_IDLE, HEC_SHARES_UNATTRIBUTED, HEC_SHARES_PART_COUNT };

/* A process that was listed at the beginning or at the end of the interval, or somebody to whom the device was given. */
struct hec_shares_holder {
    const struct hec_tenant *tenant;
    bool context; /* a process has a context on the device; false: only allocated */
    int instance; /* id of its MIG instance (GPU instance), or HEC_SHARES_WHOLE */
    int sm_permille; /* mean over the interval, of the whole device; HEC_SHARES_UNKNOWN. 0 where the driver says it did not run */
    int cause; /* why it may leave the device unused: a cause of waste.h */
};

struct hec_shares_instance {
    int id;
    int sm_permille; /* mean over the interval, of the whole device: that of the instance by its share of the slices; or UNKNOWN */
};

struct hec_shares_interval {
    int64_t end_ns, duration_ns;
    int64_t energy_mj; /* >= 0: by how much the counter grew */
    bool observed;     /* false: what follows is not known (agent or device were away): all is unattributed */
    int busy_permille; /* utilisation of the device over the interval, or UNKNOWN */
    const struct hec_shares_holder *holders;
    size_t holder_count;
    const struct hec_shares_instance *instances; /* of a device under MIG */
    size_t instance_count;
};

struct hec_shares_row {
    struct hec_tenant tenant;
    int64_t uj[HEC_SHARES_PART_COUNT];
    struct hec_use_made use;
    int64_t held_ns;              /* end of the last interval in which it held the device */
    double mw_a_permille;         /* what it draws for its utilisation, as fitted (agent/draws.h); 0: not known yet */
    struct hec_share_error error; /* of uj[HEC_SHARES_ACTIVE] */
};

struct hec_shares_floor {
    int64_t free_mw, held_mw; /* without and with a context; HEC_SHARES_UNKNOWN */
};

struct hec_shares;

/* HEC_ERR_NOMEM */
int hec_shares_create(struct hec_shares **out);
void hec_shares_free(struct hec_shares *shares); /* NULL is fine */

/* All joules are shown so much later than they are counted (agent/late.h), as is the device's own sum then; 0, as at first: at once. What
 * was late is shown. */
void hec_shares_lag(struct hec_shares *shares, int64_t lag_ns);
/* Time goes on. */
void hec_shares_pass(struct hec_shares *shares, int64_t now_ns);
/* What is shown of a row's joules; all of them: hec_shares_row. */
int64_t hec_shares_shown_uj(const struct hec_shares *shares, size_t row, enum hec_shares_part part);

/* An interval that makes no sense (a negative increment or duration) adds nothing and returns HEC_ERR_USAGE. */
int hec_shares_add(struct hec_shares *shares, const struct hec_shares_interval *interval);

/* What a device of its kind idles at with a context; an estimate that stands as long as nothing better was seen. <= 0: none. */
void hec_shares_assume(struct hec_shares *shares, int64_t held_mw);
/* For so long the device drew so much while no kernel ran. held: somebody has a context on it. */
void hec_shares_idle(struct hec_shares *shares, bool held, int64_t power_mw, int64_t duration_ns);

#define HEC_SHARES_NAMED 3 /* the first row that is a tenant's */
/* Rows 0 to count - 1; the first three are nobody (no labels: idle and unattributed), "(other)" and "(ended)", which are always
 * there and may be all 0. */
size_t hec_shares_count(const struct hec_shares *shares);
const struct hec_shares_row *hec_shares_row(const struct hec_shares *shares, size_t i);
int64_t hec_shares_total_uj(const struct hec_shares *shares); /* of all that was added or restored */
struct hec_shares_floor hec_shares_floor(const struct hec_shares *shares);
/* While somebody holds it: what was seen, else what is assumed, else the floor without a context; HEC_SHARES_UNKNOWN. */
int64_t hec_shares_held_floor(const struct hec_shares *shares);

/* After a restart: what the rows and the floor were. Joules of a tenant that finds no room go to "(ended)". Negative figures
 * return HEC_ERR_CORRUPT and restore nothing. */
int hec_shares_restore(struct hec_shares *shares, const struct hec_shares_row *row);
void hec_shares_restore_floor(struct hec_shares *shares, struct hec_shares_floor floor);
