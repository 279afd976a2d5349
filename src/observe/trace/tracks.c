#include "observe/trace/tracks.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 1024u
#define NO_CALL UINT64_MAX /* cookie of a hint */

void hec_trace_pending_begin(struct hec_trace_pending *pending, struct hec_trace_budget *budget, int64_t t_ns) {
    if (!pending->match && (pending->match = hec_trace_match_new(budget)))
        hec_trace_match_since(pending->match, t_ns);
}

void hec_trace_pending_lost(struct hec_trace_pending *pending) {
    pending->unsure = true;
    if (pending->match)
        hec_trace_match_stop(pending->match);
}

static struct hec_trace_match *matcher(const struct hec_trace_pending *pending) {
    return pending->unsure ? NULL : pending->match;
}

static struct hec_trace_pending_item *item_new(struct hec_trace_pending *pending, struct hec_trace_budget *budget,
                                               const struct hec_activity *activity, uint32_t track) {
    struct hec_trace_pending_item *item;
    if (pending->free) {
        item = &pending->items[pending->free - 1];
        pending->free = item->next;
    } else {
        if (pending->count == pending->capacity) {
            uint32_t capacity = pending->capacity ? 2 * pending->capacity : CAPACITY_FIRST;
            struct hec_trace_pending_item *items =
                hec_trace_resize(budget, pending->items, pending->capacity * sizeof *items, capacity * sizeof *items);
            if (!items)
                return NULL;
            pending->items = items;
            pending->capacity = capacity;
        }
        item = &pending->items[pending->count++];
    }
    *item = (struct hec_trace_pending_item){.activity = *activity, .track = track};
    return item;
}

static void item_free(struct hec_trace_pending *pending, struct hec_trace_pending_item *item) {
    item->next = pending->free;
    pending->free = (uint32_t)(item - pending->items) + 1;
}

bool hec_trace_pending_device(struct hec_trace_pending *pending, struct hec_trace_budget *budget,
                              const struct hec_activity *activity, uint32_t track,
                              const struct hec_trace_match_device *device, int64_t now_ns) {
    struct hec_trace_pending_item *item = matcher(pending) ? item_new(pending, budget, activity, track) : NULL;
    if (!item)
        return false;
    if (hec_trace_match_device(pending->match, device, (uint64_t)(item - pending->items), now_ns))
        return true;
    item_free(pending, item);
    pending->alone++;
    return false;
}

/* What an activity has and a call of match.h has not, in its cookie: name, class, device. */
bool hec_trace_pending_call(struct hec_trace_pending *pending, const struct hec_activity *activity,
                            struct hec_trace_match_call *call) {
    call->cookie = (uint64_t)activity->name << 32 | (uint64_t)activity->detail << 8 | activity->device;
    return matcher(pending) && hec_trace_match_call(pending->match, call);
}

void hec_trace_pending_hint(struct hec_trace_pending *pending, struct hec_trace_match_call *call) {
    call->cookie = NO_CALL;
    if (matcher(pending))
        hec_trace_match_call(pending->match, call);
}

struct advance {
    struct hec_trace_pending *pending;
    void (*take)(void *context, const struct hec_activity *activity, uint32_t track);
    void *context;
};

static void take_device(void *context, uint64_t cookie, const struct hec_trace_match_call *call) {
    const struct advance *a = context;
    struct hec_trace_pending_item *item = &a->pending->items[cookie];
    if (call) {
        item->activity.launch_ns = call->start_ns;
        item->activity.launch_end_ns = call->end_ns;
        item->activity.launch_track = call->track;
    }
    a->pending->alone += !call;
    a->take(a->context, &item->activity, item->track);
    item_free(a->pending, item);
}

static void take_call(void *context, const struct hec_trace_match_call *call) {
    const struct advance *a = context;
    const struct hec_activity activity = {
        .start_ns = call->start_ns,
        .end_ns = call->end_ns,
        .launch_ns = HEC_TIME_UNKNOWN,
        .launch_end_ns = HEC_TIME_UNKNOWN,
        .amount = call->match_class == HEC_TRACE_MATCH_MEMSET ? (double)call->bytes : 0,
        .name = (uint32_t)(call->cookie >> 32),
        .kind = HEC_ACTIVITY_API,
        .detail = (uint8_t)(call->cookie >> 8),
        .device = (uint8_t)call->cookie,
    };
    if (call->cookie != NO_CALL)
        a->take(a->context, &activity, call->track - 1);
}

/* What is decided goes on to `take`, with the launch filled in where it is known: launch_track is the index of its track
 * plus 1 (the call's `track`), `track` the index of the activity's own. */
