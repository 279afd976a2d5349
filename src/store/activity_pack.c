#include "store/activity_pack.h"

#include "store/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Level 1: what is left after prediction is noise, for which zstd has nothing but its entropy coder at any level. */
#define LEVEL 1

#define DICTIONARY_SLOTS (2 * HEC_NUMBERS_MAX)

/* What a start, and what the time of a launch, is counted from. */
enum start_from { START_FROM_START, START_FROM_END, START_FROM_LAUNCH, START_FROM_COUNT };
enum launch_from { LAUNCH_FROM_START, LAUNCH_FROM_LAUNCH, LAUNCH_FROM_END, LAUNCH_FROM_COUNT };

enum { LAUNCH_KNOWN = 1, LAUNCH_END_KNOWN = 2 };
enum { AMOUNT_INTEGER, AMOUNT_BITS, AMOUNT_COUNT };

struct hec_packer {
    ZSTD_CCtx *compress;
    ZSTD_DCtx *decompress;
    unsigned char bytes[HEC_ACTIVITY_BLOCK_BYTES];
    int64_t index[HEC_NUMBERS_MAX], name[HEC_NUMBERS_MAX], least[HEC_NUMBERS_MAX];
    int64_t start[START_FROM_COUNT][HEC_NUMBERS_MAX], launch[LAUNCH_FROM_COUNT][HEC_NUMBERS_MAX];
    int64_t state[HEC_NUMBERS_MAX], column[HEC_NUMBERS_MAX], length[HEC_NUMBERS_MAX], launch_track[HEC_NUMBERS_MAX];
    struct {
        uint32_t name;
        uint16_t place, used; /* used: by the block with this number */
    } slots[DICTIONARY_SLOTS];
    uint16_t turn;
};

struct hec_packer *hec_packer_new(void) {
    struct hec_packer *packer = calloc(1, sizeof *packer);
    if (packer) {
        packer->compress = ZSTD_createCCtx();
        packer->decompress = ZSTD_createDCtx();
        if (packer->compress && packer->decompress)
            return packer;
    }
    hec_packer_free(packer);
    return NULL;
}

void hec_packer_free(struct hec_packer *packer) {
    if (!packer)
        return;
    ZSTD_freeCCtx(packer->compress);
    ZSTD_freeDCtx(packer->decompress);
    free(packer);
}

/* Fill index, name and least: the names of the block in the order of their first use, and the shortest duration of
 * each. Returns how many. */
static size_t make_dictionary(struct hec_packer *p, const struct hec_activity *a, size_t count) {
    if (++p->turn == 0) {
        memset(p->slots, 0, sizeof p->slots);
        p->turn = 1;
    }
    size_t names = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = a[i].name * UINT32_C(2654435769) >> 19; /* Fibonacci hashing, to 13 bits */
        while (p->slots[at].used == p->turn && p->slots[at].name != a[i].name)
            at = (at + 1) % DICTIONARY_SLOTS;
        int64_t duration = a[i].end_ns - a[i].start_ns;
        if (p->slots[at].used != p->turn) {
            p->slots[at].used = p->turn;
            p->slots[at].name = a[i].name;
            p->slots[at].place = (uint16_t)names;
            p->name[names] = a[i].name;
            p->least[names++] = duration;
        }
        size_t place = p->slots[at].place;
        p->index[i] = (int64_t)place;
        if (duration < p->least[place])
            p->least[place] = duration;
    }
    return names;
}

/* Bits that a column will take, roughly: those of the differences of neighbours, which single outliers do not raise. */
static size_t cost(const int64_t *values, size_t count) {
    size_t bits = 0;
    for (size_t i = 1; i < count; i++) {
        uint64_t difference = (uint64_t)values[i] - (uint64_t)values[i - 1];
        uint64_t size = difference >> 63 ? 0 - difference : difference;
        bits += 64 - (size_t)__builtin_clzll(size | 1);
    }
    return bits;
}

