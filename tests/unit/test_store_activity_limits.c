/* The timeline at its limits: a full disk, more than memory is for, and bytes from anywhere. */
#include "store_activities.h"

#include "store/activity_pack.h"
#include "store/definitions.h"

static void add_kernels(const struct hec_sink *s, struct store_list *list, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) {
        struct hec_activity a = {.kind = HEC_ACTIVITY_KERNEL, .track = 1, .name = 1 + (uint32_t)(i % 20)};
        a.start_ns = i * 9000 + (int64_t)store_random(2000);
        a.end_ns = a.start_ns + 3000 + (int64_t)store_random(1000);
        a.launch_ns = a.start_ns - 4000 - (int64_t)store_random(1000);
        a.launch_end_ns = a.launch_ns + 3000 + (int64_t)store_random(600);
        a.launch_track = 2;
        s->trace_activities(s->context, &a, 1);
        if (list)
            store_list_add(list, &a, 1);
    }
}

/* Full for a while: nothing is lost, neither of closed blocks nor of open ones, nor a name. */
TEST(disk_full_for_a_while) {
    STORE_BEGIN("recovers.hec", 0);
    struct store_list list = {0};
    store_define(s);
    int64_t at = 0;
    int failures = 0;
    for (int i = 0; i < 40; i++, at += 3000) {
        if (i == 5)
            store_limit(4096);
        if (i == 30)
            store_limit(RLIM_INFINITY);
        add_kernels(s, &list, at, at + 3000);
        char text[32];
        snprintf(text, sizeof text, "later %d", i);
        assert_int_equal(s->trace_name(s->context, text), STORE_NAMES + 1 + i);
        struct hec_track track = {.kind = HEC_TRACK_PROCESS, .pid = 100, .rank = -1, .device = -1, .stream = 3};
        snprintf(track.name, sizeof track.name, "name %d", i);
        assert_int_equal(s->trace_track(s->context, &track), 3);
        failures += hec_writer_flush(writer, &why) != HEC_OK;
    }
    assert_int_equal(failures, 25);
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    store_list_check(reader, &list, HEC_ACTIVITY_ALL);
    int64_t values;
    if (store_read_all(reader, &values, &why) != HEC_OK)
        fail_msg("%s", why.text);
    hec_reader_close(reader);
    store_list_free(&list);
}

/* Full for longer than memory is for: what the file has stays, the newest is refused, kept + lost = given. */
TEST(disk_full_for_long) {
    STORE_BEGIN("drops.hec", 0);
    struct store_list before = {0};
    store_define(s);
    add_kernels(s, &before, 0, 6000); /* a closed block, and an open one of which the file has a part */
    assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    store_limit(4096);
    int64_t at = 6000;
    for (int i = 0; i < 50; i++, at += 100000) {
        add_kernels(s, NULL, at, at + 100000);
        assert_int_not_equal(hec_writer_flush(writer, &why), HEC_OK);
    }
    store_limit(RLIM_INFINITY);
    assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    add_kernels(s, NULL, at, at + 5000);
    at += 5000;
    int64_t lost = 0;
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
    assert_true(lost > 1000000);
    struct hec_reader *reader = store_open(path);
    struct store_list got = {0};
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, store_list_collect, &got, &why), 0);
    assert_int_equal((int64_t)got.count + lost, at);
    /* 16 MB at some 5 bytes each */
    assert_true(got.count > 2000000 && got.count < 5000000);
    qsort(got.all, 6000, sizeof *got.all, store_list_order);
    qsort(before.all, 6000, sizeof *before.all, store_list_order);
    assert_memory_equal(got.all, before.all, 6000 * sizeof *got.all);
    assert_int_equal(atoll(hec_reader_meta(reader, "store_activities_lost")), lost);
    hec_reader_close(reader);
    store_list_free(&got);
    store_list_free(&before);
}

