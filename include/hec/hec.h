/* HEC's public C API: marks (steps, phases, units of work) and knobs, for C and C++.
 *
 * A program that makes marks behaves the same with and without HEC. Without it (`hec run` sets HEC_SOCKET) the first
 * call of each kind finds that out and every later one is a load, a test and a return. With it a mark is one record
 * of 64 bytes in shared memory: no lock, no system call, no waiting; when HEC does not keep up, marks are dropped and
 * counted, never delayed.
 *
 * Two ways to use it, with the same source:
 *   - link with libhec.so (pkg-config --cflags --libs hec), or
 *   - #define HEC_HEADER_ONLY before including this file: nothing to link (but -ldl before glibc 2.34), libhec.so is
 *     loaded from the path in the environment variable HEC_LIB, which `hec run` sets; without it nothing happens.
 *
 * No function prints, aborts, throws, raises a signal, changes errno or waits for anybody. None can fail visibly.
 * Threads: all functions may be called from any thread. fork: the child gets a ring of its own at its first mark.
 * vfork: make no marks between vfork and exec. Signal handlers: only marks whose thread has made one before, and in
 * header-only mode after hec_active() was called once.
 * Other languages: bind the functions hec_mark_*, hec_knob_* below; they are the whole exported ABI of libhec.so.0. */
#ifndef HEC_HEC_H
#define HEC_HEC_H

#include <stdint.h>

/* The version grows when something is added; what exists does not change as long as the soname stays.
 * The date is that of the version. */
#define HEC_API_VERSION 2
#define HEC_API_DATE 20261129L

/* A name (phase, unit, knob) keeps its first 63 bytes; it should be UTF-8. One process has at most 512 of them:
 * marks with further names are dropped and counted. */
#define HEC_NAME_MAX 63

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(__GNUC__)
#error "hec.h needs gcc or clang"
#endif

/* ---- the ABI of libhec.so.0 ----
 * Each returns 1 while marks are recorded, and 0 once they are off for good. */

struct hec_mark_functions {
    uint32_t version; /* HEC_API_VERSION of the library */
    uint32_t size;    /* bytes of its table */
    int (*active)(void);
    int (*step)(const char *unit, double units);
    int (*phase_begin)(const char *name);
    int (*phase_end)(const char *name);
    int (*units)(const char *name, double count);
    int64_t (*knob_int)(const char *name, int64_t fallback);
    double (*knob_double)(const char *name, double fallback);
    const char *(*knob_text)(const char *name, const char *fallback);
    /* since version 2: there where size says so */
    int64_t (*knob_int_in)(const char *name, int64_t fallback, int64_t least, int64_t most);
    double (*knob_double_in)(const char *name, double fallback, double least, double most);
};

#ifndef HEC_HEADER_ONLY
int hec_mark_active(void);
int hec_mark_step(const char *unit, double units);
int hec_mark_phase_begin(const char *name);
int hec_mark_phase_end(const char *name);
int hec_mark_units(const char *name, double count);
int64_t hec_knob_int(const char *name, int64_t fallback);
double hec_knob_double(const char *name, double fallback);
const char *hec_knob_text(const char *name, const char *fallback);
int64_t hec_knob_int_in(const char *name, int64_t fallback, int64_t least, int64_t most);
double hec_knob_double_in(const char *name, double fallback, double least, double most);
/* The table of these functions, or NULL when the library is older than the version asked for. */
const struct hec_mark_functions *hec_mark_table(uint32_t version);
#endif

/* 1 until the library says that marks are off. One for each program or library that includes this file; hidden, so
 * that two of them never share it. */
extern __attribute__((weak, visibility("hidden"))) int hec_on_v1_;
__attribute__((weak, visibility("hidden"))) int hec_on_v1_ = 1;

#define HEC_ON_() (__builtin_expect(__atomic_load_n(&hec_on_v1_, __ATOMIC_RELAXED), 0) != 0)
#define HEC_CALLED_(still_on)                                                                                          \
    do {                                                                                                               \
        if (!(still_on))                                                                                               \
            __atomic_store_n(&hec_on_v1_, 0, __ATOMIC_RELAXED);                                                        \
    } while (0)

#ifdef HEC_HEADER_ONLY

#ifdef __cplusplus
}
#endif
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#ifdef __cplusplus
extern "C" {
#endif

extern __attribute__((weak, visibility("hidden"))) const struct hec_mark_functions *hec_table_v1_;
__attribute__((weak, visibility("hidden"))) const struct hec_mark_functions *hec_table_v1_ = 0;

/* Load the library named by HEC_LIB, once. Two threads may both do it: the result is the same. */
__attribute__((unused, noinline, cold)) static const struct hec_mark_functions *hec_load_v1_(void) {
    int saved = errno;
    const struct hec_mark_functions *table = 0;
    const char *path = getauxval(AT_SECURE) ? 0 : getenv("HEC_LIB");
    if (path && path[0] == '/' && (getenv("HEC_SOCKET") || getenv("HEC_KNOBS"))) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "hec_mark_table") : 0;
        const struct hec_mark_functions *(*find)(uint32_t) = 0;
        memcpy(&find, &symbol, sizeof find);
        if (find)
            table = find(1); /* an older library does too: what it lacks, the size of its table says */
    }
    if (table)
        __atomic_store_n(&hec_table_v1_, table, __ATOMIC_RELEASE);
    else
        __atomic_store_n(&hec_on_v1_, 0, __ATOMIC_RELAXED);
    errno = saved;
    return table;
}

