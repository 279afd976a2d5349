/* Inside src/diagnose: why a device was idle: rules 2 to 14 of state.h. */
#ifndef HEC_DIAGNOSE_STATES_GAP_H
#define HEC_DIAGNOSE_STATES_GAP_H

#include "diagnose/states/state.h"
#include "diagnose/states/host.h"

struct hec_state_gap {
    int64_t start_ns, end_ns;
    bool startup, tail;
    bool kernel;                          /* the ender is one */
    int64_t launch_ns, launch_end_ns;     /* the ender's call; HEC_TIME_UNKNOWN */
    const struct hec_host_thread *thread; /* decides; NULL: unknown */
    const struct hec_host_thread *main;   /* of the process; NULL: unknown */
    /* By hec_state_gap_look. */
    bool waits; /* the thread was in a call of rule 11 when the gap began: */
    int64_t wait_start_ns, wait_end_ns;
    uint32_t hidden_us; /* so long it had been at what it did when the gap began, while the device was busy */
};

/* What the thread did when the gap began: asked once, before the gap is explained; not of startup and tail. busy_ns: since
 * when the device was busy before it. */
void hec_state_gap_look(struct hec_state_gap *gap, int64_t busy_ns);

/* Calls take for states that cover the gap in ascending order without holes; what it returns, if not 0, ends this. The
 * threads have been advanced to the gap's end. */
int hec_state_gap_explain(const struct hec_state_gap *gap, const struct hec_state_limits *limits,
                          int (*take)(void *context, int64_t start_ns, int64_t end_ns, enum hec_state state),
                          void *context);

/* Whether the last that the deciding thread had given the device at t, or what it gives it next (a call that is under way
 * counts as next), is a copy: which. */
enum hec_state_wait hec_state_gap_copies(const struct hec_state_gap *gap, int64_t t_ns, bool next);

#endif