/* Still full at the end: what the file has not got is counted. */
TEST(disk_full_at_the_end) {
    struct hec_writer *writer = store_create(in_folder("end.hec"), 0);
    const struct hec_sink *s = hec_writer_sink(writer);
    store_define(s);
    add_kernels(s, NULL, 0, 5000);
    assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    store_limit(4096);
    add_kernels(s, NULL, 5000, 12345);
    int64_t lost = 0;
    assert_int_equal(hec_writer_close(writer, &lost, NULL), HEC_ERR_FULL);
    store_limit(RLIM_INFINITY);
    assert_int_equal(lost, 7345);
}

/* More tracks than there is memory for open blocks: blocks are closed early, and nothing is lost. */
TEST(many_tracks) {
    STORE_BEGIN("tracks.hec", 0);
    struct store_list list = {0};
    enum { TRACKS = 3000 };
    for (int i = 1; i <= TRACKS; i++) {
        struct hec_track track = {.kind = HEC_TRACK_THREAD, .pid = 1, .rank = -1, .device = -1, .stream = i};
        assert_int_equal(s->trace_track(s->context, &track), i);
    }
    for (int64_t i = 0; i < 200 * TRACKS; i++) {
        struct hec_activity a = {.kind = HEC_ACTIVITY_API, .track = 1 + (uint32_t)store_random(TRACKS)};
        a.start_ns = a.end_ns = i * 100;
        store_put(s, &list, a, 0);
        if (i % 50000 == 0)
            assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    }
    store_finish(writer, path, &list);
}

/* Tables end; what has no room has no id, and kernels keep their names for longer than their configurations. */
TEST(tables_end) {
    static struct hec_definitions d;
    hec_definitions_init(&d);
    for (uint32_t i = 1; i <= HEC_DEFINITIONS_TRACKS_MAX + 5; i++) {
        struct hec_track track = {.kind = HEC_TRACK_THREAD, .stream = i};
        assert_int_equal(hec_definitions_track(&d, &track), i <= HEC_DEFINITIONS_TRACKS_MAX ? i : 0);
    }
    assert_int_equal(hec_definitions_track(&d, &(struct hec_track){.kind = HEC_TRACK_THREAD, .stream = 77}), 77);
    assert_int_equal(hec_definitions_refused(&d), 5);
    assert_int_equal(hec_definitions_name(&d, "a", 1), 1);
    assert_int_equal(hec_definitions_name(&d, "b", 1), 2);
    uint32_t last = 0;
    for (int64_t i = 1; i <= HEC_DEFINITIONS_KERNELS_MAX; i++) {
        last = hec_definitions_kernel(&d, &(struct hec_kernel){.name = 1, .grid = {i, 1, 1}});
        assert_int_not_equal(last, 0);
    }
    assert_int_equal(last, HEC_DEFINITIONS_KERNELS_MAX / 2 + 1);
    assert_int_equal(hec_definitions_kernel(&d, &(struct hec_kernel){.name = 2}), last + 1);
    assert_int_equal(hec_definitions_kernel(&d, &(struct hec_kernel){.name = 1, .grid = {5, 1, 1}}), 5);
    char *text = malloc(1 << 20);
    memset(text, 'x', 1 << 20);
    uint32_t names = 2;
    for (; hec_definitions_name(&d, text, (1 << 20) - names); names++)
        assert_true(names < 40);
    assert_int_equal(names, 2 + 32);
    free(text);
    hec_definitions_free(&d);
}

