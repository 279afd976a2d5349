/* Words in pages whose protection the program's file does not give: linkers put symbol tables into executable pages
 * (-z noseparate-code, and all before binutils 2.31), programs change protections themselves. So the kernel is asked
 * (/proc/self/maps), once a walk. Its system calls are made directly: the functions of libc are points of cancellation,
 * and the lock would stay taken in a thread that ends there. */
#include "tracer/got_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__aarch64__)
#include <elf.h>
#include <sys/auxv.h>
#endif

/* A program with PyTorch has 1000 to 5000 mappings, less than half of them apart from their neighbours or of another
 * kind; 128 KB, of which is touched what is used. Where there are more, the table holds a part of them, and is read
 * again for an address beyond it. */
#define RANGES 8192u
static struct { uintptr_t start, end_flags; /* the end is a multiple of 4096 */ } ranges[RANGES];
#define FLAGS_MASK ((uintptr_t)0xfff)
static uint32_t count;
static uintptr_t known_from, known_to; /* what the table covers; equal: nothing */
static bool refused;

void hec_got_pages_begin(void) {
    known_from = known_to = 0;
    refused = false;
}

/* false: the table is full. */
static bool add_range(uintptr_t start, uintptr_t end, uintptr_t flags) {
    if (end <= known_from)
        return true;
    uintptr_t *last = count > 0 ? &ranges[count - 1].end_flags : NULL;
    if (last && (*last & ~FLAGS_MASK) == start && (*last & FLAGS_MASK) == flags) {
        *last = end | flags;
        return true;
    }
    if (count == RANGES)
        return false;
    ranges[count].start = start;
    ranges[count++].end_flags = end | flags;
    return true;
}

/* One character after the other, so that a line may be of any length. */
struct parser {
    enum { START, END, FLAGS, REST } state;
    uintptr_t start, end, flags;
};

static uintptr_t digit(char c) {
    return (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10) & 0xf;
}

static bool parse(struct parser *parser, char c) {
    switch (parser->state) {
    case START:
        if (c == '-')
            parser->state = END;
        else
            parser->start = parser->start << 4 | digit(c);
        return true;
    case END:
        if (c == ' ')
            parser->state = FLAGS;
        else
            parser->end = parser->end << 4 | digit(c);
        return true;
    case FLAGS:
        if (c == ' ')
            parser->state = REST;
        parser->flags |= (uintptr_t)(c == 'r'   ? PROT_READ
                                     : c == 'w' ? PROT_WRITE
                                     : c == 'x' ? PROT_EXEC
                                     : c == 's' ? HEC_GOT_SHARED
                                                : 0);
        return c != ' ' || add_range(parser->start, parser->end, parser->flags);
    case REST:
        if (c == '\n')
            *parser = (struct parser){START, 0, 0, 0};
    }
    return true;
}

static void load(uintptr_t from) {
    static char text[4096]; /* the kernel gives no more at once */
    struct parser parser = {START, 0, 0, 0};
    count = 0;
    known_from = from;
    known_to = UINTPTR_MAX;
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0), got = -1;
    bool room = true;
    while (file >= 0 && room && ((got = syscall(SYS_read, file, text, sizeof text)) > 0 || (got < 0 && errno == EINTR)))
        for (long i = 0; room && i < got; i++)
            room = parse(&parser, text[i]);
    if (file >= 0)
        syscall(SYS_close, file);
    if (!room)
        known_to = ranges[count - 1].end_flags & ~FLAGS_MASK;
    refused = got < 0 || count == 0;
}

bool hec_got_pages_at(uintptr_t address, struct hec_got_range *out) {
    if (known_to == 0)
        load(0);
    if (!refused && (address < known_from || address >= known_to))
        load(address);
    if (refused)
        return false;
    uint32_t low = 0, high = count; /* the first that ends above it */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((ranges[middle].end_flags & ~FLAGS_MASK) > address)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == count)
        return false;
    *out = (struct hec_got_range){ranges[low].start, ranges[low].end_flags & ~FLAGS_MASK,
                                  (int)(ranges[low].end_flags & FLAGS_MASK)};
    return true;
}

/* Branch target identification is a protection of executable pages that mprotect takes away when it is not named, and
 * that maps does not show. */
static bool guarded(const struct dl_phdr_info *info, int protection) {
#if defined(__aarch64__)
    bool marked = false;
    for (int i = 0; i < info->dlpi_phnum; i++)
        marked = marked || info->dlpi_phdr[i].p_type == 0x6474e553; /* PT_GNU_PROPERTY, not in older headers */
    return marked && (protection & PROT_EXEC) && (getauxval(AT_HWCAP2) & (1u << 17)); /* HWCAP2_BTI, likewise */
#else
    (void)info;
    (void)protection;
    return false;
#endif
}

bool hec_got_pages_change(const struct dl_phdr_info *info, void **slot, void *from, void *to) {
    uintptr_t address = (uintptr_t)slot, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct hec_got_range range;
    if (address % sizeof(void *) != 0 || !hec_got_pages_at(address, &range) || address < range.start)
        return false;
    if ((range.flags & HEC_GOT_SHARED) || !(range.flags & PROT_READ))
        return false;
    void *start = (void *)(address & ~(page - 1));
    bool locked = !(range.flags & PROT_WRITE);
    /* Executable all the while: other threads may run in this page, and a system that refuses to make changed pages
     * executable (SELinux's execmod) would not give that back. Where writable and executable is refused, nothing has
     * happened. */
    if (locked && (guarded(info, range.flags) || mprotect(start, page, range.flags | PROT_WRITE) != 0))
        return false;
    bool changed = __atomic_compare_exchange_n(slot, &from, to, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    if (locked)
        mprotect(start, page, range.flags);
    return changed;
}
