/* Inside of match.c and match_align.c only. */
#pragma once

#include "observe/trace/match.h"
#include "observe/trace/match_learn.h"

#define HEC_MATCH_NONE UINT32_MAX
#define HEC_MATCH_SLACK_NS 5000 /* clocks of the host and of a device differ by no more */
#define HEC_MATCH_WINDOW 48u    /* activities that are aligned at once */
#define HEC_MATCH_CANDIDATES 8u /* calls that one of them may belong to */
#define HEC_MATCH_BAD INT32_MIN

/* Items of one size that keep their index. */
struct hec_match_pool {
    unsigned char *items;
    uint32_t size, capacity, used, free; /* free: the first free one's index */
};

/* Indices; the first `ordered` of them are in order, the others were added since. */
struct hec_match_row {
    uint32_t *at;
    uint32_t first, count, capacity, ordered;
};

static inline uint32_t hec_match_row_get(const struct hec_match_row *row, uint32_t i) {
    return row->at[row->first + i];
}

struct hec_match_call {
    struct hec_trace_match_call reported;
    uint32_t seq;    /* its number among all calls, by start */
    uint32_t expect; /* ids that the steps up to here take, as learned */
    uint32_t blind;  /* steps up to here that are not learned */
    bool taken;      /* by a group */
    bool in_lane;    /* its lane has it; */
    bool forgotten;  /* the group has not any more */
};

/* The activities of one correlation id. */
struct hec_match_group {
    int64_t start_ns, end_ns, arrived_ns;
    uint64_t bytes, cookie;
    uint32_t more; /* further activities: index of an extra */
    uint32_t correlation, stream, name;
    uint32_t next;      /* arrived, or decided, after this */
    uint32_t next_hash; /* of the same bucket */
    uint32_t call;      /* once decided; HEC_MATCH_NONE: none */
    uint16_t device;
    uint8_t match_class;
    bool decided;
    bool behind; /* of its stream, one with a later id came at an earlier time */
};

struct hec_match_extra {
    uint64_t cookie;
    uint32_t group, next;
};

/* The calls with one stream handle, and the activities of the streams of CUPTI that are known to be this one. */
struct hec_match_lane {
    uint64_t handle;
    uint32_t track; /* of a thread's own default stream */
    uint16_t device;
    bool synced;           /* calls[cursor] is the next to be matched */
    bool sure;             /* time has confirmed it */
    bool fresh;            /* and nothing was since that was found */
    bool first_gone;       /* the first call since the device is recorded is not held any more */
    bool has_last;         /* calls[cursor - 1] was matched, with the id: */
    uint32_t last_id;      /* */
    uint32_t ids_per_call; /* on average, times 256; 0 unknown */
    int64_t last_end_ns;   /* of the activity before the queue's first */
    struct hec_match_row calls, queue;
    uint32_t cursor, learned; /* calls[0 .. learned) have seq, expect, blind */
    uint32_t late, misses, streams;
    uint32_t prompt; /* activities in a row that started as soon as they were launched */
    int32_t poor;    /* share of the last activities that have no call, of 65536 */
    uint32_t tried;  /* activities in the queue when it was last searched in vain */
    uint64_t credit; /* comparisons it may still spend on searching */
};

struct hec_match_stream {
    uint16_t device;
    uint32_t context, stream, lane;
    uint32_t newest_id, before_id,
        settled_id;             /* the latest that has come, before what comes now, and that has settled */
    int64_t seen_ns;            /* when something came last */
    struct hec_match_row queue; /* while its lane is not known */
    uint32_t tried;
    uint64_t credit;
};

struct hec_match_cell {
    uint32_t call; /* calls[cursor + call] */
    int pair, before, after;
    bool anchor;
};

struct hec_trace_match {
    struct hec_trace_budget *budget;
    const struct hec_trace_match_sink *sink; /* while something is given back */
    int64_t now_ns, since_ns;
    bool final, stopped;
    struct hec_match_pool calls, groups, extras;
    struct hec_match_row staged; /* calls of all threads, young */
    uint32_t seq;
    uint32_t *buckets; /* groups by correlation */
    uint32_t bucket_count, open;
    uint32_t arrived_first, arrived_last, decided_first, decided_last;
    uint32_t behind; /* such groups among those that arrived */
    uint32_t late;   /* extras whose group was decided, or that have none */
    struct hec_trace_map lane_ids, stream_ids;
    struct hec_match_lane *lanes;
    struct hec_match_stream *streams;
    uint32_t lane_count, stream_count;
    struct hec_match_learned *learned;
    struct hec_match_cell cells[HEC_MATCH_WINDOW][HEC_MATCH_CANDIDATES];
    uint32_t cell_counts[HEC_MATCH_WINDOW];
    int skip[HEC_MATCH_WINDOW];
    struct hec_match_guess { /* what an alignment that is tried says of functions that are not known */
        uint64_t func;
        uint32_t name, trial;
    } guesses[1024];
    uint32_t trial;
};

static inline struct hec_match_call *hec_match_call_at(const struct hec_trace_match *match, uint32_t i) {
    return (struct hec_match_call *)(void *)match->calls.items + i;
}

static inline struct hec_match_group *hec_match_group_at(const struct hec_trace_match *match, uint32_t i) {
    return (struct hec_match_group *)(void *)match->groups.items + i;
}

/* The first activity of the lane's queue has this call, by its place in lane->calls, or none: HEC_MATCH_NONE. */
void hec_match_decide(struct hec_trace_match *match, struct hec_match_lane *lane, uint32_t call);

/* Decide as much of the lane's queue as can be by now. */
void hec_match_align(struct hec_trace_match *match, struct hec_match_lane *lane);
/* Where in the lane's calls the queue goes on, from which of its activities, with how much evidence, and how much more
 * than for any other place. */
struct hec_match_place {
    uint32_t call, from;
    int score, lead;
    bool timed; /* times speak for it too */
};
struct hec_match_place hec_match_search(struct hec_trace_match *match, struct hec_match_lane *lane,
                                        const struct hec_match_row *queue, uint64_t *credit);
#define HEC_MATCH_ENOUGH 60 /* evidence to begin with, in tenths of e-folds of likelihood */
#define HEC_MATCH_LEAD 25   /* more likely than anything else by so much */
