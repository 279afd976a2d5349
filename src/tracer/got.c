/* Slots through which loaded modules call other modules' functions (the global offset table, and pointers initialised
 * with an address). They are private memory of the process; changes are single aligned stores, so that other threads see
 * the one or the other address, and both are right. */
#include "tracer/floor.h"
#include "tracer/got_pages.h"

#include <elf.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define SLOT_JUMP R_X86_64_JUMP_SLOT
#define SLOT_DATA R_X86_64_GLOB_DAT
#define SLOT_POINTER R_X86_64_64
#elif defined(__aarch64__)
#define SLOT_JUMP R_AARCH64_JUMP_SLOT
#define SLOT_DATA R_AARCH64_GLOB_DAT
#define SLOT_POINTER R_AARCH64_ABS64
#else
#error "relocations of this processor are not known"
#endif

/* ---- the lock ---- */

/* Mutexes are not fair: a thread that walks again and again would not let a fork in. Who waits for `walking` holds
 * `turn`, which the walker needs for its next walk and does not hold during one. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER, walking = PTHREAD_MUTEX_INITIALIZER;
static long forking; /* atomic: the thread that holds both for a fork */

void hec_got_lock(void) {
    pthread_mutex_lock(&turn);
    pthread_mutex_lock(&walking);
    pthread_mutex_unlock(&turn);
}

void hec_got_unlock(void) {
    pthread_mutex_unlock(&walking);
}

void hec_got_fork_prepare(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HEC_GOT_FORK_WAIT_MS / 1000;
    if (pthread_mutex_timedlock(&turn, &until) != 0)
        return;
    if (pthread_mutex_timedlock(&walking, &until) != 0)
        pthread_mutex_unlock(&turn);
    else
        __atomic_store_n(&forking, syscall(SYS_gettid), __ATOMIC_RELAXED);
}

void hec_got_fork_parent(void) {
    if (__atomic_load_n(&forking, __ATOMIC_RELAXED) != syscall(SYS_gettid))
        return; /* it could not be had */
    __atomic_store_n(&forking, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&walking);
    pthread_mutex_unlock(&turn);
}

void hec_got_fork_child(void) {
    pthread_mutex_init(&turn, NULL);
    pthread_mutex_init(&walking, NULL);
    forking = 0;
}

/* hec_got_lock and dl_iterate_phdr; what is known of pages is read anew. */
static void walk_modules(int (*module)(struct dl_phdr_info *info, size_t size, void *context), void *context) {
    hec_got_lock();
    hec_got_pages_begin();
    dl_iterate_phdr(module, context);
    hec_got_unlock();
}

/* ---- a module ---- */

struct dynamic {
    ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * jump, *data;
    size_t jump_bytes, data_bytes;
    const uint32_t *gnu_hash, *sysv_hash;
};

/* Whether an address lies in a segment that has all of these flags (PF_R, ...). */
static bool in_segment(const struct dl_phdr_info *info, uintptr_t address, uint32_t flags) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address >= start && address - start < segment->p_memsz)
            return (segment->p_flags & flags) == flags;
    }
    return false;
}

/* The module that this code is in. */
static bool is_own(const struct dl_phdr_info *info) {
    return in_segment(info, (uintptr_t)&is_own, 0);
}

/* Whole pages of data that the loader makes read-only when it has relocated a module (RELRO); from == to: none. */
static void relro_of(const struct dl_phdr_info *info, uintptr_t *from, uintptr_t *to) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    *from = *to = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            *from = start & ~(page - 1);
            *to = (start + info->dlpi_phdr[i].p_memsz) & ~(page - 1);
        }
}

/* false: it has no symbols. */
static bool read_dynamic(const struct dl_phdr_info *info, struct dynamic *out) {
    const ElfW(Dyn) *entry = NULL;
    *out = (struct dynamic){0};
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        /* the loader of glibc has made addresses of them, other ones and the vDSO have not */
        uintptr_t address = entry->d_un.d_ptr;
        if (!in_segment(info, address, 0))
            address += info->dlpi_addr;
        bool inside = in_segment(info, address, 0);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            out->symbols = inside ? (ElfW(Sym) *)address : NULL;
            break;
        case DT_STRTAB:
            out->strings = inside ? (const char *)address : NULL;
            break;
        case DT_JMPREL:
            out->jump = inside ? (const ElfW(Rela) *)address : NULL;
            break;
        case DT_PLTRELSZ:
            out->jump_bytes = entry->d_un.d_val;
            break;
        case DT_RELA:
            out->data = inside ? (const ElfW(Rela) *)address : NULL;
            break;
        case DT_RELASZ:
            out->data_bytes = entry->d_un.d_val;
            break;
        case DT_GNU_HASH:
            out->gnu_hash = inside ? (const uint32_t *)address : NULL;
            break;
        case DT_HASH:
            out->sysv_hash = inside ? (const uint32_t *)address : NULL;
            break;
        }
    }
    return out->symbols && out->strings;
}

