/* Files before SQLite has them: what a header says, what may be made where, what lies beside; and the guards on what SQLite opens. */
#include "store/create.h"
#include "store/header.h"
#include "store/schema.h"
#include "store/sql.h"
#include "tests/unit/folder.h"

#include "base/live.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/un.h>
#include <sys/wait.h>

EACH_TEST(folder_make, folder_remove)

static struct hec_why why;

/* FOLDER/NAME, for as long as it is in scope. */
#define PATH(variable, name)                                                                                           \
    char variable[64];                                                                                                 \
    snprintf(variable, sizeof variable, "%s/%s", folder, name)

static bool there(const char *path, const char *suffix) {
    char name[300];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return access(name, F_OK) == 0;
}

static void beside(const char *path, const char *suffix, const char *text) {
    char name[300];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    file_write(name, text, strlen(text));
}

static int files(void) {
    int count = 0;
    char command[128];
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *list = popen(command, "r");
    assert_int_equal(fscanf(list, "%d", &count), 1);
    pclose(list);
    return count;
}

/* An empty run file's bytes; to be freed. */
static struct hec_image image_of_none(void) {
    struct hec_image image;
    assert_int_equal(hec_schema_image(&image.bytes, &image.length, &why), HEC_OK);
    return image;
}

TEST(headers) {
    unsigned char bytes[100] = "SQLite format 3";
    struct hec_header h;
    bytes[16] = 0x10, bytes[17] = 0x02; /* a page of 4098 */
    bytes[28] = 1, bytes[29] = 2, bytes[30] = 3, bytes[31] = 4;
    bytes[60] = 4, bytes[61] = 3, bytes[62] = 2, bytes[63] = 1;
    memcpy(bytes + 68, "HECR", 4);
    hec_header_parse(bytes, 100, &h);
    assert_true(h.is_sqlite && h.is_run_file && !h.live && h.log_bytes == 0 && h.file_bytes == 100);
    assert_int_equal(h.expected_bytes, INT64_C(0x1002) * 0x01020304);
    assert_int_equal(h.version, 0x04030201);
    bytes[16] = 0, bytes[17] = 1; /* as the format writes 65536 */
    hec_header_parse(bytes, 5000, &h);
    assert_int_equal(h.expected_bytes, INT64_C(65536) * 0x01020304);
    assert_int_equal(h.file_bytes, 5000);
    for (size_t at = 68; at < 72; at++) {
        bytes[at] ^= 1;
        hec_header_parse(bytes, 100, &h);
        assert_true(h.is_sqlite && !h.is_run_file);
        bytes[at] ^= 1;
    }
    hec_header_parse(bytes, 99, &h);
    assert_true(!h.is_sqlite && !h.is_run_file && h.expected_bytes == 0 && h.version == 0 && h.file_bytes == 99);
    bytes[15] = 'x';
    hec_header_parse(bytes, 100, &h);
    assert_true(!h.is_sqlite && !h.is_run_file && h.version == 0);
}

