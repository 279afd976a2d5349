/* Files that are truncated, damaged, foreign, enormous or made to hurt: one sentence each, the right code, nothing more. */
#include "tests/unit/import_fixture.h"

#include "store/import/join.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#define HANGS_S 100 /* what takes so long is taken to have no end */

#define GOOD                                                                                                           \
    "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,"        \
    "\"args\":{\"x\":[1,{\"y\":\"\\u00e9\"}]}}],\"schemaVersion\":1}"

static void says(int err, int expected, const char *word) {
    if (err != expected || !strstr(imported.why.text, word))
        fail_msg("%d, not %d (%s): %s", err, expected, word, imported.why.text);
    assert_null(kept_meta("complete"));
}

static const char *gzip(const char *name, const void *bytes, size_t length, size_t cut) {
    const char *path = in_folder(name);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)length), (int)length);
    gzclose(file);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - (off_t)cut), 0);
    return path;
}

TEST(test_truncated) {
    for (size_t length = 1; length < strlen(GOOD); length++)
        says(import_file(folder_write("cut.json", GOOD, length)), HEC_ERR_CORRUPT, "cut short");
    assert_int_equal(import_text(GOOD), HEC_OK);
}

TEST(test_truncated_gzip) {
    assert_int_equal(import_file(gzip("whole.json.gz", GOOD, strlen(GOOD), 0)), HEC_OK);
    assert_int_equal(kept.activities, 1);
    for (size_t cut = 1; cut < 60; cut++)
        says(import_file(gzip("cut.json.gz", GOOD, strlen(GOOD), cut)), HEC_ERR_CORRUPT, "cut short");
}

TEST(test_damaged_gzip) {
    const char *path = gzip("bits.json.gz", GOOD, strlen(GOOD), 0);
    unsigned char bytes[4096];
    size_t length = file_read(path, bytes, sizeof bytes);
    int found = 0;
    for (size_t i = 10; i < length; i++) { /* past the header, whose time and flags may be anything */
        unsigned char damaged[4096];
        memcpy(damaged, bytes, length);
        damaged[i] ^= 0x10;
        int err = import_file(folder_write("bits.json.gz", damaged, length));
        bool same = err == HEC_OK && kept.activities == 1; /* bits that fill up the last byte mean nothing */
        if (!same && err != HEC_ERR_CORRUPT)
            fail_msg("byte %zu of %zu: %d", i, length, err);
        found += strstr(imported.why.text, "compressed") != NULL;
    }
    assert_true(found > 10);
}

TEST(test_members_and_padding) {
    unsigned char bytes[4096];
    size_t length = file_read(gzip("one.gz", GOOD, 40, 0), bytes, sizeof bytes);
    length += file_read(gzip("two.gz", &GOOD[40], strlen(GOOD) - 40, 0), bytes + length, sizeof bytes - length);
    memset(bytes + length, 0, 512); /* as tape drives and some uploaders leave it */
    assert_int_equal(import_file(folder_write("both.json.gz", bytes, length + 512)), HEC_OK);
    assert_int_equal(kept.activities, 1);
}

/* A gzip member without data, `length` bytes long (21 and more): its name fills it up. */
static void empty_member(unsigned char *bytes, size_t length) {
    static const unsigned char head[10] = {0x1f, 0x8b, 8, 8}, tail[11] = {0, 3};
    memcpy(bytes, head, sizeof head);
    memset(bytes + sizeof head, 'n', length - sizeof head - sizeof tail);
    memcpy(bytes + length - sizeof tail, tail, sizeof tail);
}

