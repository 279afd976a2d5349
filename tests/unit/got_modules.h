/* What the tests of got.h share: the modules they load, and what the kernel says of their pages. */
#pragma once

#include "tracer/got_pages.h"
#include "unit.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*got_function)(int);

static inline void *got_load(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/lib/lib%s.so", HEC_BINARY_DIR, name);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        fail_msg("%s", dlerror());
    return handle;
}

static inline int got_run(void *handle, const char *name, int value) {
    got_function f = (got_function)dlsym(handle, name);
    assert_non_null(f);
    return f(value);
}

static inline int got_shim(int value) {
    return value + 100;
}

static inline int got_somebody_else(int value) {
    return value + 1000;
}

/* Address and protection of each page of mappings whose line ends in `name`; in order, at most `max`. */
struct got_page {
    uintptr_t address;
    char flags[5];
};

static inline size_t got_pages(const char *name, struct got_page *pages, size_t max) {
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    char line[1024];
    size_t count = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        char flags[5];
        line[strcspn(line, "\n")] = '\0';
        size_t length = strlen(line);
        if (length < strlen(name) || strcmp(line + length - strlen(name), name) != 0)
            continue;
        assert_int_equal(sscanf(line, "%lx-%lx %4s", &start, &end, flags), 3);
        for (; start < end && count < max; start += 4096, count++) {
            pages[count].address = start;
            memcpy(pages[count].flags, flags, sizeof flags);
        }
    }
    fclose(maps);
    return count;
}

/* Of the page of an address: "r-xp". */
static inline const char *got_flags(const void *address) {
    static char flags[5];
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    char line[1024];
    unsigned long start, end;
    flags[0] = '\0';
    while (!flags[0] && fgets(line, sizeof line, maps)) {
        assert_int_equal(sscanf(line, "%lx-%lx %4s", &start, &end, flags), 3);
        if ((unsigned long)address < start || (unsigned long)address >= end)
            flags[0] = '\0';
    }
    fclose(maps);
    return flags;
}
