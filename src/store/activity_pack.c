#include "store/activity_pack.h"

#include "store/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Level 1: what is left of a column is noise, for which zstd has nothing but its entropy coder at any level. */
#define LEVEL 1

enum { LAUNCH_KNOWN = 1, LAUNCH_END_KNOWN = 2 };
enum { AMOUNT_INTEGER, AMOUNT_BITS, AMOUNT_COUNT };

struct hec_packer {
    ZSTD_CCtx *compress;
    ZSTD_DCtx *decompress;
    unsigned char bytes[HEC_ACTIVITY_BLOCK_BYTES];
    int64_t column[HEC_NUMBERS_MAX];
    int64_t gap[HEC_NUMBERS_MAX], duration[HEC_NUMBERS_MAX];  /* from the end before to the start; to the end */
    int64_t state[HEC_NUMBERS_MAX];                           /* of the launch */
    int64_t launch[HEC_NUMBERS_MAX], length[HEC_NUMBERS_MAX]; /* from the end of the launch before; to its end */
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

/* Columns of differences; whether any launch is known. */
static bool make_columns(struct hec_packer *p, const struct hec_activity *a, size_t count) {
    bool device = HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a[0].kind), launches = false;
    int64_t end = a[0].start_ns, launch_end = end;
    for (size_t i = 0; i < count; i++) {
        p->gap[i] = a[i].start_ns - end;
        p->duration[i] = a[i].end_ns - a[i].start_ns;
        end = a[i].end_ns;
        if (!device || a[i].launch_ns == HEC_TIME_UNKNOWN) {
            p->state[i] = 0;
            p->launch[i] = i ? p->launch[i - 1] : 0; /* no number is needed: one that costs nothing */
            p->length[i] = i ? p->length[i - 1] : 0;
            continue;
        }
        bool ends = a[i].launch_end_ns != HEC_TIME_UNKNOWN;
        launches = true;
        p->state[i] = ends ? LAUNCH_KNOWN | LAUNCH_END_KNOWN : LAUNCH_KNOWN;
        p->launch[i] = a[i].launch_ns - launch_end;
        p->length[i] = ends ? a[i].launch_end_ns - a[i].launch_ns : i ? p->length[i - 1] : 0;
        launch_end = ends ? a[i].launch_end_ns : a[i].launch_ns;
    }
    return launches;
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
#define SMALL_FIELDS (sizeof small_fields / sizeof small_fields[0])

/* The device of calls: last, and only where one is known. */
static void pack_devices(struct hec_encoder *e, struct hec_packer *p, const struct hec_activity *a, size_t count) {
    unsigned known = 0;
    for (size_t i = 0; i < count; i++) {
        p->column[i] = a[i].device;
        known |= a[i].device;
    }
    if (known)
        hec_encode_numbers(e, p->column, count);
}

size_t hec_packer_pack(struct hec_packer *p, const struct hec_activity *a, size_t count, const unsigned char **bytes) {
    struct hec_encoder e = {.out = p->bytes, .zstd = p->compress, .level = LEVEL};
    bool launches = make_columns(p, a, count);
    for (size_t i = 0; i < count; i++)
        p->column[i] = a[i].name;
    hec_encode_numbers(&e, p->column, count);
    hec_encode_numbers(&e, p->gap, count);
    hec_encode_numbers(&e, p->duration, count);
    hec_encode_numbers(&e, p->state, count);
    if (launches) {
        hec_encode_numbers(&e, p->launch, count);
        hec_encode_numbers(&e, p->length, count);
        for (size_t i = 0; i < count; i++)
            p->column[i] = a[i].launch_track;
        hec_encode_numbers(&e, p->column, count);
    }
    pack_amounts(&e, p, a, count);
    for (size_t f = 0; f < SMALL_FIELDS; f++) {
        for (size_t i = 0; i < count; i++)
            p->column[i] = ((const unsigned char *)&a[i])[small_fields[f]];
        hec_encode_numbers(&e, p->column, count);
    }
    pack_devices(&e, p, a, count);
    *bytes = p->bytes;
    return e.length;
}

/* Reading. "false" is "damaged"; what the numbers of a hostile file add up to is looked at afterwards. */

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

/* A column of ids of at most highest, or of other numbers. */
static bool ids(struct hec_decoder *d, int64_t *values, size_t count, uint32_t highest) {
    return numbers(d, values, count) && all_below(values, count, (uint64_t)highest + 1);
}

static int64_t wrapping_sum(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static bool within(int64_t t_ns) {
    return t_ns >= -HEC_RECORD_TIME_MAX_NS && t_ns <= HEC_RECORD_TIME_MAX_NS;
}

static bool unpack_times(const struct hec_packer *p, int64_t t0_ns, size_t count, struct hec_activity *a) {
    int64_t before = t0_ns, end = t0_ns;
    bool good = within(t0_ns) && p->gap[0] == 0;
    for (size_t i = 0; i < count; i++) {
        int64_t start = wrapping_sum(end, p->gap[i]);
        end = wrapping_sum(start, p->duration[i]);
        good &= start >= before && end >= start && end <= HEC_RECORD_TIME_MAX_NS;
        a[i].start_ns = before = start;
        a[i].end_ns = end;
    }
    return good;
}

static bool unpack_launches(struct hec_packer *p, struct hec_decoder *d, int64_t t0_ns, size_t count, uint32_t tracks,
                            struct hec_activity *a) {
    if (!numbers(d, p->launch, count) || !numbers(d, p->length, count) || !ids(d, p->column, count, tracks))
        return false;
    int64_t end = t0_ns;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        int64_t state = p->state[i];
        a[i].launch_track = (uint32_t)p->column[i];
        if (!(state & LAUNCH_KNOWN)) {
            good &= state == 0;
            continue;
        }
        int64_t launch = wrapping_sum(end, p->launch[i]);
        end = launch;
        a[i].launch_ns = launch;
        if (state & LAUNCH_END_KNOWN)
            a[i].launch_end_ns = end = wrapping_sum(launch, p->length[i]);
        good &= within(launch) && end >= launch && end <= HEC_RECORD_TIME_MAX_NS;
    }
    return good;
}

static bool unpack_amounts(struct hec_packer *p, struct hec_decoder *d, size_t count, struct hec_activity *a) {
    unsigned mode;
    if (!hec_decode_byte(d, AMOUNT_COUNT, &mode) || !numbers(d, p->column, count))
        return false;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        if (mode == AMOUNT_INTEGER)
            a[i].amount = (double)p->column[i];
        else
            memcpy(&a[i].amount, &p->column[i], sizeof a[i].amount);
        good &= !isinf(a[i].amount);
    }
    return good;
}

