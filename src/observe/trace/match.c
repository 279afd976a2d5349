#include "observe/trace/match_inside.h"

#include <stdlib.h>
#include <string.h>

#define LANES_MAX 256u                    /* stream handles of one process */
#define STREAMS_MAX 1024u                 /* CUPTI's */
#define STAGED_NS INT64_C(500000000)      /* so much later calls of other threads may come */
#define CALL_HOLD_NS INT64_C(10000000000) /* a call waits in a deep launch queue and for CUPTI's buffers */
#define DECIDED_NS INT64_C(3000000000)    /* further nodes of a graph arrive within this */
#define CHAIN_MAX 16u                     /* ids in one bucket: more are forged */
#define PASSED_KEPT 64u                   /* calls kept behind the cursor */
#define POOR_ONE 65536
#define POOR_MAX (POOR_ONE / 6) /* where more is lost than that, what still seems to fit is too often wrong */
#define PER_THREAD_STREAM 2u    /* the handle cudaStreamPerThread */

/* ---- memory ---- */

static uint32_t pool_take(struct hec_match_pool *pool, struct hec_trace_budget *budget) {
    uint32_t at = pool->free;
    if (at != HEC_MATCH_NONE) {
        memcpy(&pool->free, pool->items + (size_t)at * pool->size, sizeof pool->free);
        return at;
    }
    if (pool->used == pool->capacity) {
        uint32_t capacity = pool->capacity ? pool->capacity * 2 : 1024;
        unsigned char *items = capacity > HEC_TRACE_MATCH_MAX
                                   ? NULL
                                   : hec_trace_resize(budget, pool->items, (size_t)pool->capacity * pool->size,
                                                      (size_t)capacity * pool->size);
        if (!items)
            return HEC_MATCH_NONE;
        pool->items = items;
        pool->capacity = capacity;
    }
    return pool->used++;
}

static void pool_put(struct hec_match_pool *pool, uint32_t at) {
    memcpy(pool->items + (size_t)at * pool->size, &pool->free, sizeof pool->free);
    pool->free = at;
}

static void pool_free(struct hec_match_pool *pool, struct hec_trace_budget *budget) {
    hec_trace_resize(budget, pool->items, (size_t)pool->capacity * pool->size, 0);
}

static bool row_push(struct hec_match_row *row, struct hec_trace_budget *budget, uint32_t item) {
    if (row->first + row->count == row->capacity) {
        if (row->first > row->capacity / 2) {
            memmove(row->at, row->at + row->first, row->count * sizeof *row->at);
            row->first = 0;
        } else {
            uint32_t capacity = row->capacity ? row->capacity * 2 : 256;
            uint32_t *at = hec_trace_resize(budget, row->at, row->capacity * sizeof *at, (size_t)capacity * sizeof *at);
            if (!at)
                return false;
            row->at = at;
            row->capacity = capacity;
        }
    }
    row->at[row->first + row->count++] = item;
    return true;
}

static uint32_t row_pop(struct hec_match_row *row) {
    uint32_t item = row->at[row->first++];
    row->ordered -= row->ordered > 0;
    if (--row->count == 0)
        row->first = 0;
    return item;
}

static void row_free(struct hec_match_row *row, struct hec_trace_budget *budget) {
    hec_trace_resize(budget, row->at, row->capacity * sizeof *row->at, 0);
    memset(row, 0, sizeof *row);
}

struct keyed {
    int64_t key;
    uint32_t at, place;
};

static int by_key(const void *a, const void *b) {
    const struct keyed *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->place > y->place) - (x->place < y->place);
}

static int64_t call_key(const struct hec_trace_match *match, uint32_t at, uint32_t first) {
    (void)first;
    return hec_match_call_at(match, at)->reported.start_ns;
}

/* Ids may wrap. */
static int64_t group_key(const struct hec_trace_match *match, uint32_t at, uint32_t first) {
    return (int32_t)(hec_match_group_at(match, at)->correlation - hec_match_group_at(match, first)->correlation);
}