/* The lowest and the highest hooks[i].real; false: there is none. */
static bool span_of(const struct hec_got_hook *hooks, uint32_t count, uintptr_t *low, uintptr_t *high) {
    *low = UINTPTR_MAX;
    *high = 0;
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t real = (uintptr_t)hooks[i].real;
        if (real == 0)
            continue;
        *low = real < *low ? real : *low;
        *high = real > *high ? real : *high;
    }
    return *high > 0;
}

/* ---- its slots ---- */

static uint64_t unfinished; /* slots that were left for later */

struct search {
    const struct hec_got_hook *hooks;
    uint32_t count;
    uintptr_t skip;
    hec_got_visit *visit;
    void *context;
    uintptr_t low, high; /* of what hooks lead to */
    uint32_t changed;
};

/* Another thread is just loading the module, and has more to write there. What a walk knows of the page may be of before
 * the loader was through: then the slot waits once more. */
static bool not_loaded_yet(const struct dl_phdr_info *info, uintptr_t address) {
    uintptr_t from, to;
    struct hec_got_range range;
    relro_of(info, &from, &to);
    return address >= from && address < to && hec_got_pages_at(address, &range) && (range.flags & PROT_WRITE);
}

static void search_table(struct search *search, const struct dl_phdr_info *info, const ElfW(Rela) * table, size_t bytes,
                         const struct dynamic *dynamic) {
    for (size_t i = 0; i < bytes / sizeof *table; i++) {
        uint32_t type = (uint32_t)ELF64_R_TYPE(table[i].r_info);
        uintptr_t address = info->dlpi_addr + table[i].r_offset;
        if ((type != SLOT_JUMP && type != SLOT_DATA && type != SLOT_POINTER) || address % sizeof(void *) != 0 ||
            !in_segment(info, address, PF_W))
            continue;
        /* a slot that is not bound yet will ask the symbol table; one with another address is somebody's own hook, or
         * belongs to another copy of the library */
        void *value = __atomic_load_n((void **)address, __ATOMIC_RELAXED);
        bool unbound = type == SLOT_JUMP && in_segment(info, (uintptr_t)value, 0);
        if (!unbound && ((uintptr_t)value < search->low || (uintptr_t)value > search->high))
            continue;
        const char *name = dynamic->strings + dynamic->symbols[ELF64_R_SYM(table[i].r_info)].st_name;
        for (uint32_t at = 0; at < search->count; at++) {
            const struct hec_got_hook *hook = &search->hooks[at];
            if (!hook->real || strcmp(name, hook->name) != 0)
                continue;
            bool bound = value == hook->real;
            if ((bound || unbound) && search->visit(info->dlpi_name, hook, bound, search->context)) {
                if (not_loaded_yet(info, address))
                    unfinished++;
                else
                    search->changed += hec_got_pages_change(info, (void **)address, value, hook->shim);
            }
            break;
        }
    }
}

static int search_module(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    struct dynamic dynamic;
    if (info->dlpi_addr == search->skip || is_own(info) || !read_dynamic(info, &dynamic))
        return 0;
    if (dynamic.jump)
        search_table(search, info, dynamic.jump, dynamic.jump_bytes, &dynamic);
    if (dynamic.data)
        search_table(search, info, dynamic.data, dynamic.data_bytes, &dynamic);
    return 0;
}

uint32_t hec_got_patch(const struct hec_got_hook *hooks, uint32_t count, uintptr_t skip, hec_got_visit *visit,
                       void *context) {
    struct search search = {hooks, count, skip, visit, context, 0, 0, 0};
    if (span_of(hooks, count, &search.low, &search.high))
        walk_modules(search_module, &search);
    return search.changed;
}

struct generation {
    uint64_t modules, unfinished;
};

static int read_generation(struct dl_phdr_info *info, size_t size, void *context) {
    struct generation *out = context;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        out->modules = info->dlpi_adds + info->dlpi_subs;
    out->unfinished = unfinished;
    return 1;
}

uint64_t hec_got_generation(void) {
    struct generation found = {0, 0};
    walk_modules(read_generation, &found);
    return found.modules + (found.unfinished << 32);
}

/* ---- the symbol table of the library itself ---- */

/* Its values are offsets, so that one may lead to another module. Names are
 * found by the tables that the loader uses. dladdr1 would do, but takes dl_load_lock (got.h). */

