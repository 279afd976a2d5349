/* Interned long texts, of the hooks only: file and function names of call stacks, facts. Like names.c, but larger, in
 * memory that is mapped at the first use: a program without hooks pays nothing for it, one with them only for the pages
 * it fills. Nothing is ever taken out. */
#include "mark/mark.h"

#include <string.h>
#include <sys/mman.h>

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
        /* a busy slot is passed over, not waited for, as in names.c */
        if (found == TEXT_READY && t->slot[index].hash == hash && t->slot[index].length == length &&
            memcmp(t->arena + t->slot[index].at, text, length) == 0) {
            uint32_t id = HEC_MARK_TEXT_FIRST + index;
            return hec_mark_define(ring, id, text, length, &t->slot[index].generation) ? id : 0;
        }
    }
    return 0;
}
