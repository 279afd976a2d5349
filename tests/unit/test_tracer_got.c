/* Slots of modules that were loaded before, symbols for those that come later: libraries built with and without lazy
 * binding, which call a function of another library. */
#include "tracer/tracer.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef int (*function)(int);

static void *load(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/lib/lib%s.so", HEC_BINARY_DIR, name);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        fail_msg("%s", dlerror());
    return handle;
}

static int call(void *handle, const char *name, int value) {
    function f = (function)dlsym(handle, name);
    assert_non_null(f);
    return f(value);
}

static int shim(int value) {
    return value + 100;
}

static int somebody_else(int value) {
    return value + 1000;
}

static int visited;
static int unbound;
static bool agree(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)hook;
    unbound += !bound && strstr(module, "libgot_user_lazy");
    visited += bound && strstr(module, "libgot_user") != NULL;
    return bound && *(bool *)context;
}

static void test_got(void **state) {
    (void)state;
    void *library = load("got_library"), *now = load("got_user_now"), *lazy = load("got_user_lazy");
    struct link_map *map;
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    struct hec_got_hook hooks[] = {{"got_call", dlsym(library, "got_call"), (void *)shim},
                                   {"got_absent", NULL, (void *)shim}};
    assert_int_equal(call(now, "got_user_call", 1), 2);

    /* who does not agree is left alone */
    bool yes = false;
    assert_int_equal(hec_got_patch(hooks, 2, map->l_addr, agree, &yes), 0);
    assert_int_equal(unbound, 1); /* it will ask the symbol table */
    assert_true(visited >= 2);    /* the slot and the pointer of the one that is bound at once */
    assert_int_equal(call(now, "got_user_call", 1), 2);

    /* later lookups: by name, by a lazy slot that was not used yet, by modules that come later */
    assert_int_equal(hec_got_patch_symbols(hooks, 2), 1);
    assert_int_equal(call(library, "got_call", 1), 101);
    assert_int_equal(call(lazy, "got_user_call", 1), 101);
    assert_int_equal(call(now, "got_user_call", 1), 2); /* bound before */
    uint64_t generation = hec_got_generation();
    void *later = load("got_user_later");
    assert_true(hec_got_generation() != generation);
    assert_int_equal(call(later, "got_user_call", 1), 101);
    assert_int_equal(call(later, "got_user_pointer", 1), 101);
    assert_int_equal(hec_got_patch_symbols(hooks, 2), 0); /* once */

    /* bound slots, in memory that the loader has made read-only */
    yes = true;
    assert_true(hec_got_patch(hooks, 2, map->l_addr, agree, &yes) >= 3);
    assert_int_equal(call(now, "got_user_call", 1), 101);
    assert_int_equal(call(now, "got_user_pointer", 1), 101);
    assert_int_equal(call(lazy, "got_user_pointer", 1), 101);
    assert_int_equal(hec_got_patch(hooks, 2, map->l_addr, agree, &yes), 0);

    /* other functions as ever; the function itself is where it was */
    assert_int_equal(call(now, "got_user_other", 1), 3);
    assert_int_equal(call(later, "got_user_other", 1), 3);
    assert_int_equal(((function)hooks[0].real)(1), 2);

    /* a slot that somebody else has taken over is theirs */
    struct hec_got_hook taken = {"got_other", dlsym(library, "got_other"), (void *)shim};
    struct hec_got_hook theirs = {"got_other", taken.real, (void *)somebody_else};
    assert_true(hec_got_patch(&theirs, 1, map->l_addr, agree, &yes) >= 1);
    assert_int_equal(hec_got_patch(&taken, 1, map->l_addr, agree, &yes), 0);
    assert_int_equal(call(now, "got_user_other", 1), 1001);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_got)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
