/* The shared-memory ring through which an observed process talks to HEC, and the ABI of its records.
 *
 * One ring a process and role: a memfd, sealed against resizing, that the process makes and hands to HEC over a Unix
 * SOCK_SEQPACKET socket (hello + SCM_RIGHTS) and then closes: no descriptor stays in the observed process. Many
 * threads write, one reader reads. A writer never blocks: when the ring is full it drops the record and counts it.
 * A record is reserved by moving `head`, filled, and committed by storing its sequence number last (release).
 *
 * The reader trusts nothing: it checks seals, size, magic and ABI once, keeps its own position and capacity, masks
 * indices, and copies a record before anyone looks at it. Contents of a record are for the caller to validate.
 *
 * This file and ring.c use libc only: they are also linked into the libraries that enter the observed process.
 * Errors: negative enum hec_err (base/error.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HEC_RING_MAGIC UINT64_C(0x31474e4952434548) /* "HECRING1", little-endian */
#define HEC_RING_ABI 2u
#define HEC_RING_RECORDS_DEFAULT 16384u /* 1 MB: 160000 records a second at the reader's 100 ms */
#define HEC_RING_RECORDS_MIN 64u
#define HEC_RING_RECORDS_MAX (1u << 22) /* 256 MB */
#define HEC_RING_HEADER_BYTES 4096u
#define HEC_RING_NAME_PIECE 32u /* bytes of a name in one record */

/* A REQUEST is no ring: the descriptor is one end of a socket, for an agent (jobs/request.h). */
enum hec_ring_role { HEC_RING_MARKS = 1, HEC_RING_TRACE = 2, HEC_RING_REQUEST = 3 };

/* A number up to 2^32 - 1: see hec_ring_hello.tag. */
#define HEC_RING_ENV_JOB "HEC_JOB"

/* Kinds of records. Numbers are the ABI: never reused. 1..15 belong to the ring, 16..63 to marks, 64.. to the tracer. */
enum hec_ring_kind {
    HEC_RING_NAME = 1,         /* payload: name */
    HEC_RING_STEP = 16,        /* payload: mark; value = units done by the step that ended at t_ns */
    HEC_RING_UNITS = 17,       /* payload: mark; value = count to add to the named unit */
    HEC_RING_PHASE_BEGIN = 18, /* payload: mark; value unused */
    HEC_RING_PHASE_END = 19,   /* payload: mark; name 0 ends the innermost phase of the thread */
    HEC_RING_KNOB = 20,        /* payload: knob */
    /* found from outside by the Python hooks, not written by the program */
    HEC_RING_STEP_FOUND = 21, /* payload: mark; a step ended at t_ns: name = unit, value = count or NaN; flags below */
    HEC_RING_VALUE = 22,      /* payload: mark; a number the program computed at t_ns (the loss) */
    HEC_RING_INTERVAL = 23,   /* payload: interval; name, from t_ns for duration_ns */
    HEC_RING_FRAME = 24,      /* payload: frame; defines a node of the tree of call stacks */
    HEC_RING_STACK = 25,      /* payload: stack; what the thread was doing at t_ns */
    HEC_RING_FACT = 26,       /* payload: fact; about the program ("python", "torch", why hooks are off) */
    HEC_RING_KNOB_RANGE = 27, /* payload: range; what the knob of that name may be, before it is read */
    HEC_RING_TRACE_FIRST = 64
};

/* A piece of a name: text[0 .. length - 32*piece) of it, at most 32 bytes. Ids are the writer's, never 0; a name is
 * usable once all its pieces arrived and may be defined again with the same text. */
struct hec_ring_name {
    uint32_t id;
    uint8_t piece;   /* 0 .. pieces - 1 */
    uint8_t pieces;  /* 1 .. 255 */
    uint16_t length; /* bytes of the whole name */
    char text[HEC_RING_NAME_PIECE];
};

struct hec_ring_mark {
    uint32_t name; /* id, 0: none */
    uint32_t reserved;
    double value;
};

