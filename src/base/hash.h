/* A hash of bytes that come from outside. Its key is drawn once a process, so that nobody can choose keys that meet in one
 * place of a table and make every look-up a search through all of them. Never recorded: it differs from run to run. */
#ifndef HEC_BASE_HASH_H
#define HEC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hec_hash(const void *bytes, size_t length);

#endif