/* The candidates for how starts and launches are kept. */
static void predict(struct hec_packer *p, const struct hec_activity *a, size_t count, bool launches) {
    int64_t launch = a[0].start_ns, launch_end = a[0].start_ns;
    for (size_t i = 0; i < count; i++) {
        size_t before = i ? i - 1 : 0;
        p->start[START_FROM_START][i] = a[i].start_ns - a[before].start_ns;
        p->start[START_FROM_END][i] = i ? a[i].start_ns - a[before].end_ns : 0;
        if (!launches)
            continue;
        if (p->state[i] & LAUNCH_KNOWN) {
            p->start[START_FROM_LAUNCH][i] = p->launch[LAUNCH_FROM_START][i] = a[i].start_ns - a[i].launch_ns;
            p->launch[LAUNCH_FROM_LAUNCH][i] = a[i].launch_ns - launch;
            p->launch[LAUNCH_FROM_END][i] = a[i].launch_ns - launch_end;
            launch = a[i].launch_ns;
            launch_end = p->state[i] & LAUNCH_END_KNOWN ? a[i].launch_end_ns : launch;
        } else { /* no number is needed: one that costs nothing */
            for (int from = 0; from < LAUNCH_FROM_COUNT; from++)
                p->launch[from][i] = i ? p->launch[from][before] : 0;
        }
    }
}

static void choose(struct hec_packer *p, size_t count, bool launches, bool all_known, int *start_from,
                   int *launch_from) {
    size_t start[START_FROM_COUNT], launch[LAUNCH_FROM_COUNT] = {0}, best = SIZE_MAX;
    for (int from = 0; from < START_FROM_COUNT; from++)
        start[from] = from != START_FROM_LAUNCH || all_known ? cost(p->start[from], count) : SIZE_MAX;
    for (int from = 0; from < LAUNCH_FROM_COUNT && launches; from++)
        launch[from] = cost(p->launch[from], count);
    *start_from = *launch_from = 0;
    for (int s = 0; s < START_FROM_COUNT; s++)
        for (int l = 0; l < LAUNCH_FROM_COUNT; l++) {
            bool circle = s == START_FROM_LAUNCH && l == LAUNCH_FROM_START;
            if (start[s] == SIZE_MAX || circle || start[s] + launch[l] >= best)
                continue;
            best = start[s] + launch[l];
            *start_from = s;
            *launch_from = l;
        }
}

static void pack_launches(struct hec_encoder *e, struct hec_packer *p, const struct hec_activity *a, size_t count,
                          int launch_from) {
    hec_encode_numbers(e, p->launch[launch_from], count);
    for (size_t i = 0; i < count; i++)
        p->column[i] = p->state[i] & LAUNCH_END_KNOWN ? a[i].launch_end_ns - a[i].launch_ns : i ? p->column[i - 1] : 0;
    hec_encode_numbers(e, p->column, count);
    for (size_t i = 0; i < count; i++)
        p->column[i] = a[i].launch_track;
    hec_encode_numbers(e, p->column, count);
}

static bool is_integer(double amount) {
    return fabs(amount) < 9007199254740992.0 && (double)(int64_t)amount == amount && !(amount == 0 && signbit(amount));
}

static void pack_amounts(struct hec_encoder *e, struct hec_packer *p, const struct hec_activity *a, size_t count) {
    bool integer = true;
    for (size_t i = 0; i < count && integer; i++)
        integer = is_integer(a[i].amount);
    for (size_t i = 0; i < count; i++) {
        if (integer)
            p->column[i] = (int64_t)a[i].amount;
        else
            memcpy(&p->column[i], &a[i].amount, sizeof a[i].amount);
    }
    hec_encode_byte(e, integer ? AMOUNT_INTEGER : AMOUNT_BITS);
    hec_encode_numbers(e, p->column, count);
}

/* The bytes of an activity that stand for themselves. */
static const size_t small_fields[] = {offsetof(struct hec_activity, detail), offsetof(struct hec_activity, from),
                                      offsetof(struct hec_activity, to), offsetof(struct hec_activity, flags)};

