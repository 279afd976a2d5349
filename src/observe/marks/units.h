/* Totals of units of work by name, over all processes of a run; bounded. */
#ifndef HEC_OBSERVE_MARKS_UNITS_H
#define HEC_OBSERVE_MARKS_UNITS_H

#include "model/run.h"

#define HEC_MARKS_UNITS_MAX 64
#define HEC_MARKS_NAME_BYTES 64 /* with the NUL */
#define HEC_MARKS_UNIT_DEFAULT "unit"

struct hec_marks_units {
    struct {
        char name[HEC_MARKS_NAME_BYTES];
        double pending; /* not yet given to the sink */
    } unit[HEC_MARKS_UNITS_MAX];
    int count;
    uint64_t refused; /* additions whose name did not fit */
};

/* name NULL or "": HEC_MARKS_UNIT_DEFAULT. */
void hec_marks_units_add(struct hec_marks_units *units, const char *name, double count);

/* Give the sink what was added since the last time. */
void hec_marks_units_flush(struct hec_marks_units *units, const struct hec_sink *sink);

#endif