/* Put what was added to a row in its place: sorted by itself, then merged with what is in order. Without memory it stays as it is. */
static void order(struct hec_trace_match *match, struct hec_match_row *row,
                  int64_t key(const struct hec_trace_match *, uint32_t at, uint32_t first)) {
    if (row->count == row->ordered)
        return;
    uint32_t *all = row->at + row->first, first = all[0], i = row->ordered;
    for (; i < row->count && (i == 0 || key(match, all[i], first) >= key(match, all[i - 1], first)); i++)
        ;
    row->ordered = i;
    uint32_t added = row->count - i;
    if (added == 0)
        return;
    struct keyed *tail = hec_trace_resize(match->budget, NULL, 0, added * sizeof *tail);
    if (!tail)
        return;
    for (uint32_t k = 0; k < added; k++)
        tail[k] = (struct keyed){key(match, all[i + k], first), all[i + k], k};
    qsort(tail, added, sizeof *tail, by_key);
    for (uint32_t to = row->count, left = added; left > 0;)
        all[--to] = i > 0 && key(match, all[i - 1], first) > tail[left - 1].key ? all[--i] : tail[--left].at;
    row->ordered = row->count;
    hec_trace_resize(match->budget, tail, added * sizeof *tail, 0);
}

struct hec_trace_match *hec_trace_match_new(struct hec_trace_budget *budget) {
    struct hec_trace_match *match = hec_trace_resize(budget, NULL, 0, sizeof *match);
    if (!match)
        return NULL;
    memset(match, 0, sizeof *match);
    match->budget = budget;
    match->calls = (struct hec_match_pool){.size = sizeof(struct hec_match_call), .free = HEC_MATCH_NONE};
    match->groups = (struct hec_match_pool){.size = sizeof(struct hec_match_group), .free = HEC_MATCH_NONE};
    match->extras = (struct hec_match_pool){.size = sizeof(struct hec_match_extra), .free = HEC_MATCH_NONE};
    match->arrived_first = match->arrived_last = HEC_MATCH_NONE;
    match->decided_first = match->decided_last = HEC_MATCH_NONE;
    match->late = HEC_MATCH_NONE;
    match->learned = hec_trace_resize(budget, NULL, 0, sizeof *match->learned);
    match->lanes = hec_trace_resize(budget, NULL, 0, LANES_MAX * sizeof *match->lanes);
    match->streams = hec_trace_resize(budget, NULL, 0, STREAMS_MAX * sizeof *match->streams);
    if (!match->learned || !match->lanes || !match->streams) {
        hec_trace_match_free(match);
        return NULL;
    }
    memset(match->learned, 0, sizeof *match->learned);
    return match;
}

void hec_trace_match_free(struct hec_trace_match *match) {
    if (!match)
        return;
    struct hec_trace_budget *budget = match->budget;
    for (uint32_t i = 0; i < match->lane_count; i++) {
        row_free(&match->lanes[i].calls, budget);
        row_free(&match->lanes[i].queue, budget);
    }
    for (uint32_t i = 0; i < match->stream_count; i++)
        row_free(&match->streams[i].queue, budget);
    row_free(&match->staged, budget);
    pool_free(&match->calls, budget);
    pool_free(&match->groups, budget);
    pool_free(&match->extras, budget);
    hec_trace_map_free(&match->lane_ids, budget);
    hec_trace_map_free(&match->stream_ids, budget);
    hec_trace_resize(budget, match->buckets, match->bucket_count * sizeof *match->buckets, 0);
    hec_trace_resize(budget, match->lanes, match->lanes ? LANES_MAX * sizeof *match->lanes : 0, 0);
    hec_trace_resize(budget, match->streams, match->streams ? STREAMS_MAX * sizeof *match->streams : 0, 0);
    hec_trace_resize(budget, match->learned, match->learned ? sizeof *match->learned : 0, 0);
    hec_trace_resize(budget, match, sizeof *match, 0);
}

void hec_trace_match_since(struct hec_trace_match *match, int64_t t_ns) {
    match->since_ns = t_ns;
}

void hec_trace_match_stop(struct hec_trace_match *match) {
    match->stopped = true;
}

/* ---- calls ---- */

bool hec_trace_match_call(struct hec_trace_match *match, const struct hec_trace_match_call *call) {
    uint32_t at;
    if (call->match_class >= HEC_TRACE_MATCH_CLASS_COUNT ||
        (at = pool_take(&match->calls, match->budget)) == HEC_MATCH_NONE)
        return false;
    *hec_match_call_at(match, at) = (struct hec_match_call){.reported = *call};
    if (!row_push(&match->staged, match->budget, at)) {
        pool_put(&match->calls, at);
        return false;
    }
    return true;
}

