/* Inside libhectrace.so. It lives in other people's processes, so the whole of it obeys: nothing blocks for long (each
 * wait has a bound, given where it is), aborts, throws or prints; nothing allocates from the program's heap once the
 * tracer runs; what cannot be done is left undone and reported in a record.
 *
 * Two sources. Calls: slots.c puts trampolines.c in front of the driver's functions, callers.c makes records of what they
 * see. Device activity: attach.c has CUPTI switched on, once, and at most once off again; watch.c says when mode auto
 * may. CUPTI calls buffers.c (from its own worker, or from within a flush), which has records.c turn CUPTI's records
 * into ours; out.c puts all records into the ring. shim.c stands between other users of CUPTI and the library, hold.c
 * keeps who of them has it. inject.c starts everything inside cuInit; thread.c owns the one thread. python.c has an interpreter's
 * main thread load HEC's hooks where they are missing.
 *
 * Locks, in the order in which they may be taken: busy (thread.c: all that our thread does), control (hold.c), got's
 * (got.h), out (out.c), clock (clock.c). Each is taken in a fork's prepare handler, so that no child inherits one. */
#pragma once

#include "base/ring.h"
#include "base/trace.h"
#include "tracer/callers.h"
#include "tracer/cupti.h"
#include "tracer/floor.h"
#include "tracer/got.h"

#include <stdbool.h>
#include <stdint.h>

/* 8 MB: 131072 records, two thirds of a second of a loop that launches every 10 us and traces kernel and call. */
#define HEC_TRACER_RING_RECORDS (1u << 17)
/* Buffers for CUPTI, 8 MB in all: 52000 kernels, half a second of such a loop. CUPTI asks for one in the thread that
 * launches, and zeroes it there: a fresh one of 1 MB stalled that thread for 450 us, of 64 KB for 53 us (H200, CUPTI 13.0),
 * with no difference in cost a kernel; so they are small, and touched beforehand. */
#define HEC_TRACER_BUFFERS 64u
#define HEC_TRACER_BUFFER_BYTES (1u << 17)
#define HEC_TRACER_DEVICES 64u

#define HEC_NS_PER_MS INT64_C(1000000)
#define HEC_NS_PER_S INT64_C(1000000000)

/* ---- python.c ---- */

/* In a Python into which HEC's hooks did not come: they are loaded by its main thread, soon. */
void hec_python_offer_hooks(void);

/* ---- out.c: the ring ---- */

/* Make the ring and hand it over to whoever listens at `socket`; tag: HEC_RING_ENV_JOB, or NULL. 0, or negative: no tracing
 * here. */
int hec_out_open(const char *socket, const char *tag);
/* Who reads just now: nobody (nothing is written), the same as when it was last asked, or somebody new, to whom the process has to
 * introduce itself and everything is to be defined again: from now on records are written for them. Asked now and then, it finds an agent
 * that was restarted (base/ring.h). */
enum hec_out_reader { HEC_OUT_NOBODY, HEC_OUT_SAME, HEC_OUT_NEW };
enum hec_out_reader hec_out_reader(int64_t now_ns);
/* The window in which that was, and whether it is the present one: else nothing is written. */
uint32_t hec_out_window(void);
bool hec_out_read_now(void);
/* Around a fork: nobody else writes definitions then. In the child the ring is the parent's: forgotten. */
void hec_out_fork_prepare(void);
void hec_out_fork_parent(void);
void hec_out_forget(void);
/* The reader has gone. */
bool hec_out_closed(void);
/* Definitions and their uses must not be torn apart by another thread: interning and parsing happen under this lock. */
void hec_out_lock(void);
void hec_out_unlock(void);
/* Append; t_ns, tid, flags and u are the caller's. false: the ring was full, the record is dropped and counted there. */
bool hec_out_write(struct hec_ring_record *record, enum hec_trace_kind kind);
bool hec_out_write_ring_kind(struct hec_ring_record *record, enum hec_ring_kind kind);
/* Count a record that could not be written because what it refers to could not. */
void hec_out_drop(void);
union hec_trace_payload *hec_out_payload(struct hec_ring_record *record);
int64_t hec_out_now_ns(void);
int64_t hec_out_thread_cpu_ns(void);

/* ---- intern.c: names and launch configurations; under hec_out_lock ---- */

