/* What the files of got.h share. All under hec_got_lock. */
#pragma once

#include "tracer/got.h"

#include <link.h>
#include <stddef.h>

/* ---- got.c: a module ---- */

struct hec_got_dynamic {
    ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * jump, *data;
    size_t jump_bytes, data_bytes;
    const uint32_t *gnu_hash, *sysv_hash;
};
/* false: it has no symbols. */
bool hec_got_read_dynamic(const struct dl_phdr_info *info, struct hec_got_dynamic *out);
/* Whether an address lies in a segment that has all of these flags (PF_R, ...). */
bool hec_got_inside(const struct dl_phdr_info *info, uintptr_t address, uint32_t flags);
/* Whole pages of data that the loader makes read-only when it has relocated a module (RELRO); from == to: none. */
void hec_got_relro(const struct dl_phdr_info *info, uintptr_t *from, uintptr_t *to);
/* The module that this code is in. */
bool hec_got_own(const struct dl_phdr_info *info);
/* The lowest and the highest hooks[i].real; false: there is none. */
bool hec_got_span(const struct hec_got_hook *hooks, uint32_t count, uintptr_t *low, uintptr_t *high);
/* hec_got_lock and dl_iterate_phdr; what is known of pages is read anew. */
void hec_got_walk(int (*module)(struct dl_phdr_info *info, size_t size, void *context), void *context);

/* ---- got_pages.c: what the kernel says of pages ---- */

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
