/* Which call of the host caused an activity of the device, where the calls carry no correlation id.
 *
 * CUPTI counts correlation ids up with each call of the process, so the activities of a stream, sorted by id, and the
 * calls on the stream, sorted by start, are the same sequence but for what either side lost. The two are aligned by what
 * is learned on the way: which name a function has, which stream of CUPTI a handle is, how far ids advance from one
 * call to the next; and by bytes and times: nothing starts before its call. Where two alignments are about as good, an
 * activity is left without a call: no launch time is better than a wrong one.
 *
 * Work and memory are bounded for any input: windows of 48 activities, HEC_TRACE_MATCH_MAX of each kind. */
#pragma once

#include "observe/trace/map.h"

/* 320000 activities a second, which a graph of small kernels makes, for 3 s: they come in bursts and are held for HEC_TRACE_MATCH_DUE_NS.
 * 80 MB of calls and 100 MB of activities at most, out of the budget. */
#define HEC_TRACE_MATCH_MAX (1u << 20)
#define HEC_TRACE_MATCH_NO_DEVICE UINT16_MAX

enum hec_trace_match_class {
    HEC_TRACE_MATCH_KERNEL,
    HEC_TRACE_MATCH_GRAPH,
    HEC_TRACE_MATCH_COPY,
    HEC_TRACE_MATCH_MEMSET,
    HEC_TRACE_MATCH_CLASS_COUNT
};

struct hec_trace_match_call {
    int64_t start_ns, end_ns;
    uint64_t cookie;     /* the caller's own */
    uint64_t func;       /* handle of the kernel's function; 0 unknown */
    uint64_t stream;     /* handle */
    uint64_t bytes;      /* of copies and memsets; 0 unknown */
    uint32_t track;      /* of the thread */
    uint16_t device;     /* HEC_TRACE_MATCH_NO_DEVICE: unknown */
    uint8_t match_class; /* enum hec_trace_match_class */
};

struct hec_trace_match_device {
    int64_t start_ns, end_ns;
    uint64_t bytes; /* 0 unknown */
    uint32_t context, stream, correlation;
    uint32_t name; /* of the kernel: id of its name, not of name and configuration; 0 unknown */
    uint16_t device;
    uint8_t match_class;
    bool in_graph; /* a node */
};

struct hec_trace_match_sink {
    void *context;
    /* Once for each device activity. call NULL: it is not known. */
    void (*device)(void *context, uint64_t cookie, const struct hec_trace_match_call *call);
    /* Once for each call that caused none of the activities seen. */
    void (*call)(void *context, const struct hec_trace_match_call *call);
};

struct hec_trace_match;

/* NULL: no memory within the budget. */
struct hec_trace_match *hec_trace_match_new(struct hec_trace_budget *budget);
/* What is still held is not given to anybody: advance with `final` first. NULL is fine. */
void hec_trace_match_free(struct hec_trace_match *match);

/* The device is recorded from here on: no earlier call has an activity, and the first of them is that of the first
 * call, if nothing was lost. Not called: unknown, and repeated work that never waits may stay unmatched. */
void hec_trace_match_since(struct hec_trace_match *match, int64_t t_ns);

/* No pair is made from here on: what is held and what comes goes back alone. */
void hec_trace_match_stop(struct hec_trace_match *match);

/* In order of time for each thread. false: no room, it was not taken, the caller keeps it as a plain call. */
bool hec_trace_match_call(struct hec_trace_match *match, const struct hec_trace_match_call *call);
/* In any order, seen at now_ns. false: no room, it was not taken and has no call. */
bool hec_trace_match_device(struct hec_trace_match *match, const struct hec_trace_match_device *device, uint64_t cookie,
                            int64_t now_ns);

/* Give back what is decided: each activity within HEC_TRACE_MATCH_DUE_NS of when it was seen; final: everything. */
void hec_trace_match_advance(struct hec_trace_match *match, int64_t now_ns, bool final,
                             const struct hec_trace_match_sink *sink);

/* Buffers that are flushed together arrive together, within this; then activities are put in order. */
#define HEC_TRACE_MATCH_SETTLE_NS INT64_C(1000000000)
#define HEC_TRACE_MATCH_DUE_NS INT64_C(2000000000)