int hec_intern_open(void); /* maps its tables; negative: no memory */
void hec_intern_forget(void);
/* The id of a name, defined in the ring first when needed. 0: it could not be (the ring is full just now), the record
 * that wanted it should be dropped. Beyond HEC_INTERN_NAMES names all further ones are called "(too many names)". */
uint32_t hec_intern_name(const char *text);
/* The same for a kernel with its launch configuration; id and name of *config are filled in. Beyond
 * HEC_INTERN_CONFIGS configurations further ones keep their name and lose the rest. */
uint32_t hec_intern_config(struct hec_trace_config *config, const char *name);
/* Forget which pointer stood for which text: a name may have gone with its module. Once per buffer is enough. */
void hec_intern_epoch(void);

#define HEC_INTERN_NAMES 12288u
#define HEC_INTERN_CONFIGS 65536u

/* ---- functions.c: names of kernels by handle ---- */

int hec_functions_open(void); /* maps its table; negative: no memory */
void hec_functions_forget(void);
/* The driver gave this handle for a kernel of that name, or for the same kernel as another handle. By any thread; takes hec_out_lock. */
void hec_functions_named(uint64_t handle, const char *name);
void hec_functions_same(uint64_t handle, uint64_t as);
/* The name, "" where there was no room for it; NULL: nobody asked the driver for it by name. Under hec_out_lock. */
const char *hec_functions_name(uint64_t handle);

/* ---- clock.c: CUPTI's clock to CLOCK_MONOTONIC ---- */

/* Piecewise linear through pairs of readings. Beyond the newest pair the last slope goes on. */
#define HEC_CLOCK_PAIRS 16u
struct hec_clock {
    uint64_t theirs[HEC_CLOCK_PAIRS]; /* ascending */
    int64_t ours[HEC_CLOCK_PAIRS];    /* ns */
    uint32_t count;
    double slope; /* ns a tick beyond the newest pair */
};

void hec_clock_reset(struct hec_clock *clock);
/* A pair of readings. A clock that was set, or replaced by another, starts anew (older records become implausible). */
void hec_clock_add(struct hec_clock *clock, uint64_t theirs, int64_t ours);
/* INT64_MIN when there is no pair yet. */
int64_t hec_clock_map(const struct hec_clock *clock, uint64_t theirs);
/* The process's own clock: read a pair from CUPTI, take a copy. */
void hec_clock_read(const struct hec_cupti *cupti);
void hec_clock_copy(struct hec_clock *out);
void hec_clock_fork_prepare(void);
void hec_clock_fork_parent(void);
void hec_clock_forget(void);

/* ---- slots.c: the trampolines' places ---- */

/* false: none could be taken; no calls are seen. Some KB of stack at most: it runs on that of whoever called cuInit. */
bool hec_slots_open(void);
/* Look again at tables that were filled since. */
void hec_slots_again(void);

/* ---- delay.c ---- */

/* How long threads with a slot waited for a core since they were first seen, in stretches in which they called something. */
int64_t hec_delay_ns(void);
/* Share of a thread's time that the host of a virtual machine may have taken over the last one to three seconds, at most; 0 where
 * there is none. 1: not known yet, ask again. Reads a file of the kernel's that takes a millisecond on
 * large machines: for who would act on it, and once before. */
double hec_delay_stolen(int64_t now_ns);
void hec_delay_forget(void);

/* ---- watch.c: whether mode auto may look at the device; pure ---- */

#define HEC_WATCH_SAMPLES 128u
#define HEC_WATCH_SAMPLE_NS (50 * HEC_NS_PER_MS)
#define HEC_WATCH_FREE_SAMPLES 10u
struct hec_watch {
    struct hec_callers_totals samples[HEC_WATCH_SAMPLES]; /* a ring */
    uint32_t count;                                       /* that were ever taken */
    int64_t first_ns;                                     /* of the first launch; 0: none yet */
};
/* Samples closer than HEC_WATCH_SAMPLE_NS are left out. */
void hec_watch_sample(struct hec_watch *watch, const struct hec_callers_totals *sample);
/* 2 s after the first launch: whether over the last second the host waited for the device so much that what CUPTI costs
 * a launch is hidden behind it. stolen: share of the time that may have been no waiting, hec_delay_stolen. */
