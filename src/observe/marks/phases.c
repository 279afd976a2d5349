/* Phases: those that the program marks, which nest, and the intervals that the hooks find, which are whole. */
#include "observe/marks/peer.h"

#include <inttypes.h>
#include <string.h>

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
