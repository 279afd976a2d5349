/* Inside src/diagnose: passes over a run's series. */
#ifndef HEC_DIAGNOSE_METER_FEED_H
#define HEC_DIAGNOSE_METER_FEED_H

#include "diagnose/input.h"

/* Called for every reading in time order; valid is false where the value is missing. */
typedef void (*hec_reading_visitor)(void *context, int64_t t_ns, int64_t value, bool valid);

/* One pass over a series; an absent one is an empty pass. Times out of any plausible run (beyond +-36 years) are left
 * out, so that a damaged file cannot overflow the arithmetic. 0 or a negative error. */
int hec_feed(const struct hec_summary_input *input, enum hec_metric metric, int32_t subject, hec_reading_visitor visit,
             void *context, struct hec_why *why);

/* First and last valid reading and the largest value: for counters and totals. count 0: nothing. */
struct hec_range {
    int64_t first_ns, last_ns, first, last, maximum;
    int64_t count;
};
int hec_feed_range(const struct hec_summary_input *input, enum hec_metric metric, int32_t subject,
                   struct hec_range *range, struct hec_why *why);

#endif