enum hec_ring_knob_type { HEC_RING_KNOB_INT = 1, HEC_RING_KNOB_DOUBLE = 2, HEC_RING_KNOB_TEXT = 3 };
#define HEC_RING_KNOB_SET 1u     /* the value was set from outside; else it is the program's default */
#define HEC_RING_KNOB_REFUSED 2u /* a value was set but is not of the type the program reads: its default was kept */
#define HEC_RING_KNOB_OUTSIDE                                                                                          \
    4u /* a value was set but lies outside the range that the program gives: its default was kept */

struct hec_ring_knob {
    uint32_t name;
    uint32_t text; /* id of the value's text, for HEC_RING_KNOB_TEXT, and of a value that was not taken; 0: NULL */
    uint32_t type;
    uint32_t flags;
    int64_t integer;
    double number;
};

/* By the type: integer or number. */
union hec_ring_knob_value {
    int64_t integer;
    double number;
};

/* The program says within which values a knob may be set. Where that is no range (least over most, the fallback outside, a nan) it is
 * recorded all the same, and nothing follows from it. */
struct hec_ring_knob_range {
    uint32_t name;
    uint32_t type;
    union hec_ring_knob_value fallback, least, most;
};

/* hec_ring_record.flags of STEP_FOUND: what reported the step. */
#define HEC_RING_STEP_OPTIMIZER 1u /* an optimizer's step returned */
#define HEC_RING_STEP_MODULE 2u    /* the outermost module was called (inference) */

struct hec_ring_interval {
    int64_t duration_ns;
    uint32_t name;
    uint32_t reserved;
};

/* Ids are the writer's, never 0; a parent is defined before its children; 0: the outermost frame. */
struct hec_ring_frame {
    uint32_t id, parent;
    uint32_t file, function; /* name ids */
    uint32_t line;           /* being executed, 0 unknown */
};

struct hec_ring_stack {
    uint32_t frame;     /* innermost */
    uint32_t period_us; /* one sample stands for this long */
};

struct hec_ring_fact {
    uint32_t key, text; /* name ids */
};

#define HEC_RING_PAYLOAD_BYTES 40u

struct hec_ring_record {
    uint64_t sequence; /* position + 1, stored last: the ring sets it */
    int64_t t_ns;      /* CLOCK_MONOTONIC */
    uint32_t tid;
    uint8_t kind;
    uint8_t flags;
    uint16_t window; /* the low half of the number of the window in which what it refers to was defined */
    union {
        struct hec_ring_name name;
        struct hec_ring_mark mark;
        struct hec_ring_knob knob;
        struct hec_ring_knob_range range;
        struct hec_ring_interval interval;
        struct hec_ring_frame frame;
        struct hec_ring_stack stack;
        struct hec_ring_fact fact;
        unsigned char bytes[HEC_RING_PAYLOAD_BYTES];
    } u;
};

/* The first page of the memfd. Each counter has a cache line of its own. */
struct hec_ring_header {
    uint64_t magic;
    uint32_t abi;
    uint32_t header_bytes, record_bytes;
    uint32_t records; /* capacity, a power of two */
    uint32_t role;
    uint32_t pid;                  /* as the writer sees itself */
    uint32_t rank;                 /* that it is of its job, and one; 0: unknown */
    uint32_t local_rank;           /* the same on its host */
    uint32_t ranks;                /* of the job; 0: unknown */
    uint32_t launcher;             /* row of ranks.def, and one; 0: unknown */
    _Alignas(64) uint64_t head;    /* next position to reserve (writers) */
    _Alignas(64) uint64_t tail;    /* next position to read (reader) */
    _Alignas(64) uint64_t dropped; /* records lost because the ring was full (writers) */
    _Alignas(64) uint32_t closed;  /* the reader has gone: writers may stop */
    /* Even: somebody reads; odd: nobody does just now, and writers leave it. It grows by one at each change (the reader
     * makes it, but for a writer who saw nobody read for long): what was defined under another number is unknown to who reads. */
    uint32_t window;
    uint32_t stacks; /* enum hec_ring_stacks: the reader says it */
};

