/* LD_PRELOAD: logs to stderr each call of CUPTI that a library makes through its symbol table, and passes it on.
 * All parameters of these functions are integers or pointers, at most six. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

typedef int (*call6)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static void *next(const char *name) {
    void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        library = dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, name) : dlsym(RTLD_NEXT, name);
}

static void say(const char *name, uint64_t a, uint64_t b, int result, void *from) {
    Dl_info info = {0};
    dladdr(from, &info);
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    fprintf(
        stderr,
        "{\"cupti\": \"%s\", \"a\": %llu, \"b\": %llu, \"result\": %d, \"main\": %d, \"t_ms\": %.3f, \"from\": \"%s\"}\n",
        name, (unsigned long long)a, (unsigned long long)b, result, gettid() == getpid(),
        t.tv_sec * 1e3 + t.tv_nsec / 1e6, info.dli_fname ? info.dli_fname : "?");
}

#define LOGGED(name)                                                                                                   \
    __attribute__((visibility("default"))) int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,        \
                                                    uint64_t f) {                                                      \
        static call6 real;                                                                                             \
        if (!real)                                                                                                     \
            real = (call6)next(#name);                                                                                 \
        int result = real ? real(a, b, c, d, e, f) : 999;                                                              \
        say(#name, a, b, result, __builtin_return_address(0));                                                         \
        return result;                                                                                                 \
    }

LOGGED(cuptiSubscribe)
LOGGED(cuptiSubscribe_v2)
LOGGED(cuptiUnsubscribe)
LOGGED(cuptiFinalize)
LOGGED(cuptiEnableCallback)
LOGGED(cuptiEnableDomain)
LOGGED(cuptiActivityRegisterCallbacks)
LOGGED(cuptiActivityRegisterTimestampCallback)
LOGGED(cuptiActivityEnable)
LOGGED(cuptiActivityDisable)
LOGGED(cuptiActivityEnableContext)
LOGGED(cuptiActivityEnableRuntimeApi)
LOGGED(cuptiActivityEnableDriverApi)
LOGGED(cuptiActivityEnableLatencyTimestamps)
LOGGED(cuptiActivityEnableHWTrace)
LOGGED(cuptiActivityFlushAll)
LOGGED(cuptiActivityFlushPeriod)
LOGGED(cuptiActivityFlush)
LOGGED(cuptiActivitySetAttribute)
LOGGED(cuptiActivityGetAttribute)
LOGGED(cuptiActivityGetNumDroppedRecords)
LOGGED(cuptiGetVersion)
LOGGED(cuptiSetThreadIdType)
