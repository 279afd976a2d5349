/* A window: some seconds of one job, recorded and analysed by a process of its own (`hec __window`, src/cli/main.c), so that
 * neither its memory nor a crash of it is the agent's. Both sides are one binary. They share a socket: plan, descriptors of the
 * rings, and back what was found: plain data of one size, checked. */
#pragma once

#include "base/error.h"
#include "diagnose/finding.h"
#include "diagnose/states/state.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HEC_WINDOW_DEVICES 16
#define HEC_WINDOW_UNITS 4
#define HEC_WINDOW_RINGS 512
#define HEC_WINDOW_SECONDS_MAX 300.0
#define HEC_WINDOW_VERB "__window"
#define HEC_WINDOW_FD 3 /* the socket, in that process */

struct hec_window_plan {
    uint64_t magic;
    double seconds;
    pid_t root;               /* the process that stands above the others of the job; 0: not known */
    uid_t owner;              /* whose processes it lists */
    bool mixed;               /* those of all users: only root gets the run file */
    bool wants_file;          /* the run file too, not only the result */
    char simulated[128];      /* profile of the simulated machine; "": a real one */
    char nvml_path[PATH_MAX]; /* "": the system's */
    char job[352];            /* its id */
    int ring_count;
    pid_t ring_pid[HEC_WINDOW_RINGS];
};

struct hec_window_device {
    char uuid[96];
    int index; /* hec_device.index */
    double seconds
        [HEC_STATE_COUNT]; /* What lies before the first and after the last activity in the window is unknown: it is
                                        neither startup nor tail of the job. */
    double joules[HEC_STATE_COUNT]; /* NAN, all of them: they could not be divided */
};

struct hec_window_result {
    uint64_t magic;
    double seconds; /* observed; 0: nothing was, and why says so */
    char why[200];
    int device_count; /* those that the job used and something is known of */
    struct hec_window_device device[HEC_WINDOW_DEVICES];
    int cause;          /* of the first finding: enum hec_cause; HEC_CAUSE_NONE: healthy; -1: not known */
    double recoverable; /* joules that its fix would save, of the job's in the window: 0..1; NAN: not known */
    double confidence;  /* 0..1 */
    int unit_count;
    struct {
        char name[64];
        double count;
    } unit[HEC_WINDOW_UNITS];
    uint64_t lost; /* records that found a ring full */
};

#define HEC_WINDOW_MAGIC UINT64_C(0x32574443455748) /* changes with either struct */

/* ---- in the agent ---- */

struct hec_window_run {
    pid_t pid;
    int socket;
    int64_t deadline_ns; /* it is killed then */
};

/* Begin one; program: hec (NULL: what runs now); rings: plan->ring_count descriptors, which stay the caller's. */
int hec_window_begin(const char *program, const struct hec_window_plan *plan, const int *rings, int64_t now_ns,
                     struct hec_window_run *run, struct hec_why *why);
/* HEC_ERR_BUSY: it goes on. Else it has ended: HEC_OK with a result that holds what such a process
 * writes (finite and not negative where it must be, counts and texts within bounds; seconds 0 where nothing was observed) and *file, a
 * file in memory or -1, or HEC_ERR_FAILED: it died, or was too slow. cpu_seconds: what it took. */
int hec_window_poll(struct hec_window_run *run, int64_t now_ns, struct hec_window_result *result, int *file,
                    double *cpu_seconds);
/* Ask it for what it has: its window ends now. */
void hec_window_enough(const struct hec_window_run *run);
/* Kill it, and wait. */
void hec_window_abort(struct hec_window_run *run);

/* ---- in that process ---- */

/* What is called, as a handler of a signal, when the agent asks for what there is; it waits until somebody wants it. */
void hec_window_when_enough(void (*handler)(int signal));
/* The plan, and the descriptors into rings, which has room for HEC_WINDOW_RINGS. */
int hec_window_receive(struct hec_window_plan *plan, int *rings);
/* file: a descriptor, or -1. */
int hec_window_send(const struct hec_window_result *result, int file);
