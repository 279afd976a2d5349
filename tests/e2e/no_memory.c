/* Loaded into a program: the first allocation from the HEC_NO_MEMORY-th place of its own code finds no memory. A place is the last
 * returns to the program and its modules, of libraries nothing. At exit the number of places that were seen is written to the
 * descriptor HEC_NO_MEMORY_FD. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES 16384   /* a power of 2 */
#define FRAMES 5       /* this file's own two, and what called */
#define LOOKS_MOST 200 /* at the calls from one address */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static uint64_t seen[PLACES];
static int seen_count, fail_at = -1, report_fd = -1;
static bool ready;
static __thread bool inside;

/* The offset in our code; 0: it is not ours. */
static uintptr_t own_offset(const void *address) {
    Dl_info info;
    const char *name = dladdr(address, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
    bool is_ours = name && (strcmp(name, "/hec") == 0 || strncmp(name, "/libhec", 7) == 0);
    return is_ours ? (uintptr_t)address - (uintptr_t)info.dli_fbase : 0;
}

/* Whether to look at one more of its calls: it is ours, and was not looked at too often. */
static bool is_new(const void *caller) {
    static struct {
        const void *caller;
        int looks; /* < 0: not ours */
    } known[PLACES];
    size_t at = (uintptr_t)caller * UINT64_C(0x9e3779b97f4a7c15) >> 50;
    while (known[at % PLACES].caller && known[at % PLACES].caller != caller)
        at++;
    if (!known[at % PLACES].caller) {
        known[at % PLACES].caller = caller;
        known[at % PLACES].looks = own_offset(caller) ? 0 : -1;
    }
    return known[at % PLACES].looks >= 0 && known[at % PLACES].looks++ < LOOKS_MOST;
}

static bool fails(const void *caller) {
    void *frames[FRAMES];
    uint64_t place = 1;
    if (!ready || inside)
        return false;
    inside = true;
    int count = is_new(caller) ? backtrace(frames, FRAMES) : 0;
    inside = false;
    if (!count)
        return false;
    for (int i = 0; i < count; i++)
        if (own_offset(frames[i]))
            place = (place ^ own_offset(frames[i])) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = place >> 50;
    while (seen[at % PLACES] && seen[at % PLACES] != place)
        at++;
    if (seen[at % PLACES] || seen_count == PLACES / 2)
        return false;
    seen[at % PLACES] = place;
    return __atomic_add_fetch(&seen_count, 1, __ATOMIC_RELAXED) == fail_at;
}

#define NEXT(call)                                                                                                     \
    if (fails(__builtin_return_address(0))) {                                                                          \
        errno = ENOMEM;                                                                                                \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    return call
void *malloc(size_t size) {
    NEXT(__libc_malloc(size));
}
void *calloc(size_t count, size_t size) {
    NEXT(__libc_calloc(count, size));
}
void *realloc(void *old, size_t size) {
    NEXT(__libc_realloc(old, size));
}

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("HEC_NO_MEMORY"), *fd = getenv("HEC_NO_MEMORY_FD");
    void *frames[2];
    backtrace(frames, 2); /* what it needs is loaded now */
    fail_at = at ? atoi(at) : -1;
    report_fd = fd ? atoi(fd) : -1;
    unsetenv("LD_PRELOAD"); /* of this program alone */
    ready = true;
}

__attribute__((destructor)) static void end(void) {
    if (report_fd >= 0)
        dprintf(report_fd, "%d", seen_count);
}
