/* Writable data of modules: tables into which a runtime that is linked into a program has put the driver's functions.
 * Data that is read-only after relocation is got.c's. 64 MB take 7 ms to read, 20 the first
 * time. */
#include "tracer/got_parts.h"

#include <sys/mman.h>

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
    hec_got_relro(info, &relro_from, &relro_to);
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
    if (info->dlpi_addr == scan->skip || hec_got_own(info) || !scan->wants(info->dlpi_name, scan->context))
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
    if (hec_got_span(hooks, count, &scan.low, &scan.high))
        hec_got_walk(scan_module, &scan);
    return scan.changed;
}
