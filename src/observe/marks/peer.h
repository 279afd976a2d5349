/* One process that makes marks: its ring, and what is open in it. */
#pragma once

#include "base/ring_names.h"
#include "model/run.h"
#include "observe/marks/timeline.h"
#include "observe/peers.h"
#include "observe/processes.h"

/* Totals of units of work by name, over all processes of a run; bounded. */
#define HEC_MARKS_UNITS_MAX 64
#define HEC_MARKS_NAME_BYTES 64 /* with the NUL */
#define HEC_MARKS_UNIT_DEFAULT "unit"

struct hec_marks_units {
    struct {
        char name[HEC_MARKS_NAME_BYTES];
        double pending; /* not yet given to the sink */
    } unit[HEC_MARKS_UNITS_MAX];
    int count;
    uint64_t refused; /* additions whose name did not fit */
};

/* name NULL or "": HEC_MARKS_UNIT_DEFAULT. */
void hec_marks_units_add(struct hec_marks_units *units, const char *name, double count);

/* Give the sink what was added since the last time. */
void hec_marks_units_flush(struct hec_marks_units *units, const struct hec_sink *sink);

#define HEC_MARKS_NAMES_MAX                                                                                            \
    (512 + 8192)                   /* of one process; libhec.so defines no more: marks', and the hooks' long ones */
#define HEC_MARKS_NAMES_FEW 512    /* of a process that comes when many are there */
#define HEC_MARKS_TEXT_BYTES 256   /* of the hooks' long names, with the NUL */
#define HEC_MARKS_FRAMES_MAX 65536 /* nodes of one process's tree of call stacks */
#define HEC_MARKS_FACTS_MAX 1000   /* keys, of a run: a run file holds only so many; a later one of a key replaces it */
#define HEC_MARKS_FACT_SLOTS (2 * HEC_MARKS_FACTS_MAX)
#define HEC_MARKS_PHASES_MAX 128 /* open at once in one process */
#define HEC_MARKS_KNOBS_SEEN 64  /* knobs of one process whose last value is remembered */
#define HEC_MARKS_KNOBS_SAID 256 /* what was said of knobs, once a run */

#define HEC_MARKS_VALUE_MAX 9007199254740992.0 /* 2^53, as in libhec.so */

/* What all processes of a run share. */
struct hec_marks_run {
    const struct hec_sink *sink;
    struct hec_process_table *processes;                     /* who reads stacks from outside; NULL: nobody */
    void (*step_seen)(void *context, pid_t pid, int source); /* NULL: nobody */
    void *step_context;
    int64_t opened_ns; /* nothing valid is older: the socket did not exist */
    int64_t end_ns;    /* end of the window; INT64_MAX until it is known */
    struct hec_marks_units units;
    struct hec_marks_bucket rates[HEC_MARKS_RATE_COUNT];
    uint64_t fact[HEC_MARKS_FACT_SLOTS]; /* the keys so far, for hec_keys_find */
    int fact_count;
    uint64_t facts_refused;
    uint64_t knob_said[HEC_MARKS_KNOBS_SAID]; /* hashes */
    int knob_said_count;
    struct hec_reporter reporter;
};

struct hec_marks_peer {
    struct hec_peer process;
    struct hec_ring_names names;
    int64_t first_ns; /* time of the first valid mark */
    /* steps */
    double step_total; /* exact; the samples given so far add up to step_told */
    int64_t step_reported, step_last_ns, step_sample_ns;
    bool step_pending, step_folded, step_marked;
    int64_t step_end_ns[HEC_STEP_SOURCE_COUNT]; /* of the last one by source; 0: none */
    struct hec_marks_found {
        uint64_t steps, counted; /* found; those whose units are known */
        double units;            /* of the counted ones */
        char unit[HEC_MARKS_NAME_BYTES];
    } found[HEC_STEP_SOURCE_COUNT];
    /* phases */
    bool phases_seen;
    int phase_count;
    uint64_t phase_overflow; /* begun while HEC_MARKS_PHASES_MAX were open */
    struct {
        uint32_t tid, name;
        int64_t start_ns;
    } phase[HEC_MARKS_PHASES_MAX];
    /* hooks */
    uint32_t *frame; /* the sink's id by the writer's; 0: undefined, or the sink has no room */
    uint32_t frame_room;
    struct hec_marks_timeline timeline;
    /* knobs */
    int knob_count;
    struct {
        uint32_t name;
        uint64_t value_hash; /* 0: not yet read */
        char range[72];      /* "32 to 512"; "": none is given */
    } knob[HEC_MARKS_KNOBS_SEEN];
};

/* run: struct hec_marks_run. */
extern const struct hec_peers_kind hec_marks_peers;

/* For a run that begins at now_ns. */
void hec_marks_run_init(struct hec_marks_run *run, const struct hec_sink *sink, int64_t now_ns);

/* One record each, whose time is valid: false when it makes no sense. now_ns: when it was read. */
bool hec_marks_steps_take(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_record *record);
bool hec_marks_phases_take(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_record *record,
                           int64_t now_ns);
bool hec_marks_hooks_take(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_record *record);
bool hec_marks_knobs_take(struct hec_marks_peer *peer, struct hec_marks_run *run, const struct hec_ring_record *record);

/* Once a drain: what steps were held back and are due. */
void hec_marks_steps_poll(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t now_ns);
void hec_marks_steps_end(struct hec_marks_peer *peer, struct hec_marks_run *run);
void hec_marks_phases_end(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t end_ns);

/* The text of a name that is short enough for a mark; NULL: undefined, or longer than HEC_MARKS_NAME_BYTES - 1. */
const char *hec_marks_peer_name(const struct hec_marks_peer *peer, uint32_t id);
