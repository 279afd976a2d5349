/* What telemetry alone shows of the time in which a device was in use (struct hec_use). Where nothing was traced the rules rest
 * on it: each pattern is one cause's, which prints its limits, and no two of them hold at once.
 *
 * "Measured" is an H200 of 700 W, driver 580, 2026-11. */
#pragma once

#include "diagnose/limits.h"
#include "diagnose/meter/readings.h"

/* The most that telemetry of this device is worth. */
double hec_use_confidence(const struct hec_device_summary *device);
/* How sure it is, up to that; 0: it does not hold, there are too few readings, or they are others' as well (but nothing is
 * nothing of anybody's). */
double hec_use_nothing(const struct hec_device_summary *device); /* next to nothing ran in the whole run */
double hec_use_full(const struct hec_device_summary *device);    /* kept busy, and draws power like it */
double hec_use_dense(const struct hec_device_summary *device);   /* and tensor pipes show that its work is dense */
/* SMs idle while data crosses the bus, and copies explain the idle time, or the engine, of which copies are a part, is busy mostly. */
double hec_use_transfers(const struct hec_device_summary *device);
bool hec_use_copies_explain(const struct hec_device_summary *device); /* the larger part of the idle time */
double hec_use_thin(const struct hec_device_summary *device);  /* busy with few warps resident, at little power */
double hec_use_waits(const struct hec_device_summary *device); /* idle mostly, and nothing of the above explains it */

/* From so many bytes a second, in one direction, much data crosses the bus. */
double hec_use_transfers_from(const struct hec_device *device);
/* Engine activity over the run, and the length of the part of it in which the device was in use, s. */
double hec_use_engine(const struct hec_device_summary *device);
double hec_use_seconds(const struct hec_device_summary *device);
