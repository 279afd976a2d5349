/* Words in pages of every protection: changed, or left, and the protection as before. Small libraries, in which the
 * symbol table shares an executable page with the code. */
#include "got_modules.h"

#include <sys/prctl.h>

static bool agree(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)hook;
    return bound && strstr(module, context) != NULL;
}

#define PAGES_MAX 4096
static struct got_page before[PAGES_MAX], after[PAGES_MAX];

static void check_same(const char *name, size_t count) {
    assert_int_equal(got_pages(name, after, PAGES_MAX), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(before[i].address, after[i].address);
        assert_string_equal(before[i].flags, after[i].flags);
    }
}

/* The symbols of a library; the page of the symbol is executable, or there would be nothing to see. */
static void check_symbols(const char *library, const char *file, bool executable) {
    void *handle = got_load(library);
    struct hec_got_hook hook = {"got_call", dlsym(handle, "got_call"), (void *)got_shim};
    size_t pages = got_pages(file, before, PAGES_MAX);
    assert_true(pages > 0 && pages < PAGES_MAX);
    Dl_info info;
    void *symbol = NULL;
    assert_int_not_equal(dladdr1(hook.real, &info, &symbol, RTLD_DL_SYMENT), 0);
    assert_string_equal(got_flags(symbol), executable ? "r-xp" : "r--p");
    assert_int_equal(hec_got_patch_symbols(&hook, 1), 1);
    check_same(file, pages);
    assert_int_equal(((got_function)hook.real)(1), 2); /* the code in that page */
    assert_int_equal(got_run(handle, "got_other", 1), 3);
    assert_int_equal(got_run(handle, "got_call", 1), 101);
    assert_int_equal(hec_got_patch_symbols(&hook, 1), 0);
}

TEST(test_slots) {
    struct hec_got_hook hook = {"got_other", dlsym(got_load("got_library"), "got_other"), (void *)got_shim};
    static const char *const users[][2] = {{"got_user_now", "/libgot_user_now.so"},
                                           {"got_user_merged", "/libgot_user_merged.so"},
                                           {"got_user_lazy", "/libgot_user_lazy.so"}};
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        void *handle = got_load(users[i][0]);
        assert_int_equal(got_run(handle, "got_user_other", 1), 3); /* the lazy one binds it */
        size_t pages = got_pages(users[i][1], before, PAGES_MAX);
        assert_true(pages > 0);
        assert_int_equal(hec_got_patch(&hook, 1, 0, agree, (void *)(uintptr_t)users[i][1]), 1);
        check_same(users[i][1], pages);
        assert_int_equal(got_run(handle, "got_user_other", 1), 101);
        assert_int_equal(got_run(handle, "got_user_call", 1), 2);
    }
}

TEST(test_symbols) {
    check_symbols("got_merged", "/libgot_merged.so", true);
    check_symbols("got_library", "/libgot_library.so", false);
    check_symbols("got_sysv", "/libgot_sysv.so", false); /* found without a hash of GNU's */
}

static const struct dl_phdr_info nowhere;

static bool change(void **slot, void *from, void *to) {
    hec_got_lock();
    hec_got_pages_begin();
    bool changed = hec_got_pages_change(&nowhere, slot, from, to);
    hec_got_unlock();
    return changed;
}

static void **map(int protection, int flags, int file) {
    void **word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, file, 0);
    assert_ptr_not_equal(word, MAP_FAILED);
    *word = (void *)1;
    assert_int_equal(mprotect(word, 4096, protection), 0);
    return word;
}

TEST(test_protections) {
    static const struct {
        int protection;
        const char *flags;
        bool changed;
    } cases[] = {{PROT_READ, "r--p", true},
                 {PROT_READ | PROT_WRITE, "rw-p", true},
                 {PROT_READ | PROT_EXEC, "r-xp", true},
                 {PROT_READ | PROT_WRITE | PROT_EXEC, "rwxp", true},
                 {PROT_NONE, "---p", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void **word = map(cases[i].protection, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        assert_false(change(word, (void *)2, (void *)3)); /* somebody else was first */
        assert_int_equal(change(word, (void *)1, (void *)3), cases[i].changed);
        assert_string_equal(got_flags(word), cases[i].flags);
        assert_int_equal(mprotect(word, 4096, PROT_READ), 0);
        assert_ptr_equal(*word, (void *)(uintptr_t)(cases[i].changed ? 3 : 1));
        assert_false(change((void **)((char *)word + 4), (void *)0, (void *)3)); /* might span two pages */
        munmap(word, 4096);
        assert_false(change(word, (void *)1, (void *)3)); /* nothing there */
    }
}

TEST(test_shared) {
    char path[] = "shared.XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    unlink(path);
    assert_int_equal(ftruncate(file, 4096), 0);
    void **word = map(PROT_READ, MAP_SHARED, file);
    assert_false(change(word, (void *)1, (void *)3));
    assert_int_equal(mprotect(word, 4096, PROT_READ | PROT_WRITE), 0);
    assert_false(change(word, (void *)1, (void *)3));
    assert_ptr_equal(*word, (void *)1);
    munmap(word, 4096);
    close(file);
}

/* A system that lets no page be writable and executable: nothing happens. */
TEST(test_refused) {
    enum { GOOD = 40, NOT_HERE = 41 };
    void **word = map(PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    void **data = map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (prctl(65 /* PR_SET_MDWE */, 1ul /* PR_MDWE_REFUSE_EXEC_GAIN */, 0ul, 0ul, 0ul) != 0)
            _exit(NOT_HERE); /* before Linux 6.3 */
        bool good = !change(word, (void *)1, (void *)3) && *word == (void *)1 && strcmp(got_flags(word), "r-xp") == 0;
        good = good && change(data, (void *)1, (void *)3) && *data == (void *)3 && strcmp(got_flags(data), "r--p") == 0;
        _exit(good ? GOOD : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_HERE)
        skip();
    assert_int_equal(WEXITSTATUS(status), GOOD);
}

/* More mappings than the table has room for. */
TEST(test_many) {
    enum { PAGES = 20000 };
    char *area = mmap(NULL, (size_t)PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(area, MAP_FAILED);
    for (size_t i = 0; i < PAGES; i += 2)
        assert_int_equal(mprotect(area + i * 4096, 4096, i % 4 ? PROT_READ : PROT_NONE), 0);
    static const size_t order[] = {PAGES - 2, 2, PAGES / 2 + 2, 3, PAGES - 1, PAGES / 2 + 1};
    hec_got_lock();
    hec_got_pages_begin();
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        void **word = (void **)(area + order[i] * 4096);
        assert_true(hec_got_pages_change(&nowhere, word, NULL, (void *)3));
        assert_ptr_equal(*word, (void *)3);
        assert_string_equal(got_flags(word), order[i] % 2 ? "rw-p" : "r--p");
    }
    assert_false(hec_got_pages_change(&nowhere, (void **)(area + 4 * 4096), NULL, (void *)3)); /* PROT_NONE */
    hec_got_pages_begin();
    munmap(area + 8 * 4096, 4096);
    assert_false(
        hec_got_pages_change(&nowhere, (void **)(area + 8 * 4096), NULL, (void *)3)); /* the next is writable */
    hec_got_unlock();
    munmap(area, (size_t)PAGES * 4096);
}
