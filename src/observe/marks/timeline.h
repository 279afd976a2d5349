/* From one process's marks to activities of the timeline: tracks, names, rates, and the batch they travel in. */
#pragma once

#include "model/run.h"

#include <stdbool.h>
#include <stdint.h>

#define HEC_MARKS_THREADS_MAX 512 /* of one process: more get no track, and a note */
#define HEC_MARKS_BATCH 128

/* What one process may add to the run file in the long run; the rest is counted and reported at its end. A mark of a
 * kind costs at most 12 bytes there: 2000 a second are 86 MB an hour. */
enum hec_marks_rate {
    HEC_MARKS_RATE_STEPS,
    HEC_MARKS_RATE_PHASES,
    HEC_MARKS_RATE_VALUES,
    HEC_MARKS_RATE_STACKS,
    HEC_MARKS_RATE_COUNT
};
/* And all processes of a run together: so many times that. A process that hands over one ring after the other gains no more. */
#define HEC_MARKS_RATE_PROCESSES 10

struct hec_marks_bucket {
    double tokens;
    int64_t refill_ns;
};

struct hec_marks_timeline {
    const struct hec_sink *sink;
    struct hec_marks_bucket *all; /* by rate: of the run */
    int32_t pid, rank;            /* rank -1: unknown */
    uint32_t process_track;       /* 0: not yet made */
    struct {
        uint32_t tid, track; /* tid 0: free */
    } thread[2 * HEC_MARKS_THREADS_MAX];
    int threads;
    uint64_t threads_refused; /* activities of threads over the bound */
    struct {
        struct hec_marks_bucket bucket;
        uint64_t left_out;
        int64_t left_out_ns;
    } rate[HEC_MARKS_RATE_COUNT];
    struct hec_activity batch[HEC_MARKS_BATCH];
    int batch_count;
};

/* The buckets of a run, full. */
void hec_marks_rates_init(struct hec_marks_bucket all[HEC_MARKS_RATE_COUNT], int64_t now_ns);

/* all, by rate, must outlive the timeline. */
void hec_marks_timeline_init(struct hec_marks_timeline *timeline, int32_t pid, struct hec_marks_bucket *all,
                             int64_t now_ns);

/* Adds the activity, on the track of thread tid or, with 0, of the process; name: its text, NULL none (activity->name
 * stays as it is then). Left out and counted beyond the rate. activity->start_ns <= activity->end_ns. */
void hec_marks_timeline_add(struct hec_marks_timeline *timeline, enum hec_marks_rate rate, uint32_t tid,
                            const char *name, const struct hec_activity *activity);

/* Gives what is in the batch to the sink. */
void hec_marks_timeline_flush(struct hec_marks_timeline *timeline);

/* What was left out for that rate, "" when nothing was: "12 phases (0.003 s in all) left out: more than 2000 a second, or
 * 20000 of all processes".
 * Returns text. */
const char *hec_marks_timeline_left_out(const struct hec_marks_timeline *timeline, enum hec_marks_rate rate, char *text,
                                        size_t size);
