/* Each kernel class's own watts and utilisation counters, unmixed from the readings of the whole run, and where that puts it
 * under the roofline. */
#pragma once

#include "base/error.h"
#include "diagnose/timeline/kernel_class.h"
#include "diagnose/watts/roofline.h"

struct hec_class_row {
    double seconds, share;                       /* of compute; 0 where the class did not run */
    double joules, watts, watts_low, watts_high; /* NAN: not unmixed */
    struct hec_roofline_input counters;          /* NAN values: not measured or not separated */
    struct hec_roofline_point point;             /* limit UNKNOWN where counters do not show it */
    int merged_with;                             /* counters are common with this class; -1 alone */
};

enum hec_counters {
    HEC_COUNTERS_READ,
    HEC_COUNTERS_SHARED, /* others work on the device, or may: they are of all of them */
    HEC_COUNTERS_NONE,   /* the device has none that can be read while it works */
    HEC_COUNTERS_UNREAD,
    HEC_COUNTERS_KINDS
};

struct hec_class_profile {
    int device;
    bool has_counters;
    enum hec_counters counters; /* why there are none */
    double sms;                 /* streaming multiprocessors; NAN unknown */
    struct hec_roofline_peaks peaks;
    struct hec_class_row class[HEC_KERNEL_CLASS_COUNT];
    struct hec_class_row all; /* all compute together: always given where there are counters */
};

struct hec_device_summary;
struct hec_ledger_device;
struct hec_peaks;
struct hec_state_piece;
struct hec_meter;
struct hec_device_timeline;

/* Gathers one device's, in the order of unmix.h: begin, read (all counters), power and window, piece, end.
 *
 * Separated are idling (startup and tail by themselves: no context may be there), copies, communication, and of the
 * kernel classes the eight with most time, each with at least 2 % of it; the others count as one. A class's watts are
 * used where all that was separated, classes of 90 % of the compute time have good watts, and their mean is within 25 %
 * of what the ledger says of compute: they are scaled to that, the others have the ledger's. Counters that never varied
 * apart are common; where idling or
 * copying is among what they are common with, that is taken as 0. Those of all
 * compute: what windows give or, where that is wider, the counter's mean over the run by the part of it that computed,
 * give or take 15 %. A class of 90 % of the compute time has them too where its own are wider. */
struct hec_class_profiler;
/* timeline: kernels and their seconds, which say what classes there are; NULL: none. *out is NULL where the device ran none. 0 or
 * HEC_ERR_NOMEM. */
struct hec_unmix_sensor;
int hec_class_profiler_begin(const struct hec_device_timeline *timeline, const struct hec_device_summary *device,
                             const struct hec_unmix_sensor *sensor, struct hec_class_profiler **out);
/* Reads the hardware counters: GPM, each reading the mean of the time since the one before. every: of longer runs only
 * every so many minutes count. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_class_profiler_read(struct hec_class_profiler *profiler, struct hec_meter *meter, int64_t every,
                            struct hec_why *why);
/* As in unmix.h. */
int hec_class_profiler_power(struct hec_class_profiler *profiler, int64_t t_ns, int64_t span_ns, double watts);
int hec_class_profiler_window(struct hec_class_profiler *profiler, int64_t start_ns, int64_t end_ns, double joules,
                              double sigma_j);
int hec_class_profiler_piece(struct hec_class_profiler *profiler, const struct hec_state_piece *piece);
/* Fills *out, and the joules of the ledger's kernel classes where their watts are known: shares of its compute row, which
 * stays as it is. The ledger has been priced, or could not be. peaks: measured ones, NULL: none. 0 or HEC_ERR_NOMEM. */
int hec_class_profiler_end(struct hec_class_profiler *profiler, struct hec_ledger_device *ledger,
                           const struct hec_peaks *peaks, struct hec_class_profile *out);
/* A device without kernels: seconds and peaks alone. */
void hec_class_profile_none(const struct hec_device_summary *device, const struct hec_ledger_device *ledger,
                            const struct hec_peaks *peaks, struct hec_class_profile *out);
void hec_class_profiler_free(struct hec_class_profiler *profiler); /* NULL is fine */
