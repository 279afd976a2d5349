/* The records of a traced process, one function a kind: checked field by field, then reported. */
#pragma once

#include "base/ring.h"

struct hec_trace_peer;
struct hec_trace_run;

/* One record, valid or not; now_ns is when it was read. */
void hec_trace_peer_record(struct hec_trace_peer *peer, struct hec_trace_run *run, const struct hec_ring_record *record,
                           int64_t now_ns);

/* The process ended in it (killed, or the run is over): it was open as long as activities came, not only until the
 * tracer last said so, which may be a second ago. */
void hec_trace_end_window(struct hec_trace_peer *peer, struct hec_trace_run *run);
/* Calls are recorded again, or there are no more of them; nothing where they were. */
void hec_trace_end_rest(struct hec_trace_peer *peer, struct hec_trace_run *run, int64_t end_ns);
