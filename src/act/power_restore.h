/* Putting back what the journal says. */
#pragma once

#include "act/power_device.h"

/* On a machine that is open, under the lock of the device: put back what an entry says, and remove it. What somebody else has
 * set meanwhile is left alone, and said in a line. 1: it was put back; 0: there was nothing to do. On an error the entry stays. */
int hec_power_restore_entry(const struct hec_power_machine *machine, const struct hec_power_entry *entry,
                            struct hec_buf *said, struct hec_why *why);

/* Every entry whose holder and guardian are gone, on the machine that it names, in this process (which may open simulated
 * machines of its own for it). Returns how many were put back; *left: how many remain, with a line each,
 * which come first. */
int hec_power_restore_all(int *left, struct hec_buf *said);
