/* What `hec calibrate` measured of a device, kept as JSON: one file a device, UUID.json, in HEC_CALIBRATION_DIR, else in
 * $XDG_DATA_HOME/hec/calibration, else in ~/.local/share/hec/calibration. docs/calibrate.md has the format. */
#pragma once

#include "base/error.h"
#include "model/peaks.h"

#include <jansson.h>
#include <limits.h>

#define HEC_CALIBRATION_SCHEMA "hec.calibration/1"

/* Replaces the file in one step, so that a reader sees the old one or the new one. Makes the folder. */
int hec_calibration_write(const struct hec_peaks *peaks, char path[PATH_MAX], struct hec_why *why);

/* *peaks is initialised in every case. HEC_ERR_NOTFOUND: this device was never calibrated; VERSION: the file is of a newer
 * HEC; CORRUPT: it is damaged, or another device's. */
int hec_calibration_read(const char *uuid, struct hec_peaks *peaks, struct hec_why *why);

/* The file's object. NULL: no memory. */
json_t *hec_calibration_json(const struct hec_peaks *peaks);
