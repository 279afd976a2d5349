/* Tables of functions in the writable data of a module. */
#include "got_modules.h"

static uint32_t asked, visited;

static bool wants(const char *module, void *context) {
    asked++;
    return strstr(module, context) != NULL;
}

static bool agree(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)hook;
    visited += bound && strstr(module, context) != NULL;
    return true;
}

static bool refuse(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)agree(module, hook, bound, context);
    return false;
}

/* As a thread of the program that changes the table in that moment. */
static void (*fill)(got_function);
static bool race(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    fill(got_somebody_else);
    return agree(module, hook, bound, context);
}

static void check(int (*call)(int, int), int zeroed, int mixed, int page) {
    assert_int_equal(call(0, 1), zeroed);
    assert_int_equal(call(1, 1), mixed);
    assert_int_equal(call(2, 1), page);
}

TEST(test_data) {
    void *library = got_load("got_library"), *table = got_load("got_table");
    char name[] = "libgot_table.so", other[] = "libgot_absent.so";
    got_function real = (got_function)dlsym(library, "got_call");
    struct hec_got_hook hooks[] = {{"got_absent", NULL, (void *)got_shim},
                                   {"got_other", dlsym(library, "got_other"), (void *)got_somebody_else},
                                   {"got_call", (void *)real, (void *)got_shim}};
    int (*call)(int, int) = (int (*)(int, int))dlsym(table, "got_table_call");
    fill = (void (*)(got_function))dlsym(table, "got_table_fill");
    assert_true(call && fill && real);
    fill(real);
    check(call, 2, 2, 2);

    /* modules that are not wanted are not read */
    assert_int_equal(hec_got_patch_data(hooks, 3, 0, wants, agree, other), 0);
    assert_true(asked > 2);
    assert_int_equal(visited, 0);
    struct link_map *map;
    assert_int_equal(dlinfo(table, RTLD_DI_LINKMAP, &map), 0);
    assert_int_equal(hec_got_patch_data(hooks, 3, map->l_addr, wants, agree, name), 0);
    assert_int_equal(hec_got_patch_data(hooks, 1, 0, wants, agree, name), 0); /* nothing to look for */
    /* who does not agree is left alone */
    assert_int_equal(hec_got_patch_data(hooks, 3, 0, wants, refuse, name), 0);
    assert_int_equal(visited, 3);
    check(call, 2, 2, 2);
    /* a change of the program's is not lost */
    assert_int_equal(hec_got_patch_data(hooks, 3, 0, wants, race, name), 0);
    check(call, 1001, 1001, 1001);

    /* pages that are not writable, or shared, are left, and not even read */
    fill(real);
    char *page = dlsym(table, "got_table_page");
    page = ((char *(*)(void))page)();
    visited = 0;
    assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
    assert_int_equal(hec_got_patch_data(hooks, 3, 0, wants, agree, name), 2);
    assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
    assert_int_equal(hec_got_patch_data(hooks, 3, 0, wants, agree, name), 0);
    assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
    check(call, 101, 101, 2);
    assert_ptr_equal(mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0), page);
    fill(real);
    assert_int_equal(hec_got_patch_data(hooks, 3, 0, wants, agree, name), 2);
    assert_int_equal(visited, 4);
    check(call, 101, 101, 2);

    assert_int_equal(call(3, 1), 2); /* not a word */
    assert_int_equal(call(4, 1), 2); /* beyond 64 MB */
    assert_int_equal(real(1), 2);
    assert_int_equal(hec_got_patch_data(hooks, 3, 0, wants, agree, name), 0); /* once */
}
