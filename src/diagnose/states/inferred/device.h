/* Inside src/diagnose: what one process kept one device with, inferred from its calls alone. Fed with calls in the
 * order of their start; gives parts of time, in order and without holes, by what the calls say of the device:
 *   idle      it had been waited for, and nothing was launched since
 *   busy      the host waits for it: in a synchronising call, behind other work in a copying one, in a full queue
 *   copying   the host waits for a copy
 *   launching work is being launched: the device runs it, or has run out of it
 *   running   nothing is being launched, and nothing has waited since the last launch: the device works off what it has,
 *             for as long as that lasts
 * Idle, busy and copying are certain but for some microseconds at either end; how much of the rest the device was busy is
 * for states/inferred/share.h to say. */
#ifndef HEC_DIAGNOSE_STATES_INFERRED_DEVICE_H
#define HEC_DIAGNOSE_STATES_INFERRED_DEVICE_H

#include "model/trace.h"

#include <stdbool.h>
#include <stdint.h>

enum hec_inferred_class {
    HEC_INFERRED_IDLE,
    HEC_INFERRED_BUSY,
    HEC_INFERRED_COPYING,
    HEC_INFERRED_LAUNCHING,
    HEC_INFERRED_RUNNING,
    HEC_INFERRED_CLASS_COUNT
};

/* A call that gave the device something to do. */
struct hec_inferred_launch {
    int64_t start_ns, end_ns; /* of the call; of a burst, of its first one */
    uint32_t thread;          /* track */
    bool kernel;              /* that may load its code */
};

struct hec_inferred_part {
    enum hec_inferred_class class;
    int64_t start_ns, end_ns;          /* start < end */
    struct hec_inferred_launch launch; /* what it runs, or was launched last */
    struct hec_activity call;          /* COPYING: the copying call. LAUNCHING: the burst or call */
};

/* How far what is certain may be trusted, and what may lie beside it. */
struct hec_inferred_limits {
    int64_t start_ns;  /* from a launching call to the device's start on it */
    int64_t end_ns;    /* from the device's end to the return of the call that waited */
    bool full_is_busy; /* launching calls that take long mean a full queue */
    bool event_drains; /* who waited for an event has waited for all that was launched */
};
/* A launch takes 2 to 9 us of a thread (state.h), and a wait returns some microseconds after what it waited for. */
#define HEC_INFERRED_BEST ((struct hec_inferred_limits){6000, 5000, true, true})
#define HEC_INFERRED_LEAST ((struct hec_inferred_limits){15000, 15000, false, true})
#define HEC_INFERRED_MOST ((struct hec_inferred_limits){0, 1000, true, false})

/* Shorter waits say that the device had kept up: the call itself takes as long. */
#define HEC_INFERRED_WAIT_NS 30000

/* Bytes a second of copies, and what a copying call costs beside. */
struct hec_inferred_rates {
    double bytes_per_s[HEC_MEMORY_KIND_COUNT][HEC_MEMORY_KIND_COUNT]; /* 0 unknown */
};

struct hec_inferred_device {
    int32_t pid, rank;
    int device;
    struct hec_inferred_limits limits;
    const struct hec_inferred_rates *rates;
    /* Called with each part; what it returns, if not 0, is returned. */
    int (*part)(void *context, const struct hec_inferred_part *part);
    /* The device was waited for: since the last time it was behind the host (else it had kept up). May be NULL. */
    void (*drained)(void *context, bool behind);
    void *context;

    bool started; /* a launch was seen */
    int64_t at_ns;
    bool idle;
    int64_t wake_ns;            /* idle until then; INT64_MAX: nothing was launched */
    int64_t busy_ns;            /* busy until then */
    int64_t copy_ns, copied_ns; /* copying from, to */
    int64_t launching_ns;       /* launching until then */
    int64_t drain_ns;           /* idle from then on, if nothing is launched meanwhile; INT64_MAX: none */
    int64_t drain_from_ns;      /* that call began */
    bool drain_behind;
    int64_t launched_ns; /* end of the last launching call */
    double outstanding;  /* launches since the device was idle */
    struct hec_inferred_launch launch;
    struct hec_activity call, copy;
};

void hec_inferred_device_init(struct hec_inferred_device *d, const struct hec_inferred_limits *limits,
                              const struct hec_inferred_rates *rates);
/* A call: BURST, SYNC, or API (name: of the function, "" unknown). Starts ascend. */
int hec_inferred_device_call(struct hec_inferred_device *d, const struct hec_activity *call, const char *name);
/* Report all parts up to t. */
int hec_inferred_device_advance(struct hec_inferred_device *d, int64_t t_ns);
/* What CUPTI saw on the device: from its end on nothing is known to be idle. */
void hec_inferred_device_seen(struct hec_inferred_device *d, const struct hec_activity *a);

/* Whether a copying call returns only when the copy is done. */
bool hec_inferred_copy_blocks(const struct hec_activity *call, const char *name);
/* How long its copy takes on the device. */
double hec_inferred_copy_s(const struct hec_inferred_rates *rates, const struct hec_activity *call);

#endif
