/* Inside src/diagnose: whether something recurs with the work of a device, or dies away after set-up. Loading each kernel's code
 * at its first launch, and allocating what a program keeps, die away: they lie in the first eighth or two of what the device
 * computes. */
#ifndef HEC_DIAGNOSE_TIMELINE_RECURRENCE_H
#define HEC_DIAGNOSE_TIMELINE_RECURRENCE_H

#include <stdbool.h>

enum { HEC_RECURRENCE_BINS = 64 };

/* All zero at first. */
struct hec_recurrence {
    double all_s;
    double waiting_s;                 /* since the device computed last */
    double compute_s, full_s;         /* bins of equal parts of full_s of computing, which doubles when they are full */
    double bins[HEC_RECURRENCE_BINS]; /* seconds, by what the device had computed until then */
};

void hec_recurrence_add(struct hec_recurrence *r, double seconds);
/* Puts what waits into its bin. */
void hec_recurrence_place(struct hec_recurrence *r);
/* The device computed for so long. In line: that is asked at every kernel, and as a rule nothing waits. */
static inline void hec_recurrence_computed(struct hec_recurrence *r, double seconds) {
    if (r->waiting_s > 0 || r->compute_s >= r->full_s)
        hec_recurrence_place(r);
    r->compute_s += seconds;
}
bool hec_recurrence_recurs(const struct hec_recurrence *r);

#endif
