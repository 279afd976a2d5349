/* A set of texts of a fixed size, by their hashes: for counting how many different ones there are. */
#ifndef HEC_BASE_KEYS_H
#define HEC_BASE_KEYS_H

#include <stddef.h>
#include <stdint.h>

/* Where the key is among the slots, or the free slot (0) that it would take: the caller puts *hash there. size: how many
 * slots there are; one at least must be free. Two texts count as one where all 64 bits of their hashes are the same. */
size_t hec_keys_find(const uint64_t *slots, size_t size, const char *key, size_t length, uint64_t *hash);

#endif
