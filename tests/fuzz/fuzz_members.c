/* Bytes as the parts of a compressed trace: each a gzip member or a zstd frame with so many of the bytes that follow, one
 * without any, padding, or the bytes as they are. What is read is what was packed, and there is an end to it. */
#include "import_sink.h"

#include "store/import/input.h"

#include <stdint.h>
#include <zlib.h>
#include <zstd.h>

enum { PARTS_MAX = 300, FILE_MAX = 1 << 20 };

static uint8_t file[FILE_MAX], text[FILE_MAX];
static size_t file_size, text_size;

static void add_gzip(const uint8_t *bytes, size_t length, int level) {
    static z_stream z;
    static bool begun;
    if (!begun)
        REQUIRE(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 1, Z_DEFAULT_STRATEGY) == Z_OK);
    begun = true;
    REQUIRE(deflateReset(&z) == Z_OK && deflateParams(&z, level, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (uint8_t *)(uintptr_t)bytes;
    z.avail_in = (uInt)length;
    z.next_out = file + file_size;
    z.avail_out = (uInt)(sizeof file - file_size);
    REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
    file_size = sizeof file - z.avail_out;
}

static void add_zstd(const uint8_t *bytes, size_t length) {
    static ZSTD_CCtx *c;
    if (!c)
        REQUIRE(c = ZSTD_createCCtx());
    size_t got = ZSTD_compressCCtx(c, file + file_size, sizeof file - file_size, bytes, length, 1);
    REQUIRE(!ZSTD_isError(got));
    file_size += got;
}

/* True: what is read of it is `text`, and no error. */
static bool compose(const uint8_t *data, size_t size) {
    bool gzip = size > 0 && data[0] % 4 != 3, sound = size > 0, padded = false;
    file_size = text_size = 0;
    for (int part = 0; size >= 2 && part < PARTS_MAX; part++) {
        int how = data[0] % 8, repeat = data[0] >> 5 == 7 ? 200 : 1;
        size_t length = data[1] < size - 2 ? data[1] : size - 2;
        const uint8_t *bytes = data + 2;
        data += 2 + length;
        size -= 2 + length;
        sound = sound && !(padded && how != 6);
        for (; repeat > 0 && file_size + 3 * length + 1024 < sizeof file; repeat--) {
            if (how == 7) { /* as they are */
                memcpy(file + file_size, bytes, length);
                file_size += length;
                sound = sound && length == 0;
            } else if (how == 6) {
                memset(file + file_size, 0, length);
                file_size += length;
                padded = padded || length > 0;
            } else {
                sound = sound && (how == 3) == !gzip;
                how == 3 ? add_zstd(bytes, length) : add_gzip(bytes, how == 5 ? 0 : length, how == 1 ? 0 : 1);
                size_t packed = how == 5 ? 0 : length;
                memcpy(text + text_size, bytes, packed);
                text_size += packed;
            }
        }
    }
    return sound && file_size > 0 && !(padded && !gzip) && file[0] == (gzip ? 0x1f : 0x28);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t bytes[4096];
    const char *path = fuzz_path(".gz");
    bool sound = compose(data, size);
    fuzz_write(path, file, file_size);
    struct hec_import_input *input;
    struct hec_why why = {""};
    REQUIRE(hec_import_input_open(path, &input, &why) == HEC_OK);
    size_t at = 0;
    long got;
    while ((got = hec_import_input_read(input, bytes, sizeof bytes, &why)) > 0) {
        REQUIRE(!sound || (at + (size_t)got <= text_size && memcmp(bytes, text + at, (size_t)got) == 0));
        at += (size_t)got;
    }
    REQUIRE(!sound || (got == 0 && at == text_size));
    REQUIRE(got == 0 || why.text[0]);
    hec_import_input_close(input);
    if (size > 0 && data[size - 1] % 8 == 0)
        import_and_check(path);
    return 0;
}
