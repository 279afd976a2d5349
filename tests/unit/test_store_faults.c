/* What the file system and other programs do to a file that is written, and copies that fail in the middle. */
#include "store_activities.h"

#include "store/commit.h"
#include "store/copy.h"
#include "store/create.h"
#include "store/reading.h"
#include "store/schema.h"

#include <errno.h>
#include <sys/wait.h>

static sqlite3_syscall_ptr own_fcntl;
static bool no_locks;

static int unlocked(int fd, int command, ...) {
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (no_locks && (command == F_SETLK || command == F_GETLK)) {
        errno = ENOLCK;
        return -1;
    }
    return fcntl(fd, command, argument);
}

static bool replace_fcntl(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    own_fcntl = vfs->xGetSystemCall(vfs, "fcntl");
    return own_fcntl && vfs->xSetSystemCall(vfs, "fcntl", (sqlite3_syscall_ptr)unlocked) == SQLITE_OK;
}

/* As on some NFS mounts: the file is written all the same, by one program alone, and read once it is closed. */
TEST(no_locks_here) {
    if (!replace_fcntl())
        skip();
    no_locks = true;
    STORE_BEGIN("unlocked.hec", 0);
    store_fill(s, 0, 5);
    assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    assert_int_equal(access(in_folder("unlocked.hec-wal"), F_OK), 0);
    assert_int_not_equal(access(in_folder("unlocked.hec-shm"), F_OK), 0);
    assert_int_not_equal(access(in_folder("unlocked.hec-journal"), F_OK), 0);
    store_fill(s, 5 * HEC_NS_PER_S, 5);
    store_close(writer);
    no_locks = false;
    struct hec_reader *reader = store_open(path);
    int64_t values;
    assert_int_equal(store_read_all(reader, &values, &why), 0);
    assert_int_equal(values, 10 * 53);
    assert_string_equal(hec_reader_meta(reader, "store_closed"), "1");
    hec_reader_close(reader);
}

/* Where somebody else has the file at the moment at which it is opened, that is waited for: it is no file system without locks, and others
 * can read what is written. */
TEST(read_when_opened) {
    struct hec_commit commit;
    struct hec_why why = {""};
    char path[64];
    int fd = -1, told[2], status;
    char byte;
    snprintf(path, sizeof path, "%s/read.hec", folder);
    assert_int_equal(hec_create_file(path, false, &fd, &why), HEC_OK);
    assert_int_equal(pipe(told), 0);
    pid_t reader = fork();
    if (reader == 0) { /* no reader's lock lasts as long, but on a machine that is as busy */
        struct flock lock = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512}; /* as of SQLite */
        int file = open(path, O_RDWR);
        bool locked = fcntl(file, F_SETLK, &lock) == 0;
        _exit(write(told[1], "", 1) == 1 && usleep(600000) == 0 && locked ? 0 : 1);
    }
    assert_int_equal(read(told[0], &byte, 1), 1);
    assert_int_equal(hec_commit_open(&commit, path, &why), HEC_OK);
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    assert_int_equal(access(in_folder("read.hec-shm"), F_OK), 0);
    assert_int_equal(store_number(path, "SELECT count(*) FROM block"), 0);
    hec_commit_close(&commit);
    close(fd);
    close(told[0]);
    close(told[1]);
}

/* A file that is none is not opened, and nothing stays open. */
TEST(no_run_file) {
    struct hec_commit commit;
    struct hec_why why = {""};
    const char *path = folder_write("text.hec",
                                    "no database, and longer than its header of one hundred bytes would be"
                                    " if it were one, which it is not",
                                    101);
    int before = open_files();
    assert_int_equal(hec_commit_open(&commit, path, &why), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "cannot open the new run file: file is not a database");
    assert_int_equal(open_files(), before);
    assert_null(commit.db);
    struct hec_image image = {(unsigned char *)strdup("nothing of a run file"), 21};
    assert_int_not_equal(hec_commit_open_memory(&commit, &image, &why), HEC_OK);
    assert_non_null(strstr(why.text, "cannot keep the run in memory: "));
    assert_null(commit.db);
    free(image.bytes);
}

