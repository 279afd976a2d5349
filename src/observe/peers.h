/* The observed processes whose rings (base/ring.h) arrive on one socket: taken in, read, and given up, within bounds that
 * hold for anything they write. Marks and the trace are two kinds of them, which differ in what they make of a
 * record. */
#pragma once

#include "observe/collector.h"
#include "observe/intake.h"
#include "observe/reporter.h"

#define HEC_PEERS_MAX 512 /* each holds one descriptor (its pidfd), of usually 1024 */

/* One process and its ring; the first member of what a kind keeps of it. */
struct hec_peer {
    struct hec_ring_reader ring;
    pid_t pid;
    int pid_fd;        /* -1: the kernel gave none */
    uint64_t bad;      /* records that made no sense */
    uint64_t untimely; /* of them: of no time of this run, where the kind counts those */
    uint64_t late;     /* records after the end of the window */
    uint64_t lost_reported;
    int64_t stuck_since_ns; /* a reserved slot is not committed since then; 0: none */
    uint64_t stuck_at;
};

/* `run` is the kind's, of all its processes. */
struct hec_peers_kind {
    enum hec_ring_role role;
    uint32_t records_max;            /* the largest ring that is taken */
    int rings_max;                   /* of one process; one more ends its oldest */
    int64_t drain_ns, drain_fast_ns; /* between two reads; while some ring was more than a quarter full */
    int64_t finish_ns;               /* at the end, for what processes that outlive the command still write */
    enum hec_event_kind lost;        /* the event that records were lost */
    const char *things, *records;    /* what a process hands over, in notes: "traces", "records of the trace" */
    /* NULL: no memory. rank: of its job, -1 unknown; others: how many there are. The module sets the first member. */
    struct hec_peer *(*make)(void *run, pid_t pid, int32_t rank, int others, int64_t now_ns);
    /* One record, valid or not; now_ns is when it was read. */
    void (*take)(void *run, struct hec_peer *peer, const struct hec_ring_record *record, int64_t now_ns);
    /* The ring was read: give out what need not wait. */
    void (*drained)(void *run, struct hec_peer *peer, int64_t now_ns);
    /* Another ring of its process takes its place; NULL: nothing to do. Then it ends. */
    void (*replaced)(void *run, struct hec_peer *peer, int64_t now_ns);
    /* The process, its program or the window ended: give out everything, say what was left out. */
    void (*end)(void *run, struct hec_peer *peer, int64_t end_ns);
    void (*free)(void *run, struct hec_peer *peer);
};

struct hec_peers {
    const struct hec_peers_kind *kind;
    void *run;
    struct hec_reporter *reporter;
    struct hec_intake intake;
    struct hec_peer *peer[HEC_PEERS_MAX]; /* the oldest first */
    int count;
    bool borrowed;        /* the window has begun */
    uint64_t rings;       /* that arrived */
    uint64_t rings_ended; /* of processes with more than rings_max */
};

/* kind, run and teller, which must outlive it, and an open socket at path (NULL: none). As hec_intake_open. */
int hec_peers_open(struct hec_peers *peers, const struct hec_peers_kind *kind, void *run, struct hec_reporter *reporter,
                   const char *path, struct hec_why *why);
/* Instead of a socket (path NULL): the rings of a window that are of this kind, once it begins: true then. A bad one is counted
 * as refused. */
bool hec_peers_borrow(struct hec_peers *peers, const struct hec_observe_options *options, int64_t now_ns);
/* Take what has arrived, read every ring; returns when to be called next. */
int64_t hec_peers_poll(struct hec_peers *peers, int64_t now_ns);
/* Take what is left, end all, and say what was refused. */
void hec_peers_finish(struct hec_peers *peers, int64_t end_ns);
/* Peers are left only where finish was never called: nothing more is said of them. */
void hec_peers_close(struct hec_peers *peers);

/* The steps of these, with one process; peers needs no socket. Takes ring and pid_fd over; NULL: both are closed. */
struct hec_peer *hec_peer_new(struct hec_peers *peers, const struct hec_intake_ring *arrived, int64_t now_ns);
/* dead: nobody writes any more, so uncommitted records are passed over. Returns whether the ring was more than a quarter
 * full. */
bool hec_peer_drain(struct hec_peers *peers, struct hec_peer *peer, int64_t now_ns, bool dead);
void hec_peer_end(struct hec_peers *peers, struct hec_peer *peer, int64_t end_ns);
