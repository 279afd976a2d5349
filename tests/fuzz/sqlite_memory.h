/* Memory for SQLite in a fuzz target: half of the time went into AddressSanitizer's allocator, for the tables of a schema
 * that is read anew for each input. Blocks of one size class are used again at once; what lies around a block, and a freed
 * one, is poisoned, so that reading past a column's end is still found. */
#pragma once

#include <sched.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

#ifdef __clang__
#define SQLITE_MEMORY_PLAIN __attribute__((no_sanitize("address", "undefined", "coverage")))
#else
#define SQLITE_MEMORY_PLAIN
#endif
#define SQLITE_MEMORY_CHUNK ((size_t)16 << 20)
#define SQLITE_MEMORY_HEAD 16 /* the size, aligned */
#define SQLITE_MEMORY_GAP 16  /* at least, behind a block */
#define SQLITE_MEMORY_CLASSES 32

struct sqlite_memory_free {
    struct sqlite_memory_free *next;
};

static struct sqlite_memory_free *sqlite_memory_list[SQLITE_MEMORY_CLASSES]; /* linked through their heads */
static char *sqlite_memory_at, *sqlite_memory_end;

/* Powers of two, with head and gap, from 64 bytes on. */
SQLITE_MEMORY_PLAIN static int sqlite_memory_class_of(size_t bytes) {
    return 58 - __builtin_clzll((bytes + SQLITE_MEMORY_HEAD + SQLITE_MEMORY_GAP - 1) | 63);
}

/* SQLite's own lock, for its statistics, is off: two of pthread's calls for each block. */
static char sqlite_memory_busy;

SQLITE_MEMORY_PLAIN static void sqlite_memory_lock(void) {
    while (__atomic_test_and_set(&sqlite_memory_busy, __ATOMIC_ACQUIRE))
        sched_yield();
}

SQLITE_MEMORY_PLAIN static void sqlite_memory_unlock(void) {
    __atomic_clear(&sqlite_memory_busy, __ATOMIC_RELEASE);
}

/* Under the lock. NULL: no memory. */
SQLITE_MEMORY_PLAIN static char *sqlite_memory_take(int class, size_t size) {
    char *at = (char *)sqlite_memory_list[class];
    if (at) {
        sqlite_memory_list[class] = sqlite_memory_list[class]->next;
    } else {
        if ((size_t)(sqlite_memory_end - sqlite_memory_at) < size) {
            size_t chunk = size > SQLITE_MEMORY_CHUNK ? size : SQLITE_MEMORY_CHUNK;
            void *got = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (got == MAP_FAILED)
                return NULL;
            sqlite_memory_at = got;
            sqlite_memory_end = sqlite_memory_at + chunk;
        }
        at = sqlite_memory_at;
        sqlite_memory_at += size;
        ASAN_POISON_MEMORY_REGION(at + SQLITE_MEMORY_HEAD, size - SQLITE_MEMORY_HEAD);
    }
    return at;
}

/* It is asked for at most 2^31 bytes. */
SQLITE_MEMORY_PLAIN static void *sqlite_memory_malloc(int bytes) {
    int class = sqlite_memory_class_of((size_t)bytes);
    sqlite_memory_lock();
    char *at = sqlite_memory_take(class, (size_t)64 << class);
    sqlite_memory_unlock();
    if (!at)
        return NULL;
    *(size_t *)(void *)at = (size_t)bytes;
    ASAN_UNPOISON_MEMORY_REGION(at + SQLITE_MEMORY_HEAD, (size_t)bytes);
    return at + SQLITE_MEMORY_HEAD;
}

SQLITE_MEMORY_PLAIN static int sqlite_memory_size(void *block) {
    return block ? (int)*(size_t *)(void *)((char *)block - SQLITE_MEMORY_HEAD) : 0;
}

SQLITE_MEMORY_PLAIN static void sqlite_memory_give_back(void *block) {
    size_t bytes = (size_t)sqlite_memory_size(block);
    int class = sqlite_memory_class_of(bytes);
    struct sqlite_memory_free *free_one = (void *)((char *)block - SQLITE_MEMORY_HEAD);
    ASAN_POISON_MEMORY_REGION(block, bytes);
    sqlite_memory_lock();
    free_one->next = sqlite_memory_list[class];
    sqlite_memory_list[class] = free_one;
    sqlite_memory_unlock();
}

SQLITE_MEMORY_PLAIN static void *sqlite_memory_realloc(void *block, int bytes) {
    int before = sqlite_memory_size(block);
    void *moved = sqlite_memory_malloc(bytes);
    if (!moved)
        return NULL;
    memcpy(moved, block, (size_t)(before < bytes ? before : bytes));
    sqlite_memory_give_back(block);
    return moved;
}

static int sqlite_memory_roundup(int bytes) {
    return (bytes + 7) & ~7;
}

static int sqlite_memory_init(void *unused) {
    (void)unused;
    return SQLITE_OK;
}

static void sqlite_memory_shutdown(void *unused) {
    (void)unused;
}

/* Before anything else of SQLite. */
static void sqlite_memory_use(void) {
    static const sqlite3_mem_methods methods = {
        sqlite_memory_malloc,  sqlite_memory_give_back, sqlite_memory_realloc,  sqlite_memory_size,
        sqlite_memory_roundup, sqlite_memory_init,      sqlite_memory_shutdown, NULL};
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK ||
        sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) != SQLITE_OK ||
        sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) != SQLITE_OK)
        abort();
}