static void trace_pending_advance(struct hec_trace_pending *pending, int64_t now_ns, bool final,
                                  void (*take)(void *context, const struct hec_activity *activity, uint32_t track),
                                  void *context) {
    struct advance a = {pending, take, context};
    const struct hec_trace_match_sink sink = {&a, take_device, take_call};
    if (pending->match)
        hec_trace_match_advance(pending->match, now_ns, final, &sink);
}

static void trace_pending_free(struct hec_trace_pending *pending, struct hec_trace_budget *budget) {
    hec_trace_match_free(pending->match);
    hec_trace_resize(budget, pending->items, pending->capacity * sizeof *pending->items, 0);
    memset(pending, 0, sizeof *pending);
}

#define HELD_FIRST 64u

/* Room for one more behind the last. */
static bool make_room(struct hec_trace_hold *hold, struct hec_trace_budget *budget) {
    if (hold->first + hold->count < hold->capacity)
        return true;
    if (hold->first > hold->capacity / 2) {
        memmove(hold->items, hold->items + hold->first, hold->count * sizeof *hold->items);
        hold->first = 0;
        return true;
    }
    uint32_t capacity = hold->capacity ? hold->capacity * 2 : HELD_FIRST;
    struct hec_trace_held *items =
        hec_trace_resize(budget, hold->items, hold->capacity * sizeof *items, (size_t)capacity * sizeof *items);
    if (!items)
        return false;
    hold->items = items;
    hold->capacity = capacity;
    return true;
}

/* false: no memory within the budget, nothing was added. */
static bool trace_hold_add(struct hec_trace_hold *hold, struct hec_trace_budget *budget,
                           const struct hec_trace_held *held) {
    if (!make_room(hold, budget))
        return false;
    struct hec_trace_held *at = hold->items + hold->first + hold->count;
    *at = *held;
    if (hold->sorted == hold->count && (hold->count == 0 || at[-1].activity.start_ns <= held->activity.start_ns))
        hold->sorted++;
    hold->count++;
    return true;
}

static int compare(const void *a, const void *b) {
    const struct hec_trace_held *x = a, *y = b;
    return (x->activity.start_ns > y->activity.start_ns) - (x->activity.start_ns < y->activity.start_ns);
}

/* Put everything in order of start; cheap when it is already. */
static void trace_hold_sort(struct hec_trace_hold *hold) {
    uint32_t late = hold->count - hold->sorted;
    if (late == 0)
        return;
    struct hec_trace_held *all = hold->items + hold->first;
    struct hec_trace_held *tail = malloc(late * sizeof *tail);
    if (!tail)
        return; /* leaves as it came: the store puts it in order */
    memcpy(tail, all + hold->sorted, late * sizeof *tail);
    qsort(tail, late, sizeof *tail, compare);
    uint32_t from = hold->sorted, to = hold->count;
    while (late > 0) { /* merge from the back; what is in order before the tail's first does not move */
        if (from > 0 && compare(&all[from - 1], &tail[late - 1]) > 0)
            all[--to] = all[--from];
        else
            all[--to] = tail[--late];
    }
    free(tail);
    hold->sorted = hold->count;
}

/* The earliest, once sorted; NULL: none. */
static const struct hec_trace_held *trace_hold_front(const struct hec_trace_hold *hold) {
    return hold->count > 0 ? hold->items + hold->first : NULL;
}

static void trace_hold_pop(struct hec_trace_hold *hold) {
    hold->first++;
    hold->count--;
    hold->sorted -= hold->sorted > 0;
    if (hold->count == 0)
        hold->first = 0;
}

static void trace_hold_free(struct hec_trace_hold *hold, struct hec_trace_budget *budget) {
    hec_trace_resize(budget, hold->items, hold->capacity * sizeof *hold->items, 0);
    memset(hold, 0, sizeof *hold);
}

#define THREAD_KEY (UINT64_C(1) << 63)
#define HOLD_KEPT 4096u /* a larger buffer is given back once it is empty */

