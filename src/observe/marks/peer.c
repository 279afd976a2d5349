#include "observe/marks/peer.h"

#include "base/clock.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_MAX 65536 /* one drain of the largest ring is about 10 ms of this thread */
#define RINGS_MAX 16      /* of one process: more are those of programs that it was before (exec) */
#define PEERS_RICH 64     /* those that come later may define few names: 3 MB each is too much then */
#define EVENTS_MAX 1000

void hec_marks_run_init(struct hec_marks_run *run, const struct hec_sink *sink, int64_t now_ns) {
    *run = (struct hec_marks_run){
        .sink = sink, .opened_ns = now_ns, .end_ns = INT64_MAX, .reporter = {sink, EVENTS_MAX, "marks"}};
    hec_marks_rates_init(run->rates, now_ns);
}

static struct hec_peer *make(void *context, pid_t pid, int32_t rank, int others, int64_t now_ns) {
    struct hec_marks_run *run = context;
    struct hec_marks_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    hec_marks_timeline_init(&peer->timeline, pid, run->rates, now_ns);
    peer->timeline.sink = run->sink;
    peer->timeline.rank = rank;
    hec_ring_names_init(&peer->names, others < PEERS_RICH ? HEC_MARKS_NAMES_MAX : HEC_MARKS_NAMES_FEW,
                        HEC_MARKS_TEXT_BYTES - 1);
    return &peer->process;
}

const char *hec_marks_peer_name(const struct hec_marks_peer *peer, uint32_t id) {
    const char *name = hec_ring_names_text(&peer->names, id);
    return name && strlen(name) < HEC_MARKS_NAME_BYTES ? name : NULL;
}

/* ---- records ---- */

/* What lies in a window of a program that goes on; false: nothing. The hooks report intervals when they end, steps and values some time
 * after they came: those of before are another window's. */
static bool cut_to_window(const struct hec_marks_run *run, struct hec_ring_record *record) {
    int64_t before_ns = record->t_ns > 0 ? run->opened_ns - record->t_ns : 0;
    bool interval = record->kind == HEC_RING_INTERVAL;
    bool late = interval || record->kind == HEC_RING_STEP_FOUND || record->kind == HEC_RING_VALUE;
    if (!late || before_ns <= 0)
        return true;
    if (!interval || record->u.interval.duration_ns <= before_ns)
        return false;
    record->t_ns += before_ns;
    record->u.interval.duration_ns -= before_ns;
    return true;
}

static void on_record(void *context, struct hec_peer *process, const struct hec_ring_record *read, int64_t now_ns) {
    struct hec_marks_run *run = context;
    struct hec_marks_peer *peer = (struct hec_marks_peer *)process;
    struct hec_ring_record cut = *read;
    const struct hec_ring_record *record = &cut;
    if (process->ring.borrowed && !cut_to_window(run, &cut))
        return;
    if (record->kind == HEC_RING_NAME) {
        process->bad += hec_ring_names_add(&peer->names, &record->u.name) != HEC_OK;
        return;
    }
    if (record->t_ns < run->opened_ns || record->t_ns > now_ns) {
        process->bad++;
        process->untimely++;
        return;
    }
    if (record->t_ns > run->end_ns) {
        process->late++;
        return;
    }
    if (peer->first_ns == 0)
        peer->first_ns = record->t_ns;
    bool valid = false;
    switch (record->kind) {
    case HEC_RING_STEP:
    case HEC_RING_UNITS:
    case HEC_RING_STEP_FOUND:
        valid = hec_marks_steps_take(peer, run, record);
        break;
    case HEC_RING_PHASE_BEGIN:
    case HEC_RING_PHASE_END:
    case HEC_RING_INTERVAL:
        valid = hec_marks_phases_take(peer, run, record, now_ns);
        break;
    case HEC_RING_KNOB:
    case HEC_RING_KNOB_RANGE:
        valid = hec_marks_knobs_take(peer, run, record);
        break;
    case HEC_RING_VALUE:
    case HEC_RING_FRAME:
    case HEC_RING_STACK:
    case HEC_RING_FACT:
        valid = hec_marks_hooks_take(peer, run, record);
        break;
    default:
        break;
    }
    process->bad += !valid;
}

