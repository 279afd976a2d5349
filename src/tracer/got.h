/* Other modules' ways to a function: the slots through which they call it, the symbol that they find it by, and tables of
 * their own that they put its address into. got.c walks them; got_pages.c changes a word wherever it lies.
 *
 * Everything here allocates nothing, uses no thread-local storage of its own and less than 1 KB of stack. Each walk
 * holds the lock below, and within it glibc's lock of the list of modules, but never glibc's other one (dl_load_lock),
 * under which constructors run: a constructor that forks would wait for us, and we for it. glibc's lock is not fair: a
 * thread that walks without a pause keeps the program's dlopen waiting for seconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hec_got_hook {
    const char *name; /* of the function */
    void *real;       /* where the library has it; NULL: it has none */
    void *shim;
};

/* Asked under the lock and the loader's: may not load, look up or walk. `module` is the path of the module, "" for the
 * program itself. True puts the shim there. */
typedef bool hec_got_visit(const char *module, const struct hec_got_hook *hook, bool bound, void *context);
typedef bool hec_got_wants(const char *module, void *context);

/* Visit the slots of all loaded modules, but of the one with base address `skip` and ourselves, that are bound to
 * hooks[i].real, and those that are bound when they are first used (bound is false). Returns the number of slots
 * changed. */
uint32_t hec_got_patch(const struct hec_got_hook *hooks, uint32_t count, uintptr_t skip, hec_got_visit *visit,
                       void *context);
/* Make later lookups of the names in the library give the shims. Returns the number of names changed. */
uint32_t hec_got_patch_symbols(const struct hec_got_hook *hooks, uint32_t count);
/* Visit the words of writable data that are hooks[i].real, of the modules that `wants` agrees to (asked once a module,
 * with the same exceptions): for runtimes that are linked into a program, which fetch the driver's functions by
 * cuGetProcAddress. At most HEC_GOT_DATA_BYTES a module. Returns the number of words changed. */
uint32_t hec_got_patch_data(const struct hec_got_hook *hooks, uint32_t count, uintptr_t skip, hec_got_wants *wants,
                            hec_got_visit *visit, void *context);
#define HEC_GOT_DATA_BYTES (UINT64_C(64) << 20)
/* Changes when a module was loaded or unloaded, and when one was met that was not loaded wholly: its turn comes
 * later. */
uint64_t hec_got_generation(void);

/* The functions above take it themselves. For others who walk the modules. */
void hec_got_lock(void);
void hec_got_unlock(void);
/* A fork in the middle of a walk would leave the loader's lock taken in the child for ever (glibc makes dl_load_lock
 * anew there, but not dl_load_write_lock), and its next dlopen would not return. For pthread_atfork. prepare waits for at
 * most HEC_GOT_FORK_WAIT_MS: who forks from within a visitor, or holds the loader's lock, must not wait for ever. */
void hec_got_fork_prepare(void);
void hec_got_fork_parent(void);
void hec_got_fork_child(void);
#define HEC_GOT_FORK_WAIT_MS 1000
