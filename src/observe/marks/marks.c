#include "observe/marks/marks.h"

#include "base/clock.h"
#include "observe/collector.h"
#include "observe/marks/peer.h"

#include <inttypes.h>
#include <stdlib.h>

struct marks {
    struct hec_marks_run run;
    const struct hec_observe_options *options;
    struct hec_peers peers;
};

static int marks_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                      struct hec_why *why) {
    if (!options->mark_socket && !options->rings)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "marks are off: there is no socket for them");
    struct marks *marks = calloc(1, sizeof *marks);
    if (!marks)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory for marks");
    hec_marks_run_init(&marks->run, sink, hec_clock_mono_ns());
    marks->options = options;
    marks->run.step_seen = options->step_seen;
    marks->run.step_context = options->step_context;
    int err =
        hec_peers_open(&marks->peers, &hec_marks_peers, &marks->run, &marks->run.reporter, options->mark_socket, why);
    if (err) {
        free(marks);
        return err;
    }
    *self = marks;
    return HEC_OK;
}

static int64_t marks_poll(void *self, int64_t now_ns) {
    struct marks *marks = self;
    if (hec_peers_borrow(&marks->peers, marks->options, now_ns))
        marks->run.opened_ns = now_ns;
    int64_t next_ns = hec_peers_poll(&marks->peers, now_ns);
    hec_marks_units_flush(&marks->run.units, marks->run.sink);
    return next_ns;
}

static void marks_finish(void *self, int64_t end_ns) {
    struct marks *marks = self;
    struct hec_marks_run *run = &marks->run;
    run->end_ns = end_ns;
    hec_peers_finish(&marks->peers, end_ns);
    hec_marks_units_flush(&run->units, run->sink);
    if (run->units.refused > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns,
                           "%" PRIu64 " counts of units left out: more than %d names of units", run->units.refused,
                           HEC_MARKS_UNITS_MAX);
    if (run->facts_refused > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns, "%" PRIu64 " facts left out: more than %d of a run",
                           run->facts_refused, HEC_MARKS_FACTS_MAX);
    if (marks->peers.rings_ended > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns,
                           "%" PRIu64 " rings were ended early: their processes handed over more than %d",
                           marks->peers.rings_ended, hec_marks_peers.rings_max);
}

static void marks_close(void *self) {
    struct marks *marks = self;
    hec_peers_close(&marks->peers);
    free(marks);
}

const struct hec_collector hec_collector_marks = {
    .name = "marks",
    .lane = HEC_LANE_HOST,
    .open = marks_open,
    .poll = marks_poll,
    .finish = marks_finish,
    .close = marks_close,
};
