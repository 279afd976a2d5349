/* What each state and kernel class of a device took: the one door to pricing, class profiles and unmixing. They need what a
 * device was in from its first reading to its last, and which kernel classes matter, which is known when all has gone by: so
 * the states are put on a tape as they come. */
#pragma once

#include "diagnose/reason.h"
#include "diagnose/states/ledger.h"
#include "diagnose/watts/class_profile.h"

/* What a device of that name idles at with a context, W; NAN: not measured. */
double hec_watts_idle_of_part(const char *device);

/* One a piece; three where it is long. What comes after so many has no watts of its own. */
#define HEC_TAPE_WORDS (64u << 20)

struct hec_tape { /* zeroed at first */
    uint32_t *words;
    size_t count, capacity;
    int64_t start_ns, end_ns;
};

/* A word: length in ns, kernel class, state, seen, traced. A longer piece has LONG for its length, which follows in two words,
 * lower first. */
#define HEC_TAPE_CLASS_BITS 5
#define HEC_TAPE_STATE_BITS 4
#define HEC_TAPE_LONG (UINT32_MAX >> (HEC_TAPE_CLASS_BITS + HEC_TAPE_STATE_BITS + 2)) /* 2 ms */
_Static_assert(HEC_KERNEL_CLASS_COUNT <= 1 << HEC_TAPE_CLASS_BITS && HEC_STATE_COUNT <= 1 << HEC_TAPE_STATE_BITS,
               "bits of a piece");
static inline uint32_t hec_tape_word(const struct hec_state_piece *piece, bool seen, uint64_t length) {
    uint32_t word = (uint32_t)length << HEC_TAPE_CLASS_BITS | piece->kernel_class;
    return (word << HEC_TAPE_STATE_BITS | piece->state) << 2 | (uint32_t)seen << 1 | piece->traced;
}

/* Ascending and without holes; seen: by CUPTI, else inferred from calls. 0 or HEC_ERR_NOMEM. Inline: there are tens of millions,
 * most of them short. */
int hec_tape_add_slowly(struct hec_tape *tape, const struct hec_state_piece *piece, bool seen);
static inline int hec_tape_add(struct hec_tape *tape, const struct hec_state_piece *piece, bool seen) {
    uint64_t length = (uint64_t)(piece->end_ns - piece->start_ns);
    if (length >= HEC_TAPE_LONG || piece->start_ns != tape->end_ns || tape->count >= tape->capacity)
        return hec_tape_add_slowly(tape, piece, seen);
    tape->words[tape->count++] = hec_tape_word(piece, seen, length);
    tape->end_ns = piece->end_ns;
    return 0;
}
void hec_tape_free(struct hec_tape *tape);

struct hec_watts {
    struct hec_reason why; /* why the ledger's rows have no joules; none: they have */
    struct hec_reason how; /* on what its watts rest; none with why */
    struct hec_class_profile profile;
};

/* Puts watts and joules into the ledger of a device. timeline: its kernels; NULL: none was seen. tape NULL:
 * nothing. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_watts_price(struct hec_meter *meter, const struct hec_device_timeline *timeline,
                    const struct hec_device_summary *device, const struct hec_tape *tape,
                    struct hec_ledger_device *ledger, struct hec_watts *out, struct hec_why *why);