TEST(test_empty_members) {
    alarm(HANGS_S);
    enum { READ_AT_ONCE = 128 * 1024 };
    static unsigned char bytes[READ_AT_ONCE + 512];
    empty_member(bytes, 40);
    says(import_file(folder_write("none.json.gz", bytes, 40)), HEC_ERR_CORRUPT, "empty");
    empty_member(bytes + 40, 50);
    says(import_file(folder_write("none.json.gz", bytes, 90)), HEC_ERR_CORRUPT, "empty");
    size_t length = 90 + file_read(gzip("one.gz", GOOD, strlen(GOOD), 0), bytes + 90, sizeof bytes - 90);
    empty_member(bytes + length, READ_AT_ONCE - length);
    assert_int_equal(import_file(folder_write("some.json.gz", bytes, READ_AT_ONCE)), HEC_OK);
    assert_int_equal(kept.activities, 1);
    /* padding that begins where one reading of the file ends */
    assert_int_equal(import_file(folder_write("some.json.gz", bytes, sizeof bytes)), HEC_OK);
    assert_int_equal(kept.activities, 1);
    alarm(0);
}

/* Ids that all met in one place of the table while its hash was a multiplication by this number's inverse. */
TEST(test_colliding_ids) {
    alarm(HANGS_S);
    const uint64_t inverse = UINT64_C(0xf1de83e19937733d), count = 1000000;
    assert_true(inverse * UINT64_C(0x9e3779b97f4a7c15) == 1);
    struct hec_import_join join = {0};
    for (uint64_t i = 1; i <= count; i++) {
        struct hec_import_call *call = hec_import_join_at(&join, i * inverse);
        assert_non_null(call);
        call->start_ns = (int64_t)i;
    }
    assert_int_equal(join.used, count);
    for (uint64_t i = 1; i <= count; i++)
        assert_int_equal(hec_import_join_find(&join, i * inverse)->start_ns, i);
    assert_null(hec_import_join_find(&join, 0));
    hec_import_join_free(&join);
    alarm(0);
}

TEST(test_zstd) {
    char bytes[4096];
    size_t length = ZSTD_compress(bytes, sizeof bytes, GOOD, strlen(GOOD), 3);
    assert_int_equal(import_file(folder_write("t.json.zst", bytes, length)), HEC_OK);
    assert_int_equal(kept.activities, 1);
    for (size_t cut = 1; cut < length - 4; cut++)
        says(import_file(folder_write("t.json.zst", bytes, length - cut)), HEC_ERR_CORRUPT, "");
}

/* 4 GiB of blanks in 130 KB: nothing grows in memory, and it ends after the first GiB. */
TEST(test_bomb) {
    ZSTD_CCtx *c = ZSTD_createCCtx();
    static char blanks[1 << 20], packed[1 << 20];
    memset(blanks, ' ', sizeof blanks);
    blanks[0] = '[';
    const char *path = in_folder("bomb.json.zst");
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < 4096; i++) {
        ZSTD_inBuffer in = {blanks, sizeof blanks, 0};
        while (in.pos < in.size) {
            ZSTD_outBuffer out = {packed, sizeof packed, 0};
            assert_false(ZSTD_isError(ZSTD_compressStream2(c, &out, &in, ZSTD_e_continue)));
            fwrite(packed, 1, out.pos, file);
        }
        blanks[0] = ' ';
    }
    fclose(file);
    ZSTD_freeCCtx(c);
    says(import_file(path), HEC_ERR_LIMIT, "no trace");
}

TEST(test_deep) {
    size_t deep = 100000;
    char *text = malloc(deep + 64);
    int length = sprintf(text, "{\"traceEvents\":[{\"ph\":\"X\",\"args\":");
    memset(text + length, '[', deep);
    says(import_file(folder_write("deep.json", text, (size_t)length + deep)), HEC_ERR_LIMIT, "nested");
    memset(text, '[', deep);
    says(import_file(folder_write("deep.json", text, deep)), HEC_ERR_LIMIT, "nested");
    for (size_t i = 0; i + 5 <= deep; i += 5)
        memcpy(text + i, "{\"a\":", 5);
    says(import_file(folder_write("deep.json", text, deep)), HEC_ERR_LIMIT, "nested");
    free(text);
}

/* A trace of so many events, each with its number between the two parts. */
static const char *many(int count, const char *before, const char *after) {
    char *text = malloc((size_t)count * 96), *at = text;
    for (int i = 0; i < count; i++)
        at += sprintf(at, "%s%s%d%s", i ? "," : "[", before, i, after);
    sprintf(at, "]");
    const char *path = import_write("many.json", text);
    free(text);
    return path;
}