/* Blocks with any bytes changed, cut off or added: unpacked to what keeps all promises, or refused. */
TEST(bytes_from_anywhere) {
    struct hec_packer *packer = hec_packer_new();
    struct hec_activity_limits limits = {.tracks = STORE_TRACKS};
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        limits.name[kind] = STORE_NAMES;
    static struct hec_activity in[HEC_ACTIVITY_BLOCK], out[HEC_ACTIVITY_BLOCK];
    static unsigned char bytes[HEC_ACTIVITY_BLOCK_BYTES];
    int accepted = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        size_t n = 1 + store_random(store_random(50) ? 100 : 1000);
        int64_t t_ns = 0;
        uint8_t kind = (uint8_t)store_random(2) ? HEC_ACTIVITY_KERNEL : HEC_ACTIVITY_RANGE;
        for (size_t i = 0; i < n; i++) {
            do
                in[i] = store_random_activity(0, t_ns += (int64_t)store_random(5000));
            while (in[i].kind != kind);
            in[i].track = 3;
            if (store_random(4) == 0) /* columns that do not vary, now and then */
                in[i].amount = 0;
        }
        const unsigned char *packed;
        size_t length = hec_packer_pack(packer, in, n, &packed);
        assert_true(length <= sizeof bytes);
        memcpy(bytes, packed, length);
        struct hec_activity_head head = {3, (enum hec_activity_kind)kind, in[0].start_ns, n};
        assert_null(hec_packer_unpack(packer, bytes, length, &head, &limits, out));
        assert_memory_equal(in, out, n * sizeof in[0]);
        for (uint64_t changes = store_random(4); changes > 0; changes--)
            bytes[store_random(length)] ^= (unsigned char)(1 << store_random(8));
        if (store_random(8) == 0)
            length = store_random(length + 1);
        if (store_random(8) == 0)
            head.n = 1 + store_random(HEC_ACTIVITY_BLOCK + 1);
        if (store_random(8) == 0)
            head.t0_ns = (int64_t)store_random(UINT64_MAX);
        if (store_random(8) == 0)
            head.kind = (enum hec_activity_kind)store_random(HEC_ACTIVITY_KIND_COUNT);
        unsigned char *exact = malloc(length + 1); /* so that a sanitizer sees a byte too far */
        memcpy(exact, bytes, length);
        const char *wrong = hec_packer_unpack(packer, exact, length, &head, &limits, out);
        free(exact);
        refused += wrong != NULL;
        accepted += wrong == NULL;
        int64_t before = head.t0_ns;
        for (size_t i = 0; i < head.n && !wrong; i++) {
            assert_true(out[i].start_ns >= before && out[i].end_ns >= out[i].start_ns);
            assert_true(out[i].end_ns <= INT64_C(1) << 60);
            assert_true(out[i].name <= STORE_NAMES && out[i].launch_track <= STORE_TRACKS && out[i].track == 3);
            assert_true(out[i].kind == head.kind && !isinf(out[i].amount));
            assert_true(out[i].launch_ns == HEC_TIME_UNKNOWN || out[i].launch_end_ns == HEC_TIME_UNKNOWN ||
                        out[i].launch_end_ns >= out[i].launch_ns);
            before = out[i].start_ns;
        }
    }
    assert_true(accepted > 100 && refused > 1000);
    hec_packer_free(packer);
}

/* Numbers of any size come back, and so do the widest blocks there can be. */
TEST(widest_numbers) {
    static int64_t in[HEC_NUMBERS_MAX], out[HEC_NUMBERS_MAX];
    static unsigned char bytes[HEC_NUMBERS_BYTES_MAX];
    ZSTD_CCtx *compress = ZSTD_createCCtx();
    ZSTD_DCtx *decompress = ZSTD_createDCtx();
    for (int round = 0; round < 500; round++) {
        size_t n = round < 10 ? HEC_NUMBERS_MAX : 1 + store_random(HEC_NUMBERS_MAX);
        unsigned shift = (unsigned)store_random(64);
        for (size_t i = 0; i < n; i++) {
            in[i] = (int64_t)store_random(UINT64_MAX) >> shift;
            if (store_random(100) == 0)
                in[i] = store_random(2) ? INT64_MAX : INT64_MIN;
            if (round % 7 == 0)
                in[i] = in[0];
        }
        struct hec_encoder encoder = {.out = bytes, .zstd = compress, .level = 1};
        hec_encode_numbers(&encoder, in, n);
        assert_true(encoder.length <= sizeof bytes);
        struct hec_decoder decoder = {bytes, bytes + encoder.length, decompress};
        bool constant;
        assert_true(hec_decode_numbers(&decoder, out, n, &constant));
        assert_ptr_equal(decoder.at, decoder.end);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(out[constant ? 0 : i], in[i]);
    }
    ZSTD_freeCCtx(compress);
    ZSTD_freeDCtx(decompress);
}

