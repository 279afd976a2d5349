/* Files that are damaged, foreign, newer, disguised, cut off or out of reach: a sentence each, and never a crash. */
#include "store_file.h"

#include "base/buf.h"
#include "store/schema.h"

#include <sys/wait.h>

static unsigned char *bytes; /* of a file */
static size_t length;

static void load(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    length = (size_t)st.st_size;
    free(bytes);
    bytes = malloc(length);
    assert_int_equal(file_read(path, bytes, length), length);
}

static const char *whole(void) {
    const char *path = in_folder("whole.hec");
    if (access(path, F_OK) != 0) {
        struct hec_writer *writer = store_create(path, 0);
        store_fill(hec_writer_sink(writer), 0, 60);
        store_close(writer);
    }
    return path;
}

/* Open and read everything; the error, 0 if there was none. An error has a sentence, and so has what was left out. */
static int try_file(const char *path, struct hec_why *why) {
    struct hec_reader *reader;
    int64_t values = 0;
    why->text[0] = '\0';
    int err = hec_reader_open(path, &reader, why);
    if (err == HEC_OK) {
        err = store_read_all(reader, &values, why);
        if (!err && hec_reader_left_out(reader))
            snprintf(why->text, sizeof why->text, "%s", hec_reader_left_out(reader));
        hec_reader_close(reader);
    } else {
        assert_null(reader);
    }
    if (err)
        assert_true(strlen(why->text) > 10);
    return err;
}

