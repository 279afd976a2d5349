/* The files of one signal: what was and what is forecast may lie in two. They are read again when they change. */
#pragma once

#include "observe/grid/signal.h"

#include <sys/types.h>
#include <time.h>

#define HEC_SIGNALS_MOST 8

/* By what a file is known to be the one that was read; all 0: it is gone. */
struct hec_signals_seen {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct hec_signals_file {
    const char *path; /* the caller's */
    struct hec_signals_seen seen;
    struct hec_signal signal;
};

struct hec_signals {
    bool carbon; /* else prices */
    int count;
    struct hec_signals_file files[HEC_SIGNALS_MOST];
};

/* Where files overlap, the one that was added last counts. All are of one kind and source: HEC_ERR_USAGE. Also as hec_signal_parse, and
 * HEC_ERR_NOTFOUND, HEC_ERR_IO ..., each with a sentence that names the file. */
int hec_signals_add(struct hec_signals *signals, const char *path, struct hec_why *why);
void hec_signals_free(struct hec_signals *signals);

/* Reads what has changed. Returns how many files did; an error, once for each change, of a file that is gone or no longer good: what it
 * said before stays. */
int hec_signals_renew(struct hec_signals *signals, struct hec_why *why);

/* NAN: nothing is known of that time. */
double hec_signals_at(const struct hec_signals *signals, int64_t t_s);
/* When after t_s a value begins or ends next; INT64_MAX: never. */
int64_t hec_signals_next(const struct hec_signals *signals, int64_t t_s);
/* Of a time, each value weighted by how long it holds; NAN unless all of that time is known. */
double hec_signals_mean(const struct hec_signals *signals, double from_s, double until_s);
/* "average, Electricity Maps, DE"; "" without a file or of prices. */
const char *hec_signals_label(const struct hec_signals *signals, char out[128]);