TEST(test_too_many) {
    static const struct {
        int count;
        const char *before, *after, *sentence;
    } cases[] = {
        {70000, "{'ph':'B','cat':'cpu_op','name':'a','pid':1,'tid':1,'ts':1", "}", "open at a time"},
        {70000, "{'ph':'X','cat':'cpu_op','name':'a','pid':1,'tid':", ",'ts':1,'dur':1}", "too many threads"},
        {100, "{'ph':'X','cat':'kernel','name':'a','pid':", ",'tid':7,'ts':1,'dur':1}", "devices"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        says(import_file(many(cases[i].count, cases[i].before, cases[i].after)), HEC_ERR_LIMIT, cases[i].sentence);
}

TEST(test_long_name) {
    size_t length = 1u << 20;
    char *text = malloc(length + 256);
    int begin = sprintf(text, "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"");
    memset(text + begin, 'n', length);
    sprintf(text + begin + length, "\"}]");
    assert_int_equal(import_file(folder_write("name.json", text, strlen(text))), HEC_OK);
    assert_int_equal(strlen(kept_name(kept_nth(HEC_ACTIVITY_OPERATOR, 0)->name)), 16384);
    free(text);
}

TEST(test_other_files) {
    says(import_text(""), HEC_ERR_CORRUPT, "empty");
    says(import_text("hello"), HEC_ERR_CORRUPT, "neither");
    says(import_text("\x7f\x45\x4c\x46\x02\x01"), HEC_ERR_CORRUPT, "neither");
    says(import_text("\"text\""), HEC_ERR_CORRUPT, "neither");
    says(import_text("{\"a\":1}"), HEC_ERR_CORRUPT, "no traceEvents");
    says(import_text("{\"traceEvents\":3}"), HEC_ERR_CORRUPT, "no traceEvents");
    says(import_text("{\"traceEvents\":[]} x"), HEC_ERR_CORRUPT, "byte 19");
    says(import_file(in_folder("absent.json")), HEC_ERR_NOTFOUND, "absent.json");
    says(import_file(folder), HEC_ERR_USAGE, "regular file");
    says(import_file(folder_write("x.nsys-rep", "\x01\x02 binary", 10)), HEC_ERR_CORRUPT, "nsys export");
}

TEST(test_two_kinds) {
    const char *paths[2] = {strdup(folder_write("a.json", "[]", 2)), strdup(in_folder("b.sqlite"))};
    sqlite3 *db;
    unlink(paths[1]);
    assert_int_equal(sqlite3_open(paths[1], &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)", 0, 0, 0),
                     SQLITE_OK);
    sqlite3_close(db);
    says(import_files(paths, 2), HEC_ERR_USAGE, "another kind");
    free((char *)paths[0]);
    free((char *)paths[1]);
}

static int stop_at_once(void *context, const char *path, double share) {
    (void)path;
    assert_true(share >= 0 && share <= 1);
    ++*(int *)context;
    return HEC_ERR_BUSY;
}

TEST(test_progress_stops) {
    import_clear();
    int calls = 0;
    struct hec_import *import;
    assert_int_equal(hec_import_new(&keeping, stop_at_once, &calls, &import, NULL), HEC_OK);
    assert_int_equal(hec_import_scan(import, folder_write("t.json", GOOD, strlen(GOOD)), NULL), HEC_ERR_BUSY);
    assert_int_equal(calls, 1);
    assert_int_equal(hec_import_read(import, "never scanned", NULL), HEC_ERR_USAGE);
    hec_import_free(import);
    hec_import_free(NULL);
}

TEST(test_no_folder_for_temporary_files) {
    const char *path = many(5000, "{'ph':'X','cat':'cpu_op','name':'a','pid':1,'tid':1,'ts':1", ",'dur':1}");
    setenv("TMPDIR", folder, 1);
    assert_int_equal(import_file(path), HEC_OK);
    assert_int_equal(kept.activities, 5000);
    setenv("TMPDIR", "/nonexistent", 1); /* /tmp is there still */
    assert_int_equal(import_file(path), HEC_OK);
    unsetenv("TMPDIR");
}