/* How SQLite works on a file that is written, and on one in memory: commit.c says why each. */
TEST(settings_of_a_writer) {
    static const struct {
        const char *pragma, *file, *memory;
    } cases[] = {{"journal_mode", "wal", "memory"},    {"synchronous", "1", NULL},
                 {"wal_autocheckpoint", "1000", NULL}, {"journal_size_limit", "4194304", NULL},
                 {"cache_size", "-2048", "-2048"},     {"temp_store", "2", "2"},
                 {"trusted_schema", "0", "0"},         {"busy_timeout", "200", NULL},
                 {"locking_mode", "normal", NULL}};
    struct hec_why why = {""};
    struct hec_image image;
    assert_int_equal(hec_schema_image(&image.bytes, &image.length, &why), HEC_OK);
    hec_schema_mark(&image, false);
    for (int memory = 0; memory < 2; memory++) {
        struct hec_commit commit;
        char path[64];
        int fd = -1;
        snprintf(path, sizeof path, "%s/settings.hec", folder);
        assert_int_equal(
            memory ? hec_commit_open_memory(&commit, &image, &why) : hec_create_file(path, false, &fd, &why), HEC_OK);
        if (!memory)
            assert_int_equal(hec_commit_open(&commit, path, &why), HEC_OK);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const char *expected = memory ? cases[i].memory : cases[i].file;
            char sql[64];
            sqlite3_stmt *s;
            snprintf(sql, sizeof sql, "PRAGMA %s", cases[i].pragma);
            assert_int_equal(sqlite3_prepare_v2(commit.db, sql, -1, &s, NULL), SQLITE_OK);
            assert_int_equal(sqlite3_step(s), SQLITE_ROW);
            if (expected && strcmp((const char *)sqlite3_column_text(s, 0), expected) != 0)
                fail_msg("%s is %s, not %s", cases[i].pragma, (const char *)sqlite3_column_text(s, 0), expected);
            sqlite3_finalize(s);
        }
        assert_int_equal(commit.in_memory, memory);
        /* its image is that of a closed file, and a run file */
        struct hec_image copy;
        assert_int_equal(hec_commit_image(&commit, &copy, &why), HEC_OK);
        assert_true(copy.length == image.length && copy.bytes[18] == 1 && copy.bytes[19] == 1);
        free(copy.bytes);
        if (!memory)
            assert_int_equal(hec_commit_fold(&commit, &why), HEC_OK);
        hec_commit_close(&commit);
        if (fd >= 0)
            close(fd);
    }
    free(image.bytes);
    assert_int_not_equal(access(in_folder("settings.hec-wal"), F_OK), 0); /* one file remains */
    assert_int_equal(access(in_folder("settings.hec"), F_OK), 0);
}

/* Somebody else has written into the file: a transaction that does not fit there changes nothing, and is tried again. */
TEST(written_by_another) {
    STORE_BEGIN("meddled.hec", 0);
    store_change(path, "INSERT INTO trace_name VALUES (1, 'of somebody else')");
    store_fill(s, 0, 3);
    s->units(s->context, "step", 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hec_writer_flush(writer, &why), HEC_ERR_FAILED);
        assert_string_equal(why.text, "cannot write the run file: UNIQUE constraint failed: trace_name.id");
        assert_int_equal(store_number(path, "SELECT count(*) FROM unit"), 0);
        assert_int_equal(store_number(path, "SELECT count(*) FROM block"), 0);
    }
    store_change(path, "DELETE FROM trace_name"); /* there is no lock on it any more */
    assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    store_close(writer);
    assert_int_equal(store_number(path, "SELECT count FROM unit WHERE name='step'"), 2);
    struct hec_reader *reader = store_open(path);
    int64_t values;
    assert_int_equal(store_read_all(reader, &values, &why), 0);
    assert_int_equal(values, 3 * 53);
    hec_reader_close(reader);
}

/* ---- copies ---- */

