/* Every rate and limit of the NVML collector, in one place. Figures: one H200, driver 580
 * (bench/gpu/nvml_probe.c measures them). */
#pragma once

#include "base/clock.h"

/* Energy counter. A call takes 4.0-4.7 ms, a new value comes every 99.94 ms. */
#define HEC_TUNE_ENERGY_PERIOD_MIN_NS (INT64_C(99700) * HEC_NS_PER_US) /* the pace that is looked for */
#define HEC_TUNE_ENERGY_PERIOD_MAX_NS (INT64_C(100200) * HEC_NS_PER_US)
#define HEC_TUNE_ENERGY_QUANTUM_NS (100 * HEC_NS_PER_MS)    /* how old a value may be where no pace was found */
#define HEC_TUNE_ENERGY_INTERVAL_NS (3 * HEC_NS_PER_S)      /* between readings, once the edges are known ... */
#define HEC_TUNE_ENERGY_INTERVAL_MAX_NS (30 * HEC_NS_PER_S) /* ... and at most, when a reading costs much CPU */
#define HEC_TUNE_ENERGY_CPU_SHARE 0.002                     /* of one core, for the counters of all devices */
#define HEC_TUNE_ENERGY_MARGIN_NS (1 * HEC_NS_PER_MS)       /* read this long after the latest time of an edge */
#define HEC_TUNE_ENERGY_FOUND_NS (8 * HEC_NS_PER_MS)        /* an edge is found when as narrow as a call and this ... */
#define HEC_TUNE_ENERGY_NARROW_NS (8 * HEC_NS_PER_MS)       /* ... and tested again only when wider than this */
#define HEC_TUNE_ENERGY_DRIFT_NS (3 * HEC_NS_PER_MS)   /* an edge may become so much wider until the next reading */
#define HEC_TUNE_ENERGY_SEARCH_MAX 40                  /* readings to look for the edges, before giving up ... */
#define HEC_TUNE_ENERGY_REST_NS (300 * HEC_NS_PER_S)   /* ... for this long */
#define HEC_TUNE_ENERGY_HOLD_NS (3 * HEC_NS_PER_S)     /* readings wait for their edges at most this long */
#define HEC_TUNE_ENERGY_MEMORY_NS (120 * HEC_NS_PER_S) /* bounds older than this are forgotten (clock drift) */
#define HEC_TUNE_ENERGY_SLOP_NS (1500 * HEC_NS_PER_US) /* irregularity allowed; doubles after a contradiction */
#define HEC_TUNE_ENERGY_SLOP_MAX_NS (4 * HEC_NS_PER_MS)

/* Power. The history holds 119 samples of 20 ms: 2.36 s. */
#define HEC_TUNE_HISTORY_INTERVAL_NS (1 * HEC_NS_PER_S)
#define HEC_TUNE_HISTORY_SETTLE_RUN_NS (1 * HEC_NS_PER_S) /* a run shorter than this is not worth the wait ... */
#define HEC_TUNE_HISTORY_SETTLE_NS (45 * HEC_NS_PER_MS)   /* after the end of the run, for the samples around it */
#define HEC_TUNE_HISTORY_BUFFER 1024                      /* samples taken at most in one call */
#define HEC_TUNE_CLOCK_STEP_NS (5 * HEC_NS_PER_MS)        /* the wall clock jumped when its offset moved by more */
#define HEC_TUNE_INSTANT_INTERVAL_NS (50 * HEC_NS_PER_MS) /* without a history; with one it is read with the state */
#define HEC_TUNE_USAGE_INTERVAL_NS (100 * HEC_NS_PER_MS)  /* without both */

/* State, processes, GPM. */
#define HEC_TUNE_STATE_INTERVAL_NS (1 * HEC_NS_PER_S)
#define HEC_TUNE_MONITORED_INTERVAL_NS (5 * HEC_NS_PER_S) /* eleven calls of 20 us */
#define HEC_TUNE_MIG_LIST_NS (10 * HEC_NS_PER_S)          /* MIG devices are made and destroyed meanwhile */
#define HEC_TUNE_MIG_MEMORY_NS (5 * HEC_NS_PER_S)         /* a call for each */
#define HEC_TUNE_PROCESS_INTERVAL_NS (1 * HEC_NS_PER_S)
#define HEC_TUNE_PROCESS_UTIL_NS (10 * HEC_NS_PER_S)   /* the driver keeps the samples; a call spins for 2.2 ms */
#define HEC_TUNE_PROCESS_REPORT_NS (10 * HEC_NS_PER_S) /* an unchanged process is reported again this often */
#define HEC_TUNE_GPM_WINDOW_NS (120 * HEC_NS_PER_MS)   /* the shortest by itself ... */
#define HEC_TUNE_GPM_WINDOW_MAX_NS (5 * HEC_NS_PER_S)  /* ... and the longest ... */
#define HEC_TUNE_GPM_CPU_MOST_NS                                                                                       \
    (2 * HEC_NS_PER_MS) /* what a window counts for: more is waiting for other users of the driver */
#define HEC_TUNE_GPM_CPU_SHARE                                                                                         \
    0.003                                                  /* ... so that all devices take this of one core: computing
                                                                  the metrics of a window spins for 1.4-1.9 ms */
#define HEC_TUNE_GPM_WINDOW_LEAST_NS (100 * HEC_NS_PER_MS) /* windows must be longer: shorter ones read as 0 */

/* Beside an observer that never ends: shares of one core, for all devices together. At these rates a reading of eight
 * counters of 4.5 ms comes every 36 s where the driver spins, every interval where it sleeps. */
#define HEC_TUNE_FIXED_ENERGY_SHARE 0.001
#define HEC_TUNE_FIXED_GPM_SHARE 0.0005
#define HEC_TUNE_FIXED_GPM_MAX_NS (60 * HEC_NS_PER_S)
#define HEC_TUNE_FIXED_PROCESS_UTIL_SHARE 0.0005
#define HEC_TUNE_FIXED_PROCESS_UTIL_MAX_NS (10 * HEC_NS_PER_S)

/* Faults. */
#define HEC_TUNE_BACKOFF_MIN_NS (1 * HEC_NS_PER_S) /* first retry of a failed sensor; doubles up to ... */
#define HEC_TUNE_BACKOFF_MAX_NS (60 * HEC_NS_PER_S)
#define HEC_TUNE_SLOW_FACTOR 10 /* a call is slow when it takes so many times its normal */
#define HEC_TUNE_SLOW_LEAST_NS                                                                                         \
    (500 * HEC_NS_PER_MS) /* ... and at least this: making a context holds calls up for 150 ms */
