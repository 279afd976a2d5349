/* Inside src/diagnose: steps of a run without any, from its kernels (hec_period_find). The period is known only when all has
 * gone by, and the steps are where it began each time: so what may begin one is kept. */
#pragma once

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

/* Steps of a program without hooks, from the repetition in the sequence of its kernels.
 *
 * A kernel that runs once a step is an anchor: from one of its runs to the next lie about as many kernels each time, and
 * about the same ones. Layers repeat inside a step, too: of the periods that explain the sequence, the shortest in which
 * host and device exchange data is taken (a layer does not talk to the host, a step does), else the longest. */
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
