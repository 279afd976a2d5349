/* What devices draw in a replay: by their joules over the recorded stretch, and by what the ledger says of waiting and copying. */
#pragma once

#include "diagnose/replay/replay.h"
#include "diagnose/result.h"

/* ---- how far proven savings were from replayed ones, by kind of edit: the intervals of predictions come from it ---- */

/* By what to multiply the spread on hardware and frameworks that no proof is of. */
#define HEC_PROOFS_ELSEWHERE 1.5
#define HEC_PROOFS_NONE 0.6 /* spread of an edit of which there is no proof: twice that of those that have */

/* HEC_PROOFS_ELSEWHERE, or 1. */
double hec_proofs_widen(const struct hec_summary *summary);
/* Whether there is any of that edit. */
bool hec_proofs_known(enum hec_edit edit);
/* A saving whose -ln(1 - saving) is exp(by) times as much, small ones a little more. */
double hec_proofs_scaled(double saving, double by);
/* Widens [low, best, high] of a replayed saving, a share of a step's seconds (joules), to what proofs say; the best guess stays. What takes
 * more than before is taken to save nothing. NAN stays. */
struct hec_saving hec_proofs_seconds(enum hec_edit edit, struct hec_saving replayed, double widen);
struct hec_saving hec_proofs_joules(enum hec_edit edit, struct hec_saving replayed, double widen);

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
