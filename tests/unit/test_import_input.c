/* The bytes of a trace: the same by whatever portions they are asked for, also where a thread unpacks them ahead. */
#include "store/import/input.h"
#include "tests/unit/folder.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

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
