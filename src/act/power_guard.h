/* Power caps and clock locks for as long as this process lives, and not a moment longer (docs/power.md).
 *
 *     struct hec_power_options options = {.simulated = spec, .visible = getenv("CUDA_VISIBLE_DEVICES"), .allowed = given};
 *     hec_power_guard_open(&options, &guard, &why)      before hec_supervisor_start, hec_session_start and any thread
 *     hec_power_guard_set(guard, HEC_POWER_CAP, 400000, &why) ... as often as one likes, then sessions
 *     hec_power_guard_close(guard, &why)                what was there before is there again
 *
 * A guardian, a process of its own session that is no descendant of this one, does all the writing: it keeps the journal
 * (act/power_journal.h), reads back, and puts everything back when asked to or when this process is gone, however it went. Where the
 * guardian is killed, hec_power_guard_close puts back; where both are, the next hec_power_guard_open or hec_power_restore does. */
#pragma once

#include "act/power_journal.h"

#include <stdbool.h>

struct hec_power_options {
    const char *
        simulated; /* the machine, as --sim takes it: always allowed; NULL: this one. Sessions on the same one, too, see the cap */
    const char *visible; /* CUDA_VISIBLE_DEVICES: on which devices; NULL: on all */
    bool allowed;        /* the user has said that settings of this machine's devices may be changed */
};

struct hec_power_guard;

/* Puts back first what killed processes left. HEC_ERR_PERMISSION: not allowed; else why nothing can be set, in a sentence. */
int hec_power_guard_open(const struct hec_power_options *options, struct hec_power_guard **out, struct hec_why *why);

/* mW or MHz, on all devices of the guard. Read back: when this returns HEC_OK, it is what holds. HEC_ERR_USAGE: outside what
 * a device takes, which the sentence says; HEC_ERR_BUSY: another process holds the limits of a device, or somebody has changed
 * meanwhile what this guard had set, which stays; HEC_ERR_PERMISSION: only an administrator may; HEC_ERR_UNSUPPORTED: clocks of a
 * real device, whose lock could not be put back exactly. After an error everything is as it was before the first
 * hec_power_guard_set. */
int hec_power_guard_set(struct hec_power_guard *guard, enum hec_power_knob knob, int64_t value, struct hec_why *why);

/* The same of the device with that UUID alone, and after an error only that is as it was. HEC_ERR_NOTFOUND: it is none of the
 * guard's. */
int hec_power_guard_set_of(struct hec_power_guard *guard, const char *uuid, enum hec_power_knob knob, int64_t value,
                           struct hec_why *why);
int hec_power_guard_clear_of(struct hec_power_guard *guard, const char *uuid, struct hec_why *why);

/* Everything as it was; the guard can be used again. */
int hec_power_guard_clear(struct hec_power_guard *guard, struct hec_why *why);

/* The same, and the guardian ends. NULL is fine. An error says what could not be put back; a sentence with HEC_OK, what somebody
 * else has changed meanwhile and is left alone. */
int hec_power_guard_close(struct hec_power_guard *guard, struct hec_why *why);

/* Put back what killed processes left: how many settings; a line each in `said`. *left (may be NULL): how many could not be. */
int hec_power_restore(int *left, struct hec_buf *said, struct hec_why *why);