static struct hec_match_lane *lane_of(struct hec_trace_match *match, const struct hec_trace_match_call *call) {
    struct hec_match_lane wanted = {.handle = call->stream, .device = HEC_TRACE_MATCH_NO_DEVICE};
    if (call->stream <= PER_THREAD_STREAM) { /* each device has its own of these */
        wanted.device = call->device;
        wanted.track = call->stream == PER_THREAD_STREAM ? call->track : 0;
        wanted.handle = call->stream == PER_THREAD_STREAM ? PER_THREAD_STREAM : 0;
    }
    uint64_t key = wanted.handle ^ (uint64_t)wanted.device << 48 ^ (uint64_t)wanted.track << 8;
    uint32_t at;
    if (hec_trace_map_get(&match->lane_ids, key, &at))
        return &match->lanes[at];
    if (match->lane_count == LANES_MAX || !hec_trace_map_put(&match->lane_ids, match->budget, key, match->lane_count))
        return NULL;
    wanted.credit = UINT64_C(1) << 17;
    match->lanes[match->lane_count] = wanted;
    return &match->lanes[match->lane_count++];
}

static void give_call(struct hec_trace_match *match, uint32_t at) {
    match->sink->call(match->sink->context, &hec_match_call_at(match, at)->reported);
    pool_put(&match->calls, at);
}

/* Calls in order of start go to their lanes. */
static void unstage(struct hec_trace_match *match) {
    order(match, &match->staged, call_key);
    while (match->staged.count > 0) {
        uint32_t at = hec_match_row_get(&match->staged, 0);
        struct hec_match_call *call = hec_match_call_at(match, at);
        if (!match->final && call->reported.start_ns > match->now_ns - STAGED_NS)
            break;
        row_pop(&match->staged);
        struct hec_match_lane *lane = lane_of(match, &call->reported);
        call->seq = ++match->seq;
        bool in_order =
            lane &&
            (lane->calls.count == 0 ||
             hec_match_call_at(match, hec_match_row_get(&lane->calls, lane->calls.count - 1))->reported.start_ns <=
                 call->reported.start_ns);
        call->in_lane = in_order && row_push(&lane->calls, match->budget, at);
        if (!call->in_lane)
            give_call(match, at);
    }
}

/* Calls that nothing will be found for. */
static void expire(struct hec_trace_match *match, struct hec_match_lane *lane) {
    while (lane->calls.count > 0) {
        uint32_t at = hec_match_row_get(&lane->calls, 0);
        struct hec_match_call *call = hec_match_call_at(match, at);
        if (!match->final && lane->cursor <= PASSED_KEPT && call->reported.start_ns > match->now_ns - CALL_HOLD_NS)
            break;
        row_pop(&lane->calls);
        lane->first_gone = lane->first_gone || call->reported.start_ns >= match->since_ns;
        if (lane->cursor > 0)
            lane->cursor--;
        else
            lane->has_last = false;
        lane->learned -= lane->learned > 0;
        call->in_lane = false;
        if (!call->taken)
            give_call(match, at);
        else if (call->forgotten)
            pool_put(&match->calls, at);
    }
}

/* ---- activities ---- */

static uint32_t *bucket_of(struct hec_trace_match *match, uint32_t correlation) {
    uint32_t hash = (correlation ^ correlation >> 16) * 0x85ebca6b; /* MurmurHash3's last steps */
    hash = (hash ^ hash >> 13) * 0xc2b2ae35;
    return &match->buckets[(hash ^ hash >> 16) & (match->bucket_count - 1)];
}

static bool grow_buckets(struct hec_trace_match *match) {
    uint32_t count = match->bucket_count ? match->bucket_count * 2 : 1024, old = match->bucket_count;
    uint32_t *buckets = hec_trace_resize(match->budget, NULL, 0, count * sizeof *buckets), *before = match->buckets;
    if (!buckets)
        return old > 0; /* longer chains will do */
    memset(buckets, 0xff, count * sizeof *buckets);
    match->buckets = buckets;
    match->bucket_count = count;
    for (uint32_t i = 0; i < old; i++)
        for (uint32_t at = before[i], next; at != HEC_MATCH_NONE; at = next) {
            struct hec_match_group *group = hec_match_group_at(match, at);
            uint32_t *bucket = bucket_of(match, group->correlation);
            next = group->next_hash;
            group->next_hash = *bucket;
            *bucket = at;
        }
    hec_trace_resize(match->budget, before, old * sizeof *before, 0);
    return true;
}

