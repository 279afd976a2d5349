/* The memory of another process, which goes on meanwhile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#define HEC_MEMORY_PIECES_MAX 1024 /* of one read: what the kernel takes */

struct hec_memory {
    void *context;
    /* Reads the pieces, one after the other, to `to`, which has room for all. Returns how many bytes came: fewer where a piece
     * is not there, and then of whole pieces. */
    size_t (*read)(void *context, const struct iovec *pieces, size_t count, void *to);
};

static inline struct iovec hec_memory_piece(uint64_t address, size_t size) {
    return (struct iovec){(void *)(uintptr_t)address, size}; /* NOLINT(performance-no-int-to-ptr) */
}

static inline bool hec_memory_read(const struct hec_memory *memory, uint64_t address, void *to, size_t size) {
    const struct iovec piece = hec_memory_piece(address, size);
    return memory->read(memory->context, &piece, 1, to) == size;
}

static inline uint64_t hec_memory_u64(const unsigned char *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}