/* The name that the kernel has for a process or a thread. */
static void read_name(const struct hec_trace_run *run, pid_t pid, uint32_t tid, char *name, size_t size) {
    char path[256];
    name[0] = '\0';
    if (!run->proc_path || pid <= 0)
        return;
    if (tid)
        snprintf(path, sizeof path, "%s/%d/task/%u/comm", run->proc_path, (int)pid, tid);
    else
        snprintf(path, sizeof path, "%s/%d/comm", run->proc_path, (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(name, (int)size, file))
        name[strcspn(name, "\n")] = '\0';
    fclose(file);
}

static struct hec_trace_track *find(struct hec_trace_tracks *tracks, struct hec_trace_run *run, uint64_t key,
                                    const struct hec_trace_track *wanted) {
    uint32_t at;
    if (hec_trace_map_get(&tracks->by_key, key, &at)) {
        struct hec_trace_track *track = &tracks->list[at];
        bool same = track->is_stream == wanted->is_stream && track->ordinal == wanted->ordinal &&
                    track->context == wanted->context && track->stream == wanted->stream;
        return same ? track : NULL; /* two keys that fell together: only ids that CUPTI does not give */
    }
    if (tracks->count == HEC_TRACE_TRACKS_MAX)
        return NULL;
    if (tracks->count == tracks->capacity) {
        uint32_t capacity = tracks->capacity ? tracks->capacity * 2 : 16;
        struct hec_trace_track *list =
            hec_trace_resize(&run->budget, tracks->list, tracks->capacity * sizeof *list, capacity * sizeof *list);
        if (!list)
            return NULL;
        tracks->list = list;
        tracks->capacity = capacity;
    }
    if (!hec_trace_map_put(&tracks->by_key, &run->budget, key, tracks->count))
        return NULL;
    tracks->list[tracks->count] = *wanted;
    return &tracks->list[tracks->count++];
}

static uint32_t sink_track(const struct hec_trace_tracks *tracks, struct hec_trace_run *run, struct hec_track *track) {
    track->pid = tracks->pid;
    /* a thread has one track, and who samples its stack from outside knows no rank: facts of the run say it (HEC_RANK_FACT) */
    track->rank = track->kind == HEC_TRACK_THREAD ? -1 : tracks->rank;
    if (track->kind != HEC_TRACK_STREAM)
        track->device = -1;
    if (track->kind != HEC_TRACK_STREAM)
        read_name(run, tracks->pid, (uint32_t)track->stream, track->name, sizeof track->name);
    return run->sink->trace_track(run->sink->context, track);
}

struct hec_trace_track *hec_trace_thread(struct hec_trace_tracks *tracks, struct hec_trace_run *run, uint32_t tid) {
    struct hec_trace_track wanted = {.stream = tid};
    struct hec_trace_track *track = find(tracks, run, THREAD_KEY | tid, &wanted);
    if (track && !track->resolved) {
        struct hec_track thread = {.kind = HEC_TRACK_THREAD, .stream = tid};
        track->id = sink_track(tracks, run, &thread);
        track->resolved = true;
    }
    return track;
}

struct hec_trace_track *hec_trace_stream(struct hec_trace_tracks *tracks, struct hec_trace_run *run, uint32_t ordinal,
                                         uint32_t context, uint32_t stream) {
    struct hec_trace_track wanted = {
        .is_stream = true, .ordinal = (uint16_t)ordinal, .context = context, .stream = stream};
    uint64_t key = ((uint64_t)context << 32 | stream) ^ (uint64_t)ordinal << 56;
    return find(tracks, run, key & ~THREAD_KEY, &wanted);
}

uint32_t hec_trace_process_track(struct hec_trace_tracks *tracks, struct hec_trace_run *run) {
    if (tracks->process_track == 0) {
        struct hec_track process = {.kind = HEC_TRACK_PROCESS};
        tracks->process_track = sink_track(tracks, run, &process);
    }
    return tracks->process_track;
}

/* hec_device.index of a CUDA ordinal. false: wait, the tracer has not reported it or NVML has not listed the devices
 * yet: calls may come before the tracer's thread has reported the devices, and a wrong number would stay. */
static bool resolve_ordinal(struct hec_trace_tracks *tracks, struct hec_trace_run *run, uint32_t at, bool hurry) {
    struct hec_trace_ordinal *ordinal = &tracks->ordinals[at];
    if (ordinal->resolved)
        return true;
    int index = run->devices ? HEC_ERR_BUSY : HEC_ERR_NOTFOUND;
    if (run->devices && ordinal->reported)
        index = hec_device_table_find(run->devices, ordinal->device.uuid, ordinal->device.pci_bus_id);
    if (index == HEC_ERR_BUSY && !hurry)
        return false;
    ordinal->resolved = true;
    ordinal->assumed = index < 0;
    ordinal->index = index < 0 ? HEC_DEVICE_INDEX(HEC_VENDOR_NVIDIA, at) : index;
    if (ordinal->assumed && run->devices && hec_device_table_count(run->devices) > 0)
        hec_reporter_event(&run->reporter, HEC_EVENT_NOTE, hec_clock_mono_ns(),
                           "process %d: CUDA device %u (%.16s) is none of NVML's: taken for GPU %u", (int)tracks->pid,
                           at, ordinal->device.pci_bus_id, at);
    return true;
}

static bool resolve(struct hec_trace_tracks *tracks, struct hec_trace_run *run, struct hec_trace_track *track,
                    const struct hec_activity *activity, bool hurry) {
    if (!track->is_stream && activity->device && !resolve_ordinal(tracks, run, activity->device - 1u, hurry))
        return false;
    if (track->resolved)
        return true;
    if (!resolve_ordinal(tracks, run, track->ordinal, hurry))
        return false;
    struct hec_track stream = {
        .kind = HEC_TRACK_STREAM,
        .device = tracks->ordinals[track->ordinal].index,
        .context = track->context,
        .stream = track->stream,
    };
    track->id = sink_track(tracks, run, &stream);
    track->resolved = true;
    return true;
}

/* Times, track and launch of an activity are known: out with it. */
static void leave(struct hec_trace_tracks *tracks, struct hec_trace_run *run, const struct hec_trace_track *track,
                  const struct hec_trace_held *held) {
    if (track->id == 0) {
        tracks->without_track++;
        return;
    }
    struct hec_activity activity = held->activity;
    activity.track = track->id;
    if (activity.device)
        activity.device = (uint8_t)(tracks->ordinals[activity.device - 1].index + 1);
    if (activity.launch_track)
        activity.launch_track = tracks->list[activity.launch_track - 1].id;
    hec_trace_give(run, &activity);
}

static void release_track(struct hec_trace_tracks *tracks, struct hec_trace_run *run, struct hec_trace_track *track,
                          uint32_t now_ms, bool final) {
    const struct hec_trace_held *held;
    trace_hold_sort(&track->hold);
    while ((held = trace_hold_front(&track->hold))) {
        /* what was read after the poll began is younger than the poll's time */
        int32_t age_ms = (int32_t)(now_ms - held->arrived_ms);
        /* calls and activities that found no other half come late among those of their track */
        int32_t settle_ms = tracks->pending.match ? HEC_TRACE_MATCHED_MS : HEC_TRACE_SETTLE_MS;
        if (!final && age_ms < settle_ms)
            break;
        if (!resolve(tracks, run, track, &held->activity, final || age_ms > HEC_TRACE_DEVICES_MS))
            break;
        leave(tracks, run, track, held);
        trace_hold_pop(&track->hold);
        run->held--;
    }
    if (track->hold.count == 0 && track->hold.capacity > HOLD_KEPT)
        trace_hold_free(&track->hold, &run->budget);
}

static void release_all(struct hec_trace_tracks *tracks, struct hec_trace_run *run, uint32_t now_ms, bool final) {
    for (uint32_t i = 0; i < tracks->count; i++)
        if (tracks->list[i].hold.count > 0)
            release_track(tracks, run, &tracks->list[i], now_ms, final);
}

struct taking {
    struct hec_trace_tracks *tracks;
    struct hec_trace_run *run;
    uint32_t now_ms;
};

static void add_matched(void *context, const struct hec_activity *activity, uint32_t track) {
    const struct taking *t = context;
    hec_trace_track_add(t->tracks, t->run, &t->tracks->list[track], activity, t->now_ms);
}

void hec_trace_release(struct hec_trace_tracks *tracks, struct hec_trace_run *run, uint32_t now_ms, bool final) {
    struct taking taking = {tracks, run, now_ms};
    trace_pending_advance(&tracks->pending, run->opened_ns + (int64_t)now_ms * HEC_NS_PER_MS, final, add_matched,
                          &taking);
    release_all(tracks, run, now_ms, final);
}

void hec_trace_track_add(struct hec_trace_tracks *tracks, struct hec_trace_run *run, struct hec_trace_track *track,
                         const struct hec_activity *activity, uint32_t now_ms) {
    if (!track) {
        tracks->without_track++;
        return;
    }
    struct hec_trace_held held = {*activity, now_ms};
    if (run->held >= HEC_TRACE_HELD_MAX)
        release_all(tracks, run, now_ms, true);
    if (trace_hold_add(&track->hold, &run->budget, &held)) {
        run->held++;
        return;
    }
    release_all(tracks, run, now_ms, true);
    if (trace_hold_add(&track->hold, &run->budget, &held))
        run->held++;
    else
        tracks->without_track++;
}

void hec_trace_tracks_free(struct hec_trace_tracks *tracks, struct hec_trace_run *run) {
    for (uint32_t i = 0; i < tracks->count; i++) {
        run->held -= tracks->list[i].hold.count;
        trace_hold_free(&tracks->list[i].hold, &run->budget);
    }
    hec_trace_resize(&run->budget, tracks->list, tracks->capacity * sizeof *tracks->list, 0);
    hec_trace_map_free(&tracks->by_key, &run->budget);
    trace_pending_free(&tracks->pending, &run->budget);
    tracks->list = NULL;
    tracks->count = tracks->capacity = 0;
}
