/* What the kernel says of the pages that got.c walks. All under hec_got_lock. */
#pragma once

#include "tracer/got.h"

#include <link.h>
#include <stddef.h>

#define HEC_GOT_SHARED 0x100 /* beside PROT_READ, PROT_WRITE, PROT_EXEC */
struct hec_got_range {
    uintptr_t start, end;
    int flags;
};
/* Forget what is known: a walk begins. */
void hec_got_pages_begin(void);
/* The first range that ends above `address`; false: there is none, or the kernel does not say. */
bool hec_got_pages_at(uintptr_t address, struct hec_got_range *out);
/* Change a word from `from` to `to`. The protection of its page is the same before and after. false: it was left, for
 * it has another value by now, or its page is shared with others or may not be written. */
bool hec_got_pages_change(const struct dl_phdr_info *info, void **slot, void *from, void *to);
