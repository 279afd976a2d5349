/* What the guard remembers of programs that died with CUPTI attached: the file, its bounds, and what an entry speaks of. */
#include "base/trace.h"
#include "launch/guard.h"
#include "unit.h"

#include <signal.h>
#include <unistd.h>

static char folder[] = "/tmp/hec-guard-XXXXXX";

static struct hec_guard_entry entry(const char *driver, const char *program) {
    struct hec_guard_entry e = {
        .cuda = 13000, .cupti = 130001, .mode = HEC_TRACE_FULL, .signal = SIGSEGV, .date = "2026-11-22T10:00:00+00:00"};
    snprintf(e.driver, sizeof e.driver, "%s", driver);
    snprintf(e.program, sizeof e.program, "%s", program);
    return e;
}

static void add(struct hec_guard *guard, const char *driver, const char *program) {
    struct hec_guard_entry e = entry(driver, program);
    hec_guard_add(guard, &e);
}

static int clear(void **state) {
    (void)state;
    char path[PATH_MAX];
    struct hec_why why;
    if (hec_guard_path(path, &why) == HEC_OK)
        unlink(path);
    return 0;
}

TEST(test_crashes) {
    static const int yes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    static const int no[] = {SIGTERM, SIGINT, SIGKILL, SIGHUP, SIGPIPE, SIGQUIT, SIGXCPU, 0, -128, 127};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        assert_true(hec_guard_is_crash(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        assert_false(hec_guard_is_crash(no[i]));
}

TEST_WITH(test_kept_as_it_was, NULL, clear) {
    struct hec_guard guard = {0}, read;
    struct hec_why why;
    assert_int_equal(hec_guard_read(&read, &why), HEC_OK); /* there is no file yet */
    assert_int_equal(read.count, 0);
    add(&guard, "580.159.04", "python3.11");
    add(&guard, "", "a \"name\" \xc3\xa9");
    assert_int_equal(hec_guard_write(&guard, &why), HEC_OK);
    assert_int_equal(hec_guard_read(&read, &why), HEC_OK);
    assert_int_equal(read.count, 2);
    assert_memory_equal(read.entries, guard.entries, 2 * sizeof guard.entries[0]);
}

TEST_WITH(test_the_oldest_gives_way, NULL, clear) {
    struct hec_guard guard = {0}, read;
    struct hec_why why;
    char name[32];
    for (int i = 0; i < HEC_GUARD_MAX + 3; i++) {
        snprintf(name, sizeof name, "program%d", i);
        add(&guard, "580", name);
    }
    assert_int_equal(guard.count, HEC_GUARD_MAX);
    assert_string_equal(guard.entries[0].program, "program3");
    assert_string_equal(guard.entries[HEC_GUARD_MAX - 1].program, name);
    assert_int_equal(hec_guard_write(&guard, &why), HEC_OK);
    assert_int_equal(hec_guard_read(&read, &why), HEC_OK);
    assert_int_equal(read.count, HEC_GUARD_MAX);
    add(&guard, "580", "program9"); /* the same once more: not twice, but the newest */
    assert_int_equal(guard.count, HEC_GUARD_MAX);
    assert_string_equal(guard.entries[HEC_GUARD_MAX - 1].program, "program9");
    assert_string_equal(guard.entries[0].program, "program3");
}

TEST_WITH(test_longest_texts_fit, NULL, clear) {
    struct hec_guard guard = {0}, read;
    struct hec_why why;
    struct hec_guard_entry e = entry("", "");
    memset(e.driver, '5', sizeof e.driver - 1);
    memset(e.program, '"', sizeof e.program - 1);
    memset(e.library, '\\', sizeof e.library - 1);
    for (int i = 0; i < HEC_GUARD_MAX; i++) {
        e.cupti = 130001 + i;
        hec_guard_add(&guard, &e);
    }
    assert_int_equal(hec_guard_write(&guard, &why), HEC_OK);
    assert_int_equal(hec_guard_read(&read, &why), HEC_OK);
    assert_memory_equal(read.entries, guard.entries, sizeof guard.entries);
}

TEST(test_which_driver) {
    struct hec_guard_entry known = entry("580.159.04", "p"), unknown = entry("", "p"),
                           simulated = entry(HEC_GUARD_SIMULATED, "p");
    known.bytes = unknown.bytes = simulated.bytes = -1;
    assert_true(hec_guard_matches(&known, "580.159.04"));
    assert_false(hec_guard_matches(&known, "580.159.05"));
    assert_true(hec_guard_matches(&known, "")); /* what is unknown counts as the same */
    assert_true(hec_guard_matches(&unknown, "580.159.04") && hec_guard_matches(&unknown, ""));
    assert_true(hec_guard_matches(&simulated, HEC_GUARD_SIMULATED));
    assert_false(hec_guard_matches(&simulated, "") || hec_guard_matches(&simulated, "580.159.04"));
    assert_false(hec_guard_matches(&known, HEC_GUARD_SIMULATED) || hec_guard_matches(&unknown, HEC_GUARD_SIMULATED));
}

TEST(test_until_libcupti_is_replaced) {
    struct hec_guard guard = {0};
    struct hec_guard_entry e = entry("580", "p");
    snprintf(e.library, sizeof e.library, "%s/libcupti.so.13", folder);
    FILE *file = fopen(e.library, "w");
    assert_non_null(file);
    fputs("one", file);
    fflush(file);
    hec_guard_add(&guard, &e);
    assert_int_equal(guard.entries[0].bytes, 3);
    assert_non_null(hec_guard_find(&guard, "580"));
    fputs("another", file);
    fclose(file);
    assert_null(hec_guard_find(&guard, "580"));
    unlink(e.library); /* gone, or not to be seen from here: it may be the same */
    assert_non_null(hec_guard_find(&guard, "580"));
}

TEST(test_the_newest_is_named) {
    struct hec_guard guard = {0};
    add(&guard, "580", "first");
    add(&guard, "580", "second");
    add(&guard, "590", "third");
    assert_string_equal(hec_guard_find(&guard, "580")->program, "second");
    assert_null(hec_guard_find(&guard, "570"));
}

TEST(test_forgetting) {
    struct hec_guard guard = {0};
    add(&guard, "580", "a");
    add(&guard, HEC_GUARD_SIMULATED, "b");
    add(&guard, "", "c");
    assert_int_equal(hec_guard_forget(&guard, true), 1);
    assert_int_equal(guard.count, 2);
    assert_int_equal(hec_guard_forget(&guard, true), 0);
    assert_int_equal(hec_guard_forget(&guard, false), 2);
    assert_int_equal(guard.count, 0);
}

TEST(test_words) {
    char words[200];
    struct hec_guard_entry e = entry("580.159.04", "python3.11");
    hec_guard_words(&e, words);
    assert_string_equal(words,
                        "python3.11 died by signal 11 with CUPTI 13.0 attached on 2026-11-22 (driver 580.159.04)");
    e = entry("", "p");
    e.cupti = 18;
    hec_guard_words(&e, words);
    assert_string_equal(words,
                        "p died by signal 11 with CUPTI version 18 attached on 2026-11-22 (driver of CUDA 13.0)");
    e.cuda = -1;
    hec_guard_words(&e, words);
    assert_string_equal(words, "p died by signal 11 with CUPTI version 18 attached on 2026-11-22 (unknown driver)");
}

static int set_up(void **state) {
    (void)state;
    return mkdtemp(folder) ? setenv("HEC_STATE_DIR", folder, 1) : -1;
}

static int tear_down(void **state) {
    (void)state;
    return rmdir(folder);
}

ALL_TESTS(set_up, tear_down)
