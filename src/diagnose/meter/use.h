/* What telemetry alone shows of the time in which a device was in use (struct hec_use). Where nothing was traced the rules rest
 * on it: each pattern is one cause's, which prints its limits, and no two of them hold at once.
 *
 * "Measured" is an H200 of 700 W, driver 580, 2026-11. */
#ifndef HEC_DIAGNOSE_METER_USE_H
#define HEC_DIAGNOSE_METER_USE_H

#include "diagnose/meter/readings.h"

#define HEC_USE_READINGS 3         /* of the engine's activity: a device that is lost at once gives one or two */
#define HEC_USE_SECONDS 0.5        /* in use: about one GPM window at default rates, less is no mean */
#define HEC_USE_NOISE 0.005        /* engine activity: GPM counts in permille, 5 is its noise when idle */
#define HEC_USE_NOTHING_SHARE 0.10 /* of the run: a context that is made and then held is one moment */
#define HEC_USE_NOTHING_MEAN 0.01  /* engine activity over the run. Measured: a context held for 19 s 0.007 */
#define HEC_USE_FULL_SM 0.70       /* SM activity */
#define HEC_USE_FULL_POWER 0.50    /* against the limit. Measured: training 0.57 to 0.97, small kernels 0.18 */
#define HEC_USE_FULL_DRIVER                                                                                            \
    0.90 /* the driver's utilisation, without GPM: any kernel counts, so only values near 1 count */
#define HEC_USE_TRANSFERS_SM 0.60 /* SM activity at most. Measured: ResNet-18 0.78, fed by pageable copies 0.57 */
#define HEC_USE_TRANSFERS_LINK                                                                                         \
    0.03 /* of the link, one direction. Measured: that pageable loop 0.04, resident data 0.00 */
#define HEC_USE_TRANSFERS_BYTES 1e9    /* a second, where the link is unknown: 3 % of Gen4 x16 is 0.9e9 */
#define HEC_USE_THIN_ENGINE 0.10       /* engine activity. Measured: tiny kernels 0.31, a starved loop under 0.05 */
#define HEC_USE_THIN_POWER 0.40        /* against the limit at most */
#define HEC_USE_THIN_OCCUPANCY 0.20    /* by the engine's activity at most. Measured: tiny kernels 0.00, training 0.3 */
#define HEC_USE_WAITS_ENGINE 0.50      /* engine activity at most */
#define HEC_USE_CONFIDENCE 0.70        /* at most: telemetry alone proves no cause */
#define HEC_USE_CONFIDENCE_DRIVER 0.45 /* without GPM: utilisation says that a kernel was there, not what it did */

/* The most that telemetry of this device is worth. */
double hec_use_confidence(const struct hec_device_summary *device);
/* How sure it is, up to that; 0: it does not hold, there are too few readings, or they are others' as well (but nothing is
 * nothing of anybody's). */
double hec_use_nothing(const struct hec_device_summary *device);   /* next to nothing ran in the whole run */
double hec_use_full(const struct hec_device_summary *device);      /* kept busy, and draws power like it */
double hec_use_transfers(const struct hec_device_summary *device); /* SMs idle while data crosses the bus */
double hec_use_thin(const struct hec_device_summary *device);      /* busy with few warps resident, at little power */
double hec_use_waits(const struct hec_device_summary *device); /* idle mostly, and nothing of the above explains it */

/* From so many bytes a second, in one direction, much data crosses the bus. */
double hec_use_transfers_from(const struct hec_device *device);
/* Engine activity over the run, and the length of the part of it in which the device was in use, s. */
double hec_use_engine(const struct hec_device_summary *device);
double hec_use_seconds(const struct hec_device_summary *device);

#endif