static uint32_t stream_of(struct hec_trace_match *match, const struct hec_trace_match_device *device) {
    uint64_t key = ((uint64_t)device->context << 32 | device->stream) ^ (uint64_t)device->device << 48;
    uint32_t at;
    if (hec_trace_map_get(&match->stream_ids, key, &at))
        return at;
    if (match->stream_count == STREAMS_MAX ||
        !hec_trace_map_put(&match->stream_ids, match->budget, key, match->stream_count))
        return HEC_MATCH_NONE;
    match->streams[match->stream_count] =
        (struct hec_match_stream){.device = device->device,
                                  .context = device->context,
                                  .stream = device->stream,
                                  .lane = HEC_MATCH_NONE,
                                  .newest_id = device->correlation,
                                  .before_id = device->correlation,
                                  .settled_id = device->correlation - (UINT32_C(1) << 30),
                                  .credit = UINT64_C(1) << 17};
    return match->stream_count++;
}

/* One more activity of a group that is there. */
static bool add_to_group(struct hec_trace_match *match, uint32_t at, const struct hec_trace_match_device *device,
                         uint32_t stream, uint64_t cookie) {
    uint32_t extra_at = pool_take(&match->extras, match->budget);
    if (extra_at == HEC_MATCH_NONE)
        return false;
    struct hec_match_extra *extra = (struct hec_match_extra *)(void *)match->extras.items + extra_at;
    struct hec_match_group *group = hec_match_group_at(match, at);
    uint32_t *chain = group->decided ? &match->late : &group->more;
    *extra = (struct hec_match_extra){.cookie = cookie, .group = at, .next = *chain};
    *chain = extra_at;
    if (device->end_ns > group->end_ns)
        group->end_ns = device->end_ns;
    if (device->start_ns < group->start_ns) {
        group->start_ns = device->start_ns;
        if (group->call == HEC_MATCH_NONE)
            group->stream = stream;
    }
    return true;
}

bool hec_trace_match_device(struct hec_trace_match *match, const struct hec_trace_match_device *device, uint64_t cookie,
                            int64_t now_ns) {
    if (device->correlation == 0 || device->match_class >= HEC_TRACE_MATCH_CLASS_COUNT ||
        (match->open >= match->bucket_count && !grow_buckets(match)))
        return false;
    uint32_t stream = stream_of(match, device);
    if (stream == HEC_MATCH_NONE)
        return false;
    uint32_t *bucket = bucket_of(match, device->correlation), length = 0;
    for (uint32_t i = *bucket; i != HEC_MATCH_NONE; i = hec_match_group_at(match, i)->next_hash)
        if (hec_match_group_at(match, i)->correlation == device->correlation)
            return add_to_group(match, i, device, stream, cookie);
        else if (++length == CHAIN_MAX)
            return false;
    uint32_t at = pool_take(&match->groups, match->budget);
    if (at == HEC_MATCH_NONE)
        return false;
    struct hec_match_stream *on = &match->streams[stream];
    on->before_id = on->seen_ns != now_ns ? on->newest_id : on->before_id;
    on->seen_ns = now_ns;
    on->newest_id = (int32_t)(device->correlation - on->newest_id) > 0 ? device->correlation : on->newest_id;
    bool behind = (int32_t)(device->correlation - on->before_id) < 0;
    *hec_match_group_at(match, at) = (struct hec_match_group){
        .start_ns = device->start_ns,
        .end_ns = device->end_ns,
        .arrived_ns = now_ns,
        .bytes = device->bytes,
        .cookie = cookie,
        .more = HEC_MATCH_NONE,
        .correlation = device->correlation,
        .stream = stream,
        .name = device->name,
        .next = HEC_MATCH_NONE,
        .next_hash = *bucket,
        .call = HEC_MATCH_NONE,
        .behind = behind,
        .device = device->device,
        .match_class = device->in_graph ? HEC_TRACE_MATCH_GRAPH : device->match_class,
    };
    *bucket = at;
    match->open++;
    match->behind += behind;
    if (match->arrived_last == HEC_MATCH_NONE)
        match->arrived_first = at;
    else
        hec_match_group_at(match, match->arrived_last)->next = at;
    match->arrived_last = at;
    return true;
}

