/* The bytes of a trace: the same by whatever portions they are asked for, also where a thread unpacks them ahead. */
#include "store/import/input.h"
#include "tests/unit/folder.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#define BYTES 1000003 /* more than some blocks, and no multiple of one */

static int set_up(void **state) {
    return folder_make(state);
}
static int tear_down(void **state) {
    return folder_remove(state);
}
EACH_TEST(set_up, tear_down)

static unsigned char *no_pattern(void) {
    unsigned char *bytes = malloc(BYTES);
    uint64_t random = 1;
    for (size_t i = 0; i < BYTES; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        bytes[i] = (unsigned char)(random >> 56);
    }
    return bytes;
}

static void same_in_portions(const char *path, const unsigned char *bytes, size_t portion) {
    struct hec_import_input *input;
    struct hec_why why = {""};
    unsigned char *got = malloc(portion);
    size_t at = 0;
    long length;
    assert_int_equal(hec_import_input_open(path, &input, &why), HEC_OK);
    while ((length = hec_import_input_read(input, got, portion, &why)) > 0) {
        assert_true((size_t)length <= portion && at + (size_t)length <= BYTES);
        assert_memory_equal(got, bytes + at, (size_t)length);
        at += (size_t)length;
    }
    if (length < 0)
        fail_msg("%s", why.text);
    assert_int_equal(at, BYTES);
    hec_import_input_close(input);
    free(got);
}

TEST(the_same_in_any_portions) {
    static const size_t portions[] = {777, 4096, 65535, 65536, 65537, 2 * BYTES};
    unsigned char *bytes = no_pattern();
    const char *plain = strdup(folder_write("plain", bytes, BYTES)), *packed = strdup(in_folder("packed.gz"));
    gzFile file = gzopen(packed, "wb1");
    assert_int_equal(gzwrite(file, bytes, BYTES), BYTES);
    assert_int_equal(gzclose(file), Z_OK);
    for (size_t i = 0; i < sizeof portions / sizeof portions[0]; i++) {
        same_in_portions(plain, bytes, portions[i]);
        same_in_portions(packed, bytes, portions[i]);
    }
    free((char *)plain);
    free((char *)packed);
    free(bytes);
}

/* What is no file, or ends in the middle: an error, with the path, which is cut from the front where it is long. */
TEST(what_cannot_be_read) {
    struct hec_import_input *input = NULL;
    struct hec_why why = {""};
    char sentence[400], bytes[4096], text[2000];
    snprintf(sentence, sizeof sentence, "cannot open %s/absent: No such file or directory", folder);
    assert_int_equal(hec_import_input_open(in_folder("absent"), &input, &why), HEC_ERR_NOTFOUND);
    assert_string_equal(why.text, sentence);
    snprintf(sentence, sizeof sentence, "%s is not a regular file", folder);
    assert_int_equal(hec_import_input_open(folder, &input, &why), HEC_ERR_USAGE);
    assert_string_equal(why.text, sentence);
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_int_equal(hec_import_input_open(in_folder("fifo"), &input, &why), HEC_ERR_USAGE);
    assert_null(input);
    hec_import_input_close(NULL);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * i % 97);
    size_t length = ZSTD_compress(bytes, sizeof bytes, text, sizeof text, 1);
    for (int damaged = 0; damaged < 3; damaged++) {
        char got[sizeof text + 1];
        if (damaged == 1)
            bytes[5] ^= 0x55;
        assert_int_equal(
            hec_import_input_open(folder_write("packed.zst", bytes, damaged == 2 ? 7 : length), &input, &why), HEC_OK);
        assert_non_null(strstr(hec_import_input_path(input), "/packed.zst"));
        long at = 0, read;
        while ((read = hec_import_input_read(input, got + at, sizeof got - (size_t)at, &why)) > 0)
            at += read;
        assert_int_equal(read, damaged ? HEC_ERR_CORRUPT : 0);
        if (damaged)
            assert_non_null(strstr(why.text, "/packed.zst"));
        else
            assert_true(at == sizeof text && memcmp(got, text, sizeof text) == 0);
        hec_import_input_close(input);
    }
}

/* How much of a file has been read: nothing at first, all at the end, and never less than before. */
TEST(shares) {
    unsigned char *bytes = no_pattern();
    static unsigned char got[100000];
    struct hec_import_input *input;
    double before = 0;
    long length, all = 0;
    assert_int_equal(hec_import_input_open(folder_write("plain", bytes, BYTES), &input, NULL), HEC_OK);
    assert_true(hec_import_input_share(input) == 0);
    while ((length = hec_import_input_read(input, got, sizeof got, NULL)) > 0) {
        double share = hec_import_input_share(input);
        all += length;
        assert_true(share > before && fabs(share - (double)all / BYTES) < 1e-12);
        before = share;
    }
    assert_true(before == 1);
    assert_int_equal(hec_import_input_read(input, got, sizeof got, NULL), 0);
    hec_import_input_close(input);
    assert_int_equal(hec_import_input_open(folder_write("empty", "", 0), &input, NULL), HEC_OK);
    assert_true(hec_import_input_share(input) == 0 && hec_import_input_read(input, got, 5, NULL) == 0);
    hec_import_input_close(input);
    free(bytes);
}