/* Whether somebody reads the stacks of the process from outside. */
enum hec_ring_stacks { HEC_RING_STACKS_UNKNOWN, HEC_RING_STACKS_OUTSIDE, HEC_RING_STACKS_INSIDE };

#define HEC_RING_RANKS_MOST (1 << 20)

struct hec_ring_rank {
    int32_t number, local; /* of the job and of the host; -1 unknown */
    int32_t size;          /* ranks of the job; 0 unknown */
    int launcher;          /* row of ranks.def; -1 unknown */
};

/* Sent with the memfd, as one datagram. */
struct hec_ring_hello {
    uint64_t magic;
    uint32_t abi;
    uint32_t role;
    uint32_t pid;
    uint32_t tag; /* HEC_RING_ENV_JOB: what belongs together, to who reads rings of many; 0: nothing is said */
};

_Static_assert(sizeof(struct hec_ring_record) == 64, "the record is ABI");
_Static_assert(sizeof(struct hec_ring_header) <= HEC_RING_HEADER_BYTES, "the header has one page");
_Static_assert(sizeof(struct hec_ring_hello) == 24, "the hello is ABI");

/* ---- writer ---- */

struct hec_ring {
    struct hec_ring_header *header;
    struct hec_ring_record *slots;
    uint64_t mask; /* capacity - 1 */
    size_t bytes;
};

/* Make and map a ring of `records` records (a power of two, HEC_RING_RECORDS_MIN..MAX). *fd is the caller's to send and
 * close. HEC_ERR_USAGE, HEC_ERR_NOMEM, HEC_ERR_UNSUPPORTED (no memfd or seals here). */
int hec_ring_create(uint32_t records, enum hec_ring_role role, struct hec_ring *ring, int *fd);

/* The rank that this process is of a job of several, as what started it says in the environment (ranks.def). A ring is made with it. */
struct hec_ring_rank hec_ring_rank(void);
const char *hec_ring_launcher(int launcher); /* "torchrun"; "" unknown */

/* Hand fd over to whoever listens at path. Never blocks, raises no SIGPIPE. HEC_ERR_NOTFOUND when nobody listens,
 * HEC_ERR_BUSY where so many wait there that there is no room just now. */
int hec_ring_send(const char *path, enum hec_ring_role role, uint32_t tag, int fd);
/* What HEC_RING_ENV_JOB says; NULL or no number: 0. */
uint32_t hec_ring_tag(const char *text);

/* Append a copy of *record (sequence is set by the ring). false: the ring was full, the record is dropped and counted.
 * Safe from any thread and from a signal handler; never blocks. */
bool hec_ring_write(struct hec_ring *ring, const struct hec_ring_record *record);

/* Count a record that was lost before it reached the ring. */
void hec_ring_drop(struct hec_ring *ring, uint64_t count);

/* Whether the reader said that it has gone. */
bool hec_ring_closed(const struct hec_ring *ring);

/* The number of the window; odd: nobody reads, and nothing is to be written. */
uint32_t hec_ring_window(const struct hec_ring *ring);
enum hec_ring_stacks hec_ring_stacks(const struct hec_ring *ring);
/* Nobody has read for so long that nobody will: the window `seen` ends. */
void hec_ring_abandon(struct hec_ring *ring, uint32_t seen);

/* Unmap. No thread may be writing. */
void hec_ring_unmap(struct hec_ring *ring);

/* ---- reader ---- */

struct hec_ring_reader {
    struct hec_ring_header *header;
    const struct hec_ring_record *slots;
    uint64_t tail, mask;
    size_t bytes;
    uint64_t released;    /* tail when the pages were last given back */
    uint64_t skipped;     /* reserved slots that were never committed */
    uint64_t lost_before; /* dropped by writers before the window */
    uint32_t role;
    struct hec_ring_rank rank; /* as the writer says */
    bool borrowed;             /* for a window: the ring outlives this reader */
    uint32_t window;           /* its number, where borrowed */
};

