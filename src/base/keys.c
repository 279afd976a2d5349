#include "base/keys.h"

#include "base/hash.h"

size_t hec_keys_find(const uint64_t *slots, size_t size, const char *key, size_t length, uint64_t *hash) {
    uint64_t sum = hec_hash(key, length);
    *hash = sum ? sum : 1;
    size_t at = (size_t)((sum ^ sum >> 32) % size);
    while (slots[at] && slots[at] != *hash)
        at = (at + 1) % size;
    return at;
}