static void assert_refused(const char *path, int err, const char *sentence) {
    struct hec_why why;
    assert_int_equal(try_file(path, &why), err);
    if (!strstr(why.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", why.text, sentence);
}

TEST(sentences) {
    assert_refused(in_folder("absent.hec"), HEC_ERR_NOTFOUND, "cannot open");
    assert_refused(folder, HEC_ERR_USAGE, "is not a regular file");
    assert_refused("/dev/null", HEC_ERR_USAGE, "is not a regular file");
    const char *path = in_folder("other.hec");
    file_write(path, "", 0);
    assert_refused(path, HEC_ERR_CORRUPT, "is empty, so it is not a HEC run file");
    file_write(
        path,
        "#!/bin/sh\necho this is a script and certainly longer than a header of one hundred bytes, is it not so?\n",
        101);
    assert_refused(path, HEC_ERR_CORRUPT, "is not a HEC run file");
    unlink(path);
    store_change(path, "CREATE TABLE meta(key, value)");
    assert_refused(path, HEC_ERR_CORRUPT, "it is an SQLite database of something else");
    load(whole());
    bytes[63] = HEC_SCHEMA_VERSION + 1;
    file_write(path, bytes, length);
    assert_refused(path, HEC_ERR_VERSION, "was written by a newer HEC (format 3, this one reads up to 2)");
    bytes[63] = 0;
    file_write(path, bytes, length);
    assert_refused(path, HEC_ERR_VERSION, "never existed");
}

/* What a file's log and journal are called may lie there as something that never ends to open: also beside what a link
 * leads to, where there is no sentence beforehand. */
TEST(fifo_beside) {
    alarm(100); /* a FIFO that is opened waits for ever */
    load(whole());
    const char *path = in_folder("beside.hec"), *linked = in_folder("linked.hec");
    static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
    for (int wal = 0; wal < 2; wal++) {
        bytes[18] = bytes[19] = (unsigned char)(1 + wal);
        file_write(path, bytes, length);
        for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
            char name[300], sentence[340];
            struct hec_why why;
            snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
            assert_int_equal(mkfifo(name, 0600), 0);
            snprintf(sentence, sizeof sentence, "%s is not a regular file", suffixes[i]);
            assert_refused(path, HEC_ERR_USAGE, sentence);
            assert_int_equal(symlink(path, linked), 0);
            try_file(linked, &why); /* read, or refused */
            unlink(linked);
            unlink(name);
            assert_int_equal(symlink("/dev/null", name), 0);
            assert_refused(path, HEC_ERR_USAGE, sentence);
            unlink(name);
        }
        assert_int_equal(try_file(path, &(struct hec_why){""}), HEC_OK);
    }
    alarm(0);
}

/* Names that SQLite takes for something else are paths here. */
TEST(names) {
    char *here = getcwd(NULL, 0);
    assert_int_equal(chdir(folder), 0);
    static const char *const odd[] = {":memory:", "file:x.hec?mode=memory", "a b'c.hec"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct hec_writer *writer = store_create(odd[i], 0);
        store_fill(hec_writer_sink(writer), 0, 1);
        store_close(writer);
        assert_int_equal(access(odd[i], F_OK), 0);
        struct hec_why why;
        assert_int_equal(try_file(odd[i], &why), 0);
        unlink(odd[i]);
    }
    assert_int_equal(chdir(here), 0);
    free(here);
}

TEST(truncated) {
    load(whole());
    const char *path = in_folder("truncated.hec");
    struct hec_why why;
    for (size_t size = 1; size < length; size += size < 600 ? 7 : 1013) {
        file_write(path, bytes, size);
        assert_int_equal(try_file(path, &why), HEC_ERR_CORRUPT);
        assert_non_null(strstr(why.text, size < 100 ? "is not a HEC run file" : "is truncated: "));
    }
}

/* One to four bits flipped, in every 101 bytes of the file: an error or, where the bit does not matter, none. */
TEST(bit_flips) {
    load(whole());
    const char *path = in_folder("flipped.hec");
    struct hec_why why;
    unsigned random = 1;
    int refused = 0, taken = 0;
    for (size_t at = 0; at < length; at += at < 4096 ? 13 : 101) {
        unsigned char old = bytes[at];
        random = random * 1103515245 + 12345;
        bytes[at] ^= (unsigned char)(random >> 16 | 1u << (random >> 8 & 7));
        file_write(path, bytes, length);
        *(try_file(path, &why) || why.text[0] ? &refused : &taken) += 1;
        bytes[at] = old;
    }
    /* most of a file this small is empty space and text that is still text */
    assert_true(refused > 50);
    assert_true(taken > 50);
}

/* Whole stretches replaced: by zeros, by 0xff, by another page of the same file. */
TEST(bad_pages) {
    load(whole());
    const char *path = in_folder("pages.hec");
    unsigned char *copy = malloc(length);
    struct hec_why why;
    size_t pages = length / 4096;
    for (size_t page = 0; page < pages; page++)
        for (int how = 0; how < 6; how++) {
            memcpy(copy, bytes, length);
            size_t keep = page == 0 ? 100 : 0;
            if (how < 2)
                memset(copy + page * 4096 + keep, how ? 0xff : 0, 4096 - keep);
            else
                memcpy(copy + page * 4096 + keep, bytes + (page * 7 + (size_t)how * 5 + 1) % pages * 4096 + keep,
                       4096 - keep);
            file_write(path, copy, length);
            try_file(path, &why);
        }
    free(copy);
}

/* The whole file, with a change. */
static void change(const char *path, const char *sql) {
    file_write(path, bytes, length);
    store_change(path, sql);
}

/* Tables that are not tables, and values that no writer makes. */
TEST(strange_contents) {
    load(whole());
    const char *path = in_folder("strange.hec");
    static const struct {
        const char *sql, *sentence;
    } refused[] = {
        {"DROP TABLE meta; CREATE VIEW meta AS WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM c) "
         "SELECT k AS key, 'x' AS value FROM c",
         "its table \"meta\""},
        {"DROP TABLE unit; CREATE TABLE unit (name TEXT, count REAL AS (length(zeroblob(100000000))))",
         "its table \"unit\""},
        {"DROP TABLE event", "its table \"event\""},
        {"DROP INDEX block_in_order", "its index \"block_in_order\""},
        {"UPDATE trace_name SET id=2", "trace_name"},
        {"UPDATE track SET id=2", "track"},
        {"UPDATE track SET id=99999999", "out of range"},
        {"INSERT INTO kernel (id, name) VALUES (2, 1)", "kernel"},
        {"WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM c WHERE k<5000) INSERT INTO meta SELECT 'k'||k, 'x' FROM c",
         "meta is far too large"},
        {"WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM c WHERE k<9) INSERT INTO meta "
         "SELECT 'k'||k, hex(zeroblob(300000)) FROM c",
         "meta is far too large"},
        {"INSERT INTO meta VALUES ('huge', hex(zeroblob(3000000)))", "is damaged"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        change(path, refused[i].sql);
        struct hec_why why;
        if (try_file(path, &why) != HEC_ERR_CORRUPT || !strstr(why.text, refused[i].sentence))
            fail_msg("%s: \"%s\"", refused[i].sql, why.text);
    }
    /* a value that no writer makes costs its row or its block, and is reported */
    static const struct {
        const char *sql, *sentence;
    } left_out[] = {
        {"UPDATE block SET n=n+1 WHERE id=(SELECT min(id) FROM block)", "block"},
        {"UPDATE block SET n='many'", "block"},
        {"UPDATE block SET n=1000000000", "block"},
        {"UPDATE block SET n=-1", "block"},
        {"UPDATE block SET v_width=7", "block"},
        {"UPDATE block SET v=zeroblob(100)", "block"},
        {"UPDATE block SET v=v||'#'", "block"},
        {"UPDATE block SET v=replace(v, '#', x'00')", "block"},
        {"UPDATE block SET t0_us=-9223372036854775807", "block"},
        {"UPDATE block SET t1_us=t0_us-1 WHERE n>1", "block"},
        {"UPDATE block SET v_base=9223372036854775807", "block"},
        {"UPDATE block SET r_base=1", "block"},
        {"UPDATE block SET series=NULL WHERE 0; UPDATE series SET unit='furlong'", "unit"},
        {"UPDATE series SET subject='x'", "series"},
        {"UPDATE series SET subject=99999999999", "series"},
        {"UPDATE device SET device_index=64", "device"},
        {"UPDATE device SET uuid=hex(zeroblob(96))", "uuid"},
        {"UPDATE device SET name=x'00'", "name"},
        {"UPDATE device SET memory_kib=-5", "memory_kib"},
        {"UPDATE device SET memory_kib=1.5", "memory_kib"},
        {"UPDATE device SET memory_kib=4503599627370497", "memory_kib"}, /* in bytes it is no number any more */
        {"UPDATE process SET written_kib=9223372036854775807", "written_kib"},
        {"UPDATE device SET has_gpm=NULL", "has_gpm"},
        {"UPDATE device SET has_gpm=4294967296", "has_gpm"},
        {"UPDATE process SET start_ns=9223372036854775807", "start_ns"},
        {"UPDATE process SET pid=4294967297", "pid"},
        {"UPDATE gpu_process SET device_index=-1", "device"},
        {"UPDATE event SET device_index=64", "event"},
        {"UPDATE event SET text=x'4100'", "event"},
        {"UPDATE event SET t_ns='soon'", "event"},
        {"UPDATE unit SET count=9e999", "unit"},
        {"UPDATE unit SET count='x'", "unit"},
        {"UPDATE activity_total SET total_ns=-1", "phase"},
        {"UPDATE activity_total SET name=77", "phase"},
        {"UPDATE activity_block SET n=n+1", "block of activities"},
        {"UPDATE activity_block SET n=4097", "block of activities"},
        {"UPDATE activity_block SET n=0", "block of activities"},
        {"UPDATE activity_block SET track=2", "block of activities"},
        {"UPDATE activity_block SET track=0", "block of activities"},
        {"UPDATE activity_block SET t0_ns=1152921504606846977", "block of activities"},
        {"UPDATE activity_block SET t0_ns='soon'", "block of activities"},
        {"UPDATE activity_block SET data=x''", "block of activities"},
        {"UPDATE activity_block SET data=data||x'00'", "block of activities"},
        {"UPDATE activity_block SET data=substr(data, 1, 9)", "block of activities"},
        {"UPDATE activity_block SET data='text'", "block of activities"},
        {"UPDATE trace_name SET text=x'00'", "impossible"},
        {"UPDATE track SET kind='lane'", "kind of the table track"},
        {"UPDATE track SET device_index=64", "track"},
        {"INSERT INTO kernel (id, name) VALUES (1, 2)", "kernel"},
        {"INSERT INTO kernel (id, name, grid_x) VALUES (1, 1, -2)", "grid_x"},
        {"INSERT INTO frame VALUES (1, 1, 1, 1, 5)", "frame"},
        {"INSERT INTO frame VALUES (1, 0, 2, 1, 5)", "frame"},
        {"INSERT INTO frame VALUES (1, 0, 1, 1, 'x')", "line"},
        {"UPDATE tracer SET mode='fast'", "mode of the table tracer"},
        {"UPDATE tracer SET windows='x'", "windows"},
        {"UPDATE tracer SET first_ns=1152921504606846977", "column first_ns of the table tracer"},
        {"INSERT INTO meta VALUES ('a', x'00')", "meta"},
        {"INSERT INTO meta VALUES (hex(zeroblob(1000)), 'x')", "meta"},
    };
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) {
        change(path, left_out[i].sql);
        struct hec_why why;
        if (try_file(path, &why) != HEC_OK || !strstr(why.text, left_out[i].sentence))
            fail_msg("%s: \"%s\"", left_out[i].sql, why.text);
    }
    /* what a user may add, and what a newer HEC may know, is no damage */
    static const char *const harmless[] = {
        "CREATE TABLE notes (x); CREATE VIEW v AS SELECT * FROM sample; CREATE INDEX mine ON block (n)",
        "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM block; END",
        "UPDATE event SET kind='something_new'",
        "INSERT INTO series VALUES (999, 'something_new', 0, 'x', 'gauge', 'y')",
        "DROP VIEW sample",
        "VACUUM",
        "PRAGMA journal_mode=WAL",
    };
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        change(path, harmless[i]);
        struct hec_why why;
        if (try_file(path, &why) != HEC_OK || why.text[0])
            fail_msg("%s: \"%s\"", harmless[i], why.text);
    }
}

