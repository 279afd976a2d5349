#include "diagnose/states/inferred/device.h"

#include "base/clock.h"
#include "diagnose/physics.h"

#include <string.h>

#define QUEUE_LEAST 256.0    /* launches that must be outstanding for the first of them; queues hold about 1000 */
#define SLOW_CALL_NS 15000.0 /* mean of a burst whose calls wait; others take 2 to 9 us */
#define STAGED_BYTES 65536.0 /* CUDA stages pageable copies to the device of up to 64 KiB, and returns at once */
#define COPY_LEAST_NS 1000
#define COPY_CALL_NS 8000        /* of a copying call, beside the copy */
#define PAGEABLE_BYTES_PER_S 5e9 /* where no copy shows it: below what a Gen4 link reaches */
#define PINNED_BYTES_PER_S 20e9
#define DEVICE_BYTES_PER_S 1e12

void hec_inferred_device_init(struct hec_inferred_device *d, const struct hec_inferred_limits *limits,
                              const struct hec_inferred_rates *rates) {
    memset(d, 0, sizeof *d);
    d->limits = *limits;
    d->rates = rates;
    d->idle = true;
    d->at_ns = INT64_MIN;
    d->wake_ns = d->drain_ns = INT64_MAX;
    d->busy_ns = d->copy_ns = d->copied_ns = d->launching_ns = d->launched_ns = INT64_MIN;
}

/* ---- reporting parts ---- */

static enum hec_inferred_class class_at(const struct hec_inferred_device *d) {
    if (d->idle)
        return HEC_INFERRED_IDLE;
    if (d->copy_ns <= d->at_ns && d->at_ns < d->copied_ns)
        return HEC_INFERRED_COPYING;
    if (d->at_ns < d->busy_ns)
        return HEC_INFERRED_BUSY;
    return d->at_ns < d->launching_ns ? HEC_INFERRED_LAUNCHING : HEC_INFERRED_RUNNING;
}

static void drain(struct hec_inferred_device *d) {
    d->idle = d->launched_ns <= d->drain_from_ns;
    d->drain_ns = INT64_MAX;
    if (!d->idle)
        return;
    d->wake_ns = INT64_MAX;
    d->outstanding = 0;
    d->busy_ns = d->launching_ns = INT64_MIN;
    if (d->drained)
        d->drained(d->context, d->drain_behind);
}

static int64_t border(const struct hec_inferred_device *d, int64_t t_ns) {
    const int64_t borders[] = {d->wake_ns, d->busy_ns, d->copy_ns, d->copied_ns, d->launching_ns, d->drain_ns};
    for (size_t i = 0; i < sizeof borders / sizeof borders[0]; i++)
        if (borders[i] > d->at_ns && borders[i] < t_ns)
            t_ns = borders[i];
    return t_ns;
}

int hec_inferred_device_advance(struct hec_inferred_device *d, int64_t t_ns) {
    int err = 0;
    while (d->started && d->at_ns < t_ns && !err) {
        int64_t to = border(d, t_ns);
        struct hec_inferred_part part = {
            .class = class_at(d), .start_ns = d->at_ns, .end_ns = to, .launch = d->launch, .call = d->call};
        if (part.class == HEC_INFERRED_COPYING)
            part.call = d->copy;
        err = d->part(d->context, &part);
        d->at_ns = to;
        if (to >= d->wake_ns) {
            d->idle = false;
            d->wake_ns = INT64_MAX;
        }
        if (to >= d->drain_ns)
            drain(d);
    }
    return err;
}

/* ---- calls ---- */

static void wake(struct hec_inferred_device *d, int64_t t_ns) {
    d->idle = t_ns > d->at_ns;
    d->wake_ns = d->idle ? t_ns : INT64_MAX;
}

