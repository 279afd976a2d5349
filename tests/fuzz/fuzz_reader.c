/* Bytes as a run file (run_bytes.h), through every pass of the reader and through a copy. */
#include "../unit/store_passes.h"
#include "run_bytes.h"

#include "store/copy.h"

#include <stdint.h>

/* A copy costs fifty times a reading: all of the corpus when it is replayed, one in 256 of what a fuzzer tries. */
static bool copies(const uint8_t *data, size_t size) {
#ifdef HEC_FUZZ_REPLAY
    (void)data, (void)size;
    return true;
#else
    return (size * 37 + data[size / 2]) % 256 == 0;
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    run_write(data, size, "");
    struct hec_reader *reader;
    struct hec_why why = {""};
    int err = hec_reader_open(run_path, &reader, &why);
    if (err == HEC_OK) {
        int64_t values;
        /* passes that differ by a metric or kind take longer than all the others: two, and one */
        uint64_t metrics = UINT64_C(1) << HEC_GPU_POWER | UINT64_C(1) << data[size - 1] % HEC_METRIC_COUNT;
        err = store_read_some(reader, metrics, data[size / 2] & 1 ? HEC_ACTIVITY_DEVICE : HEC_ACTIVITY_ALL, &values,
                              &why);
        hec_reader_close(reader);
        static const struct hec_store_scrub scrub = {.hostname = true, .uuids = true, .paths = true, .arguments = true};
        /* it also refuses what no series refers to */
        int copied = copies(data, size) ? hec_store_copy(run_path, run_copy, true, &scrub, NULL) : HEC_OK;
        if (err == HEC_OK && copied != HEC_OK && copied != HEC_ERR_CORRUPT)
            abort();
    }
    if (err != HEC_OK && why.text[0] == '\0')
        abort(); /* every error has a sentence */
    return 0;
}