static int first_device(void *context, const struct hec_device *device) {
    *(struct hec_device *)context = *device;
    return 1;
}

/* What has been added since is absent, and has the value that it always had; the rest is read as it is. */
TEST(older_formats) {
    static const struct {
        const char *name, *vendor;
    } devices[] = {{"NVIDIA H200", "nvidia"}, {"AMD Instinct MI300X", "amd"}, {NULL, "nvidia"}};
    const char *path = in_folder("older.hec");
    load(whole());
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        struct hec_reader *reader;
        struct hec_device device;
        struct hec_why why;
        char sql[400], name[40] = "NULL";
        if (devices[i].name)
            snprintf(name, sizeof name, "'%s'", devices[i].name);
        snprintf(
            sql, sizeof sql,
            "UPDATE device SET name=%s, vendor='other'; PRAGMA writable_schema=1; PRAGMA user_version=1;"
            "UPDATE sqlite_master SET sql=replace(sql, ',' || char(10) || '  vendor TEXT', '') WHERE name='device'",
            name);
        change(path, sql);
        assert_int_equal(hec_reader_open(path, &reader, &why), HEC_OK);
        assert_int_equal(hec_reader_devices(reader, first_device, &device, &why), 1);
        assert_string_equal(device.vendor, devices[i].vendor);
        assert_int_equal(device.index, store_device.index);
        assert_null(hec_reader_left_out(reader));
        hec_reader_close(reader);
    }
    change(path, "PRAGMA user_version=1"); /* a table of another version is as foreign as any */
    assert_refused(path, HEC_ERR_CORRUPT, "its table \"device\" is missing or is not that of a run file");
}

