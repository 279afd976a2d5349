/* A hash of bytes that come from outside. Its key is drawn once a process, so that nobody can choose keys that meet in one
 * place of a table and make every look-up a search through all of them. Never recorded: it differs from run to run. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t hec_hash(const void *bytes, size_t length);

/* A set of texts of a fixed size, by their hashes: for counting how many different ones there are. */

/* Where the key is among the slots, or the free slot (0) that it would take: the caller puts *hash there. size: how many
 * slots there are; one at least must be free. Two texts count as one where all 64 bits of their hashes are the same. */
size_t hec_keys_find(const uint64_t *slots, size_t size, const char *key, size_t length, uint64_t *hash);