static void changed(const char *path, const char *sql) {
    struct hec_writer *writer = store_create(path, 0);
    store_fill(hec_writer_sink(writer), 0, 10);
    store_close(writer);
    store_change(path, sql);
}

/* What a reader leaves out is left out of the copy, and said; what it refuses is no copy. */
TEST(copies_of_strange_files) {
    static const struct {
        const char *sql;
        int err;
        const char *sentence, *count; /* what the copy lacks: of how many rows */
        int64_t rows;
    } cases[] = {
        {"SELECT 1", HEC_OK, "", "SELECT count(*) FROM block", 5},
        {"UPDATE block SET n=0 WHERE series=1", HEC_OK, "a block holds something impossible",
         "SELECT count(*) FROM block", 3},
        {"UPDATE block SET v='x' WHERE series=1", HEC_OK, "length of its values", "SELECT count(*) FROM block", 3},
        {"UPDATE series SET id=0 WHERE id=1", HEC_OK, "the table series holds something impossible",
         "SELECT count(*) FROM series", 3},
        {"UPDATE series SET subject=2147483648 WHERE id=1", HEC_OK, "the table series", "SELECT count(*) FROM series",
         3},
        {"UPDATE series SET subject=2147483647 WHERE id=1", HEC_OK, "", "SELECT count(*) FROM series", 4},
        {"UPDATE series SET metric=hex(zeroblob(128)) WHERE id=1", HEC_OK, "the table series",
         "SELECT count(*) FROM series", 3},
        {"UPDATE series SET unit=x'00' WHERE id=1", HEC_OK, "the table series", "SELECT count(*) FROM series", 3},
        {"UPDATE series SET kind=x'00' WHERE id=1", HEC_OK, "the table series", "SELECT count(*) FROM series", 3},
        {"UPDATE series SET source=x'00' WHERE id=1", HEC_OK, "the table series", "SELECT count(*) FROM series", 3},
        {"UPDATE activity_block SET t1_ns=t0_ns-1", HEC_OK, "a block of activities",
         "SELECT count(*) FROM activity_block", 0},
        {"UPDATE activity_block SET t1_ns=t0_ns", HEC_OK, "", "SELECT count(*) FROM activity_block", 1},
        {"UPDATE activity_block SET t1_ns=1152921504606846977", HEC_OK, "a block of",
         "SELECT count(*) FROM activity_block", 0},
        {"UPDATE activity_block SET total_ns=-1", HEC_OK, "a block of", "SELECT count(*) FROM activity_block", 0},
        {"UPDATE activity_block SET amount='x'", HEC_OK, "a block of", "SELECT count(*) FROM activity_block", 0},
        {"UPDATE activity_block SET track=9", HEC_OK, "a block of", "SELECT count(*) FROM activity_block", 0},
        {"UPDATE activity_block SET data=x'00'", HEC_OK, "a block of", "SELECT count(*) FROM activity_block", 0},
        {"UPDATE activity_total SET name=-1", HEC_OK, "the table activity_total holds",
         "SELECT count(*) FROM activity_total", 0},
        {"UPDATE activity_total SET name=4294967296", HEC_OK, "the table activity_total",
         "SELECT count(*) FROM activity_total", 0},
        {"UPDATE activity_total SET name=4294967295", HEC_OK, "", "SELECT count(*) FROM activity_total", 1},
        {"UPDATE activity_total SET count=0", HEC_OK, "the table activity_total", "SELECT count(*) FROM activity_total",
         0},
        {"UPDATE activity_total SET total_ns=-1", HEC_OK, "the table activity_total",
         "SELECT count(*) FROM activity_total", 0},
        {"UPDATE activity_total SET total_ns=0", HEC_OK, "", "SELECT count(*) FROM activity_total", 1},
        {"UPDATE activity_total SET kind=x'00'", HEC_OK, "the table activity_total",
         "SELECT count(*) FROM activity_total", 0},
        {"UPDATE device SET memory_kib=-1", HEC_OK, "column memory_kib of the table device",
         "SELECT count(*) FROM device", 0},
        {"UPDATE process SET pid='x'", HEC_OK, "column pid of the table process", "SELECT count(*) FROM process", 0},
        {"UPDATE unit SET count='x'", HEC_OK, "the table unit", "SELECT count(*) FROM unit", 0},
        {"UPDATE event SET text=x'00'", HEC_OK, "the table event", "SELECT count(*) FROM event", 0},
        {"UPDATE tracer SET mode='x'", HEC_OK, "column mode of the table tracer", "SELECT count(*) FROM tracer", 0},
        {"UPDATE trace_name SET id=7", HEC_ERR_CORRUPT, "the ids of the table trace_name have a hole", NULL, 0},
        {"UPDATE track SET id=7", HEC_ERR_CORRUPT, "the ids of the table track have a hole", NULL, 0},
        {"INSERT INTO kernel (id, name) VALUES (2, 1)", HEC_ERR_CORRUPT, "the table kernel have a hole", NULL, 0},
        {"INSERT INTO frame VALUES (2, 0, 1, 1, 5)", HEC_ERR_CORRUPT, "the table frame have a hole", NULL, 0},
        {"WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM c WHERE k<2500) INSERT INTO event (t_ns, kind, text) "
         "SELECT k, 'note', 'more than one transaction holds' FROM c",
         HEC_OK, "", "SELECT count(*) FROM event", 2501},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char to[64], source[64];
        struct hec_why why = {"?"};
        snprintf(to, sizeof to, "%s/copy%zu.hec", folder, i);
        snprintf(source, sizeof source, "%s/strange.hec", folder);
        changed(source, cases[i].sql);
        int before = open_files(), err = hec_store_copy(source, to, false, NULL, &why);
        bool said = cases[i].sentence[0] ? strstr(why.text, cases[i].sentence) != NULL : !why.text[0];
        if (err != cases[i].err || !said)
            fail_msg("%s: %d, \"%s\"", cases[i].sql, err, why.text);
        assert_int_equal(open_files(), before);
        assert_int_equal(access(to, F_OK) == 0, err == HEC_OK);
        if (cases[i].count && store_number(to, cases[i].count) != cases[i].rows)
            fail_msg("%s: %lld rows", cases[i].sql, (long long)store_number(to, cases[i].count));
    }
}

