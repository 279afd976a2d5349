/* Interned names: text to id, in a fixed table without locks. A name is found by content, so that a program may build
 * it on the stack. Two threads that meet at the first use of a name may get two ids for it: harmless, the reader
 * goes by text. */
#include "mark/mark.h"

#include <string.h>
#include <sys/mman.h>

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
    uint32_t window = hec_mark_window(), generation = hec_mark_generation(window);
    if (__atomic_load_n(defined, __ATOMIC_ACQUIRE) == generation)
        return true;
    size_t pieces = (length + HEC_RING_NAME_PIECE - 1) / HEC_RING_NAME_PIECE;
    for (size_t i = 0; i < pieces; i++) {
        struct hec_ring_record record = {.window = (uint16_t)window};
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

/* Interned long texts, of the hooks only: file and function names of call stacks, facts. Like names, but larger, in
 * memory that is mapped at the first use: a program without hooks pays nothing for it, one with them only for the pages
 * it fills. Nothing is ever taken out. */

#define TEXTS 8192u
#define SLOTS (2 * TEXTS) /* at most half full: short probes */
#define ARENA (UINT32_C(1) << 20)

enum { TEXT_FREE, TEXT_BUSY, TEXT_READY };

struct table {
    uint32_t count; /* reserved so far, may pass TEXTS */
    uint32_t used;  /* of the arena, may pass ARENA */
    struct {
        int state;
        uint32_t hash;
        uint32_t generation; /* of the ring in which it was last defined */
        uint32_t at;         /* in the arena */
        uint32_t length;
    } slot[SLOTS];
    char arena[ARENA];
};

static struct table *table;

static struct table *get(void) {
    struct table *found = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    void *map = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (__atomic_compare_exchange_n(&table, &found, map, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return map;
    munmap(map, sizeof *found);
    return found;
}

/* Space for a new text; false: the table is full. What was reserved in vain stays so. */
static bool reserve(struct table *t, uint32_t length, uint32_t *at) {
    if (__atomic_load_n(&t->count, __ATOMIC_RELAXED) >= TEXTS ||
        __atomic_load_n(&t->used, __ATOMIC_RELAXED) > ARENA - HEC_MARK_TEXT_MAX)
        return false;
    uint32_t start = __atomic_fetch_add(&t->used, length, __ATOMIC_RELAXED);
    if (start > ARENA - length || __atomic_fetch_add(&t->count, 1, __ATOMIC_RELAXED) >= TEXTS)
        return false;
    *at = start;
    return true;
}

uint32_t hec_mark_text(struct hec_ring *ring, const char *text) {
    struct table *t = get();
    size_t length = strlen(text);
    if (!t)
        return 0;
    if (length > HEC_MARK_TEXT_MAX) { /* the end of a path says more than its beginning */
        text += length - HEC_MARK_TEXT_MAX;
        length = HEC_MARK_TEXT_MAX;
        for (; ((unsigned char)text[0] & 0xc0) == 0x80 && length > 1; length--)
            text++; /* not amid a character */
    }
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    for (uint32_t probe = 0; probe < SLOTS; probe++) {
        uint32_t index = (hash + probe) & (SLOTS - 1);
        int found = __atomic_load_n(&t->slot[index].state, __ATOMIC_ACQUIRE);
        if (found == TEXT_FREE) {
            uint32_t at;
            if (!reserve(t, (uint32_t)length, &at))
                return 0;
            if (__atomic_compare_exchange_n(&t->slot[index].state, &found, TEXT_BUSY, false, __ATOMIC_ACQUIRE,
                                            __ATOMIC_ACQUIRE)) {
                memcpy(t->arena + at, text, length);
                t->slot[index].at = at;
                t->slot[index].length = (uint32_t)length;
                t->slot[index].hash = hash;
                __atomic_store_n(&t->slot[index].state, found = TEXT_READY, __ATOMIC_RELEASE);
            }
        }
        /* a busy slot is passed over, not waited for, as above */
        if (found == TEXT_READY && t->slot[index].hash == hash && t->slot[index].length == length &&
            memcmp(t->arena + t->slot[index].at, text, length) == 0) {
            uint32_t id = HEC_MARK_TEXT_FIRST + index;
            return hec_mark_define(ring, id, text, length, &t->slot[index].generation) ? id : 0;
        }
    }
    return 0;
}
