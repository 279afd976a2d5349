/* Slots through which loaded modules call other modules' functions (the global offset table, and pointers initialised
 * with an address), and the symbol table of the library itself. All of it is private memory of the process; changes are
 * single aligned stores, so that other threads see the one or the other address, and both are right. */
#include "tracer/tracer.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
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

static uint64_t unfinished; /* slots that were left for later */

struct search {
    const struct hec_got_hook *hooks;
    uint32_t count;
    uintptr_t skip;
    bool (*visit)(const char *module, const struct hec_got_hook *hook, bool bound, void *context);
    void *context;
    uint32_t changed;
};

/* Store a pointer where the page may be read-only; its protection is as before afterwards. */
static bool store(void **slot, void *value, int protection) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)slot & ~(page - 1));
    if (!(protection & PROT_WRITE) && mprotect(start, page, protection | PROT_WRITE) != 0)
        return false;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (!(protection & PROT_WRITE))
        mprotect(start, page, protection);
    return true;
}

/* Asked of the kernel, which writes what is there anyway, or refuses. */
static bool writable(void **slot) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return true;
    void *value = __atomic_load_n(slot, __ATOMIC_RELAXED);
    bool done = write(ends[1], &value, sizeof value) == (ssize_t)sizeof value &&
                read(ends[0], slot, sizeof value) == (ssize_t)sizeof value;
    close(ends[0]);
    close(ends[1]);
    return done;
}

/* Data that the loader makes read-only when it has relocated a module (RELRO): whole pages of it. */
static bool becomes_read_only(const struct dl_phdr_info *info, uintptr_t address) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_GNU_RELRO && address >= start && address < ((start + segment->p_memsz) & ~(page - 1)))
            return true;
    }
    return false;
}

static bool inside(const struct dl_phdr_info *info, uint32_t type, uintptr_t address, int *protection) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != type || address < start || address - start >= segment->p_memsz)
            continue;
        if (protection)
            *protection = (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
                          (segment->p_flags & PF_X ? PROT_EXEC : 0);
        return true;
    }
    return false;
}

static void search_table(struct search *search, const struct dl_phdr_info *info, const ElfW(Rela) * table, size_t bytes,
                         const ElfW(Sym) * symbols, const char *strings) {
    for (size_t i = 0; i < bytes / sizeof *table; i++) {
        uint32_t type = (uint32_t)ELF64_R_TYPE(table[i].r_info);
        if (type != SLOT_JUMP && type != SLOT_DATA && type != SLOT_POINTER)
            continue;
        uintptr_t address = info->dlpi_addr + table[i].r_offset;
        int protection = 0;
        if (address % sizeof(void *) != 0 || !inside(info, PT_LOAD, address, &protection))
            continue;
        void *value = NULL;
        const char *name = strings + symbols[ELF64_R_SYM(table[i].r_info)].st_name;
        for (uint32_t hook = 0; hook < search->count; hook++) {
            if (!search->hooks[hook].real || strcmp(name, search->hooks[hook].name) != 0)
                continue;
            value = __atomic_load_n((void **)address, __ATOMIC_RELAXED);
            /* a slot that is not bound yet will ask the symbol table; one with another address is somebody's own hook,
             * or belongs to another copy of the library */
            bool bound = value == search->hooks[hook].real;
            if (!bound && (type != SLOT_JUMP || !inside(info, PT_LOAD, (uintptr_t)value, NULL)))
                break;
            if (!search->visit(info->dlpi_name, &search->hooks[hook], bound, search->context))
                break;
            if (becomes_read_only(info, address)) {
                if (writable((void **)address)) { /* another thread is just loading it, and has more to write there */
                    unfinished++;
                    break;
                }
                protection = PROT_READ;
            }
            search->changed += store((void **)address, search->hooks[hook].shim, protection);
            break;
        }
    }
}

static int search_module(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    const ElfW(Dyn) *dynamic = NULL;
    uintptr_t self = (uintptr_t)&search_module;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (!dynamic || info->dlpi_addr == search->skip || inside(info, PT_LOAD, self, NULL))
        return 0;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const ElfW(Rela) *jump = NULL, *data = NULL;
    size_t jump_bytes = 0, data_bytes = 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        /* the loader of glibc has made addresses of them, other ones and the vDSO have not */
        uintptr_t address = dynamic->d_un.d_ptr;
        if (!inside(info, PT_LOAD, address, NULL))
            address += info->dlpi_addr;
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            symbols = (const ElfW(Sym) *)address;
            break;
        case DT_STRTAB:
            strings = (const char *)address;
            break;
        case DT_JMPREL:
            jump = (const ElfW(Rela) *)address;
            break;
        case DT_PLTRELSZ:
            jump_bytes = dynamic->d_un.d_val;
            break;
        case DT_RELA:
            data = (const ElfW(Rela) *)address;
            break;
        case DT_RELASZ:
            data_bytes = dynamic->d_un.d_val;
            break;
        }
    }
    if (!symbols || !strings || !inside(info, PT_LOAD, (uintptr_t)symbols, NULL) ||
        !inside(info, PT_LOAD, (uintptr_t)strings, NULL))
        return 0;
    if (jump && inside(info, PT_LOAD, (uintptr_t)jump, NULL))
        search_table(search, info, jump, jump_bytes, symbols, strings);
    if (data && inside(info, PT_LOAD, (uintptr_t)data, NULL))
        search_table(search, info, data, data_bytes, symbols, strings);
    return 0;
}

uint32_t hec_got_patch(const struct hec_got_hook *hooks, uint32_t count, uintptr_t skip,
                       bool (*visit)(const char *module, const struct hec_got_hook *hook, bool bound, void *context),
                       void *context) {
    struct search search = {hooks, count, skip, visit, context, 0};
    dl_iterate_phdr(search_module, &search);
    return search.changed;
}

uint32_t hec_got_patch_symbols(const struct hec_got_hook *hooks, uint32_t count) {
    uint32_t changed = 0;
    for (uint32_t i = 0; i < count; i++) {
        Dl_info info;
        void *found = NULL;
        if (!hooks[i].real || !dladdr1(hooks[i].real, &info, &found, RTLD_DL_SYMENT) || !found || !info.dli_sname ||
            strcmp(info.dli_sname, hooks[i].name) != 0)
            continue;
        ElfW(Sym) *symbol = found;
        /* the loader adds the library's base to it; the sum may go round */
        ElfW(Addr) value = (ElfW(Addr))hooks[i].shim - (ElfW(Addr))info.dli_fbase;
        if ((ElfW(Addr))info.dli_fbase + symbol->st_value != (ElfW(Addr))hooks[i].real)
            continue;
        changed += store((void **)&symbol->st_value, (void *)value, PROT_READ);
    }
    return changed;
}

static int read_generation(struct dl_phdr_info *info, size_t size, void *context) {
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
        *(uint64_t *)context = info->dlpi_adds;
    return 1;
}

uint64_t hec_got_generation(void) {
    uint64_t generation = 0;
    dl_iterate_phdr(read_generation, &generation);
    return generation + (unfinished << 32);
}
