/* Inside src/diagnose: why a device was idle: rules 2 to 14 of state.h. */
#ifndef HEC_DIAGNOSE_STATE_GAP_H
#define HEC_DIAGNOSE_STATE_GAP_H

#include "diagnose/state.h"
#include "diagnose/state_host.h"

struct hec_state_gap {
    int64_t start_ns, end_ns;
    bool startup, tail;
    bool kernel;                          /* the ender is one */
    int64_t launch_ns, launch_end_ns;     /* the ender's call; HEC_TIME_UNKNOWN */
    const struct hec_host_thread *thread; /* decides; NULL: unknown */
    const struct hec_host_thread *main;   /* of the process; NULL: unknown */
};

/* Calls take for states that cover the gap in ascending order without holes; what it returns, if not 0, ends this. The
 * threads have been advanced to the gap's end. */
int hec_state_gap_explain(const struct hec_state_gap *gap, const struct hec_state_limits *limits,
                          int (*take)(void *context, int64_t start_ns, int64_t end_ns, enum hec_state state),
                          void *context);

/* The call of rule 11, in which the thread was when the gap began. False: there is none. */
bool hec_state_gap_wait(const struct hec_state_gap *gap, int64_t *began_ns, int64_t *ended_ns);
/* For how long the thread had been at what it did when the gap began, while the device was busy: since busy_ns. */
uint32_t hec_state_gap_hidden_us(const struct hec_state_gap *gap, int64_t busy_ns);
/* Whether the last that the deciding thread had given the device at t, or what it gives it next (a call that is under way
 * counts as next), is a copy: which. */
enum hec_state_wait hec_state_gap_copies(const struct hec_state_gap *gap, int64_t t_ns, bool next);

#endif