/* Something is launched by a call of this length; the device begins when the first call is under way. */
static void launched(struct hec_inferred_device *d, const struct hec_activity *a, int64_t first_end_ns, double count,
                     bool kernel) {
    if (!d->started) {
        d->started = true;
        d->at_ns = a->start_ns;
    }
    if (!d->idle || d->wake_ns == INT64_MAX)
        d->launch = (struct hec_inferred_launch){a->start_ns, first_end_ns, a->track, kernel};
    if (d->idle && d->wake_ns == INT64_MAX) {
        /* the queue is empty: a call that takes long loads code first */
        int64_t from = first_end_ns - a->start_ns >= HEC_LAUNCH_BLOCKED_NS ? first_end_ns : a->start_ns;
        wake(d, from + d->limits.start_ns);
    }
    d->launching_ns = hec_later(d->launching_ns, a->end_ns);
    d->launched_ns = hec_later(d->launched_ns, a->end_ns);
    d->call = *a;
    d->outstanding += count;
}

static void take_burst(struct hec_inferred_device *d, const struct hec_activity *a) {
    double count = a->amount >= 1 ? a->amount : 1, span = (double)(a->end_ns - a->start_ns);
    double call = span * a->to / 255 / count;
    bool full = call >= SLOW_CALL_NS && d->outstanding >= QUEUE_LEAST && d->limits.full_is_busy;
    launched(d, a, a->start_ns + (int64_t)call, count, true);
    if (full)
        d->busy_ns = hec_later(d->busy_ns, a->end_ns - d->limits.end_ns);
}

static void take_launch(struct hec_inferred_device *d, const struct hec_activity *a) {
    bool full = a->detail == HEC_API_LAUNCH && a->end_ns - a->start_ns >= HEC_LAUNCH_BLOCKED_NS &&
                d->outstanding >= QUEUE_LEAST && d->limits.full_is_busy;
    launched(d, a, a->end_ns, 1, a->detail == HEC_API_LAUNCH);
    if (full)
        d->busy_ns = hec_later(d->busy_ns, a->end_ns - d->limits.end_ns);
}

/* The device is done when the call returns. Of two such calls the one that returns first is minded. */
static void drains(struct hec_inferred_device *d, const struct hec_activity *a, bool behind) {
    int64_t at = hec_later(a->start_ns, a->end_ns - d->limits.end_ns);
    if (at >= d->drain_ns)
        return;
    d->drain_ns = at;
    d->drain_from_ns = a->start_ns;
    d->drain_behind = behind;
    if (at <= d->at_ns) /* at once */
        drain(d);
}

static void take_sync(struct hec_inferred_device *d, const struct hec_activity *a) {
    bool nothing = d->idle && d->wake_ns == INT64_MAX, behind = a->end_ns - a->start_ns >= HEC_INFERRED_WAIT_NS;
    if (a->detail == HEC_SYNC_STREAM_WAIT || nothing || !d->started)
        return;
    if (behind)
        d->busy_ns = hec_later(d->busy_ns, a->end_ns - d->limits.end_ns);
    if (a->detail != HEC_SYNC_EVENT || d->limits.event_drains)
        drains(d, a, behind);
}

bool hec_inferred_copy_blocks(const struct hec_activity *a, const char *name) {
    bool known = a->from != HEC_MEMORY_UNKNOWN && a->to != HEC_MEMORY_UNKNOWN;
    bool within = a->from == HEC_MEMORY_DEVICE && a->to == HEC_MEMORY_DEVICE;
    if (within)
        return false;
    if (name[0] && !strstr(name, "Async"))
        return true;
    if (!known)
        return a->end_ns - a->start_ns >= HEC_LAUNCH_BLOCKED_NS;
    return a->to == HEC_MEMORY_PAGEABLE || (a->from == HEC_MEMORY_PAGEABLE && a->amount >= STAGED_BYTES);
}

int64_t hec_inferred_copy_ns(const struct hec_inferred_rates *rates, const struct hec_activity *a) {
    bool host = a->from < HEC_MEMORY_KIND_COUNT && a->to < HEC_MEMORY_KIND_COUNT;
    double rate = host ? rates->bytes_per_s[a->from][a->to] : 0;
    bool within = a->from == HEC_MEMORY_DEVICE && a->to == HEC_MEMORY_DEVICE;
    bool pinned = a->from == HEC_MEMORY_PINNED || a->to == HEC_MEMORY_PINNED;
    if (!(rate > 0))
        rate = within ? DEVICE_BYTES_PER_S : pinned ? PINNED_BYTES_PER_S : PAGEABLE_BYTES_PER_S;
    double ns = a->amount > 0 ? a->amount / rate * HEC_NS_PER_S : 0;
    return ns < (double)HEC_TIMELINE_TIME_MAX ? (int64_t)ns : HEC_TIMELINE_TIME_MAX;
}