bool hec_watch_may_look(const struct hec_watch *watch, int64_t now_ns, double stolen);
/* Whether the program's CUDA graphs, as they were launched over the last second, bear what CUPTI leaves behind: their
 * launches take longer for good, once it has been there. */
bool hec_watch_graphs_bear(const struct hec_watch *watch);
/* Whether since opened_ns the program launched as fast as in a stretch of the same length before. */
bool hec_watch_free(const struct hec_watch *watch, int64_t opened_ns, int64_t now_ns);
/* Whether it surely launches slower since: a look is over then. */
bool hec_watch_slower(const struct hec_watch *watch, int64_t opened_ns, int64_t now_ns);

/* ---- rest.c: when calls are not recorded, mode auto; pure ---- */

struct hec_rest {
    int64_t since_ns; /* it rests; 0: calls are recorded */
    int64_t first_ns; /* when a call was first seen; 0: none yet */
    int64_t half;     /* of two seconds, by the clock */
    int64_t from_ns;  /* its start, as far as it was seen */
    uint64_t from_calls;
    uint32_t halves; /* rests so far */
    bool often; /* in the last half that was recorded there were so many calls that recording them cost something */
};
/* Asked all the time, with the calls recorded so far: whether there should be a rest now. The caller keeps since_ns. */
bool hec_rest_wanted(struct hec_rest *rest, int64_t now_ns, uint64_t calls);

/* ---- library.c and bind.c: the right libcupti ---- */

#define HEC_LIBRARY_PATH_MAX 1024
struct hec_library {
    void *handle;
    char path[HEC_LIBRARY_PATH_MAX];
    uint32_t version; /* cuptiGetVersion */
    uint32_t driver_version;
    bool was_mapped; /* somebody had it loaded before us */
    struct hec_cupti calls;
};
/* Find, load and bind. 0, or negative with a sentence in why. */
int hec_library_open(struct hec_library *library, char *why, size_t why_bytes);
/* "39 MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" into text. */
void hec_library_result(const struct hec_cupti *cupti, uint32_t result, char *text, size_t bytes);

/* What is at an address range of the process; for the search, and for shims. */
struct hec_library_places {
    char cupti[4][HEC_LIBRARY_PATH_MAX]; /* mapped, not Triton's */
    uint32_t cupti_count;
    char cudart[HEC_LIBRARY_PATH_MAX];
    char packages[HEC_LIBRARY_PATH_MAX]; /* ".../site-packages" */
};
/* Candidates in the order in which they are tried; pure. `major` is the runtime's or driver's. Returns their number. */
uint32_t hec_library_candidates(const struct hec_library_places *places, uint32_t major,
                                char (*out)[HEC_LIBRARY_PATH_MAX], uint32_t max);
/* Major version of CUDA from a file name such as libcudart.so.12; 0 unknown. */
uint32_t hec_library_major(const char *path);

/* ---- buffers.c: what CUPTI fills ---- */

int hec_buffers_open(void);
void hec_buffers_forget(void);
uint8_t *hec_buffers_take(void); /* NULL: none is free, counted */
void hec_buffers_give(uint8_t *buffer);
bool hec_buffers_ours(const uint8_t *buffer);
uint32_t hec_buffers_out(void); /* how many CUPTI has */

/* ---- records.c: from CUPTI's records to ours ---- */

struct hec_records_totals {
    uint64_t device; /* good ones */
    uint64_t kept;   /* of them, those for which CUPTI keeps memory (HEC_KEPT_LAUNCH_BYTES): launched one by one */
    uint64_t bad;
    uint64_t dropped; /* by CUPTI, and those still without an end when a forced flush took their buffer away */
    int64_t self_ns;
};
struct hec_records_totals hec_records_totals(void);
void hec_records_forget(void);
void hec_records_count_dropped(uint64_t count);
void hec_records_add_self(int64_t ns);
/* Turn one buffer into records of the ring. */
void hec_records_parse(const struct hec_cupti *cupti, uint8_t *buffer, size_t valid);
/* Whether records without an end are dropped ones (a forced flush is under way), not bad ones. */
void hec_records_forced(bool forced);

/* ---- lead.c: since when a window is complete ---- */

/* What was launched before the kinds were enabled is not recorded, and may still run then. Streams run in order: from a
 * stream's first recorded activity on all of it is. */
