/* Inside libhectrace.so. It lives in other people's processes, so the whole of it obeys: nothing blocks for long (each
 * wait has a bound, given where it is), aborts, throws or prints; nothing allocates from the program's heap once the
 * tracer runs; what cannot be done is left undone and told in a record.
 *
 * Who calls what: inject.c starts everything inside cuInit. In mode auto, launches.c counts until watch.c finds that
 * tracing may begin. thread.c owns the one thread: flushes, windows, duty cycle.
 * CUPTI calls buffers.c (from its own worker, or from within a flush), which has records.c turn CUPTI's records into
 * ours; out.c puts them into the ring. shim.c stands between other users of CUPTI and the library, hold.c keeps
 * who of them has it.
 *
 * Locks, in the order in which they may be taken: control (hold.c), out (out.c), clock (clock.c). */
#ifndef HEC_TRACER_TRACER_H
#define HEC_TRACER_TRACER_H

#include "base/ring.h"
#include "base/trace.h"
#include "tracer/cupti.h"
#include "tracer/floor.h"
#include "tracer/got.h"

#include <stdbool.h>
#include <stdint.h>

/* 16 MB: 262 144 records, more than a second of a loop that launches every 9 us and traces kernel and call. */
#define HEC_TRACER_RING_RECORDS (1u << 18)
/* Buffers for CUPTI, 16 MB in all: 65 000 kernels with their calls, 0.6 s of such a loop. CUPTI asks for one in the
 * thread that launches, and zeroes it there: a fresh one of 1 MB stalled that thread for 450 us, of 64 KB for 53 us (H200,
 * CUPTI 13.0), with no difference in cost a kernel; so they are small, and touched beforehand. */
#define HEC_TRACER_BUFFERS 128u
#define HEC_TRACER_BUFFER_BYTES (1u << 17)
#define HEC_TRACER_DEVICES 64u

#define HEC_NS_PER_MS INT64_C(1000000)
#define HEC_NS_PER_S INT64_C(1000000000)

/* ---- out.c: the ring ---- */

/* Make the ring and hand it over to whoever listens at `socket`. 0, or negative: no tracing here. */
int hec_out_open(const char *socket);
/* In the child of a fork: the ring is the parent's. */
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
void hec_clock_forget(void);

/* ---- duty.c: how much may be traced; pure ---- */

/* Costs to the program, ns; sources in duty.c. */
struct hec_duty_costs {
    int64_t device_ns;         /* a kernel, copy or memset that the host launched and the device began at once */
    int64_t queued_ns;         /* one that had waited: the host is ahead, and only the device's time counts */
    int64_t node_ns;           /* one of these as part of a graph, or a graph */
    int64_t api_ns;            /* an API call, traced or seen and thrown away */
    int64_t attached_ns;       /* a launch while CUPTI is attached, whether anything is on or not */
    int64_t attached_graph_ns; /* the same for the launch of a graph */
    int64_t switch_ns;         /* opening and closing a window */
    int64_t attach_ns;         /* attaching, once */
    int64_t flush_ns;
};
extern const struct hec_duty_costs hec_duty_costs;

/* What a stretch of tracing brought. */
struct hec_duty_work {
    uint64_t launched; /* device activities that the host launched one by one */
    uint64_t queued;   /* of these, those that waited in the queue: the device, not the host, set the pace */
    uint64_t nodes, calls;
};

struct hec_duty {
    int64_t budget_ppm; /* 0: no limit (mode full) */
    int64_t elapsed_ns; /* of the program, while tracing was possible */
    int64_t spent_ns;   /* estimate of what it lost by tracing, all in all */
    int64_t credit_ns;  /* what may be spent now; negative: debt */
    int64_t window_ns;  /* age of the open window */
    int64_t window_spent_ns;
    double rate;          /* spent per ns of open window, of the last window */
    double attached_rate; /* of that, what is spent for being attached alone */
    int64_t window_attached_ns;
    bool open, attached;
};

void hec_duty_init(struct hec_duty *duty, int64_t budget_ppm);
void hec_duty_elapse(struct hec_duty *duty, int64_t ns);
void hec_duty_spend(struct hec_duty *duty, int64_t ns);
void hec_duty_work(struct hec_duty *duty, const struct hec_duty_work *work);
void hec_duty_opened(struct hec_duty *duty);
void hec_duty_closed(struct hec_duty *duty);
bool hec_duty_should_open(const struct hec_duty *duty);
bool hec_duty_should_close(const struct hec_duty *duty);
/* ppm of the elapsed time, at least 0. */
uint32_t hec_duty_estimate_ppm(const struct hec_duty *duty);

/* ---- launches.c: launches, counted without CUPTI ---- */