/* A file with `copies` of one full block, which all begin together. */
static struct hec_reader *open_overlapping(const char *path, int copies) {
    struct hec_writer *writer = store_create(path, 0);
    store_define(hec_writer_sink(writer));
    add_kernels(hec_writer_sink(writer), NULL, 0, HEC_ACTIVITY_BLOCK);
    store_close(writer);
    char sql[400];
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE c(k) AS (SELECT 2 UNION ALL SELECT k+1 FROM c WHERE k<%d) "
             "INSERT INTO activity_block (track, kind, t0_ns, t1_ns, n, total_ns, amount, data) "
             "SELECT track, kind, t0_ns, t1_ns, n, total_ns, amount, data FROM activity_block, c",
             copies);
    store_change(path, sql);
    return store_open(path);
}

/* Of each activity the file has as many as there are copies, one after the other. */
struct copies {
    int64_t start_ns, end_ns;
    int copies, seen;
    size_t count;
};

static int count_copies(void *context, const struct hec_activity *activities, size_t count) {
    struct copies *c = context;
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &activities[i];
        if (c->count && (a->start_ns != c->start_ns || a->end_ns != c->end_ns)) {
            assert_true(a->start_ns > c->start_ns);
            assert_int_equal(c->seen, c->copies);
            c->seen = 0;
        }
        c->start_ns = a->start_ns;
        c->end_ns = a->end_ns;
        c->seen++;
        c->count++;
    }
    return 0;
}

/* Some hundred streams at once are in memory, more wait packed, and there is an end to that. */
TEST(overlapping_blocks) {
    struct hec_why why = {""};
    struct copies copies = {.copies = 600};
    struct hec_reader *reader = open_overlapping(in_folder("packed.hec"), copies.copies);
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, count_copies, &copies, &why), 0);
    assert_int_equal(copies.count, 600 * HEC_ACTIVITY_BLOCK);
    assert_int_equal(copies.seen, copies.copies);
    hec_reader_close(reader);
}

/* Blocks that are all alike take a few bytes each: at once they would fill the memory, one after the other the day. */
TEST(tiny_blocks) {
    static const struct {
        int n, blocks, apart_ns, err;
        const char *sentence;
    } cases[] = {
        {256, 16000, 0, HEC_ERR_CORRUPT, "too many blocks of activities overlap"},
        {4096, 1100, 4096, HEC_ERR_LIMIT, "more activities than a run recorded in so few bytes"},
        {4096, 1000, 4096, HEC_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        STORE_BEGIN("tiny.hec", 0);
        store_define(s);
        store_close(writer);
        char sql[400];
        snprintf(sql, sizeof sql,
                 "WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM c WHERE k<%d) "
                 "INSERT INTO activity_block (track, kind, t0_ns, t1_ns, n, total_ns, amount, data) "
                 "SELECT 1, 'memset', k*%d, 0, %d, 0, 0.0, x'00000000000200000000000000000000000000' FROM c",
                 cases[i].blocks, cases[i].apart_ns, cases[i].n);
        store_change(path, sql);
        struct hec_reader *reader = store_open(path);
        size_t count = 0;
        int err = hec_reader_activities(reader, HEC_ACTIVITY_ALL, store_count, &count, &why);
        if (err != cases[i].err || !strstr(why.text, cases[i].sentence))
            fail_msg("%zu: %d: %s", i, err, why.text);
        assert_true(err || count == (size_t)cases[i].blocks * (size_t)cases[i].n);
        hec_reader_close(reader);
    }
}
