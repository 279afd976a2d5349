/* Inside diagnose/replay: a schedule in the making. */
#pragma once

#include "diagnose/physics.h"
#include "diagnose/replay/schedule.h"

/* A phase of a process whose time is kept separately in the time between calls. */
struct hec_schedule_phase {
    int64_t start_ns, end_ns;
    uint8_t process;
    bool data; /* else checkpoint */
};

static inline bool hec_call_launched(const struct hec_schedule_call *call) {
    return call->start_ns != HEC_TIME_UNKNOWN;
}

/* The program's own time before the call. */
static inline int64_t hec_call_code_ns(const struct hec_schedule *schedule, const struct hec_schedule_call *call) {
    return call->after == HEC_SCHEDULE_NONE
               ? 0
               : call->begin_ns - schedule->calls[call->after].end_ns - call->data_ns - call->checkpoint_ns;
}

/* Times of a replay are kept within this, and those that are read within half of it: four of them add up without harm. 36 years. */
#define HEC_REPLAY_MOST_NS (INT64_C(1) << 60)

static inline bool hec_time_sane(int64_t t_ns) {
    return t_ns >= -HEC_REPLAY_MOST_NS / 2 && t_ns <= HEC_REPLAY_MOST_NS / 2;
}

static inline bool hec_call_launches(const struct hec_schedule_call *c) {
    return c->kind <= HEC_CALL_MEMSET;
}

/* Finds the calls of operations that have none, drops calls that are there twice, orders and connects all. whole: none has
 * HEC_CALL_GUESSED. 0 or HEC_ERR_NOMEM. */
int hec_schedule_connect(struct hec_schedule *schedule, bool whole, struct hec_schedule_phase *phases,
                         size_t phase_count, hec_together together);

/* Delays of calls by their shape: of each the first HEC_DELAYS_KEPT. */
#define HEC_DELAYS_KEPT 65536u
struct hec_delays {
    int64_t *list; /* malloc'ed: HEC_DELAYS_KEPT each */
    size_t count[HEC_CALL_SHAPES];
};

static inline void hec_delays_add(struct hec_delays *sample, const struct hec_schedule_call *call, int64_t value) {
    enum hec_call_shape shape = hec_call_shape(call);
    if (sample->count[shape] < HEC_DELAYS_KEPT)
        sample->list[shape * HEC_DELAYS_KEPT + sample->count[shape]++] = value;
}

/* The usual one, a trimmed mean: without one in `cut` at either end. A median is less, since delays have a tail. Begins the next sample.
 * otherwise: where there are too few. */
int64_t hec_delays_mean(struct hec_delays *sample, int shape, size_t cut, int64_t otherwise);

/* One figure of all shapes; of fewer calls of a shape than say something, that of kernels, which are the first. */
#define HEC_DELAYS_USUAL(schedule, sample, of, cut, otherwise)                                                         \
    for (int shape_ = 0; shape_ < HEC_CALL_SHAPES; shape_++)                                                           \
    (schedule)->usual[shape_].of = hec_delays_mean(sample, shape_, cut, shape_ ? (schedule)->usual[0].of : (otherwise))

/* ---- launches.c ---- */

/* Of calls in the order of their begin: finds those of operations that have none, drops those that are there twice or outside of the
 * stretch, and marks the launches of graphs. 0 or HEC_ERR_NOMEM. */
int hec_launches_find(struct hec_schedule *schedule, bool whole);

/* ---- waits.c ---- */

struct hec_waits {     /* zeroed at first */
    uint32_t *ended;   /* operations by their ends; malloc'ed */
    size_t count;      /* of them */
    size_t near, room; /* where the last question was answered; for events */
};

/* What each return came after, and what is usual of it: `awaits`, and no flag. 0 or HEC_ERR_NOMEM. */
int hec_waits_find(struct hec_schedule *schedule, struct hec_waits *waits, struct hec_delays *sample);
/* Then, of calls [from, to): which returns waited, and events. 0 or HEC_ERR_NOMEM. */
int hec_waits_mark(struct hec_schedule *schedule, struct hec_waits *waits, size_t from, size_t to);

/* ---- collectives.c ---- */

/* Which operations of several processes are one collective: they communicate, run at once, and end together. 0 or HEC_ERR_NOMEM. */
int hec_schedule_collectives(struct hec_schedule *schedule);

/* ---- hosts.c ---- */

/* Of what each process waits in its collectives, what it loses by that. */
void hec_schedule_hosts(struct hec_schedule *schedule);

/* ---- order.c ---- */

/* Calls in the order of a key, those left out for which it returns false. *list is malloc'ed, also where it fails (NULL: no memory). 0 or
 * HEC_ERR_NOMEM. */
int hec_order_calls(const struct hec_schedule *schedule,
                    bool (*key)(const struct hec_schedule_call *call, int64_t *key), uint32_t **list, size_t *count);
bool hec_order_key_start(const struct hec_schedule_call *call, int64_t *key);  /* of operations, by their starts */
bool hec_order_key_finish(const struct hec_schedule_call *call, int64_t *key); /* by their ends */
int hec_order_by_begin(struct hec_schedule *schedule);
