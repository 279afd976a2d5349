/* Steps and units: those that the program marks, and those that the hooks find. */
#include "base/clock.h"
#include "observe/marks/peer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEP_SAMPLE_NS (20 * HEC_NS_PER_MS) /* the grain of the driver's power history */
#define UNIT_FOUND "step"                   /* of found steps whose samples are not known */

static void give_sample(struct hec_marks_peer *peer, struct hec_marks_run *run) {
    int64_t value = llround(peer->step_total) - peer->step_reported;
    run->sink->sample(run->sink->context, HEC_STEP_UNITS, peer->process.pid, peer->step_last_ns, value);
    peer->step_reported += value;
    peer->step_sample_ns = peer->step_last_ns;
    peer->step_pending = false;
}

static void sample(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t t_ns, double units) {
    peer->step_total += units;
    if (t_ns > peer->step_last_ns)
        peer->step_last_ns = t_ns; /* threads may arrive out of order by the length of a mark */
    peer->step_pending = true;
    if (peer->step_sample_ns == 0 || t_ns - peer->step_sample_ns >= STEP_SAMPLE_NS) {
        give_sample(peer, run);
    } else if (!peer->step_folded) {
        peer->step_folded = true;
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, t_ns,
                           "steps of process %d follow within 20 ms: folded into samples of at least that length",
                           (int)peer->process.pid);
    }
}

/* The step that ended at t_ns, from the end of the one before; the first from the process's first mark. */
static void interval(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t t_ns, enum hec_step_source source,
                     const char *unit, double units) {
    int64_t start_ns = peer->step_end_ns[source] ? peer->step_end_ns[source] : peer->first_ns;
    struct hec_activity activity = {
        .start_ns = start_ns < t_ns ? start_ns : t_ns,
        .end_ns = t_ns,
        .amount = units,
        .kind = HEC_ACTIVITY_STEP,
        .detail = (uint8_t)source,
    };
    if (t_ns > peer->step_end_ns[source])
        peer->step_end_ns[source] = t_ns;
    hec_marks_timeline_add(&peer->timeline, HEC_MARKS_RATE_STEPS, 0, unit, &activity);
    if (run->step_seen)
        run->step_seen(run->step_context, peer->process.pid, source);
}

static bool found(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_record *record,
                  const char *name) {
    enum hec_step_source source = record->flags == HEC_RING_STEP_OPTIMIZER ? HEC_STEP_OPTIMIZER
                                  : record->flags == HEC_RING_STEP_MODULE  ? HEC_STEP_MODULE
                                                                           : HEC_STEP_NONE;
    double units = record->u.mark.value;
    bool known = units >= 0 && units <= HEC_MARKS_VALUE_MAX;
    struct hec_marks_found *sum = &peer->found[source];
    if (source == HEC_STEP_NONE || !(known || isnan(units)) || sum->units > 100 * HEC_MARKS_VALUE_MAX)
        return false;
    if (sum->steps++ == 0)
        snprintf(sum->unit, sizeof sum->unit, "%s", name);
    if (known && strcmp(sum->unit, name) == 0) { /* steps of several units have no common count */
        sum->counted++;
        sum->units += units;
    }
    interval(peer, run, record->t_ns, source, name[0] ? name : UNIT_FOUND, known ? units : NAN);
    return true;
}

bool hec_marks_steps_take(struct hec_marks_peer *peer, struct hec_marks_run *run,
                          const struct hec_ring_record *record) {
    const struct hec_ring_mark *mark = &record->u.mark;
    const char *name = mark->name ? hec_marks_peer_name(peer, mark->name) : "";
    if (!name)
        return false;
    if (record->kind == HEC_RING_STEP_FOUND)
        return found(peer, run, record, name);
    if (!(mark->value >= 0 && mark->value <= HEC_MARKS_VALUE_MAX) || peer->step_total > 100 * HEC_MARKS_VALUE_MAX)
        return false;
    hec_marks_units_add(&run->units, name, mark->value);
    if (record->kind == HEC_RING_STEP) {
        peer->step_marked = true;
        interval(peer, run, record->t_ns, HEC_STEP_MARKED, name[0] ? name : HEC_MARKS_UNIT_DEFAULT, mark->value);
        sample(peer, run, record->t_ns, mark->value);
    }
    return true;
}

void hec_marks_steps_poll(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t now_ns) {
    if (peer->step_pending && now_ns - peer->step_sample_ns >= STEP_SAMPLE_NS)
        give_sample(peer, run);
}

/* Units of found steps wait for the end: only then is it known that the program marks none itself, and that no
 * optimizer follows calls of a module. A sum that misses the samples of some steps would be wrong: then steps count. */