/* Whether the sampler in the program has to work. */
static void tell_stacks(struct hec_process_table *processes, struct hec_peer *process) {
    static const enum hec_ring_stacks told[] = {[HEC_STACKS_UNKNOWN] = HEC_RING_STACKS_UNKNOWN,
                                                [HEC_STACKS_OUTSIDE] = HEC_RING_STACKS_OUTSIDE,
                                                [HEC_STACKS_INSIDE] = HEC_RING_STACKS_INSIDE};
    if (processes && process->pid)
        hec_ring_tell_stacks(&process->ring, told[hec_process_table_stacks(processes, process->pid)]);
}

static void drained(void *context, struct hec_peer *process, int64_t now_ns) {
    struct hec_marks_run *run = context;
    struct hec_marks_peer *peer = (struct hec_marks_peer *)process;
    tell_stacks(run->processes, process);
    hec_marks_steps_poll(peer, run, now_ns);
    hec_marks_timeline_flush(&peer->timeline);
}

static void end(void *context, struct hec_peer *process, int64_t end_ns) {
    struct hec_marks_run *run = context;
    struct hec_marks_peer *peer = (struct hec_marks_peer *)process;
    int pid = (int)process->pid;
    hec_marks_steps_end(peer, run);
    hec_marks_phases_end(peer, run, end_ns);
    hec_marks_timeline_flush(&peer->timeline);
    for (int i = 0; i < HEC_MARKS_RATE_COUNT; i++) {
        char text[160];
        if (hec_marks_timeline_left_out(&peer->timeline, (enum hec_marks_rate)i, text, sizeof text)[0])
            hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns, "process %d: %s", pid, text);
    }
    if (peer->timeline.threads_refused > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns,
                           "process %d: %" PRIu64 " marks left out of the timeline: more than %d threads", pid,
                           peer->timeline.threads_refused, HEC_MARKS_THREADS_MAX);
}

static void release(void *run, struct hec_peer *process) {
    struct hec_marks_peer *peer = (struct hec_marks_peer *)process;
    (void)run;
    free(peer->frame);
    hec_ring_names_free(&peer->names);
    free(peer);
}

const struct hec_peers_kind hec_marks_peers = {
    .role = HEC_RING_MARKS,
    .records_max = RECORDS_MAX,
    .rings_max = RINGS_MAX,
    .drain_ns = 100 * HEC_NS_PER_MS,
    .drain_fast_ns = 10 * HEC_NS_PER_MS,
    .lost = HEC_EVENT_MARKS_DROPPED,
    .things = "marks",
    .records = "marks",
    .make = make,
    .take = on_record,
    .drained = drained,
    .end = end,
    .free = release,
};

void hec_marks_units_add(struct hec_marks_units *units, const char *name, double count) {
    if (!name || !name[0])
        name = HEC_MARKS_UNIT_DEFAULT;
    int i = 0;
    while (i < units->count && strcmp(units->unit[i].name, name) != 0)
        i++;
    if (i == HEC_MARKS_UNITS_MAX) {
        units->refused++;
        return;
    }
    if (i == units->count) {
        units->count++;
        snprintf(units->unit[i].name, sizeof units->unit[i].name, "%s", name);
        units->unit[i].pending = 0;
    }
    units->unit[i].pending += count;
}

void hec_marks_units_flush(struct hec_marks_units *units, const struct hec_sink *sink) {
    for (int i = 0; i < units->count; i++) {
        if (units->unit[i].pending != 0)
            sink->units(sink->context, units->unit[i].name, units->unit[i].pending);
        units->unit[i].pending = 0;
    }
}
