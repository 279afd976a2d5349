/* Inside src/diagnose: for how much of the time in which calls do not show it a device was busy. In the order of trust:
 *   engine    how much of each interval the graphics engine was active (GPM, about every half second): the interval's
 *             busy time is known, and what calls leave open is filled up to it
 *   launches  what a launch kept the device busy in a window of CUPTI, times the launches of each second
 *   use       the driver's utilisation: the device was busy for no more than that
 *   nothing   a wait that took long says that the device was behind while work was launched, a short one that it was not
 * Where the device rested is not known then: first while nothing was launched is the best guess, first while work was
 * being launched the other possibility. */
#ifndef HEC_DIAGNOSE_STATES_INFERRED_SHARE_H
#define HEC_DIAGNOSE_STATES_INFERRED_SHARE_H

#include "diagnose/states/inferred/device.h"

#include <stddef.h>

/* What may be: the best guess, and the corners that bound it. */
enum hec_inferred_variant {
    HEC_INFERRED_GUESS,
    HEC_INFERRED_LEAST_BETWEEN, /* as little busy as may be, rests between launches first; none for others' turns */
    HEC_INFERRED_LEAST_WITHIN,  /* the same, rests while launching first; all of them for others' turns */
    HEC_INFERRED_MOST_BETWEEN,
    HEC_INFERRED_MOST_WITHIN,
    HEC_INFERRED_VARIANT_COUNT
};

/* On a device where others work, or may (shared), the engine and the driver say how busy all of them keep it: the process
 * itself no more. So launches go first there, and the engine is believed at the best guess alone. Work that was launched also
 * waits for the others' turns: of what the host waited through the device was the process's own for a part, and where it
 * rested it may have had work. */
enum hec_inferred_source { HEC_INFERRED_NOTHING, HEC_INFERRED_USE, HEC_INFERRED_LAUNCHES, HEC_INFERRED_ENGINE };

struct hec_inferred_interval {
    int64_t end_ns; /* it begins where the one before ends */
    double level;   /* busy share that was read; NAN: none */
    double ns[HEC_INFERRED_CLASS_COUNT];
    double seen_ns; /* not reported: CUPTI saw it */
    double launches;
    double busy[HEC_INFERRED_CLASS_COUNT]; /* the answer: share of the class's time */
};

struct hec_inferred_share {
    enum hec_inferred_source source;
    bool shared;   /* set before the first pass */
    double waited; /* shared: of the rests, the part in which work waited for a turn, at best guess; so is this */
    enum hec_inferred_variant variant;
    double launch_ns; /* LAUNCHES: busy time of one */
    struct hec_inferred_interval *list;
    size_t count, capacity, cursor;
    /* Without a source. Of the time since the device was last waited for, and of all before. */
    double open_ns[2];
    double kept_ns[2], behind_ns[2]; /* LAUNCHING, RUNNING */
};

void hec_inferred_share_init(struct hec_inferred_share *share);
void hec_inferred_share_free(struct hec_inferred_share *share);
/* Intervals, in ascending order of their ends: before the first part. The last one never ends. 0 or HEC_ERR_NOMEM. */
int hec_inferred_share_interval(struct hec_inferred_share *share, int64_t end_ns, double level);
/* Forgets the parts, keeps the intervals. */
void hec_inferred_share_begin(struct hec_inferred_share *share, enum hec_inferred_variant variant);
/* In the order of time. */
void hec_inferred_share_add(struct hec_inferred_share *share, const struct hec_inferred_part *part, int64_t seen_ns);
void hec_inferred_share_launches(struct hec_inferred_share *share, int64_t t_ns, double count);
void hec_inferred_share_drained(struct hec_inferred_share *share, bool behind);
void hec_inferred_share_end(struct hec_inferred_share *share);

/* Of the rests: the part in which work waited for others' turns. */
double hec_inferred_share_waited(const struct hec_inferred_share *share);

/* Of a class's time at t: the share that was busy, and in *until how long that holds. Quick where t ascends. */
double hec_inferred_share_of(struct hec_inferred_share *share, enum hec_inferred_class class, int64_t t_ns,
                             int64_t *until_ns);

#endif
