/* What a device was measured to reach (`hec calibrate`), and what a roofline uses: that, or the vendor's figure. */
#pragma once

#include "model/part.h"

#include <stdbool.h>

enum hec_peak_kind {
#define HEC_PEAK(id, name, unit, rate, precision, meaning) HEC_PEAK_##id,
#include "model/peaks.def"
#undef HEC_PEAK
    HEC_PEAK_COUNT
};

enum { HEC_PEAK_METHOD_SIZE = 48, HEC_PEAK_RUNS_MAX = 64 };

/* One figure, in its unit (hec_peak_unit). NAN: unknown, which is never zero. */
struct hec_peak {
    double value;                      /* median of the runs, in short bursts: clocks are not yet lowered */
    double low, high;                  /* the extreme runs */
    double sustained;                  /* compute only: without a pause, when the power limit has taken its share */
    double sm_mhz;                     /* compute only: the clock of the bursts, from the cycles the kernel counted */
    double sustained_mhz;              /* and of the sustained figure */
    int runs;                          /* 0: not measured */
    bool throttled;                    /* the driver lowered the clocks during the bursts */
    bool sustained_throttled;          /* and without a pause */
    char method[HEC_PEAK_METHOD_SIZE]; /* "wgmma", "mma.sync", "fma" ...; empty: not measured */
};

struct hec_peaks {
    char uuid[96], name[96], driver[64];
    char measured[40];    /* wall time, ISO 8601 */
    char hec_version[24]; /* that measured */
    int cuda_major, cuda_minor, sms;
    double sm_max_mhz;    /* that the device states */
    double power_limit_w; /* enforced when it was measured */
    bool shared;          /* other processes used the device: the figures are a lower bound */
    bool simulated;       /* no measurement at all */
    struct hec_peak peak[HEC_PEAK_COUNT];
};

/* Every figure unknown, every text empty. */
void hec_peaks_init(struct hec_peaks *peaks);

const char *hec_peak_name(enum hec_peak_kind kind);    /* "fp64": stable, used in JSON */
const char *hec_peak_unit(enum hec_peak_kind kind);    /* "FLOP/s" */
const char *hec_peak_meaning(enum hec_peak_kind kind); /* for people */
bool hec_peak_is_rate(enum hec_peak_kind kind);        /* more is better */

/* What the part's vendor states in the same unit: FLOP/s or OP/s by precision, device memory for both DRAM figures.
 * NAN: nothing (part NULL too), 0: the part has no such unit. */
double hec_peak_stated(const struct hec_part *part, enum hec_peak_kind kind);

enum hec_peak_source { HEC_PEAK_UNKNOWN, HEC_PEAK_CALIBRATED, HEC_PEAK_PART_TABLE };

/* The roof for a device: the larger of what was measured in bursts and what the vendor states, since neither a kernel of
 * ours nor a rounded data sheet may put a program above 100 % of its roof; *source (may be NULL) says which. A measurement
 * on a shared or simulated device counts for nothing. peaks and part may be NULL. NAN: unknown. Rates only (a cost: the
 * calibrated figure or NAN). */
double hec_peak_roof(const struct hec_peaks *peaks, const struct hec_part *part, enum hec_peak_kind kind,
                     enum hec_peak_source *source);
