/* Where the trampolines are put: slots of modules that are linked with the driver, the driver's symbol table (later dlsym),
 * what its lookups return (cuGetProcAddress), and the tables of runtimes that looked up before we came. The runtime, shared
 * or linked into cuBLAS, cuDNN or the program, calls the driver through such a table, so that it needs nothing of its own:
 * seen in PyTorch, JAX and a static program of CUDA 13 (bench/results/2026-11-22-h100x4-harmless). A runtime may be linked
 * into any module: CuPy's copies and waits go through one in an extension of Python's, and came to be seen on an H100 by
 * this. So all modules are searched; beside those of CUDA itself PyTorch's have some 45 MB of data. */
#include "tracer/tracer.h"
#include "tracer/trampolines.h"

#include <dlfcn.h>
#include <link.h>

static struct hec_got_hook hooks[HEC_TRAMPOLINES_MAX];
static uint32_t hook_count, placed;

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The driver's own modules and CUPTI's get its own functions. The program itself is "". */
static bool serves(const char *module) {
    static const char *const prefixes[] = {"libcuda.so", "libcupti", "libnvidia-", "libnvperf"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(base_name(module), prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool may_call(const char *module, void *context) {
    (void)context;
    return !serves(module);
}

static bool visit(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)hook;
    return bound && may_call(module, context); /* a slot that is not bound yet will find the changed symbol */
}

static int note_plain(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    (void)context;
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; serves(info->dlpi_name) && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        low = start < low ? start : low;
        high = start + segment->p_memsz > high ? start + segment->p_memsz : high;
    }
    if (high > 0)
        hec_trampolines_plain_caller(low, high);
    return 0;
}

bool hec_slots_open(void) {
    if (placed > 0) {
        hec_slots_again();
        return true; /* before a fork */
    }
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    for (uint32_t row = 0; driver && row < hec_trampolines_count(); row++) {
        void *real = dlsym(driver, hec_trampolines_name(row));
        if (!real)
            continue;
        hec_trampolines_set_real(row, real); /* before anybody can come by */
        if (hec_trampolines_of(row))
            hooks[hook_count++] = (struct hec_got_hook){hec_trampolines_name(row), real, hec_trampolines_of(row)};
    }
    hec_got_lock();
    dl_iterate_phdr(note_plain, NULL);
    hec_got_unlock();
    /* the symbols first: what is bound from now on finds the trampolines */
    placed = hec_got_patch_symbols(hooks, hook_count);
    placed += hec_got_patch(hooks, hook_count, 0, visit, NULL);
    placed += hec_got_patch_data(hooks, hook_count, 0, may_call, visit, NULL);
    return placed > 0;
}

void hec_slots_again(void) {
    if (hook_count > 0)
        placed += hec_got_patch_data(hooks, hook_count, 0, may_call, visit, NULL);
}
