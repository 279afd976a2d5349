#include "observe/trace/run.h"

#include "base/clock.h"

#include <string.h>

void hec_trace_run_init(struct hec_trace_run *run, const struct hec_sink *sink, int64_t now_ns) {
    memset(run, 0, sizeof *run);
    run->sink = sink;
    run->opened_ns = now_ns;
    run->end_ns = INT64_MAX;
    run->budget.left = HEC_TRACE_BUDGET_BYTES;
    run->reporter = (struct hec_reporter){sink, HEC_TRACE_EVENTS_MAX, "the trace"};
}

void hec_trace_flush(struct hec_trace_run *run) {
    if (run->batched > 0)
        run->sink->trace_activities(run->sink->context, run->batch, run->batched);
    run->batched = 0;
}

void hec_trace_give(struct hec_trace_run *run, const struct hec_activity *activity) {
    if (run->batched == HEC_TRACE_BATCH)
        hec_trace_flush(run);
    run->batch[run->batched++] = *activity;
}

uint32_t hec_trace_ms(const struct hec_trace_run *run, int64_t now_ns) {
    return now_ns <= run->opened_ns ? 1 : 1 + (uint32_t)((now_ns - run->opened_ns) / HEC_NS_PER_MS);
}
