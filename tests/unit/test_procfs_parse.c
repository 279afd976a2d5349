/* The text of /proc files: odd names, cut-off text, missing fields. */
#include "observe/procfs/file.h"
#include "unit.h"

#define STAT_REST                                                                                                      \
    " S 42 42 42 34816 42 4194304 100 200 3 4 250 50 1000 500 20 0 7 0 123456 99999744 2048 18446744073709551615 1 1 0"

TEST(stat_fields) {
    struct hec_proc_stat stat;
    assert_true(hec_proc_parse_stat("4242 (python)" STAT_REST, &stat));
    assert_int_equal(stat.pid, 4242);
    assert_int_equal(stat.parent, 42);
    assert_int_equal(stat.state, 'S');
    assert_string_equal(stat.name, "python");
    assert_int_equal(stat.own_ticks, 300);
    assert_int_equal(stat.waited_ticks, 1500);
    assert_int_equal(stat.threads, 7);
    assert_int_equal(stat.start_ticks, 123456);
    assert_int_equal(stat.rss_pages, 2048);
}

TEST(names_may_hold_anything) {
    static const char *const cases[][2] = {
        {"a b c", "a b c"},
        {"((sd-pam))", "((sd-pam))"},
        {") R 1 2 3 (", ") R 1 2 3 ("},
        {"", ""},
        {"new\nline\t\x01", "new?line??"},
        {"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac"},
        {"cut \xe2\x82", "cut ??"},        /* the kernel cuts at 15 bytes */
        {"\xc0\xaf\xed\xa0\x80", "?????"}, /* overlong, surrogate */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        struct hec_proc_stat stat;
        snprintf(text, sizeof text, "7 (%s)" STAT_REST, cases[i][0]);
        assert_true(hec_proc_parse_stat(text, &stat));
        assert_string_equal(stat.name, cases[i][1]);
        assert_int_equal(stat.parent, 42);
    }
}

TEST(a_long_name_is_cut_between_characters) {
    char text[400] = "7 (";
    for (int i = 0; i < 60; i++)
        strcat(text, "\xc3\xa4");
    strcat(text, ")" STAT_REST);
    struct hec_proc_stat stat;
    assert_true(hec_proc_parse_stat(text, &stat));
    assert_int_equal(strlen(stat.name), 62);
}

/* Every text cut at every length, in memory of exactly that size so that a sanitizer sees any step beyond. */
TEST(cut_text_is_refused_or_harmless) {
    static const char stat_text[] = "4242 (py (th) on)" STAT_REST;
    static const char status_text[] = "Name:\tx\nState:\tS (sleeping)\nVmHWM:\t  1234 kB\nvoluntary_ctxt_switches:\t5\n"
                                      "nonvoluntary_ctxt_switches:\t6\n";
    static const char io_text[] = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n";
    static const char cpu_text[] = "cpu  10 20 30 40 50 60 70 80 0 0\n";
    static const char *const texts[] = {stat_text, status_text, io_text, cpu_text};
    for (int t = 0; t < 4; t++) {
        for (size_t length = 0; length <= strlen(texts[t]); length++) {
            char *text = malloc(length + 1);
            assert_non_null(text);
            memcpy(text, texts[t], length);
            text[length] = '\0';
            struct hec_proc_stat stat;
            struct hec_proc_status status;
            struct hec_proc_io io;
            int64_t busy, total;
            bool whole = hec_proc_parse_stat(text, &stat);
            if (t != 0)
                assert_false(whole);
            hec_proc_parse_status(text, &status);
            hec_proc_parse_io(text, &io);
            hec_proc_parse_cpu(text, &busy, &total);
            free(text);
        }
    }
    struct hec_proc_stat stat;
    assert_false(hec_proc_parse_stat("4242 (python) S 42 42", &stat));
    assert_false(hec_proc_parse_stat("4242 python S 42", &stat));
    assert_false(hec_proc_parse_stat("4242 (python)", &stat));
    assert_false(hec_proc_parse_stat("", &stat));
}

TEST(io_and_status) {
    struct hec_proc_io io;
    assert_true(hec_proc_parse_io("rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 6\n", &io));
    assert_int_equal(io.read, 10);
    assert_int_equal(io.written, 20);
    assert_int_equal(io.disk_read, 4096);
    assert_false(hec_proc_parse_io("rchar: 10\nwchar: 20\n", &io)); /* missing is not 0 */
    struct hec_proc_status status;
    assert_true(hec_proc_parse_status("Name:\tState:\tX\nState:\tD (disk sleep)\nVmHWM:\t  77 kB\n"
                                      "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n",
                                      &status));
    assert_int_equal(status.state, 'D');
    assert_int_equal(status.rss_max_kib, 77);
    assert_int_equal(status.voluntary, 5);
    assert_int_equal(status.involuntary, 6);
    assert_true(
        hec_proc_parse_status("Name:\tkworker\nState:\tI (idle)\n", &status)); /* a kernel thread has no memory */
    assert_int_equal(status.rss_max_kib, -1);
    assert_int_equal(status.voluntary, -1);
}

TEST(cpu_and_memory) {
    int64_t busy, total;
    assert_true(hec_proc_parse_cpu("cpu  10 20 30 400 50 6 7 8 5 5\ncpu0 1 2 3 4\n", &busy, &total));
    assert_int_equal(busy, 73); /* not idle, iowait, stolen; guest time is in user already */
    assert_int_equal(total, 531);
    assert_true(hec_proc_parse_cpu("cpu  1 2 3 4\n", &busy, &total)); /* an old kernel */
    assert_int_equal(total, 10);
    assert_false(hec_proc_parse_cpu("cpu0 1 2 3 4\n", &busy, &total));
    assert_int_equal(hec_proc_parse_field("MemTotal: 5 kB\nMemAvailable:    3 kB\n", "MemAvailable:"), 3);
    assert_int_equal(hec_proc_parse_field("MemTotal: 5 kB\nMemFree: 3 kB\n", "MemAvailable:"), -1);
}