static bool unpack_small(struct hec_packer *p, struct hec_decoder *d, size_t count, struct hec_activity *a) {
    for (size_t f = 0; f < SMALL_FIELDS; f++) {
        bool constant;
        if (!hec_decode_numbers(d, p->column, count, &constant) ||
            !all_below(p->column, constant ? 1 : count, UINT8_MAX + 1))
            return false;
        if (constant && p->column[0] == 0)
            continue; /* as it is already */
        for (size_t i = 0; i < count; i++)
            ((unsigned char *)&a[i])[small_fields[f]] = (unsigned char)p->column[constant ? 0 : i];
    }
    return true;
}

static bool unpack_devices(struct hec_packer *p, struct hec_decoder *d, size_t count, struct hec_activity *a) {
    if (d->at == d->end)
        return true;
    if (!ids(d, p->column, count, UINT8_MAX))
        return false;
    for (size_t i = 0; i < count; i++)
        a[i].device = (uint8_t)p->column[i];
    return true;
}

static bool unpack(struct hec_packer *p, struct hec_decoder *d, const struct hec_activity_head *head,
                   const struct hec_activity_limits *limits, struct hec_activity *a) {
    size_t count = head->n;
    if (!ids(d, p->column, count, limits->name[head->kind]) || !numbers(d, p->gap, count) ||
        !numbers(d, p->duration, count) || !ids(d, p->state, count, LAUNCH_KNOWN | LAUNCH_END_KNOWN))
        return false;
    bool device = HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(head->kind), launches = false;
    for (size_t i = 0; i < count; i++) {
        launches |= p->state[i] != 0;
        a[i] = (struct hec_activity){.launch_ns = device ? HEC_TIME_UNKNOWN : 0,
                                     .launch_end_ns = device ? HEC_TIME_UNKNOWN : 0,
                                     .track = head->track,
                                     .name = (uint32_t)p->column[i],
                                     .kind = (uint8_t)head->kind};
    }
    return unpack_times(p, head->t0_ns, count, a) &&
           (!launches || (device && unpack_launches(p, d, head->t0_ns, count, limits->tracks, a))) &&
           unpack_amounts(p, d, count, a) && unpack_small(p, d, count, a) && unpack_devices(p, d, count, a) &&
           d->at == d->end;
}

const char *hec_packer_unpack(struct hec_packer *p, const void *bytes, size_t length,
                              const struct hec_activity_head *head, const struct hec_activity_limits *limits,
                              struct hec_activity *activities) {
    struct hec_decoder d = {bytes, (const unsigned char *)bytes + length, p->decompress};
    return head->n >= 1 && head->n <= HEC_ACTIVITY_BLOCK && unpack(p, &d, head, limits, activities)
               ? NULL
               : "a block of activities holds something impossible";
}