struct names {
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
static bool change_by_gnu_hash(const struct dl_phdr_info *info, const struct dynamic *dynamic,
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

static bool change_one_by_one(const struct dl_phdr_info *info, const struct dynamic *dynamic,
                              const struct hec_got_hook *hook) {
    bool changed = false;
    for (uint32_t i = 0; i < dynamic->sysv_hash[1]; i++)
        changed = change(info, dynamic->strings, &dynamic->symbols[i], hook) || changed;
    return changed;
}

static int search_names(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct names *names = context;
    struct dynamic dynamic = {0};
    for (uint32_t i = 0; i < names->count; i++) {
        const struct hec_got_hook *hook = &names->hooks[i];
        if (!hook->real || hook->real == hook->shim || !in_segment(info, (uintptr_t)hook->real, 0))
            continue;
        if (!dynamic.symbols && !read_dynamic(info, &dynamic))
            return 0;
        if (dynamic.gnu_hash)
            names->changed += change_by_gnu_hash(info, &dynamic, hook);
        else if (dynamic.sysv_hash)
            names->changed += change_one_by_one(info, &dynamic, hook);
    }
    return 0;
}

uint32_t hec_got_patch_symbols(const struct hec_got_hook *hooks, uint32_t count) {
    struct names names = {hooks, count, 0};
    walk_modules(search_names, &names);
    return names.changed;
}

/* ---- tables ---- */

/* Writable data of modules: tables into which a runtime that is linked into a program has put the driver's functions.
 * Data that is read-only after relocation has slots. 64 MB take 7 ms to read, 20 the first time. */

struct scan {
    const struct hec_got_hook *hooks;
    uint32_t count;
    uintptr_t skip;
    hec_got_wants *wants;
    hec_got_visit *visit;
    void *context;
    uintptr_t low, high;
    uint32_t changed;
};

static void offer(struct scan *scan, const struct dl_phdr_info *info, void **word, void *value) {
    for (uint32_t i = 0; i < scan->count; i++) {
        const struct hec_got_hook *hook = &scan->hooks[i];
        if (hook->real != value || hook->real == hook->shim)
            continue;
        if (scan->visit(info->dlpi_name, hook, true, scan->context))
            scan->changed += hec_got_pages_change(info, word, value, hook->shim);
        return;
    }
}

/* Others' variables, which they may change meanwhile, with what AddressSanitizer puts between them. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static void scan_words(struct scan *scan,
                                                                                      const struct dl_phdr_info *info,
                                                                                      uintptr_t from, uintptr_t to) {
    uintptr_t low = scan->low, span = scan->high - low;
    for (; from + sizeof(void *) <= to; from += sizeof(void *)) {
        void *value = __atomic_load_n((void **)from, __ATOMIC_RELAXED);
        if ((uintptr_t)value - low <= span)
            offer(scan, info, (void **)from, value);
    }
}

/* What of a segment the kernel has as private, readable and writable. Returns what is left of the bytes. */
static uint64_t scan_segment(struct scan *scan, const struct dl_phdr_info *info, uintptr_t from, uintptr_t end,
                             uint64_t left) {
    uintptr_t relro_from, relro_to;
    relro_of(info, &relro_from, &relro_to);
    struct hec_got_range range;
    while (from < end && left > 0) {
        if (from >= relro_from && from < relro_to) {
            from = relro_to;
            continue;
        }
        if (!hec_got_pages_at(from, &range))
            return left;
        if (from < range.start) {
            from = range.start;
            continue;
        }
        uintptr_t to = range.end < end ? range.end : end;
        if (from < relro_from && to > relro_from)
            to = relro_from;
        if ((range.flags & (PROT_READ | PROT_WRITE | HEC_GOT_SHARED)) == (PROT_READ | PROT_WRITE)) {
            if (to - from > left)
                to = from + left;
            scan_words(scan, info, from, to);
            left -= to - from;
        }
        from = to;
    }
    return left;
}

static int scan_module(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct scan *scan = context;
    uint64_t left = HEC_GOT_DATA_BYTES;
    if (info->dlpi_addr == scan->skip || is_own(info) || !scan->wants(info->dlpi_name, scan->context))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
            continue;
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        uintptr_t aligned = (start + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
        left = scan_segment(scan, info, aligned, start + segment->p_memsz, left);
    }
    return 0;
}

uint32_t hec_got_patch_data(const struct hec_got_hook *hooks, uint32_t count, uintptr_t skip, hec_got_wants *wants,
                            hec_got_visit *visit, void *context) {
    struct scan scan = {hooks, count, skip, wants, visit, context, 0, 0, 0};
    if (span_of(hooks, count, &scan.low, &scan.high))
        walk_modules(scan_module, &scan);
    return scan.changed;
}
