/* Inside src/diagnose: steps of a program without hooks, from the repetition in the sequence of its kernels.
 *
 * A kernel that runs once a step is an anchor: from one of its runs to the next lie about as many kernels each time, and
 * about the same ones. Layers repeat inside a step, too: of the periods that explain the sequence, the shortest in which
 * host and device exchange data is taken (a layer does not talk to the host, a step does), else the longest. */
#ifndef HEC_DIAGNOSE_TIMELINE_STEPS_PERIODIC_H
#define HEC_DIAGNOSE_TIMELINE_STEPS_PERIODIC_H

#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>

struct hec_period {
    uint32_t anchor;   /* the id that runs once a period; 0: no period was found */
    double length;     /* median number of elements of a period */
    double explained;  /* share of the sequence in periods of about that length */
    double matched;    /* share of neighbouring periods that hold the same elements, but for a tenth */
    int64_t periods;   /* seen */
    bool nested;       /* another period explains the sequence nearly as well */
    double confidence; /* 0..0.95 */
};

/* ids[count]: 0 is a break (what follows did not come right after), others are below id_count; those from host_from on
 * are copies from or to the host. Linear but for sorting. 0 or HEC_ERR_NOMEM. */
int hec_period_find(const uint32_t *ids, size_t count, uint32_t id_count, uint32_t host_from, struct hec_period *out);

#endif
