/* Replays a schedule, as it was recorded or with edits: when each call would begin and return, and when each operation would run.
 * One pass over the calls, in their recorded order; deterministic.
 *
 * What was recorded where the state is the same (how long the program computed between two calls, how long an operation took to
 * start on a device that waits, how long after another on one that does not) is kept; where an edit makes the state another
 * one, the schedule's usual delays stand for it. With `usual` they stand for it everywhere: a replay of that kind that gives the
 * recorded time says that the schedule explains the program. */
#pragma once

#include "diagnose/finding.h"
#include "diagnose/replay/schedule.h"

/* Where an unchanged replay by usual delays is off by more, answers are not to be relied on. */
#define HEC_REPLAY_TRUST 0.02

/* What an edit makes of a call and of what it launched. */
struct hec_replay_change {
    double code;       /* factor on the program's own time before the call, but for the two below */
    double data;       /* on that in the phase "data" */
    double checkpoint; /* on that in the phase "checkpoint" */
    double call;       /* on the call's own time */
    double operation;  /* on that of the operation */
    double launch;     /* on the time from the call to the operation's start, on a device that waits */
    bool waits;        /* false: it returns at once */
    bool beside;       /* the operation runs beside the others of its stream, and nobody waits for it */
    bool graphed;      /* it is a node of a graph: it starts right behind the one before it on its stream */
};

struct hec_replay_edit {
    void (*apply)(const struct hec_schedule *schedule, const struct hec_schedule_call *call, double value,
                  struct hec_replay_change *change);
    double value; /* of the edit: edits.def */
    double work;  /* that a step does, of what it did: more samples */
};

struct hec_replay {
    /* From the begin of the first call to the last return or end of an operation, less the schedule's lag_ns. */
    double recorded_s, seconds;
    double busy_s[HEC_DEVICE_MAX];    /* of each device: the union of its operations */
    double kernels_s[HEC_DEVICE_MAX]; /* of its kernels: the rest are copies alone */
    double active_s[HEC_DEVICE_MAX];  /* of those, but for communication that waits for other processes */
    double work_s[HEC_DEVICE_MAX];    /* of those that do not communicate */
    double waited_s;                  /* of the host, for devices */
    double work; /* done by then, of what was recorded: all seconds but recorded_s are those of as much as was */
    double
        hotter; /* more watts of work_s, of those recorded: a rule may know that what stays fills the device more. A replay says 0 */
};

/* Times of some calls in a replay, for who shows them: of call `first` and those after it, count each. */
struct hec_replay_times {
    size_t first, count;
    int64_t *begin_ns, *end_ns, *start_ns, *finish_ns;
};

/* What a replay takes of memory: next to nothing, but where calls refer to some long before them. */
size_t hec_replay_bytes(const struct hec_schedule *schedule);

/* edits: applied one after the other. usual: no delay is as it was recorded. 0 or HEC_ERR_NOMEM. */
int hec_replay_run(const struct hec_schedule *schedule, const struct hec_replay_edit *edits, size_t edit_count,
                   bool usual, const struct hec_replay_times *times, struct hec_replay *out);

/* What the schedule is without CUPTI, as far as that is known (graph_left): to go before other edits. */
struct hec_replay_edit hec_edit_untraced(const struct hec_schedule *schedule);

/* What-ifs: small edits of a schedule, by name (edit.c). */
enum hec_edit {
#define HEC_REPLAY_EDIT(id, name, cause, least, most, value) HEC_EDIT_##id,
#include "diagnose/replay/edits.def"
    HEC_EDIT_COUNT
};

struct hec_edit_info {
    const char *name;
    enum hec_cause cause; /* whose answer it is */
    double least, most,
        value; /* what may be given, and what holds where nothing is; NAN: something must be; least == most: nothing may be */
};

const struct hec_edit_info *hec_edit_info(enum hec_edit edit);
enum hec_edit hec_edit_find(const char *name, size_t length); /* HEC_EDIT_COUNT: none */
struct hec_replay_edit hec_edit_with(enum hec_edit edit, double value);
