/* One process that makes marks: its ring, and what is open in it. */
#ifndef HEC_OBSERVE_MARKS_PEER_H
#define HEC_OBSERVE_MARKS_PEER_H

#include "base/ring.h"
#include "base/ring_names.h"
#include "model/run.h"
#include "observe/marks/units.h"

#include <sys/types.h>

#define HEC_MARKS_NAMES_MAX 512  /* of one process; libhec.so defines no more */
#define HEC_MARKS_PHASES_MAX 128 /* open at once in one process */
#define HEC_MARKS_KNOBS_SEEN 64  /* knobs of one process whose last value is remembered */

/* What all processes of a run share. */
struct hec_marks_run {
    const struct hec_sink *sink;
    int64_t opened_ns; /* nothing valid is older: the socket did not exist */
    int64_t end_ns;    /* end of the window; INT64_MAX until it is known */
    struct hec_marks_units units;
    int events_left; /* events are bounded too: a fork bomb that drops marks must not fill the run file */
};

struct hec_marks_peer {
    struct hec_ring_reader ring;
    struct hec_ring_names names;
    pid_t pid;
    int pid_fd; /* -1: the kernel gave none */
    uint64_t lost_told;
    uint64_t invalid;       /* records that made no sense */
    uint64_t late;          /* records after the end of the window */
    int64_t stuck_since_ns; /* a reserved slot is not committed since then; 0: none */
    uint64_t stuck_at;
    /* steps */
    double step_total; /* exact; the samples given so far add up to step_told */
    int64_t step_told, step_last_ns, step_sample_ns;
    bool step_pending, step_folded;
    /* phases */
    int phase_count;
    uint64_t phase_overflow; /* begun while HEC_MARKS_PHASES_MAX were open */
    struct {
        uint32_t tid, name;
        int64_t start_ns;
    } phase[HEC_MARKS_PHASES_MAX];
    double span_tokens;
    int64_t span_refill_ns;
    uint64_t spans_folded;
    int64_t spans_folded_ns;
    /* knobs */
    int knob_count;
    struct {
        uint32_t name;
        uint64_t value_hash;
    } knob[HEC_MARKS_KNOBS_SEEN];
};

/* Takes the mapped ring over. NULL without memory (the ring is closed). pid_fd is taken over too. */
struct hec_marks_peer *hec_marks_peer_new(struct hec_ring_reader ring, pid_t pid, int pid_fd, int64_t now_ns);

/* Tell the sink what is in the ring. dead: nobody writes any more, so uncommitted records are passed over. */
void hec_marks_peer_drain(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t now_ns, bool dead);

/* The process or the window ended at end_ns: close what is open, tell what was lost, free. */
void hec_marks_peer_end(struct hec_marks_peer *peer, struct hec_marks_run *run, int64_t end_ns);

/* A bounded event. */
void hec_marks_tell(struct hec_marks_run *run, enum hec_event_kind kind, int64_t t_ns, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