static void give_extras(struct hec_trace_match *match, uint32_t *chain) {
    while (*chain != HEC_MATCH_NONE) {
        uint32_t at = *chain;
        const struct hec_match_extra *extra = (struct hec_match_extra *)(void *)match->extras.items + at;
        uint32_t call = hec_match_group_at(match, extra->group)->call;
        match->sink->device(match->sink->context, extra->cookie,
                            call == HEC_MATCH_NONE ? NULL : &hec_match_call_at(match, call)->reported);
        *chain = extra->next;
        pool_put(&match->extras, at);
    }
}

static void decided(struct hec_trace_match *match, uint32_t at, uint32_t call) {
    struct hec_match_group *group = hec_match_group_at(match, at);
    group->decided = true;
    group->call = call;
    group->arrived_ns = match->now_ns;
    group->next = HEC_MATCH_NONE;
    match->sink->device(match->sink->context, group->cookie,
                        call == HEC_MATCH_NONE ? NULL : &hec_match_call_at(match, call)->reported);
    give_extras(match, &group->more);
    if (match->decided_last == HEC_MATCH_NONE)
        match->decided_first = at;
    else
        hec_match_group_at(match, match->decided_last)->next = at;
    match->decided_last = at;
}

/* What comes first in a queue without a lane has no call. */
static void give_up(struct hec_trace_match *match, struct hec_match_row *queue) {
    decided(match, row_pop(queue), HEC_MATCH_NONE);
}

void hec_match_decide(struct hec_trace_match *match, struct hec_match_lane *lane, uint32_t call) {
    uint32_t at = row_pop(&lane->queue);
    const struct hec_match_group *group = hec_match_group_at(match, at);
    if (group->end_ns > lane->last_end_ns)
        lane->last_end_ns = group->end_ns;
    lane->poor += ((call == HEC_MATCH_NONE ? POOR_ONE : 0) - lane->poor) / 32;
    if (call == HEC_MATCH_NONE || lane->poor > POOR_MAX || !lane->sure || match->stopped) {
        decided(match, at, HEC_MATCH_NONE);
        return;
    }
    uint32_t call_at = hec_match_row_get(&lane->calls, call);
    hec_match_call_at(match, call_at)->taken = true;
    decided(match, at, call_at);
}

/* Forget what was decided long ago. */
static void forget(struct hec_trace_match *match) {
    while (match->decided_first != HEC_MATCH_NONE) {
        uint32_t at = match->decided_first;
        struct hec_match_group *group = hec_match_group_at(match, at);
        if (!match->final && group->arrived_ns > match->now_ns - DECIDED_NS)
            break;
        uint32_t *link = bucket_of(match, group->correlation);
        while (*link != at)
            link = &hec_match_group_at(match, *link)->next_hash;
        *link = group->next_hash;
        match->open--;
        match->decided_first = group->next;
        if (group->next == HEC_MATCH_NONE)
            match->decided_last = HEC_MATCH_NONE;
        if (group->call != HEC_MATCH_NONE && hec_match_call_at(match, group->call)->in_lane)
            hec_match_call_at(match, group->call)->forgotten = true;
        else if (group->call != HEC_MATCH_NONE)
            pool_put(&match->calls, group->call);
        pool_put(&match->groups, at);
    }
}

/* ---- queues ---- */

/* To the queue of its lane; what comes after its neighbours were decided is not put in order any more. */
static void lane_add(struct hec_trace_match *match, struct hec_match_lane *lane, uint32_t at) {
    const struct hec_match_group *group = hec_match_group_at(match, at);
    bool late = lane->has_last && (int32_t)(group->correlation - lane->last_id) < 0;
    lane->late = late ? lane->late + 1 : 0;
    if (lane->late > HEC_MATCH_WINDOW) { /* it was the last that lied */
        lane->has_last = lane->synced = late = false;
        lane->late = 0;
    }
    lane->credit += 128;
    if (late || !row_push(&lane->queue, match->budget, at))
        decided(match, at, HEC_MATCH_NONE);
}

static void dispatch_one(struct hec_trace_match *match, uint32_t at) {
    struct hec_match_group *group = hec_match_group_at(match, at);
    struct hec_match_stream *stream = &match->streams[group->stream];
    match->behind -= group->behind;
    stream->credit += 128;
    if (stream->lane != HEC_MATCH_NONE)
        lane_add(match, &match->lanes[stream->lane], at);
    else if (!row_push(&stream->queue, match->budget, at))
        decided(match, at, HEC_MATCH_NONE);
}