TEST(headers_of_files) {
    struct hec_header h;
    struct hec_image image = image_of_none();
    PATH(path, "run.hec");
    file_write(path, image.bytes, image.length);
    assert_int_equal(hec_header_read(path, &h, &why), HEC_OK);
    assert_true(h.is_run_file && h.version == HEC_SCHEMA_VERSION && h.file_bytes == (int64_t)image.length &&
                h.expected_bytes == h.file_bytes && h.log_bytes == 0 && !h.live);
    beside(path, "-wal", "1234567");
    beside(path, "-shm", "12345678901");
    assert_int_equal(hec_header_read(path, &h, &why), HEC_OK);
    assert_int_equal(h.log_bytes, 7);
    beside(path, "-journal", "123");
    assert_int_equal(hec_header_read(path, &h, &why), HEC_OK);
    assert_int_equal(h.log_bytes, 10);
    unlink(in_folder("run.hec-wal"));
    assert_int_equal(mkdir(in_folder("run.hec-wal"), 0755), 0); /* what is no file has no bytes */
    assert_int_equal(hec_header_read(path, &h, &why), HEC_OK);
    assert_int_equal(h.log_bytes, 3);
    if (geteuid() == 0)
        for (int i = 0; i < 3; i++) {
            static const char *const suffixes[] = {"-wal", "-journal", "-shm"};
            char name[300];
            snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
            assert_int_equal(lchown(name, 12345, 12345), 0);
            assert_int_equal(hec_header_read(path, &h, &why), HEC_ERR_PERMISSION);
            assert_non_null(strstr(why.text, "run.hec is not read: "));
            assert_non_null(strstr(why.text, suffixes[i]));
            assert_int_equal(chown(path, 12345, 12345), 0); /* of whose the file is */
            assert_int_equal(hec_header_read(path, &h, &why), HEC_OK);
            assert_int_equal(chown(path, 0, 0), 0);
            assert_int_equal(lchown(name, 0, 0), 0);
        }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    hec_live_hold(fd);
    assert_int_equal(hec_header_read(path, &h, &why), HEC_OK);
    assert_true(h.live);
    close(fd);
    assert_int_equal(hec_header_read(path, &h, &why), HEC_OK);
    assert_false(h.live);
    free(image.bytes);
    /* of any length */
    assert_int_equal(hec_header_read(folder_write("short", "SQLite format 3", 16), &h, &why), HEC_OK);
    assert_true(h.file_bytes == 16 && !h.is_sqlite);
    assert_int_equal(hec_header_read(in_folder("absent"), &h, &why), HEC_ERR_NOTFOUND);
    assert_non_null(strstr(why.text, "absent: No such file"));
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_int_equal(hec_header_read(in_folder("fifo"), &h, &why), HEC_ERR_USAGE);
    assert_int_equal(hec_header_read(folder, &h, &why), HEC_ERR_USAGE);
    assert_true(h.file_bytes == 0 && !h.is_sqlite);
}

TEST(what_may_be_made) {
    struct hec_image image = image_of_none();
    PATH(run, "run.hec");
    PATH(empty, "empty");
    PATH(text, "text");
    file_write(run, image.bytes, image.length);
    file_write(empty, "", 0);
    file_write(text, "import torch\n", 13);
    struct stat before, after;
    assert_int_equal(hec_create_check(in_folder("new"), false, &why), HEC_OK);
    assert_int_equal(hec_create_check(in_folder("new"), true, &why), HEC_OK);
    assert_int_equal(hec_create_check(run, false, &why), HEC_ERR_EXISTS);
    assert_non_null(strstr(why.text, "run.hec exists already"));
    assert_int_equal(hec_create_check(run, true, &why), HEC_OK);
    assert_int_equal(hec_create_check(empty, false, &why), HEC_ERR_EXISTS);
    assert_int_equal(hec_create_check(empty, true, &why), HEC_OK);
    assert_int_equal(hec_create_check(text, true, &why), HEC_ERR_USAGE);
    assert_int_equal(hec_create_check(folder, true, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "is a directory"));
    assert_int_equal(hec_create_check("/dev/null", true, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "is not a regular file"));
    assert_int_equal(symlink(run, in_folder("link")), 0); /* what it leads to is another's business */
    assert_int_equal(hec_create_check(in_folder("link"), true, &why), HEC_ERR_USAGE);
    char beyond[300];
    snprintf(beyond, sizeof beyond, "%s/x", text);
    assert_int_equal(hec_create_check(beyond, true, &why), HEC_ERR_NOTFOUND);
    assert_non_null(strstr(why.text, "cannot create "));
    assert_non_null(strstr(why.text, strerror(ENOTDIR)));
    int fd = open(run, O_RDWR | O_CLOEXEC);
    hec_live_hold(fd);
    assert_int_equal(hec_create_check(run, true, &why), HEC_ERR_BUSY);
    assert_int_equal(hec_create_write(run, true, &image, &why), HEC_ERR_BUSY);
    close(fd);
    int count = files();
    assert_int_equal(hec_create_write(run, false, &image, &why), HEC_ERR_EXISTS);
    assert_int_equal(hec_create_write(text, true, &image, &why), HEC_ERR_USAGE);
    assert_int_equal(stat(run, &before), 0);
    assert_int_equal(hec_create_write(run, true, &image, &why), HEC_OK);
    assert_int_equal(stat(run, &after), 0);
    assert_true(before.st_ino != after.st_ino && after.st_size == (off_t)image.length);
    assert_int_equal(files(), count); /* and nothing is left beside it */
    unsigned char *got = malloc(image.length + 1);
    assert_int_equal(file_read(run, got, image.length + 1), image.length);
    assert_memory_equal(got, image.bytes, image.length);
    free(got);
    free(image.bytes);
}

