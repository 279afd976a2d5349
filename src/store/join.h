/* Several runs of one job become one: those of several hosts, or of several `hec run` beside each other. */
#pragma once

#include "store/reader.h"

#define HEC_JOIN_MAX 64
/* Process ids of the n-th run are moved by n of this: Linux has none as large (PID_MAX_LIMIT), and hosts have the same ones. */
#define HEC_JOIN_PIDS (1 << 23)

struct hec_join_run {
    struct hec_reader *reader;
    int64_t shift_ns; /* added to its times; none becomes less than 0 */
};

/* Writes a run file at path, which must not exist. A device that several runs of a host have seen, known by its UUID, is one; its readings
 * are those of the run whose processes use it. Facts are those of the first run, but for those of each (ranks, hosts, whether it is
 * complete), and `facts`: keys and values, ended by NULL. HEC_ERR_LIMIT: there are more devices than a run can have. */
int hec_store_join(const struct hec_join_run *runs, int count, const char *const *facts, const char *path,
                   struct hec_why *why);
