/* The longest time in which a device is held and given nothing, between two works of it: a notebook that waits for its owner, a host that
 * goes on alone. It has worked before, so that set-up is none, and the program's own code has nearly all of that time: what waits for data,
 * for requests or for code is another cause's. Of the whole run, traced or inferred; time that nobody saw ends it. */
#pragma once

#include "diagnose/states/state.h"

struct hec_hold {
    int64_t from_ns, to_ns; /* both 0: none */
    uint32_t frame;         /* of a stack sample in it; 0 none */
};

/* All zero at first. */
struct hec_hold_search {
    struct hec_hold longest;
    int64_t busy_ns;                   /* of the device's work so far */
    int64_t from_ns, host_ns, idle_ns; /* of the gap at hand; idle_ns 0: none */
    int64_t longest_host_ns;           /* of its pieces of the program's own code */
    uint32_t frame;                    /* of that one */
};

/* Pieces of one device, in order of time. */
void hec_hold_piece(struct hec_hold_search *search, const struct hec_state_piece *piece);
