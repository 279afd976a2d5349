/* What the Python hooks report beside steps and phases: values, call stacks, facts. */
#include "base/hash.h"
#include "observe/marks/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_MAX_US 10000000u
#define FACT_KEY_MAX 40u
#define FACT_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789_."
#define FACT_LATE "late"
#define FACT_RANK "rank"     /* of this process: "RANK LOCAL_RANK RANKS" */
#define FACT_OFF "hooks_off" /* its text is a sentence for the user */

static bool value(struct hec_marks_peer *peer, const struct hec_ring_record *record) {
    const char *name = hec_marks_peer_name(peer, record->u.mark.name);
    if (!name)
        return false;
    struct hec_activity activity = {
        .start_ns = record->t_ns,
        .end_ns = record->t_ns,
        .amount = record->u.mark.value,
        .kind = HEC_ACTIVITY_VALUE,
    };
    hec_marks_timeline_add(&peer->timeline, HEC_MARKS_RATE_VALUES, 0, name, &activity);
    return true;
}

static bool frame_room(struct hec_marks_peer *peer, uint32_t id) {
    if (id < peer->frame_room)
        return true;
    uint32_t room = peer->frame_room ? peer->frame_room : 256;
    while (room <= id)
        room *= 2;
    uint32_t *grown = realloc(peer->frame, room * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + peer->frame_room, 0, (room - peer->frame_room) * sizeof *grown);
    peer->frame = grown;
    peer->frame_room = room;
    return true;
}

/* The sink's name for a name of the ring; false: it is undefined. */
static bool long_name(const struct hec_marks_peer *peer, const struct hec_sink *sink, uint32_t name, uint32_t *id) {
    const char *text = name ? hec_ring_names_text(&peer->names, name) : "";
    if (!text)
        return false;
    *id = text[0] ? sink->trace_name(sink->context, text) : 0;
    return true;
}

static bool frame(struct hec_marks_peer *peer, const struct hec_sink *sink, const struct hec_ring_frame *given) {
    bool rooted = given->parent == 0 ||
                  (given->parent < given->id && given->parent < peer->frame_room && peer->frame[given->parent] != 0);
    if (given->id == 0 || given->id >= HEC_MARKS_FRAMES_MAX || !rooted || !frame_room(peer, given->id))
        return false;
    struct hec_frame made = {
        .parent = given->parent ? peer->frame[given->parent] : 0,
        .line = given->line <= INT32_MAX ? (int32_t)given->line : 0,
    };
    if (!long_name(peer, sink, given->file, &made.file) || !long_name(peer, sink, given->function, &made.function))
        return false;
    peer->frame[given->id] = sink->trace_frame(sink->context, &made);
    return true;
}

static bool stack(struct hec_marks_peer *peer, const struct hec_marks_run *run, const struct hec_ring_record *record) {
    const struct hec_ring_stack *given = &record->u.stack;
    if (record->tid == 0 || given->frame >= peer->frame_room || peer->frame[given->frame] == 0 ||
        given->period_us == 0 || given->period_us > PERIOD_MAX_US)
        return false;
    int64_t end_ns = record->t_ns + (int64_t)given->period_us * 1000;
    struct hec_activity activity = {
        .start_ns = record->t_ns,
        .end_ns = end_ns < run->end_ns ? end_ns : run->end_ns,
        .name = peer->frame[given->frame],
        .kind = HEC_ACTIVITY_STACK,
    };
    hec_marks_timeline_add(&peer->timeline, HEC_MARKS_RATE_STACKS, record->tid, NULL, &activity);
    return true;
}

/* Whether there is room for a fact of this key: it came before, or the run has few enough. */
static bool fact_room(struct hec_marks_run *run, const char *key) {
    uint64_t hash;
    size_t at = hec_keys_find(run->fact, HEC_MARKS_FACT_SLOTS, key, strlen(key), &hash);
    if (run->fact[at])
        return true;
    if (run->fact_count == HEC_MARKS_FACTS_MAX)
        return false;
    run->fact[at] = hash;
    run->fact_count++;
    return true;
}

/* What the framework says where the environment says nothing, as of processes that a program or Ray starts. */
static bool rank(const struct hec_marks_peer *peer, const struct hec_marks_run *run, const char *text) {
    char key[32];
    int number, local, size;
    if (sscanf(text, "%d %d %d", &number, &local, &size) != 3 || number < 0 || number >= size || size < 2 ||
        size > HEC_RING_RANKS_MOST || local < -1 || local >= size)
        return false;
    snprintf(key, sizeof key, HEC_RANK_FACT "%d", (int)peer->process.pid);
    if (peer->timeline.rank < 0)
        hec_sink_meta(run->sink, key, "%d %d %d %s", number, local, size, "program");
    return true;
}

static bool fact(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_record *record) {
    const char *key = hec_ring_names_text(&peer->names, record->u.fact.key);
    const char *text = record->u.fact.text ? hec_ring_names_text(&peer->names, record->u.fact.text) : "";
    if (!key || !text || strlen(key) > FACT_KEY_MAX || key[strspn(key, FACT_CHARACTERS)])
        return false;
    if (strcmp(key, FACT_RANK) == 0)
        return rank(peer, run, text);
    char full[sizeof HEC_SIZES_FACT + 16 + FACT_KEY_MAX];
    if (strncmp(key, HEC_SIZES_FACT, strlen(HEC_SIZES_FACT)) == 0)
        snprintf(full, sizeof full, HEC_SIZES_FACT "%d.%s", (int)peer->process.pid, key + strlen(HEC_SIZES_FACT));
    else
        snprintf(full, sizeof full, "python.%s", key);
    if (!fact_room(run, full)) {
        run->facts_refused++;
        return true;
    }
    run->sink->meta(run->sink->context, full, text);
    if (strcmp(key, FACT_LATE) == 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_HOOKS_LATE, record->t_ns,
                           "Python hooks of process %d came when it started CUDA", (int)peer->process.pid);
    if (strcmp(key, FACT_OFF) == 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, record->t_ns, "Python hooks of process %d: %.200s",
                           (int)peer->process.pid, text);
    return true;
}

bool hec_marks_hooks_take(struct hec_marks_peer *peer, struct hec_marks_run *run,
                          const struct hec_ring_record *record) {
    switch (record->kind) {
    case HEC_RING_VALUE:
        return value(peer, record);
    case HEC_RING_FRAME:
        return frame(peer, run->sink, &record->u.frame);
    case HEC_RING_STACK:
        return stack(peer, run, record);
    case HEC_RING_FACT:
        return fact(peer, run, record);
    default:
        return false;
    }
}