/* Blocks that all begin together would have to wait in memory: there is an end to that. */
TEST(overlapping_blocks) {
    load(whole());
    const char *path = in_folder("overlap.hec");
    change(path, "WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM c WHERE k<1000) "
                 "INSERT INTO block (series, t0_us, t1_us, n, v_base, v_width, v, r_base, r_width, r) "
                 "SELECT 1, 0, 1000000, 512, 0, 0, '', 0, 0, '' FROM c");
    assert_refused(path, HEC_ERR_CORRUPT, "too many blocks of a series overlap");
}

/* A table whose pages lead back to itself has rows without end. */
TEST(endless_tree) {
    load(whole());
    const char *path = in_folder("endless.hec");
    change(path, "WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM c WHERE k<40000) "
                 "INSERT INTO event (t_ns, kind, text) SELECT k, 'note', 'a text of some length' FROM c; VACUUM;"
                 "PRAGMA journal_mode=DELETE");
    size_t root = (size_t)store_number(path, "SELECT rootpage FROM sqlite_master WHERE name='event'");
    load(path);
    unsigned char *page = bytes + (root - 1) * 4096;
    assert_int_equal(page[0], 5); /* an interior page of a table */
    size_t cells = (size_t)page[3] << 8 | page[4];
    assert_true(cells > 100);
    unsigned char *first = page + ((size_t)page[12] << 8 | page[13]);
    unsigned char child[4];
    memcpy(child, first, 4);
    /* a new interior page at the end, all of whose children are the first leaf; the root's children are that page */
    size_t added = length / 4096 + 1;
    bytes = realloc(bytes, length + 4096);
    page = bytes + (root - 1) * 4096;
    memcpy(bytes + length, page, 4096);
    length += 4096;
    for (size_t level = 0; level < 2; level++) {
        unsigned char *at = level ? page : bytes + length - 4096;
        unsigned char to[4] = {0, 0, (unsigned char)(added >> 8), (unsigned char)added};
        for (size_t i = 0; i < cells; i++)
            memcpy(at + ((size_t)at[12 + 2 * i] << 8 | at[13 + 2 * i]), level ? to : child, 4);
        memcpy(at + 8, level ? to : child, 4);
    }
    bytes[28] = (unsigned char)(added >> 24), bytes[29] = (unsigned char)(added >> 16);
    bytes[30] = (unsigned char)(added >> 8), bytes[31] = (unsigned char)added;
    file_write(path, bytes, length);
    assert_refused(path, HEC_ERR_CORRUPT, "a table holds more than a file of this size can");
}