/* What has settled, and what came later but belongs before it: so it does not matter in which order buffers came. */
static void dispatch(struct hec_trace_match *match) {
    uint32_t *link = &match->arrived_first, last = HEC_MATCH_NONE;
    bool settled = true;
    while (*link != HEC_MATCH_NONE && (settled || match->behind > 0)) {
        uint32_t at = *link;
        struct hec_match_group *group = hec_match_group_at(match, at);
        struct hec_match_stream *stream = &match->streams[group->stream];
        settled = settled && (match->final || group->arrived_ns <= match->now_ns - HEC_TRACE_MATCH_SETTLE_NS);
        if (settled && (int32_t)(group->correlation - stream->settled_id) > 0)
            stream->settled_id = group->correlation;
        if (settled || (group->behind && (int32_t)(stream->settled_id - group->correlation) >= 0)) {
            *link = group->next;
            dispatch_one(match, at);
        } else {
            last = at;
            link = &group->next;
        }
    }
    if (*link == HEC_MATCH_NONE)
        match->arrived_last = last;
}

static bool is_due(const struct hec_trace_match *match, const struct hec_match_row *queue) {
    return queue->count > 0 && (match->final || hec_match_group_at(match, hec_match_row_get(queue, 0))->arrived_ns <=
                                                    match->now_ns - HEC_TRACE_MATCH_DUE_NS);
}

/* Find the lane of a stream. */
static void place_stream(struct hec_trace_match *match, struct hec_match_stream *stream) {
    order(match, &stream->queue, group_key);
    while (stream->queue.count > 0) {
        bool due = is_due(match, &stream->queue);
        if (!due && stream->queue.count < stream->tried + HEC_MATCH_WINDOW)
            return;
        struct hec_match_place best = {HEC_MATCH_NONE, 0, 0, 0, false};
        uint32_t best_lane = HEC_MATCH_NONE;
        for (uint32_t i = 0; i < match->lane_count; i++) {
            struct hec_match_lane *lane = &match->lanes[i];
            if (lane->calls.count == 0 || (lane->device != HEC_TRACE_MATCH_NO_DEVICE && lane->device != stream->device))
                continue;
            struct hec_match_place place = hec_match_search(match, lane, &stream->queue, &stream->credit);
            place.score -= lane->streams ? 20 : 0; /* a handle is rarely used again */
            if (place.call == HEC_MATCH_NONE)
                continue;
            int apart = place.score - best.score;
            if (apart > 0) {
                place.lead = best_lane != HEC_MATCH_NONE && apart < place.lead ? apart : place.lead;
                best = place;
                best_lane = i;
            } else if (-apart < best.lead) {
                best.lead = -apart;
            }
        }
        stream->tried = stream->queue.count;
        if (best_lane != HEC_MATCH_NONE && best.score >= HEC_MATCH_ENOUGH && best.lead >= HEC_MATCH_LEAD) {
            struct hec_match_lane *lane = &match->lanes[best_lane];
            bool first = lane->streams++ == 0;
            stream->lane = best_lane;
            for (uint32_t i = 0; i < best.from; i++)
                give_up(match, &stream->queue);
            if (first) {
                lane->cursor = best.call;
                lane->synced = lane->fresh = lane->sure = true;
            }
            while (stream->queue.count > 0)
                lane_add(match, lane, row_pop(&stream->queue));
            row_free(&stream->queue, match->budget);
            return;
        }
        if (!due)
            return;
        for (uint32_t i = 0; i < 16 && is_due(match, &stream->queue); i++)
            give_up(match, &stream->queue);
        stream->tried = 0;
    }
}

void hec_trace_match_advance(struct hec_trace_match *match, int64_t now_ns, bool final,
                             const struct hec_trace_match_sink *sink) {
    match->sink = sink;
    match->now_ns = now_ns;
    match->final = final;
    give_extras(match, &match->late);
    unstage(match);
    dispatch(match);
    for (uint32_t i = 0; i < match->stream_count; i++)
        place_stream(match, &match->streams[i]);
    for (uint32_t i = 0; i < match->lane_count; i++) {
        order(match, &match->lanes[i].queue, group_key);
        hec_match_align(match, &match->lanes[i]);
        expire(match, &match->lanes[i]);
    }
    forget(match);
    match->sink = NULL;
}