/* All that the rows of a run say is in its copy. */
TEST(copies_are_whole) {
    static const char *const tables[] = {"device", "process", "gpu_process", "unit",   "tracer",        "trace_name",
                                         "track",  "kernel",  "frame",       "series", "activity_total"};
    char from[64], to[64], sql[300];
    snprintf(from, sizeof from, "%s/whole.hec", folder);
    snprintf(to, sizeof to, "%s/as-whole.hec", folder);
    struct hec_writer *writer = store_create(from, 0);
    const struct hec_sink *s = hec_writer_sink(writer);
    store_define(s);
    store_fill(s, 0, 20);
    s->event(s->context, HEC_EVENT_DEVICE_LOST, 1, 5, "second");
    s->event(s->context, HEC_EVENT_NOTE, HEC_DEVICE_NONE, 9, "third");
    s->gpu_process(s->context, &(struct hec_gpu_process){2, 7, 1, 2, 3, 0, 4, 0, 0, 5, 0});
    struct hec_activity a = {1, 2, -5, -4, 6, 2, 3, 1, HEC_ACTIVITY_KERNEL, 1, 2, 3, 1};
    s->trace_activities(s->context, &a, 1);
    store_close(writer);
    struct hec_why why = {"?"};
    assert_int_equal(hec_store_copy(from, to, false, NULL, &why), HEC_OK);
    assert_string_equal(why.text, "");
    sqlite3 *db;
    assert_int_equal(sqlite3_open(to, &db), SQLITE_OK);
    snprintf(sql, sizeof sql, "ATTACH '%s' AS old", from);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] + 4; i++) {
        static const char *const parts[] = {
            "t_ns, kind, device_index, text FROM %s.event",
            "series, t0_us, t1_us, n, v_base, v_width, v, r_base, r_width, r FROM %s.block",
            "track, kind, t0_ns, t1_ns, n, total_ns, amount, data FROM %s.activity_block", "key, value FROM %s.meta"};
        char one[200], other[200];
        size_t k = i - sizeof tables / sizeof tables[0];
        if (i < sizeof tables / sizeof tables[0]) {
            snprintf(one, sizeof one, "* FROM main.%s", tables[i]);
            snprintf(other, sizeof other, "* FROM old.%s", tables[i]);
        } else {
            snprintf(one, sizeof one, parts[k], "main");
            snprintf(other, sizeof other, parts[k], "old");
        }
        for (int turn = 0; turn < 2; turn++) {
            sqlite3_stmt *statement;
            char both[500];
            snprintf(both, sizeof both, "SELECT count(*) FROM (SELECT %s EXCEPT SELECT %s)", turn ? one : other,
                     turn ? other : one);
            assert_int_equal(sqlite3_prepare_v2(db, both, -1, &statement, NULL), SQLITE_OK);
            assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
            if (sqlite3_column_int(statement, 0) != 0)
                fail_msg("%s", both);
            sqlite3_finalize(statement);
        }
    }
    sqlite3_close(db);
}

