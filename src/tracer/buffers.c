#include "tracer/tracer.h"

#include <sys/mman.h>

#define WORDS (HEC_TRACER_BUFFERS / 64)

/* The first buffers are touched here, not by CUPTI in the thread that launches: two threads' worth and their spares. */
#define TOUCHED 8u

static uint8_t *pool;
static uint64_t taken[WORDS]; /* bit a buffer */

int hec_buffers_open(void) {
    size_t bytes = (size_t)HEC_TRACER_BUFFERS * HEC_TRACER_BUFFER_BYTES;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return -1;
    pool = map;
    memset(pool, 0, (size_t)TOUCHED * HEC_TRACER_BUFFER_BYTES);
    return 0;
}

void hec_buffers_forget(void) {
    if (pool)
        munmap(pool, (size_t)HEC_TRACER_BUFFERS * HEC_TRACER_BUFFER_BYTES);
    pool = NULL;
    for (uint32_t i = 0; i < WORDS; i++)
        taken[i] = 0;
}

uint8_t *hec_buffers_take(void) {
    for (uint32_t word = 0; pool && word < WORDS; word++) {
        uint64_t bits = __atomic_load_n(&taken[word], __ATOMIC_RELAXED);
        while (~bits != 0) {
            uint64_t lowest = ~bits & (bits + 1); /* the lowest free one: pages in use stay few */
            if (__atomic_compare_exchange_n(&taken[word], &bits, bits | lowest, true, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                return pool + ((size_t)word * 64 + (uint32_t)__builtin_ctzll(lowest)) * HEC_TRACER_BUFFER_BYTES;
        }
    }
    return NULL;
}

bool hec_buffers_ours(const uint8_t *buffer) {
    return pool && buffer >= pool && buffer < pool + (size_t)HEC_TRACER_BUFFERS * HEC_TRACER_BUFFER_BYTES;
}

void hec_buffers_give(uint8_t *buffer) {
    size_t index = (size_t)(buffer - pool) / HEC_TRACER_BUFFER_BYTES;
    __atomic_fetch_and(&taken[index / 64], ~(UINT64_C(1) << (index % 64)), __ATOMIC_RELEASE);
}

uint32_t hec_buffers_out(void) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < WORDS; i++)
        out += (uint32_t)__builtin_popcountll(__atomic_load_n(&taken[i], __ATOMIC_ACQUIRE));
    return out;
}
