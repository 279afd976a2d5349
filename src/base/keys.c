#include "base/keys.h"

size_t hec_keys_find(const uint64_t *slots, size_t size, const char *key, size_t length, uint64_t *hash) {
    uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)key[i]) * UINT64_C(1099511628211);
    *hash = sum ? sum : 1;
    size_t at = (size_t)((sum ^ sum >> 32) % size);
    while (slots[at] && slots[at] != *hash)
        at = (at + 1) % size;
    return at;
}