size_t hec_packer_pack(struct hec_packer *p, const struct hec_activity *a, size_t count, const unsigned char **bytes) {
    struct hec_encoder e = {.out = p->bytes, .zstd = p->compress, .level = LEVEL};
    bool device = HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a[0].kind);
    bool launches = false, all_known = true;
    for (size_t i = 0; i < count; i++) {
        p->state[i] = !device || a[i].launch_ns == HEC_TIME_UNKNOWN ? 0
                      : a[i].launch_end_ns == HEC_TIME_UNKNOWN      ? LAUNCH_KNOWN
                                                                    : LAUNCH_KNOWN | LAUNCH_END_KNOWN;
        launches = launches || p->state[i];
        all_known = all_known && p->state[i];
    }
    size_t names = make_dictionary(p, a, count);
    int start_from, launch_from;
    predict(p, a, count, launches);
    choose(p, count, launches, all_known, &start_from, &launch_from);

    hec_encode_varint(&e, names);
    hec_encode_numbers(&e, p->name, names);
    hec_encode_numbers(&e, p->least, names);
    hec_encode_numbers(&e, p->index, count);
    hec_encode_byte(&e, (unsigned)start_from);
    hec_encode_numbers(&e, p->start[start_from], count);
    for (size_t i = 0; i < count; i++)
        p->column[i] = a[i].end_ns - a[i].start_ns - p->least[p->index[i]];
    hec_encode_numbers(&e, p->column, count);
    hec_encode_numbers(&e, p->state, count);
    if (launches) {
        hec_encode_byte(&e, (unsigned)launch_from);
        pack_launches(&e, p, a, count, launch_from);
    }
    pack_amounts(&e, p, a, count);
    for (size_t f = 0; f < sizeof small_fields / sizeof small_fields[0]; f++) {
        for (size_t i = 0; i < count; i++)
            p->column[i] = ((const unsigned char *)&a[i])[small_fields[f]];
        hec_encode_numbers(&e, p->column, count);
    }
    *bytes = p->bytes;
    return e.length;
}

/* Reading. What is decoded is in the packer's columns; here, "false" is "damaged". */

static bool within(int64_t t_ns) {
    return t_ns >= -HEC_RECORD_TIME_MAX_NS && t_ns <= HEC_RECORD_TIME_MAX_NS;
}

static bool all_below(const int64_t *values, size_t count, uint64_t limit) {
    bool good = true;
    for (size_t i = 0; i < count; i++)
        good &= (uint64_t)values[i] < limit;
    return good;
}

/* A column, written out even where it is constant. */
static bool numbers(struct hec_decoder *d, int64_t *values, size_t count) {
    bool constant;
    if (!hec_decode_numbers(d, values, count, &constant))
        return false;
    for (size_t i = 1; i < count && constant; i++)
        values[i] = values[0];
    return true;
}

static bool unpack_names(struct hec_packer *p, struct hec_decoder *d, size_t count, uint32_t highest) {
    uint64_t names;
    return hec_decode_varint(d, &names) && names >= 1 && names <= count && numbers(d, p->name, names) &&
           all_below(p->name, names, (uint64_t)highest + 1) && numbers(d, p->least, names) &&
           numbers(d, p->index, count) && all_below(p->index, count, names);
}

