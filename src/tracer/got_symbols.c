/* The symbol table of the library itself: its values are offsets, so that one may lead to another module. Names are
 * found by the tables that the loader uses. dladdr1 would do, but takes dl_load_lock (got.h). */
#include "tracer/got_parts.h"

#include <string.h>

struct search {
    const struct hec_got_hook *hooks;
    uint32_t count;
    uint32_t changed;
};

static bool change(const struct dl_phdr_info *info, const char *strings, ElfW(Sym) * symbol,
                   const struct hec_got_hook *hook) {
    uint32_t type = ELF64_ST_TYPE(symbol->st_info);
    /* the loader adds the library's base to it; the sum may go round */
    uintptr_t from = (uintptr_t)hook->real - info->dlpi_addr, to = (uintptr_t)hook->shim - info->dlpi_addr;
    if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE) || symbol->st_value != from ||
        strcmp(strings + symbol->st_name, hook->name) != 0)
        return false;
    return hec_got_pages_change(info, (void **)&symbol->st_value, (void *)from, (void *)to);
}

static uint32_t hash(const char *name) {
    uint32_t sum = 5381;
    for (; *name; name++)
        sum = sum * 33 + (uint8_t)*name;
    return sum;
}

/* Number of buckets, first symbol in them, words of the filter, its shift; the filter, the buckets, the chains. */
static bool change_by_gnu_hash(const struct dl_phdr_info *info, const struct hec_got_dynamic *dynamic,
                               const struct hec_got_hook *hook) {
    const uint32_t *table = dynamic->gnu_hash, first = table[1];
    const uint32_t *buckets = table + 4 + table[2] * (sizeof(uintptr_t) / sizeof *table);
    const uint32_t *chains = buckets + table[0];
    uint32_t wanted = hash(hook->name), i = table[0] ? buckets[wanted % table[0]] : 0;
    bool changed = false;
    for (; i >= first && i > 0; i++) { /* to its end: there may be several versions of a name */
        if ((chains[i - first] | 1) == (wanted | 1))
            changed = change(info, dynamic->strings, &dynamic->symbols[i], hook) || changed;
        if (chains[i - first] & 1)
            break;
    }
    return changed;
}

static bool change_one_by_one(const struct dl_phdr_info *info, const struct hec_got_dynamic *dynamic,
                              const struct hec_got_hook *hook) {
    bool changed = false;
    for (uint32_t i = 0; i < dynamic->sysv_hash[1]; i++)
        changed = change(info, dynamic->strings, &dynamic->symbols[i], hook) || changed;
    return changed;
}

static int search_module(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    struct hec_got_dynamic dynamic = {0};
    for (uint32_t i = 0; i < search->count; i++) {
        const struct hec_got_hook *hook = &search->hooks[i];
        if (!hook->real || hook->real == hook->shim || !hec_got_inside(info, (uintptr_t)hook->real, 0))
            continue;
        if (!dynamic.symbols && !hec_got_read_dynamic(info, &dynamic))
            return 0;
        if (dynamic.gnu_hash)
            search->changed += change_by_gnu_hash(info, &dynamic, hook);
        else if (dynamic.sysv_hash)
            search->changed += change_one_by_one(info, &dynamic, hook);
    }
    return 0;
}

uint32_t hec_got_patch_symbols(const struct hec_got_hook *hooks, uint32_t count) {
    struct search search = {hooks, count, 0};
    hec_got_walk(search_module, &search);
    return search.changed;
}
