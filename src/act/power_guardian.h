/* Inside src/act/power_*: what the guardian and its client say to each other. */
#ifndef HEC_ACT_POWER_GUARDIAN_H
#define HEC_ACT_POWER_GUARDIAN_H

#include "act/power_guard.h"

enum power_wish { POWER_SET, POWER_CLEAR, POWER_CLOSE };

struct power_request {
    enum power_wish wish;
    enum hec_power_knob knob;
    int64_t value;
};

struct power_reply {
    int err;
    struct hec_why why; /* also without an error, where there is something to say */
};

/* Serve the requests of a socket until it ends, put everything back. The first reply says whether it can. holder: who asks. */
void power_guardian_serve(const struct hec_power_options *options, int socket, const struct hec_power_entry *holder);

#endif