void hec_lead_reset(int64_t open_ns);
void hec_lead_device(uint32_t context, uint32_t stream, int64_t start_ns);
/* Since when all that runs is recorded, given what was seen so far. A stream whose first activity came after limit_ns
 * began late of its own. */
int64_t hec_lead_complete_ns(int64_t limit_ns);

/* ---- device.c ---- */

/* Write the DEVICE records, once cuInit is through; under hec_out_lock. true once they are written. */
bool hec_device_report(void);
void hec_device_forget(void); /* they are to be written again */
uint32_t hec_device_driver_version(void);

/* ---- attach.c: CUPTI on, and off; under the control lock ---- */

/* Once on, kinds are switched off at most once and never on again: of programs in which they were switched off and on again
 * 4 of 53 died at their end inside libcupti, of those in which they stayed on none of 70 (docs/decisions/0010). */
enum hec_attach_state {
    HEC_ATTACH_NOT,   /* nothing was asked of CUPTI yet */
    HEC_ATTACH_ON,    /* kinds are on: a window is open */
    HEC_ATTACH_QUIET, /* for good: nothing will be asked of CUPTI any more, but to hand back buffers that it has */
};

/* CUPTI 13.0 keeps so much of the program's heap for each launch (graph nodes: nothing) while any kind is on, or when it was
 * registered before the context existed: 9.4 MB for 300000 kernels (H200). Only cuptiFinalize gives it back. */
#define HEC_KEPT_LAUNCH_BYTES 32u
/* What the tracer takes besides: ring, buffers, tables, and CUPTI itself. */
#define HEC_FIXED_BYTES (UINT64_C(32) << 20)
#define HEC_MEMORY_MB_DEFAULT 64u
#define HEC_MEMORY_MB_MAX 65536u

struct hec_tracer {
    struct hec_library library;
    enum hec_trace_mode mode;
    enum hec_attach_state attach;
    uint64_t memory_bytes; /* for everything */
    bool calls;            /* trampolines are in place */
    bool no_cupti;         /* HEC_TRACE_ENV_NO_CUPTI */
    bool registered;       /* our callbacks are CUPTI's */
    bool graphs;           /* whole graphs are traced: decided before any can exist */
    bool whole;            /* attached at the program's first call: the window lacks nothing */
    bool staying;          /* mode auto: it was seen to cost nothing */
    bool quiet;            /* nobody reads just now: nothing is recorded, and CUPTI stays out */
    bool draining;         /* the window is closed, but CUPTI still has buffers of it, and it is not reported yet */
    struct hec_watch watch;
    struct hec_rest rest;
    bool steal_read; /* since the first launch: what is read at the look is of the time after it */
    int64_t begin_ns;
    int64_t attached_ns; /* 0: never */
    int64_t open_ns, close_ns;
    uint64_t open_kept;        /* calls so far when it was attached */
    uint64_t fetched_launches; /* since then, when CUPTI was last asked for what is complete */
    int64_t flushed_ns, reported_ns;
    uint32_t cost_ps; /* of timing a call */
};
extern struct hec_tracer hec_tracer;

/* Load the libcupti that fits, make room for others, switch the kinds on. false: it could not be had, now or ever; the
 * reason is reported. whole: nothing was launched yet. */
bool hec_attach_on(bool whole);
/* Kinds off, for good. why: a sentence for the report, NULL: nothing to say. settle: also take away every buffer, so that
 * nothing of ours is with CUPTI any more (at most HEC_ATTACH_SETTLE_MS); else hec_attach_drain does, later. */
void hec_attach_off(const char *why, bool settle);
void hec_attach_settle(void);
#define HEC_ATTACH_SETTLE_MS 100
/* Fetch more of a closed window, and report it once it is whole, or after a second. */
void hec_attach_drain(int64_t now_ns);
/* Fetch what is complete, if CUPTI has buffers of ours at all. */
void hec_attach_flush(uint32_t flags);
/* The program ends: the last records. */
void hec_attach_end(void);
/* Whether so many launches brought no record, though it was asked for, that CUPTI must be blind. */
bool hec_attach_blind(void);
/* Whether CUPTI keeps more of the program's memory than it may. */
bool hec_attach_full(void);
void hec_attach_report(bool open);
void hec_attach_report_counts(void);
/* What timing calls cost is counted from now on. */
void hec_attach_begin_counts(void);
void hec_attach_forget(void);
/* By a thread of the program, at its first call: have CUPTI attached now, by our own thread. Waits for at most
 * HEC_ATTACH_AWAIT_MS. */