void hec_marks_steps_end(struct hec_marks_peer *peer, struct hec_marks_run *run) {
    if (peer->step_pending)
        give_sample(peer, run);
    const struct hec_marks_found *sum =
        &peer->found[peer->found[HEC_STEP_OPTIMIZER].steps ? HEC_STEP_OPTIMIZER : HEC_STEP_MODULE];
    if (peer->step_marked || sum->steps == 0)
        return;
    if (sum->counted == sum->steps)
        hec_marks_units_add(&run->units, sum->unit[0] ? sum->unit : UNIT_FOUND, sum->units);
    else
        hec_marks_units_add(&run->units, UNIT_FOUND, (double)sum->steps);
}

/* Phases: those that the program marks, which nest, and the intervals that the hooks find, which are whole. */

static void give(struct hec_marks_peer *peer, uint32_t tid, uint32_t name, int64_t start_ns, int64_t end_ns,
                 uint8_t flags) {
    struct hec_activity activity = {
        .start_ns = start_ns,
        .end_ns = end_ns < start_ns ? start_ns : end_ns,
        .kind = HEC_ACTIVITY_PHASE,
        .flags = flags,
    };
    const char *text = hec_marks_peer_name(peer, name);
    hec_marks_timeline_add(&peer->timeline, HEC_MARKS_RATE_PHASES, tid, text ? text : "phase", &activity);
}

static bool same_name(const struct hec_marks_peer *peer, uint32_t a, uint32_t b) {
    if (a == b)
        return true;
    const char *one = hec_marks_peer_name(peer, a), *two = hec_marks_peer_name(peer, b);
    return one && two && strcmp(one, two) == 0;
}

static void begin(struct hec_marks_peer *peer, uint32_t tid, uint32_t name, int64_t t_ns) {
    if (peer->phase_count == HEC_MARKS_PHASES_MAX) {
        peer->phase_overflow++;
        return;
    }
    int at = peer->phase_count++;
    peer->phase[at].tid = tid;
    peer->phase[at].name = name;
    peer->phase[at].start_ns = t_ns;
}

/* since_ns: of one that was open when the window began, and whose beginning nobody read; INT64_MAX: there is none. */
static void end(struct hec_marks_peer *peer, uint32_t tid, uint32_t name, int64_t since_ns, int64_t t_ns) {
    int outer = peer->phase_count - 1;
    while (outer >= 0 &&
           !(peer->phase[outer].tid == tid && (name == 0 || same_name(peer, peer->phase[outer].name, name))))
        outer--;
    if (outer < 0) {
        if (name && since_ns <= t_ns)
            give(peer, tid, name, since_ns, t_ns, 0);
        return;
    }
    /* what the same thread opened inside it and did not close (an exception, a return) ends with it, inner first */
    for (int i = peer->phase_count - 1; i >= outer; i--) {
        if (peer->phase[i].tid != tid)
            continue;
        give(peer, tid, peer->phase[i].name, peer->phase[i].start_ns, t_ns, 0);
        memmove(&peer->phase[i], &peer->phase[i + 1], (size_t)(--peer->phase_count - i) * sizeof peer->phase[0]);
    }
}

bool hec_marks_phases_take(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_record *record,
                           int64_t now_ns) {
    bool interval = record->kind == HEC_RING_INTERVAL;
    uint32_t name = interval ? record->u.interval.name : record->u.mark.name;
    if (record->tid == 0 || (name != 0 && !hec_marks_peer_name(peer, name)))
        return false;
    if (record->kind == HEC_RING_PHASE_BEGIN) {
        begin(peer, record->tid, name, record->t_ns);
    } else if (record->kind == HEC_RING_PHASE_END) {
        bool open = peer->process.ring.borrowed && !peer->phases_seen;
        end(peer, record->tid, name, open ? run->opened_ns : INT64_MAX, record->t_ns);
    } else {
        int64_t duration_ns = record->u.interval.duration_ns;
        if (name == 0 || duration_ns < 0 || duration_ns > now_ns - record->t_ns)
            return false;
        int64_t end_ns = record->t_ns + duration_ns;
        give(peer, record->tid, name, record->t_ns, end_ns < run->end_ns ? end_ns : run->end_ns, HEC_ACTIVITY_FOUND);
    }
    peer->phases_seen = true;
    return true;
}

void hec_marks_phases_end(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t end_ns) {
    while (peer->phase_count > 0) {
        int at = --peer->phase_count;
        give(peer, peer->phase[at].tid, peer->phase[at].name, peer->phase[at].start_ns, end_ns, 0);
    }
    if (peer->phase_overflow > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, end_ns,
                           "process %d: %" PRIu64 " phases left out: more than %d were open at once",
                           (int)peer->process.pid, peer->phase_overflow, HEC_MARKS_PHASES_MAX);
}
