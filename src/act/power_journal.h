/* What the power guard has changed and not yet put back, on disk: one small file a device and setting, written before the
 * setting is (act/power_entry.h).
 *
 * Folder: of a real machine, as root, /var/lib/hec (/run/hec where that cannot be written); else the state folder (hec_path_state).
 * HEC_STATE_DIR goes before both. power-KEY-cap.json and power-KEY-clock.json hold the entries; power-KEY.lock is locked while the
 * guardian of the lease lives (base/live.h). */
#ifndef HEC_ACT_POWER_JOURNAL_H
#define HEC_ACT_POWER_JOURNAL_H

#include "act/power_entry.h"

#include <limits.h>
#include <stdbool.h>

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

#endif
