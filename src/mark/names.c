/* Interned names: text to id, in a fixed table without locks. A name is found by content, so that a program may build
 * it on the stack. Two threads that meet at the first use of a name may get two ids for it: harmless, the reader
 * goes by text. */
#include "mark/mark.h"

#include <string.h>

#define NAMES 512u

_Static_assert(NAMES < HEC_MARK_TEXT_FIRST, "ids of names and texts are apart");

enum { NAME_FREE, NAME_BUSY, NAME_READY };

static struct {
    int state;
    uint32_t hash;
    uint32_t generation; /* of the ring in which it was last defined */
    char text[HEC_NAME_MAX + 1];
} names[NAMES];

bool hec_mark_define(struct hec_ring *ring, uint32_t id, const char *text, size_t length, uint32_t *defined) {
    uint32_t generation = hec_mark_generation();
    if (__atomic_load_n(defined, __ATOMIC_ACQUIRE) == generation)
        return true;
    size_t pieces = (length + HEC_RING_NAME_PIECE - 1) / HEC_RING_NAME_PIECE;
    for (size_t i = 0; i < pieces; i++) {
        struct hec_ring_record record = {0};
        record.u.name.id = id;
        record.u.name.piece = (uint8_t)i;
        record.u.name.pieces = (uint8_t)pieces;
        record.u.name.length = (uint16_t)length;
        size_t at = i * HEC_RING_NAME_PIECE;
        memcpy(record.u.name.text, text + at, length - at < HEC_RING_NAME_PIECE ? length - at : HEC_RING_NAME_PIECE);
        if (!hec_mark_write(ring, &record, HEC_RING_NAME))
            return false; /* tried again at the next use */
    }
    __atomic_store_n(defined, generation, __ATOMIC_RELEASE);
    return true;
}

uint32_t hec_mark_name(struct hec_ring *ring, const char *text) {
    char key[HEC_NAME_MAX + 1] = {0};
    uint32_t hash = 2166136261u; /* FNV-1a */
    size_t length = 0;
    for (; length < HEC_NAME_MAX && text[length]; length++) {
        key[length] = text[length];
        hash = (hash ^ (unsigned char)text[length]) * 16777619u;
    }
    for (uint32_t probe = 0; probe < NAMES; probe++) {
        uint32_t index = (hash + probe) & (NAMES - 1);
        int found = __atomic_load_n(&names[index].state, __ATOMIC_ACQUIRE);
        if (found == NAME_FREE && __atomic_compare_exchange_n(&names[index].state, &found, NAME_BUSY, false,
                                                              __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            memcpy(names[index].text, key, sizeof key);
            names[index].hash = hash;
            __atomic_store_n(&names[index].state, found = NAME_READY, __ATOMIC_RELEASE);
        }
        /* a busy slot is passed over, not waited for: its owner may be the code that this signal interrupted */
        if (found == NAME_READY && names[index].hash == hash && memcmp(names[index].text, key, length + 1) == 0)
            return hec_mark_define(ring, index + 1, names[index].text, length, &names[index].generation) ? index + 1
                                                                                                         : 0;
    }
    return 0;
}
