/* Inside src/diagnose: what one process kept one device with, inferred from its calls alone. Fed with calls in the
 * order of their start; gives parts of time, in order and without holes, by what the calls say of the device:
 *   idle      it had been waited for, and nothing was launched since
 *   busy      the host waits for it: in a synchronising call, behind other work in a copying one, in a full queue
 *   copying   the host waits for a copy
 *   launching work is being launched: the device runs it, or has run out of it
 *   running   nothing is being launched, and nothing has waited since the last launch: the device works off what it has,
 *             for as long as that lasts
 * Idle, busy and copying are certain but for some microseconds at either end; how much of the rest the device was busy is
 * for states/inferred/share.c to say. */
#pragma once

#include "diagnose/states/steady.h"
#include "diagnose/timeline/pass.h"

enum hec_inferred_class {
    HEC_INFERRED_IDLE,
    HEC_INFERRED_BUSY,
    HEC_INFERRED_COPYING,
    HEC_INFERRED_LAUNCHING,
    HEC_INFERRED_RUNNING,
    HEC_INFERRED_CLASS_COUNT
};

/* A call that gave the device something to do. */
struct hec_inferred_launch {
    int64_t start_ns, end_ns; /* of the call; of a burst, of its first one */
    uint32_t thread;          /* track */
    bool kernel;              /* that may load its code */
};

struct hec_inferred_part {
    enum hec_inferred_class class;
    int64_t start_ns, end_ns;          /* start < end */
    struct hec_inferred_launch launch; /* what it runs, or was launched last */
    struct hec_activity call;          /* COPYING: the copying call. LAUNCHING: the burst or call */
};

/* How far what is certain may be trusted, and what may lie beside it. */
struct hec_inferred_limits {
    int64_t start_ns;  /* from a launching call to the device's start on it */
    int64_t end_ns;    /* from the device's end to the return of the call that waited */
    bool full_is_busy; /* launching calls that take long mean a full queue */
    bool event_drains; /* who waited for an event has waited for all that was launched */
};
/* A launch takes 2 to 9 us of a thread (state.h), and a wait returns some microseconds after what it waited for. */
#define HEC_INFERRED_BEST ((struct hec_inferred_limits){6000, 5000, true, true})
#define HEC_INFERRED_LEAST ((struct hec_inferred_limits){15000, 15000, false, true})
#define HEC_INFERRED_MOST ((struct hec_inferred_limits){0, 1000, true, false})

/* Shorter waits say that the device had kept up: the call itself takes as long. */
#define HEC_INFERRED_WAIT_NS 30000

/* Bytes a second of copies, and what a copying call costs beside. */
struct hec_inferred_rates {
    double bytes_per_s[HEC_MEMORY_KIND_COUNT][HEC_MEMORY_KIND_COUNT]; /* 0 unknown */
};

struct hec_inferred_device {
    int32_t pid, rank;
    int device;
    struct hec_inferred_limits limits;
    const struct hec_inferred_rates *rates;
    /* Called with each part; what it returns, if not 0, is returned. */
    int (*part)(void *context, const struct hec_inferred_part *part);
    /* The device was waited for: since the last time it was behind the host (else it had kept up). May be NULL. */
    void (*drained)(void *context, bool behind);
    void *context;

    bool started; /* a launch was seen */
    int64_t at_ns;
    bool idle;
    int64_t wake_ns;            /* idle until then; INT64_MAX: nothing was launched */
    int64_t busy_ns;            /* busy until then */
    int64_t copy_ns, copied_ns; /* copying from, to */
    int64_t launching_ns;       /* launching until then */
    int64_t drain_ns;           /* idle from then on, if nothing is launched meanwhile; INT64_MAX: none */
    int64_t drain_from_ns;      /* that call began */
    bool drain_behind;
    int64_t launched_ns; /* end of the last launching call */
    double outstanding;  /* launches since the device was idle */
    struct hec_inferred_launch launch;
    struct hec_activity call, copy;
};

void hec_inferred_device_init(struct hec_inferred_device *d, const struct hec_inferred_limits *limits,
                              const struct hec_inferred_rates *rates);