void hec_attach_await(void);
/* For our own thread: whether one waits, and that it need not any more. */
bool hec_attach_asked(void);
void hec_attach_answer(void);
#define HEC_ATTACH_AWAIT_MS 5000

/* ---- hold.c: who has CUPTI ---- */

/* The control lock, for at most HEC_HOLD_WAIT_MS: false when it could not be had (a thread of the program that holds a
 * lock of the driver may be waiting for us). hec_hold_inside: the calling thread has it. */
#define HEC_HOLD_WAIT_MS 500
bool hec_hold_enter(void);
void hec_hold_leave(void);
bool hec_hold_inside(void);
/* Somebody else begins to use CUPTI: stop, report, and leave it to them. name may be NULL. Under the lock. */
void hec_hold_stand_down(const char *name, uint32_t code);
/* Whether nobody else has used it in this process: who has is not joined any more (kinds that were on before). */
bool hec_hold_free(void);
/* They have ended: reported. */
void hec_hold_ended(int64_t now_ns);
void hec_hold_fork_prepare(void);
void hec_hold_fork_parent(void);
void hec_hold_forget(void);
#define HEC_HOLD_QUIET_NS HEC_NS_PER_S

/* What others have on; changed by the shims under the lock. */
struct hec_hold {
    uint64_t kinds;                /* bit a kind that they enabled */
    uint32_t contexts;             /* kinds enabled for single contexts */
    uint32_t second;               /* subscribers of the second version of the API */
    uint32_t named;                /* hec_trace_stand_down without hec_trace_come_back */
    uint32_t paused;               /* hec_trace_pause */
    bool forever;                  /* somebody uses CUPTI in a way that cannot be shared, or whose end cannot be seen */
    bool missed;                   /* atomic: they began, and the lock could not be had */
    bool reported;                 /* a HOLDER record is out */
    int64_t last_ns;               /* when they last called */
    hec_cupti_requested requested; /* their callbacks, NULL: never registered */
    hec_cupti_completed completed;
    int serving; /* atomic: enum hec_hold_serving */
};
enum hec_hold_serving { HEC_HOLD_US, HEC_HOLD_THEM };
extern struct hec_hold hec_hold;
/* "torch.profiler", or the file name of the module that an address lies in. */
const char *hec_hold_caller(const void *address, char *text, size_t bytes);

/* ---- shim.c ---- */

/* Put the shims between others and the library. Calls of ours go past them. Once; the library stays loaded. */
void hec_shim_open(const struct hec_library *library);
/* Look again at modules that came since, when the library's own symbols could not be changed. */
void hec_shim_rescan(void);
/* CUPTI's callbacks: to us or to them. */
void hec_shim_requested(uint8_t **buffer, size_t *size, size_t *records_max);
void hec_shim_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
/* Whether a module other than a framework's is bound to cuptiActivityRegisterCallbacks already: it may have registered
 * its buffers before we came, and ours would displace them. Its name goes to text. */
bool hec_shim_early_user(char *text, size_t bytes);

/* ---- thread.c ---- */

int hec_thread_start(void);
void hec_thread_end(void); /* at exit: last flush, waited for at most HEC_THREAD_END_MS */
void hec_thread_wake(void);
/* Calls are recorded where somebody reads, nobody has paused it, and it does not rest; under the control lock. */
void hec_thread_record(void);
bool hec_thread_is_own(void);
void hec_thread_fork_prepare(void);
void hec_thread_fork_parent(void);
void hec_thread_forget(void);
#define HEC_THREAD_END_MS 2000

/* Whether this process is traced at all (false in the child of a fork, and after the end). */
bool hec_inject_live(void);
void hec_inject_end(void);
/* cuInit is through. */
void hec_inject_initialised(void);
/* Write the PROCESS record: the first of a process, and again when `why` has changed; "": it is traced. */
void hec_inject_report(const char *why);
/* For a new reader: what an earlier one got when it began. */
void hec_inject_introduce(void);
