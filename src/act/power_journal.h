/* What the power guard has changed and not yet put back, on disk: one small file a device and setting, written before the
 * setting is.
 *
 * Folder: of a real machine, as root, /var/lib/hec (/run/hec where that cannot be written); else the state folder (hec_path_state).
 * HEC_STATE_DIR goes before both. power-KEY-cap.json and power-KEY-clock.json hold the entries; power-KEY.lock is locked while the
 * guardian of the lease lives (base/live.h). */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "launch/simulation.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* One setting of a device that the power guard has changed, as a text of its journal. Pure. */
enum hec_power_knob { HEC_POWER_CAP, HEC_POWER_CLOCK, HEC_POWER_KNOB_COUNT };

struct hec_power_entry {
    enum hec_power_knob knob;
    char uuid[96];                     /* of the device */
    char machine[HEC_SIMULATION_SPEC]; /* the simulated machine, as --sim takes it; "": this one */
    char boot[64];                     /* when it was written: the boot's id */
    char driver[48];
    int64_t prior;                /* mW, or 0 for clocks that were not locked: to be put back */
    int64_t value;                /* mW or MHz: to be written, or written */
    int64_t before;               /* what this lease wrote earlier, which is there until value is; 0: nothing */
    int64_t holder, holder_start; /* process id, and when it was started, in clock ticks since boot */
    char program[128];            /* what it is */
};

int hec_power_entry_print(const struct hec_power_entry *entry, struct hec_buf *out);
/* Anything may be in it. HEC_ERR_CORRUPT, HEC_ERR_VERSION with a sentence. */
int hec_power_entry_parse(const char *text, size_t length, struct hec_power_entry *entry, struct hec_why *why);
/* KEY of a device: its UUID, and that of a simulated machine with what tells machines apart. */
#define HEC_POWER_KEY 160
int hec_power_entry_key(const char *uuid, const char *machine, char key[HEC_POWER_KEY]); /* HEC_ERR_USAGE: no UUID */

int hec_power_journal_write(const struct hec_power_entry *entry, struct hec_why *why);
int hec_power_journal_remove(const struct hec_power_entry *entry, struct hec_why *why);
/* HEC_ERR_NOTFOUND: there is none. An entry that is not of this device is damaged. */
int hec_power_journal_read(const char *uuid, const char *machine, enum hec_power_knob knob,
                           struct hec_power_entry *entry, struct hec_why *why);
/* The lock of a device; a descriptor that holds it. HEC_ERR_BUSY: another process does, or a guardian is
 * not done with putting back after 3 s; the sentence names it. */
int hec_power_journal_lock(const char *uuid, const char *machine, int *fd, struct hec_why *why);
void hec_power_journal_unlock(const char *uuid, const char *machine, int fd);

/* Every entry of every folder that this user has: whole (err HEC_OK), or the reason why not, and its path. */
typedef void (*hec_power_seen)(void *context, const char *path, int err, const struct hec_power_entry *entry,
                               const char *why);
void hec_power_journal_each(hec_power_seen seen, void *context);