/* A call: BURST, SYNC, or API (name: of the function, "" unknown). Starts ascend. */
int hec_inferred_device_call(struct hec_inferred_device *d, const struct hec_activity *call, const char *name);
/* Report all parts up to t. */
int hec_inferred_device_advance(struct hec_inferred_device *d, int64_t t_ns);
/* What CUPTI saw on the device: from its end on nothing is known to be idle. */
void hec_inferred_device_seen(struct hec_inferred_device *d, const struct hec_activity *a);

/* Whether a copying call returns only when the copy is done. */
bool hec_inferred_copy_blocks(const struct hec_activity *call, const char *name);
/* How long its copy takes on the device. */
int64_t hec_inferred_copy_ns(const struct hec_inferred_rates *rates, const struct hec_activity *call);

/* ---- survey.c: which processes' devices are to be inferred, and what is needed for it: from calls, and from device activities
 * where a process has windows ---- */

#define HEC_INFERRED_CALLS                                                                                             \
    (HEC_ACTIVITY_BIT(HEC_ACTIVITY_BURST) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_SYNC) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_API))

#define HEC_INFERRED_QUEUED_NS 20000 /* state.h, rules 1 and 4: what has been launched begins sooner */

/* ---- loop.c: where a program without steps has its loop ----
 *
 * Set-up compiles, loads and makes data: between its calls there are pauses that the loop does not have. It ends with the last
 * pause in the first half of the time in which the process gave work or waited for it that takes more than twice the longest
 * pause of the second half. Calls that wait are no pauses, nor are many small ones. */

struct hec_inferred_pause {
    int64_t start_ns, end_ns;
    double calls; /* before it */
};

struct hec_inferred_pauses {
    int64_t first_ns, until_ns; /* of the calls so far */
    double calls;               /* launches, copies and waits */
    struct hec_inferred_pause *list;
    size_t count, capacity;
};

/* A call that gives work or waits; starts ascend. rest_ns: for so long since the call before, none were recorded. 0 or
 * HEC_ERR_NOMEM. */
int hec_inferred_pauses_add(struct hec_inferred_pauses *pauses, const struct hec_activity *call, int64_t rest_ns);
/* Without steps. Not known: too few calls. */
struct hec_steady hec_inferred_pauses_loop(const struct hec_inferred_pauses *pauses);

struct hec_inferred_process {
    int32_t pid, rank;
    bool timed;   /* its calls were timed */
    bool streams; /* it has activities on devices */
    bool inferred;
    int64_t first_ns, last_ns; /* of its calls that give work or wait */
    struct hec_inferred_pauses pauses;
    struct hec_intervals windows; /* of CUPTI, joined */
    struct hec_intervals rests;   /* its calls were not recorded */
};

/* A process on a device. */
struct hec_inferred_use {
    struct hec_inferred_process *process;
    int device;
    double busy_ns, launches;  /* inside of windows */
    double rest_ns, waited_ns; /* there between activities: all, and with work launched, for what no trace shows */
    int64_t busy_until_ns, graph_ns;
};

struct hec_inferred_survey {
    const struct hec_timeline_tables *tables;
    struct hec_inferred_process *processes;
    size_t process_count;
    struct hec_inferred_process **by_track;
    struct hec_inferred_use *uses;
    size_t use_count;
    struct hec_inferred_rates rates;
    int only_device; /* of the run; -1: there are several, or none */
};

/* Begin; take calls in the order of time; decide; then where a process that is inferred has windows, what was seen in the
 * same order. The pass is to stay. 0 or HEC_ERR_NOMEM; free it all the same. */
int hec_inferred_survey_begin(struct hec_inferred_survey *survey, const struct hec_pass *pass);
int hec_inferred_survey_take(struct hec_inferred_survey *survey, const struct hec_activity *a, size_t count);
int hec_inferred_survey_decide(struct hec_inferred_survey *survey);
int hec_inferred_survey_seen(void *survey, const struct hec_activity *a, size_t count);
void hec_inferred_survey_free(struct hec_inferred_survey *survey);
/* Of a call or a device activity; NULL: none. */
struct hec_inferred_use *hec_inferred_survey_use(const struct hec_inferred_survey *survey,
                                                 const struct hec_activity *a);
bool hec_inferred_process_seen(struct hec_inferred_process *process, int64_t t_ns);
/* Windows leave too much of [first, last] out. */
bool hec_inferred_process_unseen(struct hec_inferred_process *process, int64_t first_ns, int64_t last_ns);
/* How many launches an activity of a thread stands for. */
double hec_inferred_launches(const struct hec_activity *a);