struct hec_launches {
    int64_t t_ns;
    uint64_t launches, graphs, copies; /* calls so far */
    int64_t
        waited_ns; /* in the calls that wait for the device, all threads, waits that have not ended included; of 48 bits */
};
/* Begin to count. true: launches of a loaded module go through a slot that could be taken, so that they are seen. */
bool hec_launches_open(void);
/* Look again, when modules have come since. */
void hec_launches_rescan(void);
void hec_launches_read(struct hec_launches *out);
void hec_launches_forget(void);

/* ---- watch.c: whether mode auto may attach; pure ---- */

#define HEC_WATCH_SAMPLES 128u
#define HEC_WATCH_SAMPLE_NS (50 * HEC_NS_PER_MS)
struct hec_watch {
    struct hec_launches samples[HEC_WATCH_SAMPLES]; /* a ring */
    uint32_t count;                                 /* that were ever taken */
    int64_t first_ns, work_ns;                      /* the first launch; the first launch or copy; 0: none yet */
    int64_t judged_ns;
    bool out; /* the last verdict */
};
enum hec_watch_verdict { HEC_WATCH_UNDECIDED, HEC_WATCH_ATTACH, HEC_WATCH_OUT };
struct hec_watch_judgement {
    enum hec_watch_verdict verdict;
    double launches_per_s; /* in the worst 250 ms */
    double share;          /* of the program's time that being attached would have cost in them */
    double waited;         /* share of the time in which the program waited for the device */
};
/* Samples closer than HEC_WATCH_SAMPLE_NS are left out. */
void hec_watch_sample(struct hec_watch *watch, const struct hec_launches *sample);
/* 500 ms and 100 launches after the first one: attach when what that costs is within the budget, or the program waits for
 * the device anyway. Outside, the same is asked every 5 s; UNDECIDED: not yet, or as before. */
struct hec_watch_judgement hec_watch_judge(struct hec_watch *watch, uint32_t budget_ppm, int64_t now_ns);
void hec_watch_sentence(const struct hec_watch_judgement *judgement, uint32_t budget_ppm, char *text, size_t bytes);

/* CUPTI 13.0 keeps so much of the program's heap for each launch (graph nodes: nothing) while any kind is on, or when it was
 * registered before the context existed: 9.4 MB for 300 000 kernels (H200). Only cuptiFinalize gives it back. */
#define HEC_KEPT_LAUNCH_BYTES 32u
#define HEC_KEPT_FIRST_BYTES (UINT64_C(64) << 20) /* mode auto: so much, */
#define HEC_KEPT_HOUR_BYTES (UINT64_C(32) << 20)  /* and so much for each hour that the program runs; */
#define HEC_KEPT_STEP_BYTES (UINT64_C(1) << 20)   /* a window is opened when so much is left */
#define HEC_KEPT_FULL_BYTES (UINT64_C(2) << 30)   /* modes without a budget end with so much */
uint64_t hec_kept_limit(int64_t elapsed_ns);
bool hec_kept_may_open(uint64_t bytes, int64_t elapsed_ns);

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
/* Bind a loaded library; 0 when it has all that is needed and a known version. */
int hec_bind(void *handle, struct hec_library *library, char *why, size_t why_bytes);
/* "39 MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" into text. */
void hec_bind_result(const struct hec_cupti *cupti, uint32_t result, char *text, size_t bytes);

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

/* ---- calls.c: classes and names of API calls ---- */

#define HEC_CALLS_MAX 1024u
void hec_calls_open(const struct hec_cupti *cupti);
enum hec_trace_api_class hec_calls_classify(const char *name);
/* domain: 0 runtime, 1 driver. OTHER for what is not traced. */
enum hec_trace_api_class hec_calls_class(uint32_t domain, uint32_t cbid);
const char *hec_calls_name(uint32_t domain, uint32_t cbid);

/* ---- buffers.c: what CUPTI fills ---- */

int hec_buffers_open(void);
void hec_buffers_forget(void);
uint8_t *hec_buffers_take(void); /* NULL: none is free, counted */
void hec_buffers_give(uint8_t *buffer);
bool hec_buffers_ours(const uint8_t *buffer);
uint32_t hec_buffers_out(void); /* how many CUPTI has */
uint64_t hec_buffers_refused(void);

/* ---- records.c: from CUPTI's records to ours ---- */

