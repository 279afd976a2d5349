/* The tracks of one traced process: its threads and the streams of its devices, each with what is held back on it. */
#pragma once

#include "base/trace.h"
#include "model/trace.h"
#include "observe/trace/map.h"
#include "observe/trace/match.h"
#include "observe/trace/run.h"

#include <sys/types.h>

/* Activities that wait for the other half: launches of calls, and calls of what was launched (match.h). */
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

/* Activities of one track that are held back for a while, so that they leave in the order of their start although
 * they arrive in that of CUPTI's buffers. */
struct hec_trace_held {
    struct hec_activity activity;
    uint32_t arrived_ms;
};

struct hec_trace_hold {
    struct hec_trace_held *items;
    uint32_t first, count, capacity; /* items[first .. first + count) */
    uint32_t sorted;                 /* as many from the first are in order */
};

#define HEC_TRACE_TRACKS_MAX 4096u /* threads and streams of one process */
#define HEC_TRACE_ORDINALS_MAX ((uint32_t)HEC_VENDOR_DEVICES_MAX)

struct hec_trace_track {
    bool is_stream, resolved;
    uint16_t ordinal;
    uint32_t context, stream; /* stream, or thread id */
    uint32_t id;              /* the sink's, once resolved; 0: it has no room */
    struct hec_trace_hold hold;
};

struct hec_trace_tracks {
    pid_t pid;
    int32_t rank; /* -1 unknown */
    struct hec_trace_track *list;
    uint32_t count, capacity;
    struct hec_trace_map by_key;
    struct hec_trace_pending pending;
    uint64_t without_track; /* activities that had no room */
    uint32_t process_track; /* the sink's; 0 until it is asked for */
    struct hec_trace_ordinal {
        bool reported; /* a DEVICE record came */
        bool resolved, assumed;
        int index; /* hec_device.index */
        struct hec_trace_device device;
    } ordinals[HEC_TRACE_ORDINALS_MAX];
};

/* The track of a thread, or of a stream of a device (ordinal < HEC_TRACE_ORDINALS_MAX). NULL: no room. Valid until
 * the next call. */
struct hec_trace_track *hec_trace_thread(struct hec_trace_tracks *tracks, struct hec_trace_run *run, uint32_t tid);
struct hec_trace_track *hec_trace_stream(struct hec_trace_tracks *tracks, struct hec_trace_run *run, uint32_t ordinal,
                                         uint32_t context, uint32_t stream);
/* The sink's id of the process's own track. */
uint32_t hec_trace_process_track(struct hec_trace_tracks *tracks, struct hec_trace_run *run);

/* Hold an activity back on its track (NULL: it is counted as left out). launch_track: index of a track, plus 1. */
void hec_trace_track_add(struct hec_trace_tracks *tracks, struct hec_trace_run *run, struct hec_trace_track *track,
                         const struct hec_activity *activity, uint32_t now_ms);

/* Give the sink what need not wait any more at now_ms; final: everything. */
void hec_trace_release(struct hec_trace_tracks *tracks, struct hec_trace_run *run, uint32_t now_ms, bool final);
void hec_trace_tracks_free(struct hec_trace_tracks *tracks, struct hec_trace_run *run);

/* What arrived so long ago has its neighbours: buffers that are flushed together arrive together. */
#define HEC_TRACE_SETTLE_MS 200
/* Where calls and what they launched are brought together, some come later: within match.h's time. */
#define HEC_TRACE_MATCHED_MS 2500
/* And so long until NVML has listed the devices. */
#define HEC_TRACE_DEVICES_MS 15000