/* A run that was killed: two files. It opens where they are, from a folder that cannot be written, and without -shm. */
TEST(killed_run) {
    char command[512];
    const char *killed = in_folder("killed"), *path = in_folder("killed/run.hec");
    assert_int_equal(mkdir(killed, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        struct hec_writer *writer;
        if (hec_writer_create(path, false, 0, &writer, NULL) != HEC_OK)
            _exit(1);
        store_fill(hec_writer_sink(writer), 0, 10);
        if (hec_writer_flush(writer, NULL) != HEC_OK)
            _exit(1);
        _exit(0); /* no close: as if killed */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (int round = 0; round < 3; round++) {
        if (round == 1) { /* as on a medium to which only the two files were copied */
            snprintf(command, sizeof command, "cd '%s' && rm -f run.hec-shm && chmod 555 . && chmod 444 run.hec*",
                     killed);
            assert_int_equal(system(command), 0);
        }
        child = fork();
        if (child == 0) {
            /* root may write everywhere, so be somebody else */
            if (geteuid() == 0 && round > 0 && (setgid(65534) != 0 || setuid(65534) != 0))
                _exit(3);
            struct hec_reader *reader;
            struct hec_why why;
            int64_t values = 0;
            if (hec_reader_open(path, &reader, &why) != HEC_OK || store_read_all(reader, &values, &why) != 0)
                _exit(fprintf(stderr, "%s\n", why.text) > 0 ? 1 : 1);
            int wrong = values != 10 * 53 || hec_reader_meta(reader, "store_closed") != NULL;
            hec_reader_close(reader);
            _exit(wrong ? 2 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    snprintf(command, sizeof command, "chmod -R u+w '%s'", killed);
    assert_int_equal(system(command), 0);
}
