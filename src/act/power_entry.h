/* One setting of a device that the power guard has changed, as a text of its journal. Pure. */
#ifndef HEC_ACT_POWER_ENTRY_H
#define HEC_ACT_POWER_ENTRY_H

#include "base/buf.h"
#include "base/error.h"
#include "launch/simulation.h"

#include <stdint.h>

#define HEC_POWER_SCHEMA "hec.power/1"

enum hec_power_knob { HEC_POWER_CAP, HEC_POWER_CLOCK, HEC_POWER_KNOB_COUNT };
const char *hec_power_knob_name(enum hec_power_knob knob); /* "cap" */

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

#endif
