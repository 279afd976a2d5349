#include "store/activity_pack.h"

#include "store/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Below this a plane does not get smaller: a frame of zstd has a head of some ten bytes. */
#define COMPRESS_LEAST 32

static void encode_byte(struct hec_encoder *encoder, unsigned value) {
    encoder->out[encoder->length++] = (unsigned char)value;
}

static void encode_varint(struct hec_encoder *encoder, uint64_t value) {
    while (value >= 0x80) {
        encode_byte(encoder, (unsigned)(value & 0x7f) | 0x80);
        value >>= 7;
    }
    encode_byte(encoder, (unsigned)value);
}

static uint64_t zigzag(int64_t value) {
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t value) {
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static void encode_plane(struct hec_encoder *encoder, const unsigned char *plane, size_t count) {
    unsigned char packed[HEC_NUMBERS_MAX];
    size_t size = 0;
    /* a sixteenth at least, or reading is not worth it */
    if (count >= COMPRESS_LEAST)
        size = ZSTD_compressCCtx(encoder->zstd, packed, count - count / 16, plane, count, encoder->level);
    if (size == 0 || ZSTD_isError(size)) {
        encode_varint(encoder, 0);
        memcpy(encoder->out + encoder->length, plane, count);
        encoder->length += count;
        return;
    }
    encode_varint(encoder, size);
    memcpy(encoder->out + encoder->length, packed, size);
    encoder->length += size;
}

void hec_encode_numbers(struct hec_encoder *encoder, const int64_t *values, size_t count) {
    int64_t low = values[0], high = values[0];
    for (size_t i = 1; i < count; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    uint64_t range = (uint64_t)high - (uint64_t)low;
    unsigned width = 0;
    while (width < 8 && range >> (8 * width))
        width++;
    encode_byte(encoder, width);
    encode_varint(encoder, zigzag(low));
    unsigned char plane[HEC_NUMBERS_MAX];
    for (unsigned j = 0; j < width; j++) {
        for (size_t i = 0; i < count; i++)
            plane[i] = (unsigned char)(((uint64_t)values[i] - (uint64_t)low) >> (8 * j));
        encode_plane(encoder, plane, count);
    }
}

/* false: the bytes end too early or say something impossible */
static bool decode_byte(struct hec_decoder *decoder, unsigned below, unsigned *value) {
    if (decoder->at == decoder->end || *decoder->at >= below)
        return false;
    *value = *decoder->at++;
    return true;
}

static bool decode_varint(struct hec_decoder *decoder, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && decoder->at < decoder->end; shift += 7) {
        unsigned byte = *decoder->at++;
        if (shift == 63 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* One plane, unpacked into room where it is packed. NULL: damaged. */
static const unsigned char *decode_plane(struct hec_decoder *decoder, unsigned char *room, size_t count) {
    uint64_t size;
    if (!decode_varint(decoder, &size))
        return NULL;
    const unsigned char *plane = decoder->at;
    size_t left = (size_t)(decoder->end - decoder->at);
    if (size == 0) {
        if (left < count)
            return NULL;
        decoder->at += count;
        return plane;
    }
    /* the room bounds what a frame may claim to hold */
    if (size > left || ZSTD_decompressDCtx(decoder->zstd, room, count, plane, (size_t)size) != count)
        return NULL;
    decoder->at += size;
    return room;
}

bool hec_decode_numbers(struct hec_decoder *decoder, int64_t *values, size_t count, bool *constant) {
    unsigned width;
    uint64_t low;
    if (!decode_byte(decoder, 9, &width) || !decode_varint(decoder, &low))
        return false;
    low = (uint64_t)unzigzag(low);
    *constant = width == 0;
    if (width == 0) {
        values[0] = (int64_t)low;
        return true;
    }
    unsigned char room[2][HEC_NUMBERS_MAX];
    for (unsigned j = 0; j < width; j += 2) {
        const unsigned char *a = decode_plane(decoder, room[0], count), *b = NULL;
        if (!a || (j + 1 < width && !(b = decode_plane(decoder, room[1], count))))
            return false;
        /* two planes at a time, without branches: compilers make this wide */
        if (b)
            for (size_t i = 0; i < count; i++) {
                uint64_t part = ((uint64_t)a[i] | (uint64_t)b[i] << 8) << (8 * j);
                values[i] = (int64_t)(j == 0 ? low + part : (uint64_t)values[i] + part);
            }
        else
            for (size_t i = 0; i < count; i++) {
                uint64_t part = (uint64_t)a[i] << (8 * j);
                values[i] = (int64_t)(j == 0 ? low + part : (uint64_t)values[i] + part);
            }
    }
    return true;
}

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
    encode_byte(e, integer ? AMOUNT_INTEGER : AMOUNT_BITS);
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
    if (!decode_byte(d, AMOUNT_COUNT, &mode) || !numbers(d, p->column, count))
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