static void take_copy(struct hec_inferred_device *d, const struct hec_activity *a, const char *name) {
    int64_t length = a->end_ns - a->start_ns, copy = hec_inferred_copy_ns(d->rates, a);
    bool fresh = d->idle && d->wake_ns == INT64_MAX;
    copy = hec_later(copy, COPY_LEAST_NS);
    if (!hec_inferred_copy_blocks(a, name)) {
        launched(d, a, a->end_ns, 1, false);
        return;
    }
    /* behind other work the copy is last; else it is all there is */
    bool behind = !fresh && length - copy - COPY_CALL_NS >= HEC_INFERRED_WAIT_NS;
    int64_t end = hec_later(a->start_ns, a->end_ns - d->limits.end_ns);
    int64_t from = fresh || copy + COPY_CALL_NS >= length ? a->start_ns + d->limits.start_ns : end - copy;
    if (fresh && copy + COPY_CALL_NS < length && a->amount < STAGED_BYTES)
        from = end - copy; /* a few bytes: what takes long is the call */
    int64_t before = d->launched_ns;
    launched(d, a, a->end_ns, 1, false);
    if (d->idle)
        wake(d, hec_later(a->start_ns, from));
    d->copy = *a;
    d->copy_ns = from < end ? from : end;
    d->copied_ns = end;
    if (behind)
        d->busy_ns = hec_later(d->busy_ns, d->copy_ns);
    d->launched_ns = hec_later(before, a->start_ns); /* by the call's end it is done */
    drains(d, a, behind);
}

static bool asynchronous(const char *name) {
    return strstr(name, "Async") != NULL || strstr(name, "Pool") != NULL;
}

/* What neither gives the device work nor waits for it cuts nothing: it works off what it has, and rests after that. */
static bool says_nothing(const struct hec_activity *a) {
    static const uint32_t saying =
        1u << HEC_API_LAUNCH | 1u << HEC_API_GRAPH | 1u << HEC_API_MEMSET | 1u << HEC_API_COPY | 1u << HEC_API_FREE;
    return a->kind == HEC_ACTIVITY_API && !(saying >> a->detail & 1);
}

static void take_api(struct hec_inferred_device *d, const struct hec_activity *a, const char *name) {
    switch (a->detail) {
    case HEC_API_LAUNCH:
    case HEC_API_GRAPH:
    case HEC_API_MEMSET:
        take_launch(d, a);
        break;
    case HEC_API_COPY:
        take_copy(d, a, name);
        break;
    case HEC_API_FREE: /* waits for the device, and then takes its own time */
        if (d->started && !asynchronous(name) && !(d->idle && d->wake_ns == INT64_MAX))
            drains(d, a, false);
        break;
    default:
        break;
    }
}

int hec_inferred_device_call(struct hec_inferred_device *d, const struct hec_activity *a, const char *name) {
    if (says_nothing(a))
        return 0;
    int err = hec_inferred_device_advance(d, a->start_ns);
    if (err)
        return err;
    if (a->kind == HEC_ACTIVITY_BURST)
        take_burst(d, a);
    else if (a->kind == HEC_ACTIVITY_SYNC)
        take_sync(d, a);
    else
        take_api(d, a, name);
    return 0;
}

void hec_inferred_device_seen(struct hec_inferred_device *d, const struct hec_activity *a) {
    if (!d->started) {
        d->started = true;
        d->at_ns = a->start_ns;
    }
    d->idle = false;
    d->wake_ns = INT64_MAX;
    if (a->launch_ns != HEC_TIME_UNKNOWN)
        d->launched_ns = hec_later(d->launched_ns, a->launch_ns);
    d->launch = (struct hec_inferred_launch){a->launch_ns, a->launch_end_ns, a->launch_track, true};
}
