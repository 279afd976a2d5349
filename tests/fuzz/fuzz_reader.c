/* Bytes as a run file (run_bytes.h), through every pass of the reader and through a copy. */
#include "../unit/store_passes.h"
#include "run_bytes.h"

#include "store/copy.h"

#include <errno.h>
#include <pthread.h>
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

#ifndef HEC_FUZZ_REPLAY
/* Making a thread for each pass took a third of the time: one input in 16 has one, the others are unpacked without, which
 * is the same code. The linker puts this in front of every call; libFuzzer has threads of its own. */
static bool without_threads;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *context);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *context);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *context) {
    return without_threads ? EAGAIN : __real_pthread_create(thread, attributes, start, context);
}
#endif

static void read_and_copy(const uint8_t *data, size_t size) {
    struct hec_reader *reader;
    struct hec_why why = {""};
    int err = hec_reader_open(run_path, &reader, &why);
    if (err == HEC_OK) {
        int64_t values;
        /* passes that differ by a metric or kind take longer than all the others: two, and one */
        store_metrics metrics = (store_metrics)1 << HEC_GPU_POWER | (store_metrics)1
                                                                        << data[size - 1] % HEC_METRIC_COUNT;
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
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    run_write(data, size, "");
#ifndef HEC_FUZZ_REPLAY
    without_threads = (size * 41 + data[size - 1]) % 16 != 0;
#endif
    read_and_copy(data, size);
#ifndef HEC_FUZZ_REPLAY
    without_threads = false;
#endif
    return 0;
}
