/* Slots of modules that were loaded before, symbols for those that come later: libraries built with and without lazy
 * binding, which call a function of another library. */
#include "got_modules.h"

#include "tracer/tracer.h"

#include <link.h>

static int visited;
static int unbound;
static bool agree(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)hook;
    unbound += !bound && strstr(module, "libgot_user_lazy");
    visited += bound && strstr(module, "libgot_user") != NULL;
    return bound && *(bool *)context;
}

static bool only_now(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)hook;
    (void)context;
    return bound && strstr(module, "libgot_user_now") != NULL;
}

struct relro {
    ElfW(Addr) base;
    int protection, found;
};

static int protect_module(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct relro *to = context;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; info->dlpi_addr == to->base && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            uintptr_t from = (to->base + info->dlpi_phdr[i].p_vaddr) & ~(page - 1);
            uintptr_t end = (to->base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz) & ~(page - 1);
            to->found += end > from && mprotect((void *)from, end - from, to->protection) == 0;
        }
    return 0;
}

static void protect(ElfW(Addr) base, int protection) {
    struct relro to = {base, protection, 0};
    dl_iterate_phdr(protect_module, &to);
    assert_int_equal(to.found, 1);
}

TEST(test_got) {
    void *library = got_load("got_library"), *now = got_load("got_user_now"), *lazy = got_load("got_user_lazy");
    struct link_map *map;
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    struct hec_got_hook hooks[] = {{"got_call", dlsym(library, "got_call"), (void *)got_shim},
                                   {"got_absent", NULL, (void *)got_shim}};
    assert_int_equal(got_run(now, "got_user_call", 1), 2);

    /* who does not agree is left alone */
    bool yes = false;
    assert_int_equal(hec_got_patch(hooks, 2, map->l_addr, agree, &yes), 0);
    assert_int_equal(unbound, 1); /* it will ask the symbol table */
    assert_true(visited >= 2);    /* the slot and the pointer of the one that is bound at once */
    assert_int_equal(got_run(now, "got_user_call", 1), 2);

    /* later lookups: by name, by a lazy slot that was not used yet, by modules that come later */
    assert_int_equal(hec_got_patch_symbols(hooks, 2), 1);
    assert_int_equal(got_run(library, "got_call", 1), 101);
    assert_int_equal(got_run(lazy, "got_user_call", 1), 101);
    assert_int_equal(got_run(now, "got_user_call", 1), 2); /* bound before */
    uint64_t generation = hec_got_generation();
    void *later = got_load("got_user_later");
    assert_true(hec_got_generation() != generation);
    assert_int_equal(got_run(later, "got_user_call", 1), 101);
    assert_int_equal(got_run(later, "got_user_pointer", 1), 101);
    assert_int_equal(hec_got_patch_symbols(hooks, 2), 0); /* once */

    /* a module that is just being loaded: its slots wait until the loader has made them read-only */
    yes = true;
    struct link_map *loading;
    assert_int_equal(dlinfo(now, RTLD_DI_LINKMAP, &loading), 0);
    generation = hec_got_generation();
    protect(loading->l_addr, PROT_READ | PROT_WRITE);
    hec_got_patch(hooks, 2, map->l_addr, only_now, NULL);
    assert_int_equal(got_run(now, "got_user_call", 1), 2);
    assert_true(hec_got_generation() != generation);
    protect(loading->l_addr, PROT_READ);

    /* bound slots, in memory that the loader has made read-only */
    assert_true(hec_got_patch(hooks, 2, map->l_addr, agree, &yes) >= 2);
    assert_int_equal(got_run(now, "got_user_call", 1), 101);
    assert_int_equal(got_run(now, "got_user_pointer", 1), 101);
    assert_int_equal(got_run(lazy, "got_user_pointer", 1), 101);
    assert_int_equal(hec_got_patch(hooks, 2, map->l_addr, agree, &yes), 0);

    /* other functions as ever; the function itself is where it was */
    assert_int_equal(got_run(now, "got_user_other", 1), 3);
    assert_int_equal(got_run(later, "got_user_other", 1), 3);
    assert_int_equal(((got_function)hooks[0].real)(1), 2);

    /* a slot that somebody else has taken over is theirs */
    struct hec_got_hook taken = {"got_other", dlsym(library, "got_other"), (void *)got_shim};
    struct hec_got_hook theirs = {"got_other", taken.real, (void *)got_somebody_else};
    assert_true(hec_got_patch(&theirs, 1, map->l_addr, agree, &yes) >= 1);
    assert_int_equal(hec_got_patch(&taken, 1, map->l_addr, agree, &yes), 0);
    assert_int_equal(got_run(now, "got_user_other", 1), 1001);

    void *gone = got_load("got_many");
    generation = hec_got_generation();
    assert_int_equal(hec_got_generation(), generation);
    dlclose(gone);
    assert_true(hec_got_generation() != generation);
}
