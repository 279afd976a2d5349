/* Programs that died by a signal while CUPTI was attached to them, remembered from run to run: on the same driver with
 * the same CUPTI, --trace=auto stays without CUPTI from then on. One JSON file, guard.json, in HEC_STATE_DIR, else in
 * $XDG_STATE_HOME/hec, else in ~/.local/state/hec. */
#pragma once

#include "base/error.h"
#include "launch/child.h"
#include "model/run.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define HEC_GUARD_SCHEMA "hec.guard/1"
#define HEC_GUARD_MAX 64                /* entries; the oldest gives way */
#define HEC_GUARD_SIMULATED "simulated" /* stands for the driver's version under --sim */
#define HEC_GUARD_FORGET "`hec doctor --forget` lets it in again"

struct hec_guard_entry {
    char driver[48]; /* version of the kernel's module, "580.159.04"; "": it could not be read */
    int cuda;        /* of the driver: 13000 for 13.0; -1 unknown */
    int cupti;       /* as cuptiGetVersion gives it */
    int mode;        /* enum hec_trace_mode */
    int signal;
    char program[64];       /* the name of its executable */
    char date[40];          /* "2026-11-22T10:00:00+00:00" */
    char library[256];      /* path of libcupti */
    int64_t bytes, mtime_s; /* of that file then; -1 unknown */
};

struct hec_guard {
    struct hec_guard_entry entries[HEC_GUARD_MAX]; /* the newest last */
    int count;
};

/* Whether a program that crashes ends by this signal: SEGV, BUS, ABRT, ILL, FPE, TRAP or SYS. */
bool hec_guard_is_crash(int signal);

/* The driver's version, as cheap as reading a small file; "" where it cannot be read. */
void hec_guard_driver(bool simulated, char driver[48]);

int hec_guard_path(char path[PATH_MAX], struct hec_why *why);
/* *guard is empty on failure. No file is no failure. HEC_ERR_CORRUPT: the file is damaged; VERSION: it is of a newer HEC. */
int hec_guard_read(struct hec_guard *guard, struct hec_why *why);
int hec_guard_write(const struct hec_guard *guard, struct hec_why *why);

/* Remember one more; an earlier one of the same driver, CUPTI, mode and program gives way. The file of libcupti is looked
 * at for bytes and mtime_s. */
void hec_guard_add(struct hec_guard *guard, const struct hec_guard_entry *entry);

bool hec_guard_is_simulated(const struct hec_guard_entry *entry);
/* Whether an entry speaks of the machine as it is: of this driver, with its libcupti as it was. What is unknown
 * counts as the same; what was simulated is apart. */
bool hec_guard_matches(const struct hec_guard_entry *entry, const char *driver);
/* The newest that matches; NULL: none. */
const struct hec_guard_entry *hec_guard_find(const struct hec_guard *guard, const char *driver);

/* Drop what was simulated, or what was not. Returns how many. */
int hec_guard_forget(struct hec_guard *guard, bool simulated);

/* "python3.11 died by signal 11 with CUPTI 13.0 attached on 2026-11-22 (driver 580.159.04)" */
void hec_guard_words(const struct hec_guard_entry *entry, char words[200]);

/* The guard during one run: whether CUPTI is to stay out, and whether the command died with it attached. */
struct hec_guard_watch {
    char driver[48];
    char out[256];            /* the sentence that says why CUPTI stays out; "": it does not */
    bool traced;              /* some process was traced */
    bool attached;            /* CUPTI was attached to one: */
    struct hec_tracer tracer; /* the command's own process, else the last one */
    char program[64];         /* the name of its executable, "" unknown */
    pid_t root;               /* the command, 0: not known yet */
};

/* Decides from what was remembered. In auto, CUPTI stays out of what killed a program; a mode that was asked for by name
 * keeps it, with a warning. */
void hec_guard_watch_begin(struct hec_guard_watch *watch, int mode, bool simulated);

/* How a process was traced so far; from the trace's thread, not after its lane has stopped. */
void hec_guard_watch_tracer(void *watch, const struct hec_tracer *tracer);

/* The command has ended and `command` is its name: remembers a crash, and reports to the run the crash and a CUPTI that
 * stayed out. No failure of it reaches the run. */
void hec_guard_watch_end(const struct hec_guard_watch *watch, const struct hec_child *child, const char *command,
                         const struct hec_sink *sink);
