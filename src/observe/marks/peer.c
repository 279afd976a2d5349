#include "observe/marks/peer.h"

#include "base/clock.h"
#include "base/error.h"
#include "observe/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 256
/* A reserved slot that a live process has not committed for so long was left by a thread that longjmp'ed or was
 * cancelled in a signal handler; a merely stopped process (SIGSTOP) loses at most that one record. */
#define STUCK_NS (10 * HEC_NS_PER_S)

struct hec_marks_peer *hec_marks_peer_new(struct hec_marks_run *run, struct hec_ring_reader ring, pid_t pid, int pid_fd,
                                          int64_t now_ns) {
    struct hec_marks_peer *peer = calloc(1, sizeof *peer);
    if (!peer) {
        hec_ring_close(&ring);
        if (pid_fd >= 0)
            close(pid_fd);
        return NULL;
    }
    peer->ring = ring;
    peer->pid = pid;
    peer->pid_fd = pid_fd;
    hec_marks_timeline_init(&peer->timeline, pid, run->rates, now_ns);
    hec_ring_names_init(&peer->names, HEC_MARKS_NAMES_MAX, HEC_MARKS_TEXT_BYTES - 1);
    return peer;
}

const char *hec_marks_peer_name(const struct hec_marks_peer *peer, uint32_t id) {
    const char *name = hec_ring_names_text(&peer->names, id);
    return name && strlen(name) < HEC_MARKS_NAME_BYTES ? name : NULL;
}

void hec_marks_tell(struct hec_marks_run *run, enum hec_event_kind kind, int64_t t_ns, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hec_tell(run->sink, &run->events_left, "marks", kind, t_ns, format, args);
    va_end(args);
}

/* ---- knobs ---- */

static bool knob(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_knob *read,
                 int64_t t_ns) {
    const char *name = hec_marks_peer_name(peer, read->name);
    const char *text = read->text ? hec_marks_peer_name(peer, read->text) : "";
    char value[HEC_MARKS_NAME_BYTES] = "";
    if (read->type == HEC_RING_KNOB_INT)
        snprintf(value, sizeof value, "%" PRId64, read->integer);
    else if (read->type == HEC_RING_KNOB_DOUBLE)
        snprintf(value, sizeof value, "%.15g", read->number);
    else if (read->type == HEC_RING_KNOB_TEXT && text)
        snprintf(value, sizeof value, "%s", text);
    else
        name = NULL;
    if (!name)
        return false;
    uint64_t hash = UINT64_C(14695981039346656037) ^ read->flags;
    for (const char *c = value; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    int i = 0;
    while (i < peer->knob_count && peer->knob[i].name != read->name)
        i++;
    if (i == HEC_MARKS_KNOBS_SEEN || (i < peer->knob_count && peer->knob[i].value_hash == hash))
        return true;
    peer->knob_count += i == peer->knob_count;
    peer->knob[i].name = read->name;
    peer->knob[i].value_hash = hash;
    hec_marks_tell(run, HEC_EVENT_KNOB, t_ns, "%s=%s", name, value);
    if (read->flags & HEC_RING_KNOB_REFUSED)
        hec_marks_tell(run, HEC_EVENT_NOTE, t_ns, "knob %s: the value set is not %s; the program keeps its own, %s",
                       name, read->type == HEC_RING_KNOB_INT ? "an integer" : "a finite number", value);
    return true;
}

/* ---- records ---- */

static void take(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_record *record,
                 int64_t now_ns) {
    if (record->kind == HEC_RING_NAME) {
        peer->invalid += hec_ring_names_add(&peer->names, &record->u.name) != HEC_OK;
        return;
    }
    if (record->t_ns < run->opened_ns || record->t_ns > now_ns) {
        peer->invalid++;
        peer->untimely++;
        return;
    }
    if (record->t_ns > run->end_ns) {
        peer->late++;
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
        valid = knob(peer, run, &record->u.knob, record->t_ns);
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
    peer->invalid += !valid;
}

static void tell_lost(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t t_ns) {
    uint64_t lost = hec_ring_lost(&peer->ring);
    if (lost != peer->lost_told)
        hec_marks_tell(run, HEC_EVENT_MARKS_DROPPED, t_ns, "process %d: %" PRIu64 " marks lost so far", (int)peer->pid,
                       lost);
    peer->lost_told = lost;
}

void hec_marks_peer_drain(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t now_ns, bool dead) {
    struct hec_ring_record batch[BATCH];
    peer->timeline.sink = run->sink;
    /* a ring's worth at most: a program that writes faster than we read must not keep us here */
    for (uint64_t left = peer->ring.mask + 1; left > 0;) {
        size_t count = hec_ring_read(&peer->ring, batch, left < BATCH ? (size_t)left : BATCH);
        int64_t read_ns = hec_clock_mono_ns();
        for (size_t i = 0; i < count; i++)
            take(peer, run, &batch[i], read_ns);
        left -= count;
        if (count > 0)
            continue;
        if (hec_ring_pending(&peer->ring) == 0) {
            peer->stuck_since_ns = 0;
            break;
        }
        if (!dead) {
            if (peer->stuck_since_ns == 0 || peer->stuck_at != peer->ring.tail) {
                peer->stuck_since_ns = now_ns;
                peer->stuck_at = peer->ring.tail;
            }
            if (now_ns - peer->stuck_since_ns < STUCK_NS)
                break;
        }
        hec_ring_skip(&peer->ring);
        left--;
    }
    hec_marks_steps_poll(peer, run, now_ns);
    hec_marks_timeline_flush(&peer->timeline);
    if (peer->lost_told == 0)
        tell_lost(peer, run, now_ns); /* the first loss at once, the total at the end */
}

void hec_marks_peer_end(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t end_ns) {
    int pid = (int)peer->pid;
    peer->timeline.sink = run->sink;
    hec_marks_steps_end(peer, run);
    hec_marks_phases_end(peer, run, end_ns);
    hec_marks_timeline_flush(&peer->timeline);
    tell_lost(peer, run, end_ns);
    for (int i = 0; i < HEC_MARKS_RATE_COUNT; i++) {
        char text[160];
        if (hec_marks_timeline_left_out(&peer->timeline, (enum hec_marks_rate)i, text, sizeof text)[0])
            hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "process %d: %s", pid, text);
    }
    if (peer->timeline.threads_refused > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns,
                       "process %d: %" PRIu64 " marks left out of the timeline: more than %d threads", pid,
                       peer->timeline.threads_refused, HEC_MARKS_THREADS_MAX);
    if (peer->invalid > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns,
                       "process %d: %" PRIu64 " invalid marks left out, %" PRIu64
                       " of them with a time outside of the run",
                       pid, peer->invalid, peer->untimely);
    if (peer->late > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "process %d: %" PRIu64 " marks after the end of the run left out",
                       pid, peer->late);
    free(peer->frame);
    hec_ring_names_free(&peer->names);
    hec_ring_close(&peer->ring);
    if (peer->pid_fd >= 0)
        close(peer->pid_fd);
    free(peer);
}
