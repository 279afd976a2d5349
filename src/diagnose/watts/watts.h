/* What each state and kernel class of a device took: the one door to pricing, class profiles and unmixing. They need what a
 * device was in from its first reading to its last, and which kernel classes matter, which is known when all has gone by: so
 * the states are put on a tape as they come. */
#ifndef HEC_DIAGNOSE_WATTS_H
#define HEC_DIAGNOSE_WATTS_H

#include "diagnose/watts/class_profile.h"
#include "diagnose/ledger.h"

/* One a piece; three where it is long. What comes after so many has no watts of its own. */
#define HEC_TAPE_WORDS (64u << 20)

struct hec_tape { /* zeroed at first */
    uint32_t *words;
    size_t count, capacity;
    int64_t start_ns, end_ns;
};

/* Ascending and without holes; seen: by CUPTI, else inferred from calls. 0 or HEC_ERR_NOMEM. */
int hec_tape_add(struct hec_tape *tape, const struct hec_state_piece *piece, bool seen);
void hec_tape_free(struct hec_tape *tape);

struct hec_watts {
    char why[256]; /* why the ledger's rows have no joules; "": they have */
    char how[160]; /* on what its watts rest; "" with why */
    struct hec_class_profile profile;
};

/* Puts watts and joules into the ledger of a device. timeline: its kernels. tape NULL: nothing. 0, HEC_ERR_NOMEM or what
 * the input returned. */
int hec_watts_price(const struct hec_summary_input *input, const struct hec_timeline *timeline,
                    const struct hec_device_summary *device, const struct hec_tape *tape,
                    struct hec_ledger_device *ledger, struct hec_watts *out, struct hec_why *why);
/* Of a device that no telemetry is known of. */
void hec_watts_none(struct hec_ledger_device *ledger, struct hec_watts *out);

#endif
