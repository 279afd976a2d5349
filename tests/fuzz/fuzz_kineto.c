/* Bytes as a Kineto trace (plain, gzip or zstd), through both passes of the importer. */
#include "import_sink.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_path(".json");
    fuzz_write(path, data, size);
    import_and_check(path);
    return 0;
}
