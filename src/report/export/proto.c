#include "report/export/proto.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 4 /* up to 256 MB */

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

void hec_proto_free(struct hec_proto *proto) {
    free(proto->data);
    memset(proto, 0, sizeof *proto);
}

static unsigned char *room(struct hec_proto *proto, size_t bytes) {
    if (proto->error)
        return NULL;
    if (proto->capacity - proto->length < bytes) {
        size_t capacity = 2 * (proto->capacity + bytes) + 4096;
        unsigned char *grown = realloc(proto->data, capacity);
        if (!grown) {
            proto->error = HEC_ERR_NOMEM;
            return NULL;
        }
        proto->data = grown;
        proto->capacity = capacity;
    }
    unsigned char *at = proto->data + proto->length;
    proto->length += bytes;
    return at;
}

static void varint(struct hec_proto *proto, uint64_t value) {
    unsigned char bytes[10];
    size_t n = 0;
    do {
        bytes[n] = (unsigned char)(value & 0x7f);
        value >>= 7;
        bytes[n++] |= value ? 0x80 : 0;
    } while (value);
    unsigned char *at = room(proto, n);
    if (at)
        memcpy(at, bytes, n);
}

static void tag(struct hec_proto *proto, uint32_t field, enum wire wire) {
    varint(proto, (uint64_t)field << 3 | wire);
}

void hec_proto_uint(struct hec_proto *proto, uint32_t field, uint64_t value) {
    tag(proto, field, WIRE_VARINT);
    varint(proto, value);
}

void hec_proto_int(struct hec_proto *proto, uint32_t field, int64_t value) {
    hec_proto_uint(proto, field, (uint64_t)value);
}

void hec_proto_fixed64(struct hec_proto *proto, uint32_t field, uint64_t value) {
    tag(proto, field, WIRE_FIXED64);
    unsigned char *at = room(proto, 8);
    for (int i = 0; at && i < 8; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

void hec_proto_double(struct hec_proto *proto, uint32_t field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    hec_proto_fixed64(proto, field, bits);
}

void hec_proto_text(struct hec_proto *proto, uint32_t field, const char *text) {
    size_t length = strlen(text);
    tag(proto, field, WIRE_BYTES);
    varint(proto, length);
    unsigned char *at = room(proto, length);
    if (at)
        memcpy(at, text, length);
}

size_t hec_proto_begin(struct hec_proto *proto, uint32_t field) {
    tag(proto, field, WIRE_BYTES);
    room(proto, LENGTH_BYTES);
    return proto->length;
}

void hec_proto_end(struct hec_proto *proto, size_t begin) {
    if (proto->error)
        return;
    size_t length = proto->length - begin;
    unsigned char *at = proto->data + begin - LENGTH_BYTES;
    for (int i = 0; i < LENGTH_BYTES; i++, length >>= 7)
        at[i] = (unsigned char)((length & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
}
