#include "base/clock.h"
#include "observe/collector.h"
#include "observe/trace/peer.h"

#include <stdlib.h>

struct trace {
    struct hec_trace_run run;
    const struct hec_observe_options *options;
    struct hec_peers peers;
};

static int trace_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                      struct hec_why *why) {
    if (!options->trace_socket && !options->rings)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the trace is off: there is no socket for it");
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory for the trace");
    hec_trace_run_init(&trace->run, sink, hec_clock_mono_ns());
    trace->run.devices = options->devices;
    trace->run.proc_path = options->proc_path ? options->proc_path : "/proc";
    trace->options = options;
    int err =
        hec_peers_open(&trace->peers, &hec_trace_peers, &trace->run, &trace->run.reporter, options->trace_socket, why);
    if (err) {
        free(trace);
        return err;
    }
    *self = trace;
    return HEC_OK;
}

static int64_t trace_poll(void *self, int64_t now_ns) {
    struct trace *trace = self;
    if (hec_peers_borrow(&trace->peers, trace->options, now_ns))
        trace->run.opened_ns = now_ns;
    int64_t next_ns = hec_peers_poll(&trace->peers, now_ns);
    hec_trace_flush(&trace->run);
    return next_ns;
}

static void report_nobody(const struct trace *trace) {
    const struct hec_observe_options *options = trace->options;
    struct hec_tracer tracer = {
        .pid = __atomic_load_n(&options->root, __ATOMIC_ACQUIRE),
        .mode = options->trace_mode,
        .cupti_version = -1,
        .driver_version = -1,
        .why = HEC_TRACE_WHY_NOBODY,
        .first_ns = trace->run.opened_ns,
        .last_ns = trace->run.opened_ns,
        .estimate_ppm = -1,
        .budget_ppm = -1,
    };
    trace->run.sink->tracer(trace->run.sink->context, &tracer);
}

static void trace_finish(void *self, int64_t end_ns) {
    struct trace *trace = self;
    trace->run.end_ns = end_ns;
    hec_peers_finish(&trace->peers, end_ns);
    hec_trace_flush(&trace->run);
    if (trace->peers.rings == 0)
        report_nobody(trace);
}

static void trace_close(void *self) {
    struct trace *trace = self;
    hec_peers_close(&trace->peers);
    free(trace);
}

const struct hec_collector hec_collector_trace = {
    .name = "trace",
    .lane = HEC_LANE_TRACE,
    .open = trace_open,
    .poll = trace_poll,
    .finish = trace_finish,
    .close = trace_close,
};
