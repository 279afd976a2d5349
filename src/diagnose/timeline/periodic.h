/* Inside src/diagnose: steps of a run without any, from its kernels (steps_periodic.h). The period is known only when all has
 * gone by, and the steps are where it began each time: so what may begin one is kept. */
#ifndef HEC_DIAGNOSE_TIMELINE_PERIODIC_H
#define HEC_DIAGNOSE_TIMELINE_PERIODIC_H

#include "diagnose/timeline/steps.h"
#include "diagnose/timeline/device.h"

#define HEC_PERIODIC_KEPT (1u << 24) /* activities of all streams, 24 bytes each; steps are looked for in them alone */
#define HEC_PERIODIC_LEARNT 131072

/* What one stream did, in the order of time. */
struct hec_periodic {
    struct hec_periodic_entry {
        int64_t start_ns, busy_ns; /* busy_ns: so long its device had been busy before */
        uint32_t element;          /* what it is, as far as sequences go */
    } * list;                      /* malloc'ed */
    size_t count, capacity;
};

int hec_periodic_add(struct hec_periodic *stream, const struct hec_timeline_tables *tables,
                     const struct hec_activity *a, int64_t busy_ns); /* 0 or HEC_ERR_NOMEM */
/* Learns the period on at most HEC_PERIODIC_LEARNT activities from the middle of the stream, and then finds every step of
 * it. steps (empty before; free its list) gets those that hold the usual number of kernels, or nothing; busy_share: of the
 * device in them. 0 or HEC_ERR_NOMEM. */
int hec_periodic_steps(const struct hec_periodic *stream, const struct hec_timeline_tables *tables,
                       struct hec_intervals *traced, struct hec_step_list *steps, double *confidence,
                       double *busy_share);

#endif
