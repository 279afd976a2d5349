/* One traced process: its ring, and what its records have said so far. */
#pragma once

#include "base/ring_names.h"
#include "base/trace.h"
#include "observe/peers.h"
#include "observe/trace/run.h"
#include "observe/trace/tracks.h"

#define HEC_TRACE_NAMES_MAX 131072u              /* of one process */
#define HEC_TRACE_NAMES_BYTES ((size_t)32 << 20) /* of one process; the budget of all counts too */
#define HEC_TRACE_WINDOWS_MAX 64u  /* of one process; a tracer opens one, and a report holds all in memory */
#define HEC_TRACE_RESTS_MAX 32768u /* of one process: a tracer has half as many */

struct hec_trace_peer {
    struct hec_peer process;
    struct hec_trace_tracks tracks;
    /* definitions of the process */
    struct hec_ring_names names;
    size_t names_bytes;
    struct hec_trace_map name_ids;              /* name -> the sink's */
    struct hec_trace_map kernels, kernel_names; /* config -> the sink's; and of the name alone */
    /* what the tracer reports of itself */
    bool begun, mute;         /* its PROCESS record came; it speaks another version */
    struct hec_tracer tracer; /* as given to the sink, but for what is added up in `before` and now */
    struct hec_tracer before; /* of an earlier program of the same pid (exec) */
    int64_t reported_ns;
    struct hec_trace_window window; /* the open one */
    int64_t window_ns;              /* its start */
    bool window_open;
    int64_t rest_ns; /* calls are not recorded since; 0: they are */
    uint32_t rests;
    int64_t device_first_ns, device_last_ns; /* start of the first and end of the last activity of a device; 0: none */
    int64_t holder_since_ns;                 /* 0: nobody has CUPTI */
    /* what did not fit */
    uint64_t received, windows_left_out;
    uint64_t counted_bad;      /* by the tracer */
    uint32_t threads_left_out; /* also: it had no room for them */
};

/* The sum of two counts (>= 0), or the largest that a tracer's row holds. */
static inline int64_t hec_trace_sum(uint64_t a, uint64_t b) {
    return a < HEC_TRACER_COUNT_MAX && b < HEC_TRACER_COUNT_MAX - a ? (int64_t)(a + b) : HEC_TRACER_COUNT_MAX;
}

/* run: struct hec_trace_run. */
extern const struct hec_peers_kind hec_trace_peers;

/* How the process was traced so far; the open window, where there is one that will be reported, counts. */
struct hec_tracer hec_trace_peer_row(const struct hec_trace_peer *peer, int64_t now_ns);
