/* Parts of `hec calibrate`. */
#ifndef HEC_CLI_CALIBRATE_H
#define HEC_CLI_CALIBRATE_H

#include "base/error.h"
#include "model/peaks.h"
#include "model/run.h"

#include <stdbool.h>

/* Measure this device: about 15 s. force: although others use it. HEC_ERR_BUSY: others use it; UNSUPPORTED: it is
 * simulated or divided (MIG), or CUDA cannot use it. */
int hec_calibrate_device(const struct hec_device *device, bool force, struct hec_peaks *peaks, struct hec_why *why);

#endif