/* What an earlier run left beside it goes; what cannot be removed is no place for a run, and costs nothing. */
TEST(what_lies_beside) {
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    struct hec_image image = image_of_none();
    PATH(path, "run.hec");
    for (int overwrite = 0; overwrite < 2; overwrite++)
        for (int i = 0; i < 3; i++) {
            char name[300];
            snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
            if (overwrite)
                assert_int_equal(hec_create_write(path, true, &image, &why), HEC_OK);
            assert_int_equal(mkdir(name, 0755), 0);
            int count = files(), fd = 5;
            assert_int_equal(hec_create_write(path, overwrite, &image, &why), HEC_ERR_PERMISSION);
            assert_non_null(strstr(why.text, "is there and cannot be removed"));
            assert_non_null(strstr(why.text, suffixes[i]));
            int before = open_files();
            assert_int_equal(hec_create_file(path, overwrite, &fd, &why), HEC_ERR_PERMISSION);
            assert_int_equal(open_files(), before);
            assert_int_equal(files(), count);
            assert_int_equal(there(path, ""), overwrite);
            rmdir(name);
            for (int k = 0; k < 3; k++)
                beside(path, suffixes[k], "of another run");
            assert_int_equal(hec_create_write(path, overwrite, &image, &why), HEC_OK);
            assert_int_equal(files(), 1);
            for (int k = 0; k < 3; k++)
                beside(path, suffixes[k], "of another run");
            hec_create_remove(path);
            assert_int_equal(files(), 0);
        }
    free(image.bytes);
}

/* A process that overwrites the file, killed as it enters its n-th system call. False where it ended before, or nobody may trace. */
static bool killed_at(int n, const char *path, const struct hec_image *image) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(1);
        raise(SIGSTOP);
        _exit(hec_create_write(path, true, image, NULL) == HEC_OK ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    for (int stop = 0; WIFSTOPPED(status) && stop < 2 * n; stop++) { /* one as it enters, one as it leaves */
        ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
        waitpid(pid, &status, 0);
    }
    bool stopped = WIFSTOPPED(status);
    kill(pid, SIGKILL);
    if (stopped)
        waitpid(pid, &status, 0);
    return stopped;
}

/* An old file that holds something only in its log is whole, or gone. */
TEST(killed_while_it_overwrites) {
    struct hec_image image = image_of_none();
    PATH(path, "run.hec");
    int kills = 0, gone = 0, replaced = 0;
    for (bool killed = true; killed; kills++) {
        struct stat before, after;
        assert_int_equal(hec_create_write(path, true, &image, &why), HEC_OK);
        beside(path, "-wal", "pages");
        beside(path, "-shm", "which");
        assert_int_equal(stat(path, &before), 0);
        killed = killed_at(kills + 1, path, &image);
        if (stat(path, &after) != 0)
            gone++;
        else if (before.st_ino != after.st_ino)
            replaced++;
        else
            assert_true(there(path, "-wal"));
        if (kills == 0 && !killed)
            skip(); /* nobody may trace here */
    }
    assert_true(kills > 8 && gone > 0 && replaced > 0);
    free(image.bytes);
}

