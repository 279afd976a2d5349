/* What all traced processes of a run share: the way to the sink, and the bounds. */
#pragma once

#include "model/run.h"
#include "observe/devices.h"
#include "observe/reporter.h"
#include "observe/trace/map.h"

#define HEC_TRACE_BATCH 512
#define HEC_TRACE_BUDGET_BYTES ((size_t)256 << 20) /* tables and held activities of all processes together */
#define HEC_TRACE_HELD_MAX 524288u                 /* activities held back at once; 36 MB */
#define HEC_TRACE_RUN_WINDOWS_MAX 65536u           /* of all processes, which may be many one after the other */
#define HEC_TRACE_EVENTS_MAX 1000

struct hec_trace_run {
    const struct hec_sink *sink;
    struct hec_device_table *devices; /* NULL: nothing is known of devices */
    const char *proc_path;            /* names of threads; NULL: none are looked up */
    int64_t opened_ns;                /* nothing valid is older: the socket did not exist */
    int64_t end_ns;                   /* end of the window; INT64_MAX until it is known */
    struct hec_trace_budget budget;
    uint32_t held, windows;
    struct hec_reporter reporter;
    struct hec_tracer ended; /* of a process whose next program begins (exec); pid 0: none */
    size_t batched;
    struct hec_activity batch[HEC_TRACE_BATCH];
};

void hec_trace_run_init(struct hec_trace_run *run, const struct hec_sink *sink, int64_t now_ns);
void hec_trace_give(struct hec_trace_run *run, const struct hec_activity *activity);
void hec_trace_flush(struct hec_trace_run *run);
/* Milliseconds since the start, at least 1. */
uint32_t hec_trace_ms(const struct hec_trace_run *run, int64_t now_ns);
