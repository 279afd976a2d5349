/* The recorder of a node: started, and started again from time to time while there is no driver or a device does not answer. */
#pragma once

#include "agent/node.h"
#include "observe/recorder.h"

struct hec_watch {
    struct hec_node *node;
    const struct hec_collector *const *collectors;
    struct hec_observe_options observe;
    struct hec_recorder *recorder; /* NULL: none runs */
    int abandoned;                 /* threads that hang in a driver: they still refer to the node and to this */
    int64_t started_ns, retry_ns, backoff_ns;
    char trouble[256]; /* what was last logged of it */
};

/* nvml_path: as hec_observe_options. A failure is logged. */
void hec_watch_start(struct hec_watch *watch, struct hec_node *node, const struct hec_collector *const *collectors,
                     const char *nvml_path);
/* To be called about once an interval. Whether what there is may be shown: devices had the time to appear. */
bool hec_watch_poll(struct hec_watch *watch, int64_t now_ns);
void hec_watch_stop(struct hec_watch *watch);
