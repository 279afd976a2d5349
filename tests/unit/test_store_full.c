/* A disk that is full, by a limit on the size of files. */
#include "store_file.h"

static void add_power(const struct hec_sink *s, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++)
        s->sample(s->context, HEC_GPU_POWER, 0, i * 20 * HEC_NS_PER_MS, i * 7919 % 700000);
}

static int note_failure(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)t_ns;
    assert_int_equal(device, HEC_DEVICE_NONE);
    if (kind == HEC_EVENT_STORE_FAILED && strstr(text, "writing failed for"))
        ++*(int *)context;
    return 0;
}

/* Full for a while: nothing is lost, and the file says that it happened. */
TEST(recovers) {
    STORE_BEGIN("recovers.hec", 0);
    int64_t at = 0;
    for (int i = 0; i < 20; i++, at += 500) {
        add_power(s, at, at + 500);
        assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    }
    store_limit(60000);
    int failures = 0;
    for (int i = 0; i < 60; i++, at += 500) {
        add_power(s, at, at + 500);
        s->units(s->context, "step", 1);
        int err = hec_writer_flush(writer, &why);
        if (err) {
            failures++;
            assert_int_equal(err, HEC_ERR_FULL);
            assert_non_null(strstr(why.text, "cannot write the run file: "));
        }
    }
    assert_true(failures > 10);
    /* what was committed can be read meanwhile */
    struct hec_reader *reader = store_open(path);
    struct store_values v = store_series(reader, HEC_GPU_POWER, 0);
    assert_true(v.count >= 10000 && v.count < (size_t)at);
    hec_reader_close(reader);
    store_limit(RLIM_INFINITY);
    assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    store_close(writer);

    reader = store_open(path);
    v = store_series(reader, HEC_GPU_POWER, 0);
    assert_int_equal(v.count, at);
    for (size_t i = 0; i < v.count; i++)
        assert_int_equal(v.value[i], (int64_t)i * 7919 % 700000);
    int reported = 0;
    assert_int_equal(hec_reader_events(reader, note_failure, &reported, NULL), 0);
    assert_int_equal(reported, 1);
    hec_reader_close(reader);
}

/* Full for longer than memory is for: the oldest is dropped, what the file had stays, and kept + lost = written. */
TEST(drops_the_oldest_and_counts) {
    STORE_BEGIN("drops.hec", 0);
    int64_t at = 0;
    /* an odd number: the open block is partly in the file when the disk fills */
    for (int i = 0; i < 7; i++, at += 123) {
        add_power(s, at, at + 123);
        assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    }
    int64_t before = at;
    store_limit(4096);
    /* each flush tries all that is kept: often enough for what arrives, and no more */
    for (int i = 0; i < 60; i++, at += 50000) {
        add_power(s, at, at + 50000);
        assert_int_not_equal(hec_writer_flush(writer, &why), HEC_OK);
    }
    store_limit(RLIM_INFINITY);
    assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    add_power(s, at, at + 10);
    at += 10;
    int64_t lost = 0;
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
    assert_true(lost > 0);

    struct hec_reader *reader = store_open(path);
    struct store_values v = store_series(reader, HEC_GPU_POWER, 0);
    assert_int_equal(v.count + (size_t)lost, at);
    for (int64_t i = 0; i < before; i++)
        assert_int_equal(v.value[i], i * 7919 % 700000);
    for (size_t i = 1; i < v.count; i++)
        assert_true(v.t_ns[i] > v.t_ns[i - 1]);
    assert_int_equal(v.value[v.count - 1], (at - 1) * 7919 % 700000);
    assert_int_equal(atoll(hec_reader_meta(reader, "store_lost")), lost);
    hec_reader_close(reader);
}

/* Still full at the end: told, counted, and the file opens. */
TEST(full_at_the_end) {
    STORE_BEGIN("end.hec", 0);
    add_power(s, 0, 1000);
    assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    store_limit(4096);
    add_power(s, 1000, 3000);
    s->units(s->context, "step", 1);
    int64_t lost = 0;
    why.text[0] = '\0';
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_ERR_FULL);
    assert_true(why.text[0]);
    store_limit(RLIM_INFINITY);
    assert_int_equal(lost, 2001);
    struct hec_reader *reader = store_open(path);
    struct store_values v = store_series(reader, HEC_GPU_POWER, 0);
    assert_int_equal(v.count, 1000);
    assert_null(hec_reader_meta(reader, "store_closed"));
    hec_reader_close(reader);
}