TEST(a_file_that_is_written) {
    int fd;
    struct stat st;
    PATH(path, "run.hec");
    assert_int_equal(hec_create_file(path, false, &fd, &why), HEC_OK);
    for (int i = 0; i < 3; i++) { /* the log, empty and ours */
        static const char *const names[] = {"run.hec-wal", "run.hec-shm", "run.hec-journal"};
        assert_int_equal(stat(in_folder(names[i]), &st), 0);
        assert_int_equal(st.st_size, 0);
    }
    assert_int_equal(files(), 4);
    struct hec_header h;
    assert_int_equal(hec_header_read(path, &h, &why), HEC_OK);
    assert_true(h.live && h.is_run_file);
    assert_true(hec_create_is_there(path, fd));
    assert_int_equal(hec_create_check(path, true, &why), HEC_ERR_BUSY);
    hec_create_opened(path, true);
    assert_true(there(path, "-wal") && there(path, "-shm") && !there(path, "-journal"));
    hec_create_opened(path, false);
    assert_true(there(path, "") && there(path, "-wal") && !there(path, "-shm"));
    beside(path, "-wal", "something");
    assert_int_equal(hec_create_claim(path, &why), HEC_OK);
    assert_int_equal(stat(in_folder("run.hec-wal"), &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_true(there(path, "-shm") && there(path, "-journal"));
    assert_int_equal(rename(path, in_folder("moved.hec")), 0);
    assert_false(hec_create_is_there(path, fd));
    assert_true(hec_create_is_there(in_folder("moved.hec"), fd));
    file_write(path, "another", 7);
    assert_false(hec_create_is_there(path, fd));
    assert_false(hec_create_is_there(path, -1));
    close(fd);
    assert_int_equal(hec_create_file(in_folder("no/run.hec"), false, &fd, &why), HEC_ERR_NOTFOUND);
    assert_int_equal(fd, -1);
}

TEST(a_finished_file_gets_its_name) {
    PATH(temporary, "made");
    PATH(path, "run.hec");
    file_write(temporary, "new", 3);
    file_write(path, "old", 3);
    char text[8] = "";
    beside(path, "-wal", "log");
    assert_int_equal(hec_create_place(temporary, path, false, &why), HEC_ERR_EXISTS);
    assert_true(there(temporary, "") && there(path, "-wal"));
    file_read(path, text, sizeof text);
    assert_string_equal(text, "old");
    assert_int_equal(hec_create_place(temporary, path, true, &why), HEC_OK);
    file_read(path, text, sizeof text);
    assert_string_equal(text, "new");
    assert_int_equal(files(), 1);
    assert_int_equal(hec_create_place(path, in_folder("no/such/place"), false, &why), HEC_ERR_NOTFOUND);
    assert_int_equal(hec_create_place(path, in_folder("no/such/place"), true, &why), HEC_ERR_NOTFOUND);
    beside(in_folder("other.hec"), "-journal", "of an earlier run");
    assert_int_equal(hec_create_place(path, in_folder("other.hec"), false, &why), HEC_OK);
    assert_true(files() == 1 && there(in_folder("other.hec"), ""));
}

/* ---- the tables ---- */

TEST(an_empty_run_file) {
    struct hec_image image = image_of_none();
    assert_true(image.bytes[18] == 2 && image.bytes[19] == 2 && image.length % HEC_SCHEMA_PAGE_BYTES == 0);
    hec_schema_mark(&image, false);
    assert_true(image.bytes[18] == 1 && image.bytes[19] == 1);
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(hec_sql_open(folder_write("run.hec", image.bytes, image.length), SQLITE_OPEN_READONLY, NULL, &db),
                     SQLITE_OK);
    static const struct {
        const char *sql;
        int64_t value;
    } cases[] = {{"PRAGMA page_size", HEC_SCHEMA_PAGE_BYTES},
                 {"PRAGMA application_id", HEC_SCHEMA_APPLICATION_ID},
                 {"PRAGMA user_version", HEC_SCHEMA_VERSION},
                 {"SELECT count(*) FROM position", 512},
                 {"SELECT min(k) FROM position", 0},
                 {"SELECT max(k) FROM position", 511},
                 {"SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'", 21}};
    int objects = 0;
    for (const struct hec_schema_object *o = hec_schema_objects(); o->name; o++)
        objects += hec_schema_has(HEC_SCHEMA_VERSION, o);
    assert_int_equal(objects, 21);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(sqlite3_prepare_v2(db, cases[i].sql, -1, &s, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(s), SQLITE_ROW);
        if (sqlite3_column_int64(s, 0) != cases[i].value)
            fail_msg("%s: %lld", cases[i].sql, (long long)sqlite3_column_int64(s, 0));
        sqlite3_finalize(s);
    }
    sqlite3_close(db);
    free(image.bytes);
    static const struct {
        unsigned from, to, version;
        bool has;
    } versions[] = {{0, 0, 1, true}, {2, 0, 1, false}, {2, 0, 2, true},
                    {0, 1, 1, true}, {0, 1, 2, false}, {2, 3, 3, true}};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        struct hec_schema_object o = {.from = versions[i].from, .to = versions[i].to};
        assert_int_equal(hec_schema_has(versions[i].version, &o), versions[i].has);
    }
}

/* ---- SQLite ---- */

TEST(errors_of_sqlite) {
    static const struct {
        int rc, err;
    } cases[] = {{SQLITE_OK, HEC_OK},
                 {SQLITE_ROW, HEC_OK},
                 {SQLITE_DONE, HEC_OK},
                 {SQLITE_NOMEM, HEC_ERR_NOMEM},
                 {SQLITE_FULL, HEC_ERR_FULL},
                 {SQLITE_BUSY_SNAPSHOT, HEC_ERR_BUSY},
                 {SQLITE_LOCKED, HEC_ERR_BUSY},
                 {SQLITE_PROTOCOL, HEC_ERR_BUSY},
                 {SQLITE_PERM, HEC_ERR_PERMISSION},
                 {SQLITE_READONLY_DIRECTORY, HEC_ERR_PERMISSION},
                 {SQLITE_AUTH, HEC_ERR_PERMISSION},
                 {SQLITE_CORRUPT_INDEX, HEC_ERR_CORRUPT},
                 {SQLITE_NOTADB, HEC_ERR_CORRUPT},
                 {SQLITE_FORMAT, HEC_ERR_CORRUPT},
                 {SQLITE_TOOBIG, HEC_ERR_CORRUPT},
                 {SQLITE_INTERRUPT, HEC_ERR_CORRUPT},
                 {SQLITE_ERROR, HEC_ERR_CORRUPT},
                 {SQLITE_MISMATCH, HEC_ERR_CORRUPT},
                 {SQLITE_IOERR_READ, HEC_ERR_IO},
                 {SQLITE_CANTOPEN, HEC_ERR_IO},
                 {SQLITE_CONSTRAINT, HEC_ERR_FAILED},
                 {SQLITE_MISUSE, HEC_ERR_FAILED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(hec_sql_err(NULL, cases[i].rc), cases[i].err);
    sqlite3 *db;
    assert_int_equal(hec_sql_fail(NULL, SQLITE_FULL, &why, "cannot"), HEC_ERR_FULL);
    assert_string_equal(why.text, "cannot: database or disk is full");
    /* of a file the errno decides */
    int rc = hec_sql_open(in_folder("no/such"), SQLITE_OPEN_READONLY, NULL, &db);
    assert_int_equal(hec_sql_fail(db, rc, &why, "cannot open"), HEC_ERR_NOTFOUND);
    assert_string_equal(why.text, "cannot open: No such file or directory");
    assert_int_equal(hec_sql_err(db, SQLITE_IOERR), HEC_ERR_NOTFOUND);
    assert_int_equal(hec_sql_fail(db, SQLITE_FULL, &why, "x"), HEC_ERR_FULL); /* not what was the latest */
    assert_string_equal(why.text, "x: database or disk is full");
    sqlite3_close(db);
    assert_int_equal(hec_sql_open(":memory:", SQLITE_OPEN_READWRITE, NULL, &db), SQLITE_OK);
    rc = sqlite3_exec(db, "SELECT a FROM nowhere", NULL, NULL, NULL);
    assert_int_equal(hec_sql_fail(db, rc, &why, "what"), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "what: no such table: nowhere");
    sqlite3_close(db);
    /* a FIFO is no file, and nobody waits for it */
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    rc = hec_sql_open(in_folder("fifo"), SQLITE_OPEN_READWRITE, NULL, &db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "SELECT 1 FROM sqlite_master", NULL, NULL, NULL);
    assert_int_equal(rc & 0xff, SQLITE_CANTOPEN);
    sqlite3_close(db);
}

TEST(logs_are_files) {
    static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
    PATH(path, "x");
    file_write(path, "", 0);
    for (int i = 0; i < 3; i++) {
        char name[300];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        assert_int_equal(hec_sql_check_logs(path, &why), HEC_OK);
        assert_int_equal(mkdir(name, 0755), 0);
        assert_int_equal(hec_sql_check_logs(path, &why), HEC_ERR_USAGE);
        assert_memory_equal(why.text, name, strlen(name));
        rmdir(name);
        beside(path, suffixes[i], "log");
    }
    assert_int_equal(hec_sql_check_logs(path, &why), HEC_OK);
}

static int endless(sqlite3 *db, const char *rows) {
    char sql[200];
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM c WHERE k<%s) SELECT count(*) FROM c", rows);
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

TEST(guards) {
    const struct hec_sql_limit *lists[] = {hec_sql_run_file, hec_sql_export};
    static const struct hec_sql_limit least[] = {{SQLITE_LIMIT_LENGTH, 1 << 20},
                                                 {SQLITE_LIMIT_ATTACHED, 0},
                                                 {SQLITE_LIMIT_COLUMN, 64},
                                                 {SQLITE_LIMIT_VARIABLE_NUMBER, 32},
                                                 {SQLITE_LIMIT_VDBE_OP, 25000}};
    for (int k = 0; k < 2; k++) {
        sqlite3 *db;
        struct hec_sql_budget budget;
        assert_int_equal(hec_sql_open(":memory:", SQLITE_OPEN_READWRITE, NULL, &db), SQLITE_OK);
        hec_sql_guard(db, lists[k], &budget, 10000);
        for (const struct hec_sql_limit *l = lists[k]; l->id >= 0; l++)
            assert_int_equal(sqlite3_limit(db, l->id, -1), l->value);
        for (size_t i = 0; k == 0 && i < sizeof least / sizeof least[0]; i++)
            assert_int_equal(sqlite3_limit(db, least[i].id, -1), least[i].value);
        static const struct {
            int id, value;
        } switches[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                        {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
                        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}};
        for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
            int value = -1;
            sqlite3_db_config(db, switches[i].id, -1, &value);
            assert_int_equal(value, switches[i].value);
        }
        assert_true(budget.work == 0 && budget.rows == 0 && budget.bytes == 0);
        assert_int_equal(budget.work_max, 200); /* a schema */
        assert_int_equal(budget.work_later, (200000 + 64 * 10000) / 1000);
        assert_int_equal(budget.rows_max, (10000 + (1 << 20)) / 6);
        assert_int_equal(budget.bytes_max, 2 * (10000 + (1 << 20)));
        assert_int_equal(endless(db, "1000"), SQLITE_OK);
        assert_int_equal(endless(db, "20000"), SQLITE_INTERRUPT);
        hec_sql_begin(&budget);
        assert_true(budget.work == 0 && budget.work_max == budget.work_later);
        assert_int_equal(endless(db, "20000"), SQLITE_OK);
        assert_int_equal(endless(db, "1000000"), SQLITE_INTERRUPT);
        assert_int_not_equal(sqlite3_exec(db, "CREATE VIRTUAL TABLE t USING fts5(a)", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
    }
}

TEST(budgets) {
    sqlite3 *db;
    sqlite3_stmt *s;
    struct hec_sql_budget b = {.rows_max = 3, .bytes_max = 20, .work_later = 9};
    assert_int_equal(hec_sql_open(":memory:", SQLITE_OPEN_READWRITE, NULL, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT 'abc', x'01020304', 12345, NULL, 1.5", -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_null(hec_sql_count_row(&b, s));
    assert_true(b.rows == 1 && b.bytes == 7); /* of texts and blobs */
    assert_null(hec_sql_count_row(&b, s));
    b.bytes = 13;
    assert_null(hec_sql_count_row(&b, s));
    assert_true(b.rows == 3 && b.bytes == 20);
    b.bytes = 0;
    assert_ptr_equal(hec_sql_count_row(&b, s), hec_sql_beyond);
    hec_sql_begin(&b);
    assert_true(b.rows == 0 && b.bytes == 0 && b.work == 0 && b.work_max == 9);
    b.bytes = 14;
    assert_ptr_equal(hec_sql_count_row(&b, s), hec_sql_beyond);
    sqlite3_finalize(s);
    /* a database without a page is no image */
    struct hec_image image = {(unsigned char *)1, 5};
    assert_int_equal(hec_sql_image(db, &image, &why), HEC_ERR_NOMEM);
    assert_true(!image.bytes && image.length == 0);
    sqlite3_close(db);
}
