#include "store/numbers.h"

#include <string.h>

/* Below this a plane does not get smaller: a frame of zstd has a head of some ten bytes. */
#define COMPRESS_LEAST 32

void hec_encode_byte(struct hec_encoder *encoder, unsigned value) {
    encoder->out[encoder->length++] = (unsigned char)value;
}

static void encode_varint(struct hec_encoder *encoder, uint64_t value) {
    while (value >= 0x80) {
        hec_encode_byte(encoder, (unsigned)(value & 0x7f) | 0x80);
        value >>= 7;
    }
    hec_encode_byte(encoder, (unsigned)value);
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
    hec_encode_byte(encoder, width);
    encode_varint(encoder, zigzag(low));
    unsigned char plane[HEC_NUMBERS_MAX];
    for (unsigned j = 0; j < width; j++) {
        for (size_t i = 0; i < count; i++)
            plane[i] = (unsigned char)(((uint64_t)values[i] - (uint64_t)low) >> (8 * j));
        encode_plane(encoder, plane, count);
    }
}

bool hec_decode_byte(struct hec_decoder *decoder, unsigned below, unsigned *value) {
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
    if (!hec_decode_byte(decoder, 9, &width) || !decode_varint(decoder, &low))
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