/* No room for the file itself. */
TEST(full_at_the_beginning) {
    struct hec_writer *writer;
    struct hec_why why = {""};
    const char *path = in_folder("begin.hec");
    store_limit(10000);
    assert_int_equal(hec_writer_create(path, false, 0, &writer, &why), HEC_ERR_FULL);
    store_limit(RLIM_INFINITY);
    assert_non_null(strstr(why.text, "cannot create"));
    assert_null(writer);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void read_image(struct hec_writer *writer, struct hec_image *image, struct hec_reader **reader) {
    struct hec_why why = {""};
    if (hec_writer_image(writer, image, &why) != HEC_OK || hec_reader_open_image(image, "run", reader, &why) != HEC_OK)
        fail_msg("%s", why.text);
}

/* The file cannot be finished: what it has and what waits is whole in memory, and the file stays as it was. */
TEST(finishes_in_memory) {
    STORE_BEGIN("rescue.hec", 0);
    add_power(s, 0, 1000);
    assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    store_limit(4096);
    add_power(s, 1000, 3000);
    assert_int_equal(hec_writer_finish(writer, &why), HEC_ERR_FULL);
    assert_int_equal(hec_writer_to_memory(writer, &why), HEC_OK);
    assert_int_equal(hec_writer_finish(writer, &why), HEC_OK);
    struct hec_image image;
    struct hec_reader *reader;
    read_image(writer, &image, &reader);
    int64_t lost = -1;
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
    store_limit(RLIM_INFINITY);
    assert_int_equal(lost, 0);
    struct store_values v = store_series(reader, HEC_GPU_POWER, 0);
    assert_int_equal(v.count, 3000);
    assert_string_equal(hec_reader_meta(reader, "store_closed"), "1");
    assert_false(hec_reader_live(reader));
    int reported = 0;
    assert_int_equal(hec_reader_events(reader, note_failure, &reported, NULL), 0);
    assert_int_equal(reported, 1);
    hec_reader_close(reader);
    free(image.bytes);
    reader = store_open(path);
    v = store_series(reader, HEC_GPU_POWER, 0);
    assert_int_equal(v.count, 1000);
    assert_null(hec_reader_meta(reader, "store_closed"));
    hec_reader_close(reader);
}

/* Memory has an end as well: what does not fit is counted, and the run can be finished and read. */
TEST(memory_is_bounded) {
    struct hec_writer *writer;
    struct hec_why why = {""};
    assert_int_equal(hec_writer_create_in_memory(0, &writer, &why), HEC_OK);
    const struct hec_sink *s = hec_writer_sink(writer);
    char text[30000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    int written = 0, refused = 0;
    for (; refused < 5 && written < 4000; written++) {
        s->event(s->context, HEC_EVENT_NOTE, HEC_DEVICE_NONE, written, text);
        int err = written % 50 == 49 ? hec_writer_flush(writer, &why) : HEC_OK;
        if (err)
            assert_int_equal(err, HEC_ERR_FULL);
        refused += err != HEC_OK;
    }
    assert_int_equal(refused, 5);
    assert_int_equal(hec_writer_finish(writer, &why), HEC_OK);
    struct hec_image image;
    struct hec_reader *reader;
    read_image(writer, &image, &reader);
    assert_true(image.length > 60 << 20 && image.length < 72 << 20);
    assert_true(atoll(hec_reader_meta(reader, "store_lost")) > 100);
    assert_string_equal(hec_reader_meta(reader, "store_closed"), "1");
    hec_reader_close(reader);
    free(image.bytes);
    hec_writer_close(writer, NULL, NULL);
}

/* What became of the file is seen, and what is there in its place is left alone. */
TEST(replaced_by_another) {
    char command[1024];
    STORE_BEGIN("taken.hec", 0);
    add_power(s, 0, 100);
    assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    snprintf(command, sizeof command, "cd '%s' && rm taken.hec* && echo a > taken.hec && echo b > taken.hec-wal",
             folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(hec_writer_finish(writer, &why), HEC_ERR_NOTFOUND);
    assert_int_equal(hec_writer_to_memory(writer, &why), HEC_OK);
    assert_int_equal(hec_writer_finish(writer, &why), HEC_OK);
    struct hec_image image;
    struct hec_reader *reader;
    read_image(writer, &image, &reader);
    assert_int_equal(hec_writer_close(writer, NULL, &why), HEC_OK);
    struct store_values v = store_series(reader, HEC_GPU_POWER, 0);
    assert_int_equal(v.count, 100);
    hec_reader_close(reader);
    free(image.bytes);
    snprintf(command, sizeof command, "cd '%s' && test \"$(cat taken.hec taken.hec-wal)\" = \"$(printf 'a\\nb')\"",
             folder);
    assert_int_equal(system(command), 0);
}

/* Somebody else holds the file's lock: it is busy for a while, and nothing is lost. */
TEST(locked_by_another) {
    STORE_BEGIN("locked.hec", 0);
    sqlite3 *other;
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    add_power(s, 0, 100);
    assert_int_equal(hec_writer_flush(writer, &why), HEC_ERR_BUSY);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    /* somebody reads it at the end: its log stays beside it, and it is whole */
    struct hec_reader *reader = store_open(path);
    assert_true(hec_reader_live(reader));
    assert_int_equal(hec_writer_finish(writer, &why), HEC_ERR_BUSY);
    assert_true(hec_writer_is_whole(writer));
    assert_int_equal(hec_writer_close(writer, NULL, &why), HEC_ERR_BUSY);
    hec_reader_close(reader);
    reader = store_open(path);
    struct store_values v = store_series(reader, HEC_GPU_POWER, 0);
    assert_int_equal(v.count, 100);
    assert_string_equal(hec_reader_meta(reader, "store_closed"), "1");
    assert_false(hec_reader_live(reader));
    hec_reader_close(reader);
}