struct hec_records_totals {
    uint64_t device, api, sync, other; /* good ones */
    uint64_t nodes;                    /* of the device ones, those in a graph, and graphs */
    uint64_t queued;                   /* of the device ones, those that had waited in the queue for long */
    uint64_t launches[2];              /* calls of the runtime, of the driver, that put one thing on the device */
    uint64_t bad;
    uint64_t dropped;  /* by CUPTI, and those still without an end when a forced flush took their buffer away */
    uint64_t filtered; /* API calls that nobody wants; they cost all the same */
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

/* What was launched before the kinds were enabled is not recorded, and may still run then. A stream's first recorded
 * activity that had waited in the queue shows that the stream was busy before, up to its start. */
void hec_lead_reset(int64_t open_ns);
/* Returns whether it had waited in the queue, as far as its call was seen. */
bool hec_lead_device(uint32_t context, uint32_t stream, uint32_t correlation, int64_t start_ns);
void hec_lead_api(uint32_t correlation, int64_t end_ns);
/* When all that runs is recorded, given what was seen so far: open_ns at the earliest, at most limit_ns. */
int64_t hec_lead_complete_ns(int64_t limit_ns);

/* ---- device.c ---- */

/* Write the DEVICE records, once cuInit is through; under hec_out_lock. true once they are written. */
bool hec_device_tell(void);
void hec_device_forget(void);
uint32_t hec_device_driver_version(void);

/* ---- window.c: kinds on, kinds off; under the control lock ---- */

struct hec_tracer {
    struct hec_library library;
    enum hec_trace_mode mode;
    uint32_t budget_ppm;
    struct hec_duty duty;
    bool open;       /* our kinds are on */
    bool registered; /* our callbacks are CUPTI's */
    bool starting;   /* within cuInit */
    bool first;      /* the window was opened within cuInit: nothing had been launched before */
    bool early;      /* registered within cuInit: CUPTI keeps memory of launches also while nothing is on */
    bool watching;   /* mode auto has not decided to attach yet */
    bool ended;      /* tracing was given up for good */
    struct hec_watch watch;
    uint64_t kept_bytes; /* by CUPTI: an estimate, see HEC_KEPT_LAUNCH_BYTES */
    bool draining;       /* closed, but CUPTI still has buffers of the window, which is not told yet */
    bool graphs;         /* whole graphs are traced: decided before any can exist */
    bool type_set;       /* CUPTI's kind of thread id is ours */
    uint32_t theirs_type;
    uint32_t number; /* of the window */
    int64_t open_ns, close_ns;
    uint64_t open_records, open_launches;
    int64_t open_self_ns;
    int64_t flushed_ns, told_ns;       /* when that was done last */
    struct hec_records_totals charged; /* what the duty cycle was told of */
    int64_t retry_ns, retry_wait_ns;   /* after a refusal */
    uint32_t blind;                    /* windows without kernels so far */
};
extern struct hec_tracer hec_tracer;

/* 0, or CUPTI's result with the kinds off again. */
uint32_t hec_window_open(void);
/* Kinds off. settle: also take away every buffer, so that nothing of ours is with CUPTI any more (at most
 * HEC_WINDOW_SETTLE_MS); else they are fetched by later flushes. */
void hec_window_close(bool settle);
void hec_window_settle(void);
/* Fetch more of a closed window, and tell of it once it is whole, or after a second. */
void hec_window_drain(int64_t now_ns);
#define HEC_WINDOW_SETTLE_MS 100
/* The program ends: the last records, and nothing but a flush. By then the driver may have been taken down, and
 * cuptiActivityDisable is a segmentation fault (CUPTI 13.0); NVIDIA's own sample flushes in such a handler. */
void hec_window_end(void);
/* Whether the window sees launches and nothing of what they launch; such a window is not told of, and closed. */
bool hec_window_blind(void);
/* Fetch what is complete, and charge the duty cycle with what came since the last time. */
void hec_window_flush(uint32_t flags);
void hec_window_charge(void);
void hec_window_tell(bool open);
void hec_window_tell_counts(void);
void hec_window_forget(void);

/* ---- hold.c: who has CUPTI ---- */

/* The control lock, for at most HEC_HOLD_WAIT_MS: false when it could not be had (a thread of the program that holds a
 * lock of the driver may be waiting for us). Recursive use by the same thread is told by hec_hold_inside. */
#define HEC_HOLD_WAIT_MS 500
bool hec_hold_enter(void);
void hec_hold_leave(void);
bool hec_hold_inside(void);
/* Somebody else begins to use CUPTI: stop, tell, and leave it to them. name may be NULL. Under the lock. */
void hec_hold_stand_down(const char *name, uint32_t code);
/* Whether nobody has had it for HEC_HOLD_QUIET_NS; tells that it is free. Under the lock. */
bool hec_hold_free(int64_t now_ns);
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
    bool told;                     /* a HOLDER record is out */
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
/* What is due at now_ns; under the control lock. */
void hec_thread_step(int64_t now_ns);
bool hec_thread_is_own(void);
void hec_thread_forget(void);
#define HEC_THREAD_END_MS 2000

/* Whether this process is traced at all (false in the child of a fork, and after the end). */
bool hec_inject_live(void);
void hec_inject_end(void);
/* cuInit is through. */
void hec_inject_initialised(void);
/* Write the PROCESS record: the first of a process, and again when `why` has changed; "": it is traced. */
void hec_inject_tell(const char *why);

#endif