/* ---- a private copy, where SQLite cannot work in place ---- */

static int private_copy(const char *path, struct hec_why *why) {
    struct hec_reader *reader = calloc(1, sizeof *reader);
    snprintf(reader->path, sizeof reader->path, "PATH");
    reader->file_bytes = 1 << 20;
    int err = hec_reading_open_copy(reader, path, why);
    if (err == HEC_OK) {
        sqlite3_stmt *s;
        assert_int_equal(hec_reading_prepare(reader, "SELECT count(*) FROM device", &s, why), HEC_OK);
        assert_int_equal(hec_reading_step(reader, s, why), 1);
        assert_int_equal(sqlite3_column_int(s, 0), 1);
        assert_int_equal(hec_reading_step(reader, s, why), 0);
        sqlite3_finalize(s);
    }
    hec_reader_close(reader);
    return err;
}

TEST(private_copies) {
    struct hec_why why = {""};
    char path[64], scratch[64];
    snprintf(path, sizeof path, "%s/original.hec", folder);
    snprintf(scratch, sizeof scratch, "%s/scratch", folder);
    assert_int_equal(mkdir(scratch, 0755), 0);
    struct hec_writer *writer = store_create(path, 0);
    store_fill(hec_writer_sink(writer), 0, 3);
    assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    char command[300]; /* as a killed writer leaves it: all is in the log */
    snprintf(command, sizeof command, "cd '%s' && cp original.hec killed.hec && cp original.hec-wal killed.hec-wal",
             folder);
    assert_int_equal(system(command), 0);
    store_close(writer);
    snprintf(path, sizeof path, "%s/killed.hec", folder);
    setenv("TMPDIR", scratch, 1);
    int before = open_files();
    assert_int_equal(private_copy(path, &why), HEC_OK);
    assert_int_equal(open_files(), before);
    snprintf(command, sizeof command, "test -z \"$(ls -A '%s')\" && test ! -e '%s-shm'", scratch, path);
    assert_int_equal(system(command), 0); /* nothing is left in either place */
    assert_int_equal(private_copy(folder_write("text",
                                               "no database at all, but some text of a hundred bytes and more, so that"
                                               " it has a whole header of its own",
                                               103),
                                  &why),
                     HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "PATH is damaged: file is not a database");
    assert_int_equal(private_copy(folder, &why), HEC_ERR_IO);
    assert_string_equal(why.text, "PATH cannot be read in place, and copying it failed: Is a directory");
    assert_int_equal(open_files(), before);
    setenv("TMPDIR", "/nonexistent", 1);
    assert_int_equal(private_copy(path, &why), HEC_ERR_NOTFOUND);
    assert_non_null(strstr(why.text, "PATH cannot be read in place, and no copy can be made: "));
    setenv("TMPDIR", "relative", 1); /* is not taken */
    assert_int_equal(private_copy(path, &why), HEC_OK);
    unsetenv("TMPDIR");
    assert_int_equal(private_copy(path, &why), HEC_OK);
}
