/* Each kernel class's own watts and utilisation counters, unmixed from the readings of the whole run, and where that puts it
 * under the roofline. */
#ifndef HEC_DIAGNOSE_CLASS_PROFILE_H
#define HEC_DIAGNOSE_CLASS_PROFILE_H

#include "diagnose/kernel_class.h"
#include "diagnose/roofline.h"

#include <stdbool.h>

struct hec_class_row {
    double seconds, share;                       /* of compute; 0 where the class did not run */
    double joules, watts, watts_low, watts_high; /* NAN: not unmixed */
    struct hec_roofline_input counters;          /* NAN values: not measured or not told apart */
    struct hec_roofline_point point;             /* limit UNKNOWN where counters do not tell */
    int merged_with;                             /* counters are common with this class; -1 alone */
};

struct hec_class_profile {
    int device;
    bool has_counters;
    double sms; /* streaming multiprocessors; NAN unknown */
    struct hec_roofline_peaks peaks;
    struct hec_class_row class[HEC_KERNEL_CLASS_COUNT];
    struct hec_class_row all; /* all compute together: always told where there are counters */
    char why[160];            /* why there are no counters; "" */
};

#endif