/* Listen at path (removed first if it is a stale socket). *fd is non-blocking and close-on-exec.
 * HEC_ERR_LIMIT when path is too long for a Unix socket (107 bytes). */
int hec_ring_listen(const char *path, int *fd);

/* Take the hello from an accepted connection. *fd gets the memfd. HEC_ERR_BUSY: nothing has arrived yet;
 * HEC_ERR_CORRUPT / VERSION: not ours (nothing to close), HEC_ERR_LOST: the peer hung up without a word. */
int hec_ring_receive(int connection, struct hec_ring_hello *hello, int *fd);

/* Check the memfd and map it. fd stays the caller's and may be closed at once. HEC_ERR_CORRUPT / VERSION / NOMEM. */
int hec_ring_map(int fd, struct hec_ring_reader *reader);

/* Copy up to max committed records to out, in order. 0: none, or the next one is not committed yet. */
size_t hec_ring_read(struct hec_ring_reader *reader, struct hec_ring_record *out, size_t max);

/* Pass over one reserved slot whose writer will not commit any more (it died, or left it for long). false: none. */
bool hec_ring_skip(struct hec_ring_reader *reader);

/* Records reserved and not yet read, at most the capacity. */
uint64_t hec_ring_pending(const struct hec_ring_reader *reader);

/* Lost so far: dropped by writers (as they say) and skipped. */
uint64_t hec_ring_lost(const struct hec_ring_reader *reader);

/* For a reader of one window of a ring that somebody else keeps: passes over what is in the ring, and lets the writers
 * write. */
void hec_ring_begin(struct hec_ring_reader *reader);
/* Whether a record that was read is one of this reader's: a writer that was held up between its look at the window and the
 * ring may bring one of an earlier window, whose names nobody knows any more. */
bool hec_ring_is_ours(const struct hec_ring_reader *reader, const struct hec_ring_record *record);
/* For who keeps a ring and maps it only now: nobody reads it just now. */
void hec_ring_pause(struct hec_ring_reader *reader);

void hec_ring_tell_stacks(struct hec_ring_reader *reader, enum hec_ring_stacks stacks);

/* Signal to the writers that nobody reads any more (borrowed: for now), and unmap. */
void hec_ring_close(struct hec_ring_reader *reader);
/* Unmap without a word. */
void hec_ring_leave(struct hec_ring_reader *reader);

/* A process whose agent was restarted gives the new one a ring. Nobody tells it, and it keeps no descriptor: it looks now and then whether
 * another socket stands where it sent its ring.
 *
 * In the observed process nothing waits, and errno changes. */
#define HEC_RING_LOOK_NS INT64_C(10000000000) /* one stat() in so long */

struct hec_ring_listener {
    dev_t device;
    ino_t inode;
    int64_t changed_ns; /* inodes are used again */
    uid_t owner;
};

struct hec_ring_again {
    char socket[108];
    enum hec_ring_role role;
    uint32_t tag;
    struct hec_ring_listener listener; /* whose the ring is */
    int seccomp;
    int64_t looked_ns; /* atomic */
    uint64_t tail;     /* when it was looked at last; UINT64_MAX: all was read */
};

/* Makes a ring and hands it over to who listens at `socket` (see hec_ring_create and hec_ring_send). Negative enum hec_err: no ring. */
int hec_ring_begin_at(struct hec_ring_again *again, const char *socket, enum hec_ring_role role, uint32_t records,
                      uint32_t tag, int64_t now_ns, struct hec_ring *ring);

/* Once in HEC_RING_LOOK_NS. A window in which nobody has read for so long ends: its reader died. While nobody reads, and another
 * socket of the same user stands at the path, a fresh ring takes the place of this one, at its address; windows go on from its number, so
 * that everything is defined anew: true. Any thread may call it at any time; one at a time looks. */
bool hec_ring_look_again(struct hec_ring_again *again, struct hec_ring *ring, int64_t now_ns);
