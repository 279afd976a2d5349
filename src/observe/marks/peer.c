#include "observe/marks/peer.h"

#include "base/clock.h"
#include "base/error.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 256
/* A reserved slot that a live process has not committed for so long was left by a thread that longjmp'ed or was
 * cancelled in a signal handler; a merely stopped process (SIGSTOP) loses at most that one record. */
#define STUCK_NS (10 * HEC_NS_PER_S)
#define STEP_SAMPLE_NS (20 * HEC_NS_PER_MS) /* the grain of the driver's power history */
#define SPANS_PER_S 200.0
#define SPANS_BURST 2000.0
#define VALUE_MAX 9007199254740992.0 /* 2^53, as in libhec.so */

struct hec_marks_peer *hec_marks_peer_new(struct hec_ring_reader ring, pid_t pid, int pid_fd, int64_t now_ns) {
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
    peer->span_tokens = SPANS_BURST;
    peer->span_refill_ns = now_ns;
    hec_ring_names_init(&peer->names, HEC_MARKS_NAMES_MAX, HEC_MARKS_NAME_BYTES - 1);
    return peer;
}

void hec_marks_tell(struct hec_marks_run *run, enum hec_event_kind kind, int64_t t_ns, const char *format, ...) {
    if (run->events_left == 0)
        return;
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (--run->events_left == 0) {
        kind = HEC_EVENT_NOTE;
        snprintf(text, sizeof text, "further events of marks are left out");
    }
    run->sink->event(run->sink->context, kind, HEC_DEVICE_NONE, t_ns, text);
}

/* ---- steps ---- */

static void give_step(struct hec_marks_peer *peer, struct hec_marks_run *run) {
    int64_t value = llround(peer->step_total) - peer->step_told;
    run->sink->sample(run->sink->context, HEC_STEP_UNITS, peer->pid, peer->step_last_ns, value);
    peer->step_told += value;
    peer->step_sample_ns = peer->step_last_ns;
    peer->step_pending = false;
}

static void step(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t t_ns, double units) {
    peer->step_total += units;
    if (t_ns > peer->step_last_ns)
        peer->step_last_ns = t_ns; /* threads may arrive out of order by the length of a mark */
    peer->step_pending = true;
    if (peer->step_sample_ns == 0 || t_ns - peer->step_sample_ns >= STEP_SAMPLE_NS) {
        give_step(peer, run);
    } else if (!peer->step_folded) {
        peer->step_folded = true;
        hec_marks_tell(run, HEC_EVENT_NOTE, t_ns,
                       "steps of process %d follow within 20 ms: folded into samples of at least that length",
                       (int)peer->pid);
    }
}

/* ---- phases ---- */

static void give_span(struct hec_marks_peer *peer, struct hec_marks_run *run, int at, int64_t end_ns) {
    if (end_ns < peer->phase[at].start_ns)
        end_ns = peer->phase[at].start_ns;
    if (end_ns > peer->span_refill_ns) {
        peer->span_tokens += (double)(end_ns - peer->span_refill_ns) / (double)HEC_NS_PER_S * SPANS_PER_S;
        if (peer->span_tokens > SPANS_BURST)
            peer->span_tokens = SPANS_BURST;
        peer->span_refill_ns = end_ns;
    }
    if (peer->span_tokens < 1) {
        peer->spans_folded++;
        peer->spans_folded_ns += end_ns - peer->phase[at].start_ns;
        return;
    }
    peer->span_tokens -= 1;
    struct hec_span span = {
        .start_ns = peer->phase[at].start_ns, .end_ns = end_ns, .pid = peer->pid, .tid = (int32_t)peer->phase[at].tid};
    const char *name = hec_ring_names_text(&peer->names, peer->phase[at].name);
    snprintf(span.name, sizeof span.name, "%s", name ? name : "phase");
    run->sink->span(run->sink->context, &span);
}

static bool same_name(const struct hec_marks_peer *peer, uint32_t a, uint32_t b) {
    if (a == b)
        return true;
    const char *one = hec_ring_names_text(&peer->names, a), *two = hec_ring_names_text(&peer->names, b);
    return one && two && strcmp(one, two) == 0;
}

static void phase_begin(struct hec_marks_peer *peer, uint32_t tid, uint32_t name, int64_t t_ns) {
    if (peer->phase_count == HEC_MARKS_PHASES_MAX) {
        peer->phase_overflow++;
        return;
    }
    int at = peer->phase_count++;
    peer->phase[at].tid = tid;
    peer->phase[at].name = name;
    peer->phase[at].start_ns = t_ns;
}