__attribute__((unused)) static inline const struct hec_mark_functions *hec_library_v1_(void) {
    const struct hec_mark_functions *table = __atomic_load_n(&hec_table_v1_, __ATOMIC_ACQUIRE);
    return table || !HEC_ON_() ? table : hec_load_v1_();
}

#define HEC_MARK_(function, arguments)                                                                                 \
    do {                                                                                                               \
        const struct hec_mark_functions *table_ = hec_library_v1_();                                                   \
        if (table_)                                                                                                    \
            HEC_CALLED_(table_->function arguments);                                                                   \
    } while (0)

#else
#define HEC_MARK_(function, arguments) HEC_CALLED_(hec_mark_##function arguments)
#endif

/* ---- what a program calls ---- */

/* 1 when marks are being recorded now, else 0. For programs whose marks are costly to prepare. */
__attribute__((unused)) static inline int hec_active(void) {
    if (HEC_ON_())
        HEC_MARK_(active, ());
    return HEC_ON_();
}

/* A step ends now, and did `units` units of work (finite, not negative; may be fractional or 0). The count goes to
 * the run's unit named "unit". Call it once at the end of each step. */
__attribute__((unused)) static inline void hec_step(double units) {
    if (HEC_ON_())
        HEC_MARK_(step, (0, units));
}

/* The same for a named unit, in the singular: hec_step_of("sample", 128). NULL or "" is "unit". */
__attribute__((unused)) static inline void hec_step_of(const char *unit, double units) {
    if (HEC_ON_())
        HEC_MARK_(step, (unit, units));
}

/* Adds count to the run's unit of that name, without ending a step: tokens beside samples, say. A run may have
 * several units; each has its own total and its own joules per unit. NULL or "" is "unit". */
__attribute__((unused)) static inline void hec_units(const char *name, double count) {
    if (HEC_ON_())
        HEC_MARK_(units, (name, count));
}

/* A phase of this thread begins or ends. Phases nest. An end closes the innermost open phase of that name and those
 * still open inside it; NULL or "" closes the innermost one; an end that fits no open phase is ignored; what is open
 * when the process ends is closed then. */
__attribute__((unused)) static inline void hec_phase_begin(const char *name) {
    if (HEC_ON_())
        HEC_MARK_(phase_begin, (name));
}
__attribute__((unused)) static inline void hec_phase_end(const char *name) {
    if (HEC_ON_())
        HEC_MARK_(phase_end, (name));
}

/* Knobs: values that the program reads and that HEC may set from outside (`hec run --knob NAME=VALUE`, or the
 * environment variable HEC_KNOBS="batch=64;lr=0.1", in which a backslash keeps the next character of a value).
 * The result is the value set, or `fallback` when none is set or it does not parse as the type: hec_knob_int takes
 * decimal, 0x and true/false (1/0); hec_knob_double what strtod takes, but for nan and infinities. Each read is
 * recorded with the value used. Knobs work whenever HEC_KNOBS is set, with or without an observer. The text of
 * hec_knob_text is valid for ever (the fallback is returned as it was given).
 *
 * With a range (`hec_knob_int_in("batch", 128, 32, 512)`) a program says which values a knob may have, its ends among
 * them: `hec try` then looks for the value in it that takes the fewest joules a unit of work. A value that is set
 * outside of it is not taken; the result is the fallback, and HEC's report says so. A range that is none (least above
 * most, the fallback outside, a nan or an infinity) counts as not given, and the report says that. */
#ifdef HEC_HEADER_ONLY
__attribute__((unused)) static inline int64_t hec_knob_int(const char *name, int64_t fallback) {
    const struct hec_mark_functions *table = hec_library_v1_();
    return table ? table->knob_int(name, fallback) : fallback;
}
__attribute__((unused)) static inline double hec_knob_double(const char *name, double fallback) {
    const struct hec_mark_functions *table = hec_library_v1_();
    return table ? table->knob_double(name, fallback) : fallback;
}
__attribute__((unused)) static inline const char *hec_knob_text(const char *name, const char *fallback) {
    const struct hec_mark_functions *table = hec_library_v1_();
    return table ? table->knob_text(name, fallback) : fallback;
}
#define HEC_HAS_(table, function)                                                                                      \
    ((table)->size >= offsetof(struct hec_mark_functions, function) + sizeof((table)->function))
__attribute__((unused)) static inline int64_t hec_knob_int_in(const char *name, int64_t fallback, int64_t least,
                                                              int64_t most) {
    const struct hec_mark_functions *table = hec_library_v1_();
    int64_t value = fallback;
    if (table && HEC_HAS_(table, knob_int_in))
        return table->knob_int_in(name, fallback, least, most);
    if (table)
        value = table->knob_int(name, fallback);
    return least <= fallback && fallback <= most && (value < least || value > most) ? fallback : value;
}
__attribute__((unused)) static inline double hec_knob_double_in(const char *name, double fallback, double least,
                                                                double most) {
    const struct hec_mark_functions *table = hec_library_v1_();
    double value = fallback;
    if (table && HEC_HAS_(table, knob_double_in))
        return table->knob_double_in(name, fallback, least, most);
    if (table)
        value = table->knob_double(name, fallback);
    return least <= fallback && fallback <= most && (value < least || value > most) ? fallback : value;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
