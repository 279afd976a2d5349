#include "observe/trace/pending.h"

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

void hec_trace_pending_advance(struct hec_trace_pending *pending, int64_t now_ns, bool final,
                               void (*take)(void *context, const struct hec_activity *activity, uint32_t track),
                               void *context) {
    struct advance a = {pending, take, context};
    const struct hec_trace_match_sink sink = {&a, take_device, take_call};
    if (pending->match)
        hec_trace_match_advance(pending->match, now_ns, final, &sink);
}

void hec_trace_pending_free(struct hec_trace_pending *pending, struct hec_trace_budget *budget) {
    hec_trace_match_free(pending->match);
    hec_trace_resize(budget, pending->items, pending->capacity * sizeof *pending->items, 0);
    memset(pending, 0, sizeof *pending);
}
