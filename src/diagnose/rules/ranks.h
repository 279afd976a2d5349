/* Inside rules/: the devices of a run beside each other. Ranks that work together wait for each other inside communication
 * kernels, so the least communication of all is what the transfers take, and what a device has more of is waiting. */
#ifndef HEC_DIAGNOSE_RULES_RANKS_H
#define HEC_DIAGNOSE_RULES_RANKS_H

#include "diagnose/rules/facts.h"

struct hec_ranks {
    int devices;       /* with a ledger and communication */
    uint64_t mask;     /* bits (1 << hec_device.index) of those */
    double comm_s;     /* of this device, not overlapped */
    double transfer_s; /* the least of all devices */
    double work_s;     /* of this device: all but communication, start-up, tail and what is unknown */
    int slowest;       /* device with the least communication */
    double slowest_work_s;
    double compute_s, slowest_compute_s;
    int waits_most;   /* device with the most communication */
    double waiting_j; /* of all devices together, at each one's watts in communication; NAN unknown */
    double mean_work_s;
    bool estimated;
};

/* Of the steady part (steady.h): ranks set themselves up side by side. All zero but for devices where it has no communication. */
void hec_ranks_gather(const struct hec_facts *facts, struct hec_ranks *out);

#endif
