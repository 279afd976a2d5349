/* Slots through which loaded modules call other modules' functions (the global offset table, and pointers initialised
 * with an address). They are private memory of the process; changes are single aligned stores, so that other threads see
 * the one or the other address, and both are right. */
#include "tracer/got_parts.h"
#include "tracer/floor.h"

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

void hec_got_walk(int (*module)(struct dl_phdr_info *info, size_t size, void *context), void *context) {
    hec_got_lock();
    hec_got_pages_begin();
    dl_iterate_phdr(module, context);
    hec_got_unlock();
}

/* ---- a module ---- */

bool hec_got_inside(const struct dl_phdr_info *info, uintptr_t address, uint32_t flags) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address >= start && address - start < segment->p_memsz)
            return (segment->p_flags & flags) == flags;
    }
    return false;
}

bool hec_got_own(const struct dl_phdr_info *info) {
    return hec_got_inside(info, (uintptr_t)&hec_got_own, 0);
}

void hec_got_relro(const struct dl_phdr_info *info, uintptr_t *from, uintptr_t *to) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    *from = *to = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            *from = start & ~(page - 1);
            *to = (start + info->dlpi_phdr[i].p_memsz) & ~(page - 1);
        }
}

bool hec_got_read_dynamic(const struct dl_phdr_info *info, struct hec_got_dynamic *out) {
    const ElfW(Dyn) *entry = NULL;
    *out = (struct hec_got_dynamic){0};
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        /* the loader of glibc has made addresses of them, other ones and the vDSO have not */
        uintptr_t address = entry->d_un.d_ptr;
        if (!hec_got_inside(info, address, 0))
            address += info->dlpi_addr;
        bool inside = hec_got_inside(info, address, 0);
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

bool hec_got_span(const struct hec_got_hook *hooks, uint32_t count, uintptr_t *low, uintptr_t *high) {
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
    hec_got_relro(info, &from, &to);
    return address >= from && address < to && hec_got_pages_at(address, &range) && (range.flags & PROT_WRITE);
}

static void search_table(struct search *search, const struct dl_phdr_info *info, const ElfW(Rela) * table, size_t bytes,
                         const struct hec_got_dynamic *dynamic) {
    for (size_t i = 0; i < bytes / sizeof *table; i++) {
        uint32_t type = (uint32_t)ELF64_R_TYPE(table[i].r_info);
        uintptr_t address = info->dlpi_addr + table[i].r_offset;
        if ((type != SLOT_JUMP && type != SLOT_DATA && type != SLOT_POINTER) || address % sizeof(void *) != 0 ||
            !hec_got_inside(info, address, PF_W))
            continue;
        /* a slot that is not bound yet will ask the symbol table; one with another address is somebody's own hook, or
         * belongs to another copy of the library */
        void *value = __atomic_load_n((void **)address, __ATOMIC_RELAXED);
        bool unbound = type == SLOT_JUMP && hec_got_inside(info, (uintptr_t)value, 0);
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
    struct hec_got_dynamic dynamic;
    if (info->dlpi_addr == search->skip || hec_got_own(info) || !hec_got_read_dynamic(info, &dynamic))
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
    if (hec_got_span(hooks, count, &search.low, &search.high))
        hec_got_walk(search_module, &search);
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
    hec_got_walk(read_generation, &found);
    return found.modules + (found.unfinished << 32);
}
