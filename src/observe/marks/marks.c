#include "observe/marks/marks.h"

#include "base/clock.h"
#include "observe/collector.h"
#include "observe/marks/peer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define NAME_BYTES 63
#define VALUE_BYTES 255

static int count_of(const char *knobs) {
    int count = knobs[0] != '\0';
    for (; *knobs; knobs++) {
        if (*knobs == '\\' && knobs[1])
            knobs++;
        else
            count += *knobs == ';';
    }
    return count;
}

int hec_marks_knob_add(struct hec_buf *knobs, const char *assignment, struct hec_why *why) {
    size_t name = strspn(assignment, NAME_CHARACTERS);
    if (name == 0 || name > NAME_BYTES || assignment[name] != '=')
        return hec_fail(why, HEC_ERR_USAGE,
                        "a knob is NAME=VALUE, with a name of at most %d letters, digits, '_', '.' and '-', not \"%s\"",
                        NAME_BYTES, assignment);
    const char *value = assignment + name + 1;
    size_t length = strlen(value);
    if (length > VALUE_BYTES)
        return hec_fail(why, HEC_ERR_USAGE, "the value of knob %.*s is longer than %d bytes", (int)name, assignment,
                        VALUE_BYTES);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
            return hec_fail(why, HEC_ERR_USAGE, "the value of knob %.*s has control characters", (int)name, assignment);
    if (count_of(hec_buf_text(knobs)) >= HEC_MARKS_KNOBS_COUNT_MAX)
        return hec_fail(why, HEC_ERR_LIMIT, "more than %d knobs", HEC_MARKS_KNOBS_COUNT_MAX);
    if (knobs->length > 0)
        hec_buf_puts(knobs, ";");
    hec_buf_add(knobs, assignment, name + 1);
    for (size_t i = 0; i < length; i++) {
        if (value[i] == ';' || value[i] == '\\')
            hec_buf_puts(knobs, "\\");
        hec_buf_add(knobs, value + i, 1);
    }
    int err = hec_buf_error(knobs);
    return err ? hec_fail(why, err, "the knobs are longer than %d bytes together", HEC_MARKS_KNOBS_MAX) : HEC_OK;
}

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
    marks->run.processes = options->processes;
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