/* ---- share.c ----
 *
 * For how much of the time in which calls do not show it a device was busy. In the order of trust:
 *   engine    how much of each interval the graphics engine was active (GPM, about every half second): the interval's
 *             busy time is known, and what calls leave open is filled up to it
 *   launches  what a launch kept the device busy in a window of CUPTI, times the launches of each second
 *   use       the driver's utilisation: the device was busy for no more than that
 *   nothing   a wait that took long says that the device was behind while work was launched, a short one that it was not
 * Where the device rested is not known then: first while nothing was launched is the best guess, first while work was
 * being launched the other possibility. */

/* What may be: the best guess, and the corners that bound it. */
enum hec_inferred_variant {
    HEC_INFERRED_GUESS,
    HEC_INFERRED_LEAST_BETWEEN, /* as little busy as may be, rests between launches first; none for others' turns */
    HEC_INFERRED_LEAST_WITHIN,  /* the same, rests while launching first; all of them for others' turns */
    HEC_INFERRED_MOST_BETWEEN,
    HEC_INFERRED_MOST_WITHIN,
    HEC_INFERRED_VARIANT_COUNT
};

/* On a device where others work, or may (shared), the engine and the driver say how busy all of them keep it: the process
 * itself no more. So launches go first there, and the engine is believed at the best guess alone. Work that was launched also
 * waits for the others' turns: of what the host waited through the device was the process's own for a part, and where it
 * rested it may have had work. */
enum hec_inferred_source { HEC_INFERRED_NOTHING, HEC_INFERRED_USE, HEC_INFERRED_LAUNCHES, HEC_INFERRED_ENGINE };

struct hec_inferred_interval {
    int64_t end_ns; /* it begins where the one before ends */
    double level;   /* busy share that was read; NAN: none */
    double ns[HEC_INFERRED_CLASS_COUNT];
    double seen_ns; /* not reported: CUPTI saw it */
    double rest_ns; /* the same: nothing is known */
    double launches;
    double busy[HEC_INFERRED_CLASS_COUNT]; /* the answer: share of the class's time */
};

struct hec_inferred_share {
    enum hec_inferred_source source;
    bool shared;   /* set before the first pass */
    double waited; /* shared: of the rests, the part in which work waited for a turn, at best guess; so is this */
    enum hec_inferred_variant variant;
    double launch_ns; /* LAUNCHES: busy time of one */
    struct hec_inferred_interval *list;
    size_t count, capacity, cursor;
    /* Without a source. Of the time since the device was last waited for, and of all before. */
    double open_ns[2];
    double kept_ns[2], behind_ns[2]; /* LAUNCHING, RUNNING */
};

void hec_inferred_share_init(struct hec_inferred_share *share);
void hec_inferred_share_free(struct hec_inferred_share *share);
struct hec_meter;
/* What telemetry says of a process on a device, before the first part: chooses the source. meter NULL: there is none. 0, HEC_ERR_NOMEM or
 * what the input returned. */
int hec_inferred_share_read(struct hec_inferred_share *share, const struct hec_inferred_use *use,
                            struct hec_meter *meter, struct hec_why *why);
/* Forgets the parts, keeps the intervals. */
void hec_inferred_share_begin(struct hec_inferred_share *share, enum hec_inferred_variant variant);
/* In the order of time. */
void hec_inferred_share_add(struct hec_inferred_share *share, const struct hec_inferred_part *part, int64_t seen_ns);
/* Calls were not recorded. */
void hec_inferred_share_rest(struct hec_inferred_share *share, int64_t start_ns, int64_t end_ns);
void hec_inferred_share_launches(struct hec_inferred_share *share, int64_t t_ns, double count);
void hec_inferred_share_drained(struct hec_inferred_share *share, bool behind);
void hec_inferred_share_end(struct hec_inferred_share *share);

/* Of the rests: the part in which work waited for others' turns. */
double hec_inferred_share_waited(const struct hec_inferred_share *share);

/* Of a class's time at t: the share that was busy, and in *until how long that holds. Quick where t ascends. */
double hec_inferred_share_of(struct hec_inferred_share *share, enum hec_inferred_class class, int64_t t_ns,
                             int64_t *until_ns);
