#include "observe/marks/timeline.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>

#define THREAD_SLOTS (2u * HEC_MARKS_THREADS_MAX)
#define BURST_S 10.0 /* what is not used in quiet times, up to so many seconds' worth, may come at once */

static const struct {
    const char *name;
    double per_s;
} rates[HEC_MARKS_RATE_COUNT] = {
    [HEC_MARKS_RATE_STEPS] = {"steps", 2000},
    [HEC_MARKS_RATE_PHASES] = {"phases", 2000},
    [HEC_MARKS_RATE_VALUES] = {"values", 1000},
    [HEC_MARKS_RATE_STACKS] = {"stack samples", 1000},
};

static void fill(struct hec_marks_bucket *bucket, double per_s, int64_t now_ns) {
    *bucket = (struct hec_marks_bucket){per_s * BURST_S, now_ns};
}

/* Whether there is one to take. */
static bool refill(struct hec_marks_bucket *bucket, double per_s, int64_t now_ns) {
    double most = per_s * BURST_S;
    if (now_ns > bucket->refill_ns) {
        bucket->tokens += (double)(now_ns - bucket->refill_ns) / (double)HEC_NS_PER_S * per_s;
        if (bucket->tokens > most)
            bucket->tokens = most;
        bucket->refill_ns = now_ns;
    }
    return bucket->tokens >= 1;
}

void hec_marks_rates_init(struct hec_marks_bucket all[HEC_MARKS_RATE_COUNT], int64_t now_ns) {
    for (int i = 0; i < HEC_MARKS_RATE_COUNT; i++)
        fill(&all[i], rates[i].per_s * HEC_MARKS_RATE_PROCESSES, now_ns);
}

void hec_marks_timeline_init(struct hec_marks_timeline *timeline, int32_t pid, struct hec_marks_bucket *all,
                             int64_t now_ns) {
    timeline->pid = pid;
    timeline->rank = -1;
    timeline->all = all;
    for (int i = 0; i < HEC_MARKS_RATE_COUNT; i++)
        fill(&timeline->rate[i].bucket, rates[i].per_s, now_ns);
}

static bool allowed(struct hec_marks_timeline *timeline, enum hec_marks_rate rate, int64_t now_ns) {
    struct hec_marks_bucket *own = &timeline->rate[rate].bucket, *all = &timeline->all[rate];
    if (!refill(own, rates[rate].per_s, now_ns) || !refill(all, rates[rate].per_s * HEC_MARKS_RATE_PROCESSES, now_ns))
        return false;
    own->tokens -= 1;
    all->tokens -= 1;
    return true;
}

static uint32_t track_of(struct hec_marks_timeline *timeline, uint32_t tid) {
    const struct hec_sink *sink = timeline->sink;
    struct hec_track track = {.pid = timeline->pid, .rank = timeline->rank, .device = HEC_DEVICE_NONE};
    if (tid == 0) {
        track.kind = HEC_TRACK_PROCESS;
        if (timeline->process_track == 0)
            timeline->process_track = sink->trace_track(sink->context, &track);
        return timeline->process_track;
    }
    uint32_t at = (tid * UINT32_C(2654435769)) % THREAD_SLOTS; /* at most half full: a free one is found */
    while (timeline->thread[at].tid != 0 && timeline->thread[at].tid != tid)
        at = (at + 1) % THREAD_SLOTS;
    if (timeline->thread[at].tid == 0) {
        if (timeline->threads == HEC_MARKS_THREADS_MAX) {
            timeline->threads_refused++;
            return 0;
        }
        track.kind = HEC_TRACK_THREAD;
        track.stream = tid;
        track.rank = -1; /* a thread has one track, and who samples its stack from outside knows no rank */
        timeline->threads++;
        timeline->thread[at].tid = tid;
        timeline->thread[at].track = sink->trace_track(sink->context, &track);
    }
    return timeline->thread[at].track;
}

void hec_marks_timeline_add(struct hec_marks_timeline *timeline, enum hec_marks_rate rate, uint32_t tid,
                            const char *name, const struct hec_activity *activity) {
    if (!allowed(timeline, rate, activity->end_ns)) {
        timeline->rate[rate].left_out++;
        timeline->rate[rate].left_out_ns += activity->end_ns - activity->start_ns;
        return;
    }
    uint32_t track = track_of(timeline, tid);
    if (track == 0)
        return; /* counted: here for the bound on threads, by the sink for its own */
    if (timeline->batch_count == HEC_MARKS_BATCH)
        hec_marks_timeline_flush(timeline);
    struct hec_activity *added = &timeline->batch[timeline->batch_count++];
    *added = *activity;
    added->track = track;
    if (name)
        added->name = timeline->sink->trace_name(timeline->sink->context, name);
}

void hec_marks_timeline_flush(struct hec_marks_timeline *timeline) {
    if (timeline->batch_count > 0)
        timeline->sink->trace_activities(timeline->sink->context, timeline->batch, (size_t)timeline->batch_count);
    timeline->batch_count = 0;
}

const char *hec_marks_timeline_left_out(const struct hec_marks_timeline *timeline, enum hec_marks_rate rate, char *text,
                                        size_t size) {
    text[0] = '\0';
    if (timeline->rate[rate].left_out > 0)
        snprintf(text, size,
                 "%" PRIu64 " %s (%.3f s in all) left out: more than %.0f a second, or %.0f of all processes",
                 timeline->rate[rate].left_out, rates[rate].name,
                 (double)timeline->rate[rate].left_out_ns / (double)HEC_NS_PER_S, rates[rate].per_s,
                 rates[rate].per_s * HEC_MARKS_RATE_PROCESSES);
    return text;
}
