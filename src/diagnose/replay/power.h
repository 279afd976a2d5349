/* What devices draw in a replay: by their joules over the recorded stretch, and by what the ledger says of waiting and copying. */
#ifndef HEC_DIAGNOSE_REPLAY_POWER_H
#define HEC_DIAGNOSE_REPLAY_POWER_H

#include "diagnose/replay/replay.h"
#include "diagnose/result.h"

/* W of a device: each where waiting draws what it draws at least, at best guess, and at most. The joules of the stretch are known:
 * where waiting takes less of them, work takes more. */
struct hec_replay_watts {
    int device;
    double joules;                                      /* in the stretch; NAN unknown */
    double work[3], comm[3], wait[3], copy[3], idle[3]; /* wait: for other processes. NAN unknown */
    bool comm_known;                                    /* else it is taken to draw what work does */
};

struct hec_replay_power {
    struct hec_replay_watts of[HEC_DEVICE_MAX];
    int count;
    double joules[HEC_DEVICE_MAX]; /* in the stretch, by hec_device.index; NAN unknown */
};

/* recorded: the unchanged replay of the schedule. Watts are NAN where the device's joules are not known. 0, or what the input
 * returned. */
struct hec_meter;
int hec_replay_power_find(struct hec_meter *meter, const struct hec_summary *summary,
                          const struct hec_schedule *schedule, const struct hec_replay *recorded,
                          struct hec_replay_power *out, struct hec_why *why);
/* Share of the joules of all devices: what one replay saves against another. NAN unknown; < 0: it takes more. */
struct hec_saving hec_replay_power_saved(const struct hec_replay_power *power, const struct hec_replay *before,
                                         const struct hec_replay *after);

#endif