static int64_t add(int64_t a, int64_t b) { /* numbers of a hostile file may be anything */
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

struct froms {
    unsigned start, launch;
};

/* All times: each is counted from one that came before it. */
static void unpack_times(const struct hec_packer *p, struct froms from, int64_t t0_ns, size_t count,
                         struct hec_activity *a) {
    const int64_t *starts = p->start[from.start], *launches = p->launch[from.launch];
    int64_t start = t0_ns, end = t0_ns, launch = t0_ns, launch_end = t0_ns;
    for (size_t i = 0; i < count; i++) {
        int64_t state = p->state[i];
        if (from.launch != LAUNCH_FROM_START && state)
            launch = add(from.launch == LAUNCH_FROM_LAUNCH ? launch : launch_end, launches[i]);
        start = add(from.start == START_FROM_START ? start : from.start == START_FROM_END ? end : launch, starts[i]);
        end = add(start, add(p->least[p->index[i]], p->column[i]));
        a[i].start_ns = start;
        a[i].end_ns = end;
        if (!state)
            continue;
        if (from.launch == LAUNCH_FROM_START)
            launch = (int64_t)((uint64_t)start - (uint64_t)launches[i]);
        launch_end = state & LAUNCH_END_KNOWN ? add(launch, p->length[i]) : launch;
        a[i].launch_ns = launch;
        if (state & LAUNCH_END_KNOWN)
            a[i].launch_end_ns = launch_end;
    }
}

static bool times_are_good(const struct hec_packer *p, int64_t t0_ns, size_t count, const struct hec_activity *a) {
    bool good = a[0].start_ns == t0_ns;
    int64_t before = t0_ns;
    for (size_t i = 0; i < count; i++) {
        good &= a[i].start_ns >= before && a[i].end_ns >= a[i].start_ns && a[i].end_ns <= HEC_RECORD_TIME_MAX_NS;
        if (p->state[i] & LAUNCH_KNOWN)
            good &= within(a[i].launch_ns);
        if (p->state[i] & LAUNCH_END_KNOWN)
            good &= a[i].launch_end_ns >= a[i].launch_ns && a[i].launch_end_ns <= HEC_RECORD_TIME_MAX_NS;
        before = a[i].start_ns;
    }
    return good;
}

static bool unpack_launches(struct hec_packer *p, struct hec_decoder *d, size_t count, struct froms *from,
                            uint32_t tracks, struct hec_activity *a) {
    bool any = false, all = true, constant;
    for (size_t i = 0; i < count; i++) {
        any |= p->state[i] != 0;
        all &= p->state[i] != 0;
    }
    if (!any)
        return from->start != START_FROM_LAUNCH;
    if (!hec_decode_byte(d, LAUNCH_FROM_COUNT, &from->launch) || !numbers(d, p->launch[from->launch], count) ||
        !numbers(d, p->length, count) || !hec_decode_numbers(d, p->launch_track, count, &constant) ||
        !all_below(p->launch_track, constant ? 1 : count, (uint64_t)tracks + 1))
        return false;
    for (size_t i = 0; i < count; i++)
        a[i].launch_track = (uint32_t)p->launch_track[constant ? 0 : i];
    return from->start != START_FROM_LAUNCH || (all && from->launch != LAUNCH_FROM_START);
}

static bool unpack_amounts(struct hec_packer *p, struct hec_decoder *d, size_t count, struct hec_activity *a) {
    unsigned mode;
    bool constant;
    int64_t *column = p->length; /* done with */
    if (!hec_decode_byte(d, AMOUNT_COUNT, &mode) || !hec_decode_numbers(d, column, count, &constant))
        return false;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        int64_t number = column[constant ? 0 : i];
        if (mode == AMOUNT_INTEGER)
            a[i].amount = (double)number;
        else
            memcpy(&a[i].amount, &number, sizeof number);
        good &= !isinf(a[i].amount);
    }
    return good;
}

static bool unpack_small(struct hec_packer *p, struct hec_decoder *d, size_t count, struct hec_activity *a) {
    for (size_t f = 0; f < sizeof small_fields / sizeof small_fields[0]; f++) {
        bool constant;
        if (!hec_decode_numbers(d, p->length, count, &constant) ||
            !all_below(p->length, constant ? 1 : count, UINT8_MAX + 1))
            return false;
        if (constant && p->length[0] == 0)
            continue; /* as it is already */
        for (size_t i = 0; i < count; i++)
            ((unsigned char *)&a[i])[small_fields[f]] = (unsigned char)p->length[constant ? 0 : i];
    }
    return true;
}

const char *hec_packer_unpack(struct hec_packer *p, const void *bytes, size_t length, uint32_t track,
                              enum hec_activity_kind kind, int64_t t0_ns, size_t count,
                              const struct hec_activity_limits *limits, struct hec_activity *a) {
    static const char damaged[] = "a block of activities holds something impossible";
    struct hec_decoder d = {bytes, (const unsigned char *)bytes + length, p->decompress};
    struct froms from = {0, 0};
    if (count < 1 || count > HEC_ACTIVITY_BLOCK || !within(t0_ns) || !unpack_names(p, &d, count, limits->name[kind]) ||
        !hec_decode_byte(&d, START_FROM_COUNT, &from.start) || !numbers(&d, p->start[from.start], count) ||
        !numbers(&d, p->column, count) || !numbers(&d, p->state, count) || !all_below(p->state, count, 4))
        return damaged;
    bool device = HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(kind);
    int64_t unknown = device ? HEC_TIME_UNKNOWN : 0;
    for (size_t i = 0; i < count; i++) {
        if (p->state[i] == LAUNCH_END_KNOWN || (p->state[i] && !device))
            return damaged;
        a[i] = (struct hec_activity){.launch_ns = unknown,
                                     .launch_end_ns = unknown,
                                     .track = track,
                                     .name = (uint32_t)p->name[p->index[i]],
                                     .kind = (uint8_t)kind};
    }
    if (!unpack_launches(p, &d, count, &from, limits->tracks, a))
        return damaged;
    unpack_times(p, from, t0_ns, count, a);
    if (!times_are_good(p, t0_ns, count, a) || !unpack_amounts(p, &d, count, a) || !unpack_small(p, &d, count, a) ||
        d.at != d.end)
        return damaged;
    return NULL;
}