static void phase_end(struct hec_marks_peer *peer, struct hec_marks_run *run, uint32_t tid, uint32_t name,
                      int64_t t_ns) {
    int outer = peer->phase_count - 1;
    while (outer >= 0 &&
           !(peer->phase[outer].tid == tid && (name == 0 || same_name(peer, peer->phase[outer].name, name))))
        outer--;
    if (outer < 0)
        return;
    /* what the same thread opened inside it and did not close (an exception, a return) ends with it, inner first */
    for (int i = peer->phase_count - 1; i >= outer; i--) {
        if (peer->phase[i].tid != tid)
            continue;
        give_span(peer, run, i, t_ns);
        memmove(&peer->phase[i], &peer->phase[i + 1], (size_t)(--peer->phase_count - i) * sizeof peer->phase[0]);
    }
}

/* ---- knobs ---- */

static void knob(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_knob *read,
                 int64_t t_ns) {
    const char *name = hec_ring_names_text(&peer->names, read->name);
    const char *text = read->text ? hec_ring_names_text(&peer->names, read->text) : "";
    char value[HEC_MARKS_NAME_BYTES] = "";
    if (read->type == HEC_RING_KNOB_INT)
        snprintf(value, sizeof value, "%" PRId64, read->integer);
    else if (read->type == HEC_RING_KNOB_DOUBLE)
        snprintf(value, sizeof value, "%.15g", read->number);
    else if (read->type == HEC_RING_KNOB_TEXT && text)
        snprintf(value, sizeof value, "%s", text);
    else
        name = NULL;
    if (!name) {
        peer->invalid++;
        return;
    }
    uint64_t hash = UINT64_C(14695981039346656037) ^ read->flags;
    for (const char *c = value; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    int i = 0;
    while (i < peer->knob_count && peer->knob[i].name != read->name)
        i++;
    if (i == HEC_MARKS_KNOBS_SEEN || (i < peer->knob_count && peer->knob[i].value_hash == hash))
        return;
    peer->knob_count += i == peer->knob_count;
    peer->knob[i].name = read->name;
    peer->knob[i].value_hash = hash;
    hec_marks_tell(run, HEC_EVENT_KNOB, t_ns, "%s=%s", name, value);
    if (read->flags & HEC_RING_KNOB_REFUSED)
        hec_marks_tell(run, HEC_EVENT_NOTE, t_ns, "knob %s: the value set is not %s; the program keeps its own, %s",
                       name, read->type == HEC_RING_KNOB_INT ? "an integer" : "a finite number", value);
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
        return;
    }
    if (record->t_ns > run->end_ns) {
        peer->late++;
        return;
    }
    const struct hec_ring_mark *mark = &record->u.mark;
    const char *name = mark->name ? hec_ring_names_text(&peer->names, mark->name) : "";
    bool valid = name != NULL;
    switch (record->kind) {
    case HEC_RING_STEP:
    case HEC_RING_UNITS:
        valid = valid && mark->value >= 0 && mark->value <= VALUE_MAX && peer->step_total <= 100 * VALUE_MAX;
        if (valid)
            hec_marks_units_add(&run->units, name, mark->value);
        if (valid && record->kind == HEC_RING_STEP)
            step(peer, run, record->t_ns, mark->value);
        break;
    case HEC_RING_PHASE_BEGIN:
        if (valid)
            phase_begin(peer, record->tid, mark->name, record->t_ns);
        break;
    case HEC_RING_PHASE_END:
        if (valid)
            phase_end(peer, run, record->tid, mark->name, record->t_ns);
        break;
    case HEC_RING_KNOB:
        knob(peer, run, &record->u.knob, record->t_ns);
        return;
    default:
        valid = false;
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
    if (peer->step_pending && now_ns - peer->step_sample_ns >= STEP_SAMPLE_NS)
        give_step(peer, run);
    if (peer->lost_told == 0)
        tell_lost(peer, run, now_ns); /* the first loss at once, the total at the end */
}

void hec_marks_peer_end(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t end_ns) {
    if (peer->step_pending)
        give_step(peer, run);
    while (peer->phase_count > 0) {
        give_span(peer, run, peer->phase_count - 1, end_ns);
        peer->phase_count--;
    }
    tell_lost(peer, run, end_ns);
    int pid = (int)peer->pid;
    if (peer->spans_folded > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns,
                       "process %d: %" PRIu64 " phases (%.3f s in all) left out: more than %.0f a second", pid,
                       peer->spans_folded, (double)peer->spans_folded_ns / (double)HEC_NS_PER_S, SPANS_PER_S);
    if (peer->phase_overflow > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns,
                       "process %d: %" PRIu64 " phases left out: more than %d were open at once", pid,
                       peer->phase_overflow, HEC_MARKS_PHASES_MAX);
    if (peer->invalid > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "process %d: %" PRIu64 " invalid marks left out", pid,
                       peer->invalid);
    if (peer->late > 0)
        hec_marks_tell(run, HEC_EVENT_NOTE, end_ns, "process %d: %" PRIu64 " marks after the end of the run left out",
                       pid, peer->late);
    hec_ring_names_free(&peer->names);
    hec_ring_close(&peer->ring);
    if (peer->pid_fd >= 0)
        close(peer->pid_fd);
    free(peer);
}
