/* What the host asked of a device: API calls by class, copies by pattern, code that was loaded late. One streaming pass,
 * fed beside the timeline; counts are of what was traced. */
#ifndef HEC_DIAGNOSE_CALLS_H
#define HEC_DIAGNOSE_CALLS_H

#include "base/error.h"
#include "model/trace.h"

#include <stddef.h>

struct hec_timeline_tables;

struct hec_call_total {
    int64_t count;
    double seconds; /* sum of durations */
};

struct hec_call_facts {
    int device;
    struct hec_call_total api[HEC_API_CLASS_COUNT]; /* of the processes with streams on the device */
    int64_t steps;                                  /* wholly traced; 0 unknown. To divide by */
    /* copies on the device */
    int64_t small_copies; /* of less than 64 KiB between host and device */
    double small_copy_s;
    int64_t round_trips; /* device to host, then as many bytes back within 10 ms and 64 copies */
    double round_trip_bytes, round_trip_s;
    double pageable_bytes, pageable_s; /* host to device and back, pageable */
    double pinned_bytes, pinned_s;
    int64_t blocking_copies; /* whose call waited until the copy was done */
    double blocking_s;       /* in those calls */
    /* code loaded after a quarter of the process's kernels had run (the start-up is over) */
    int64_t late_loads;
    double late_load_s;
    /* consecutive element-wise kernels of one stream: unfused chains */
    int64_t chains;    /* of three kernels or more */
    double chain_s;    /* in them */
    double chain_mean; /* kernels a chain; NAN without */
    int64_t graph_launches;
};

#endif
