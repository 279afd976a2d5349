/* Knobs that a process reads, and what the program says they may be: events of the run. */
#include "observe/marks/peer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static uint64_t hash_of(const char *text, uint32_t flags) {
    uint64_t hash = UINT64_C(14695981039346656037) ^ flags;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return hash ? hash : 1;
}

/* Where it is kept; -1: the process has too many. */
static int knob_at(struct hec_marks_peer *peer, uint32_t name) {
    int i = 0;
    while (i < peer->knob_count && peer->knob[i].name != name)
        i++;
    if (i == HEC_MARKS_KNOBS_SEEN)
        return -1;
    if (i == peer->knob_count) {
        peer->knob[i].name = name;
        peer->knob[i].value_hash = 0;
        peer->knob[i].range[0] = '\0';
        peer->knob_count++;
    }
    return i;
}

/* Once a run, whatever the number of its processes. */
static void say_of_knob(struct hec_marks_run *run, enum hec_event_kind kind, int64_t t_ns, const char *text) {
    uint64_t hash = hash_of(text, kind);
    for (int i = 0; i < run->knob_said_count; i++)
        if (run->knob_said[i] == hash)
            return;
    if (run->knob_said_count == HEC_MARKS_KNOBS_SAID)
        return;
    run->knob_said[run->knob_said_count++] = hash;
    hec_reporter_event(&run->reporter, kind, t_ns, "%s", text);
}

static void put_number(char out[32], uint32_t type, union hec_ring_knob_value value) {
    if (type == HEC_RING_KNOB_INT)
        snprintf(out, 32, "%" PRId64, value.integer);
    else
        snprintf(out, 32, "%.15g", value.number);
}

static bool is_range(const struct hec_ring_knob_range *r) {
    if (r->type == HEC_RING_KNOB_INT)
        return r->least.integer <= r->fallback.integer && r->fallback.integer <= r->most.integer;
    return isfinite(r->least.number) && isfinite(r->most.number) && r->least.number <= r->fallback.number &&
           r->fallback.number <= r->most.number;
}

static bool knob_range(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_knob_range *read,
                       int64_t t_ns) {
    const char *name = hec_marks_peer_name(peer, read->name);
    char fallback[32], least[32], most[32], text[HEC_MARKS_NAME_BYTES + 200];
    if (!name || (read->type != HEC_RING_KNOB_INT && read->type != HEC_RING_KNOB_DOUBLE))
        return false;
    put_number(fallback, read->type, read->fallback);
    put_number(least, read->type, read->least);
    put_number(most, read->type, read->most);
    int at = knob_at(peer, read->name);
    if (!is_range(read)) {
        snprintf(text, sizeof text, "%s: %s to %s around %s is no range: it counts as not given", name, least, most,
                 fallback);
        say_of_knob(run, HEC_EVENT_KNOB_REFUSED, t_ns, text);
        return true;
    }
    if (at >= 0)
        snprintf(peer->knob[at].range, sizeof peer->knob[at].range, "%s to %s", least, most);
    snprintf(text, sizeof text, "%s=%s %s [%s, %s]", name, fallback, read->type == HEC_RING_KNOB_INT ? "int" : "double",
             least, most);
    say_of_knob(run, HEC_EVENT_KNOB_RANGE, t_ns, text);
    return true;
}

/* The value that was set is not the program's. */
static void refused(const struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_knob *read,
                    int at, const char *name, const char *set, const char *value, int64_t t_ns) {
    char text[4 * HEC_MARKS_NAME_BYTES + 128];
    if (read->flags & HEC_RING_KNOB_OUTSIDE)
        snprintf(text, sizeof text, "%s: %s was set, outside of %s: the program keeps its own, %s", name, set,
                 peer->knob[at].range[0] ? peer->knob[at].range : "the program's range", value);
    else
        snprintf(text, sizeof text, "%s: \"%s\" was set, which is not %s: the program keeps its own, %s", name, set,
                 read->type == HEC_RING_KNOB_INT ? "an integer" : "a finite number", value);
    say_of_knob(run, HEC_EVENT_KNOB_REFUSED, t_ns, text);
}

static bool knob(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_knob *read,
                 int64_t t_ns) {
    const char *name = hec_marks_peer_name(peer, read->name);
    const char *text = read->text ? hec_marks_peer_name(peer, read->text) : "";
    char value[HEC_MARKS_NAME_BYTES] = "";
    if (read->type == HEC_RING_KNOB_INT)
        put_number(value, read->type, (union hec_ring_knob_value){.integer = read->integer});
    else if (read->type == HEC_RING_KNOB_DOUBLE)
        put_number(value, read->type, (union hec_ring_knob_value){.number = read->number});
    else if (read->type == HEC_RING_KNOB_TEXT && text)
        snprintf(value, sizeof value, "%s", text);
    else
        name = NULL;
    if (!name || !text)
        return false;
    uint64_t hash = hash_of(value, read->flags);
    int at = knob_at(peer, read->name);
    if (at < 0 || peer->knob[at].value_hash == hash)
        return true;
    peer->knob[at].value_hash = hash;
    hec_reporter_event(&run->reporter, HEC_EVENT_KNOB, t_ns, "%s=%s", name, value);
    if (read->flags & (HEC_RING_KNOB_REFUSED | HEC_RING_KNOB_OUTSIDE))
        refused(peer, run, read, at, name, text, value, t_ns);
    return true;
}

bool hec_marks_knobs_take(struct hec_marks_peer *peer, struct hec_marks_run *run,
                          const struct hec_ring_record *record) {
    return record->kind == HEC_RING_KNOB ? knob(peer, run, &record->u.knob, record->t_ns)
                                         : knob_range(peer, run, &record->u.range, record->t_ns);
}
