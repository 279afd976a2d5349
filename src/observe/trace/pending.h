/* Activities that wait for the other half: launches of calls, and calls of what was launched (match.h). */
#pragma once

#include "model/trace.h"
#include "observe/trace/match.h"

struct hec_trace_pending {
    struct hec_trace_match *match; /* NULL: nothing is matched, everything goes on at once */
    bool unsure;                   /* records were lost: nothing is matched from here on */
    uint64_t alone;                /* activities that go on without their call */
    struct hec_trace_pending_item {
        struct hec_activity activity;
        uint32_t track; /* index of its track */
        uint32_t next;  /* free: of the next free one, plus 1 */
    } * items;
    uint32_t count, capacity, free; /* free: of the first free one, plus 1 */
};

/* Match from here on: CUPTI records the device since t_ns. Without memory nothing is matched. */
void hec_trace_pending_begin(struct hec_trace_pending *pending, struct hec_trace_budget *budget, int64_t t_ns);

/* Records of the process were lost, so that order says less: of streams with 1 % lost, one match in a hundred was wrong. */
void hec_trace_pending_lost(struct hec_trace_pending *pending);

/* false: not taken, it goes on without its other half. */
bool hec_trace_pending_device(struct hec_trace_pending *pending, struct hec_trace_budget *budget,
                              const struct hec_activity *activity, uint32_t track,
                              const struct hec_trace_match_device *device, int64_t now_ns);
/* A call of a thread's track, as an activity of kind API that is reported by what it launched, if that is seen. */
bool hec_trace_pending_call(struct hec_trace_pending *pending, const struct hec_activity *activity,
                            struct hec_trace_match_call *call);
/* A call that is reported by itself as well. */
void hec_trace_pending_hint(struct hec_trace_pending *pending, struct hec_trace_match_call *call);

/* What is decided goes on to `take`, with the launch filled in where it is known: launch_track is the index of its track
 * plus 1 (the call's `track`), `track` the index of the activity's own. */
void hec_trace_pending_advance(struct hec_trace_pending *pending, int64_t now_ns, bool final,
                               void (*take)(void *context, const struct hec_activity *activity, uint32_t track),
                               void *context);
void hec_trace_pending_free(struct hec_trace_pending *pending, struct hec_trace_budget *budget);
