/* How much power each tenant of a device draws for its utilisation. Two programs that keep the SMs busy for the same time may
 * differ by a factor of five, and which draws what shows in how the power changes with who runs: a recursive least-squares fit
 * of power above the idle floor = sum of (mW a permille of the tenant) x (its permille), over blocks of some seconds, and
 * up to a minute while the same tenants run in the same proportion. Every tenant begins at the device's overall figure, so that two
 * who always ran in the same proportion share by utilisation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_DRAWS_MAX 128

struct hec_draws_block {
    double permille[HEC_DRAWS_MAX]; /* x ns */
    double uj;
    bool rough;
    int64_t ns;
};

struct hec_draws {
    double overall;                                  /* mW a permille of all together; 0: not known yet */
    double mean[HEC_DRAWS_MAX];                      /* of each; 0: begins at the overall */
    double covariance[HEC_DRAWS_MAX][HEC_DRAWS_MAX]; /* of their errors */
    struct hec_draws_block block;                    /* so far */
    struct hec_draws_block pool;                     /* blocks with the same mix of tenants, not fitted yet */
    int blocks;
    bool measured; /* utilisation is: of GPU instances it comes from counters, not from looks at whose turn it is */
};

/* Tenant i is another one from now on; mean 0: not known. */
void hec_draws_set(struct hec_draws *draws, size_t i, double mean);
/* An interval in which all that ran is known: energy above the floor, and utilisation of each. rough: the floor is only a lower
 * bound of the true one. */
void hec_draws_add(struct hec_draws *draws, int64_t active_uj, int64_t duration_ns,
                   const double permille[HEC_DRAWS_MAX], bool rough);
/* An interval of which that is not known: the block begins anew. */
void hec_draws_break(struct hec_draws *draws);
/* mW a permille; 1 for all until something is known. */
double hec_draws_of(const struct hec_draws *draws, size_t i);

/* Variances of a tenant's share, a part of 1, of what is divided by permille x hec_draws_of. */
struct hec_draws_error {
    double turns;   /* the driver looks only now and then whose turn it is; 0 where utilisation is measured */
    double figures; /* the figures are fitted */
};

/* Utilisation is the mean over so much time, some seconds at least. Both are 0 of a tenant that ran alone. */
void hec_draws_errors(const struct hec_draws *draws, const double permille[HEC_DRAWS_MAX], int64_t duration_ns,
                      struct hec_draws_error errors[HEC_DRAWS_MAX]);

/* The idle floor of a device: what it draws while no kernel runs, found in its own readings.
 * One state of the device: with a context on it, or without. A level is the mean of a window of idle time; one that agrees with
 * the window before is stable, and the lowest stable one of the last two hours of idle time is the floor: a device that has
 * just worked idles higher, and copies, which are no kernels, draw a little. */
struct hec_floor {
    int64_t window_ns; /* so far */
    double window_mw_ns;
    int64_t seen_ns;     /* idle time in the present hour */
    double before_mw;    /* mean of the window before; 0: none */
    double lowest_mw[2]; /* in this hour of idle time and in the one before; 0: none */
};

void hec_floor_add(struct hec_floor *floor, int64_t power_mw, int64_t duration_ns);
void hec_floor_set(struct hec_floor *floor, int64_t mw);
int64_t hec_floor_mw(const struct hec_floor *floor); /* -1: not known yet */
