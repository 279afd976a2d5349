/* The timeline: what the writer is given, the reader gives back to the nanosecond, in order, of the wanted kinds. */
#include "store_activities.h"

#include "base/buf.h"
#include "store/activity_pack.h"
#include "store/copy.h"

#include <sys/wait.h>

#define ORIGIN INT64_C(123456789012345)

/* Activities of all kinds on all tracks, most of them in order, into the file and into the list. */
static void write_random(const struct hec_sink *s, struct store_list *list, size_t count, int64_t *t_ns) {
    struct hec_activity batch[100];
    while (count > 0) {
        size_t n = 1 + store_random(sizeof batch / sizeof batch[0]);
        n = n < count ? n : count;
        for (size_t i = 0; i < n; i++) {
            *t_ns += (int64_t)store_random(3) * (int64_t)store_random(9000);
            int64_t back = store_random(20) == 0 ? (int64_t)store_random(1000000) : 0;
            batch[i] = store_random_activity(ORIGIN, *t_ns - back);
            struct hec_activity relative = store_relative(batch[i], ORIGIN);
            store_list_add(list, &relative, 1);
        }
        s->trace_activities(s->context, batch, n);
        count -= n;
    }
}

TEST(every_kind_comes_back) {
    static const size_t sizes[] = {1, 2, 31, 32, 33, 1000, 60000, 200000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        STORE_BEGIN("kinds.hec", 0);
        struct store_list list = {0};
        store_define(s);
        int64_t t_ns = 0;
        /* blocks packed before the origin is known are right, too */
        write_random(s, &list, sizes[i] / 2, &t_ns);
        hec_writer_set_origin(writer, ORIGIN);
        write_random(s, &list, sizes[i] - sizes[i] / 2, &t_ns);
        if (i % 2 == 0)
            assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
        write_random(s, &list, 777, &t_ns);
        store_close(writer);
        struct hec_reader *reader = store_open(path);
        store_list_check(reader, &list, HEC_ACTIVITY_ALL);
        for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
            store_list_check(reader, &list, HEC_ACTIVITY_BIT(kind));
        for (int round = 0; round < 5; round++)
            store_list_check(reader, &list, (uint32_t)store_random(HEC_ACTIVITY_ALL + 1));
        store_list_check(reader, &list, 0);
        hec_reader_close(reader);
        store_list_free(&list);
        assert_int_equal(store_number(path, "SELECT count(*) FROM activity_block WHERE id<0 AND n=4096"), 0);
    }
}

/* Many small commits: open blocks are rewritten, closed when full, and never there twice. */
TEST(open_blocks_grow) {
    STORE_BEGIN("grow.hec", ORIGIN);
    struct store_list list = {0};
    store_define(s);
    int64_t t_ns = 0;
    for (int i = 0; i < 300; i++) {
        write_random(s, &list, store_random(3) == 0 ? 0 : store_random(3000), &t_ns);
        assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
        if (i % 50 == 0) { /* while it is being written */
            store_list_check_file(path, &list);
        }
    }
    /* silence gives the memory back, and a chain may go on after it */
    for (int i = 0; i < 130; i++)
        assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    assert_int_equal(store_number(path, "SELECT count(*) FROM activity_block WHERE id<0"), 0);
    write_random(s, &list, 500, &t_ns);
    store_finish(writer, path, &list);
}

/* The first track, and the first series, are silent until their blocks are closed, while only others have open ones; then
 * they go on. */
TEST(silent_for_a_while) {
    STORE_BEGIN("silent.hec", ORIGIN);
    struct store_list list = {0};
    store_define(s);
    for (int i = 0; i < 140; i++) {
        for (uint32_t track = i > 0 && i < 135 ? 2 : 1; track <= 2; track++) {
            struct hec_activity a = {.kind = HEC_ACTIVITY_API, .track = track, .start_ns = ORIGIN + i};
            a.end_ns = a.start_ns;
            store_put(s, &list, a, ORIGIN);
            s->sample(s->context, HEC_GPU_POWER, (int32_t)track, ORIGIN + i * HEC_NS_PER_S, 100);
        }
        if (hec_writer_flush(writer, &why) != HEC_OK)
            fail_msg("%d: %s", i, why.text);
    }
    store_finish(writer, path, &list);
    assert_int_equal(store_number(path, "SELECT sum(n) FROM block"), 140 + 6);
}

/* A program that ends without closing its file, as when it is killed. */
TEST(killed) {
    const char *path = in_folder("killed.hec");
    struct store_list list = {0};
    uint64_t before = store_random_state;
    for (int child = 0; child < 2; child++) {
        pid_t pid = child ? 0 : fork();
        assert_true(pid >= 0);
        if (pid > 0) {
            int status;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            assert_int_equal(status, 0);
            store_random_state = before;
            continue; /* the same again, to know what there must be */
        }
        struct hec_writer *writer = store_create(child ? in_folder("same.hec") : path, ORIGIN);
        store_define(hec_writer_sink(writer));
        int64_t t_ns = 0;
        for (int i = 0; i < 40; i++) {
            write_random(hec_writer_sink(writer), &list, 1500, &t_ns);
            if (hec_writer_flush(writer, NULL) != HEC_OK)
                _exit(1);
        }
        if (!child) {
            write_random(hec_writer_sink(writer), &list, 1000, &t_ns); /* never committed */
            _exit(0);
        }
        store_close(writer);
    }
    struct hec_reader *reader = store_open(path);
    store_list_check(reader, &list, HEC_ACTIVITY_ALL);
    assert_null(hec_reader_meta(reader, "store_closed"));
    hec_reader_close(reader);
    store_list_free(&list);
}

/* A pass over kernels does not unpack, nor look at, what is not a kernel. */
TEST(unwanted_blocks_are_not_read) {
    STORE_BEGIN("unwanted.hec", ORIGIN);
    struct store_list list = {0};
    store_define(s);
    int64_t t_ns = 0;
    write_random(s, &list, 50000, &t_ns);
    store_close(writer);
    store_change(path, "UPDATE activity_block SET data=x'00', track=-5, n='x' WHERE kind<>'kernel'");
    struct hec_reader *reader = store_open(path);
    store_list_check(reader, &list, HEC_ACTIVITY_BIT(HEC_ACTIVITY_KERNEL));
    assert_null(hec_reader_left_out(reader));
    struct store_list got = {0};
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_DEVICE, store_list_collect, &got, &why), HEC_OK);
    assert_non_null(strstr(hec_reader_left_out(reader), "block of activities"));
    store_list_free(&got);
    hec_reader_close(reader);
    store_list_free(&list);
}

/* Whatever comes late, blocks of a chain overlap only where they must, and the pass is in order. */
TEST(late_activities) {
    STORE_BEGIN("late.hec", ORIGIN);
    struct store_list list = {0};
    store_define(s);
    for (int64_t i = 0; i < 100000; i++) {
        /* two threads of a collector take turns on one track, a second apart; one in 5000 comes from the very beginning */
        int64_t at = i / 5000 % 2 ? i - 5000 : i + 5000;
        struct hec_activity a = {.kind = HEC_ACTIVITY_API, .track = 1, .name = 1, .start_ns = ORIGIN + at * 1000};
        if (i % 5000 == 4999)
            a.start_ns = ORIGIN + i;
        a.end_ns = a.start_ns + 500;
        store_put(s, &list, a, ORIGIN);
    }
    store_finish(writer, path, &list);
    /* nearly full blocks, although half of the activities were late */
    assert_true(store_number(path, "SELECT count(*) FROM activity_block") < 2 * 100000 / 4096 + 4);
}

static void refuse_one(const struct hec_sink *s, struct hec_activity a) {
    s->trace_activities(s->context, &a, 1);
}

/* What makes no sense is refused and counted; a launch that makes none is unknown. */
TEST(nonsense) {
    STORE_BEGIN("nonsense.hec", 0);
    store_define(s);
    const struct hec_activity good = {.kind = HEC_ACTIVITY_KERNEL, .track = 1, .name = 1, .start_ns = 5, .end_ns = 6};
    struct hec_activity a;
#define REFUSE(change)                                                                                                 \
    a = good;                                                                                                          \
    a.change;                                                                                                          \
    refuse_one(s, a)
    REFUSE(kind = HEC_ACTIVITY_KIND_COUNT);
    REFUSE(track = 0);
    REFUSE(track = STORE_TRACKS + 1);
    REFUSE(name = STORE_NAMES + 1);
    REFUSE(launch_track = STORE_TRACKS + 1);
    REFUSE(end_ns = 4);
    REFUSE(start_ns = INT64_MIN);
    REFUSE(end_ns = INT64_MAX);
    REFUSE(amount = (double)INFINITY);
    a = good;
    a.launch_ns = INT64_MAX;
    a.launch_end_ns = 3;
    refuse_one(s, a);
    a.launch_ns = 4;
    a.start_ns = 6;
    refuse_one(s, a);
    /* fields that a kind does not have are 0 */
    a = (struct hec_activity){.kind = HEC_ACTIVITY_PHASE, .track = 1, .start_ns = 7, .end_ns = 7, .launch_ns = 5};
    a.launch_track = 2;
    memset(a.reserved, 9, sizeof a.reserved);
    refuse_one(s, a);
    assert_int_equal(s->trace_track(s->context, &(struct hec_track){.kind = HEC_TRACK_KIND_COUNT}), 0);
    assert_int_equal(s->trace_track(s->context, &(struct hec_track){.device = HEC_DEVICE_MAX}), 0);
    assert_int_equal(s->trace_kernel(s->context, &(struct hec_kernel){.name = STORE_NAMES + 1}), 0);
    assert_int_equal(s->trace_frame(s->context, &(struct hec_frame){.parent = STORE_NAMES + 1}), 0);
    s->tracer(s->context, &(struct hec_tracer){.mode = 99});
    int64_t lost = 0;
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
    assert_int_equal(lost, 9 + 4 + 1);
    struct hec_reader *reader = store_open(path);
    struct store_list got = {0};
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, store_list_collect, &got, NULL), 0);
    assert_int_equal(got.count, 3);
    assert_true(got.all[0].launch_ns == HEC_TIME_UNKNOWN && got.all[0].launch_end_ns == HEC_TIME_UNKNOWN);
    assert_true(got.all[1].launch_ns == 4 && got.all[1].launch_end_ns == HEC_TIME_UNKNOWN);
    assert_true(got.all[2].launch_ns == 0 && got.all[2].launch_track == 0 && got.all[2].reserved[5] == 0);
    assert_string_equal(hec_reader_meta(reader, "store_activities_lost"), "9");
    store_list_free(&got);
    hec_reader_close(reader);
}

static int got_name(void *context, uint32_t id, const char *text) {
    hec_buf_printf(context, "%u %s\n", id, text);
    return 0;
}
static int got_track(void *context, const struct hec_track *t) {
    hec_buf_printf(context, "%u %d %d %d %d %u %lld %s\n", t->id, t->kind, t->pid, t->rank, t->device, t->context,
                   (long long)t->stream, t->name);
    return 0;
}
static int got_kernel(void *context, const struct hec_kernel *k) {
    hec_buf_printf(context, "%u %u %lld,%lld,%lld %d,%d,%d %d %lld %lld\n", k->id, k->name, (long long)k->grid[0],
                   (long long)k->grid[1], (long long)k->grid[2], k->block[0], k->block[1], k->block[2], k->registers,
                   (long long)k->static_shared_bytes, (long long)k->dynamic_shared_bytes);
    return 0;
}
static int got_frame(void *context, const struct hec_frame *f) {
    hec_buf_printf(context, "%u %u %u %u %d\n", f->id, f->parent, f->file, f->function, f->line);
    return 0;
}
static int got_tracer(void *context, const struct hec_tracer *tracer) {
    *(struct hec_tracer *)context = *tracer;
    return 0;
}

TEST(definitions) {
    STORE_BEGIN("definitions.hec", ORIGIN);
    assert_int_equal(s->trace_name(s->context, "a"), 1);
    assert_int_equal(s->trace_name(s->context, ""), 2);
    assert_int_equal(s->trace_name(s->context, "a"), 1);
    struct hec_track track = {.id = 77, .kind = HEC_TRACK_STREAM, .pid = 5, .rank = 3, .device = 1, .stream = -7};
    track.context = 4000000000;
    assert_int_equal(s->trace_track(s->context, &track), 1);
    track.stream = INT64_MAX;
    strcpy(track.name, "first");
    assert_int_equal(s->trace_track(s->context, &track), 2);
    struct hec_kernel kernel = {.name = 1, .grid = {1, 2, 3}, .block = {4, 5, 6}, .registers = 7};
    assert_int_equal(s->trace_kernel(s->context, &kernel), 1);
    kernel = (struct hec_kernel){99, 1, {-1, -1, -1}, {-1, -1, -1}, -1, -1, INT64_C(1) << 52};
    assert_int_equal(s->trace_kernel(s->context, &kernel), 2);
    assert_int_equal(s->trace_frame(s->context, &(struct hec_frame){.file = 1, .function = 2, .line = -1}), 1);
    assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    /* a later name replaces the earlier one; none does not */
    strcpy(track.name, "second");
    assert_int_equal(s->trace_track(s->context, &track), 2);
    track.name[0] = '\0';
    assert_int_equal(s->trace_track(s->context, &track), 2);
    assert_int_equal(s->trace_frame(s->context, &(struct hec_frame){.parent = 1, .file = 1, .line = 8}), 2);
    assert_int_equal(s->trace_frame(s->context, &(struct hec_frame){.parent = 1, .file = 1, .line = 8}), 2);
    struct hec_tracer tracer = {
        .pid = 9, .mode = 1, .first_ns = ORIGIN + 5, .last_ns = ORIGIN + 6, .budget_ppm = 10000};
    s->tracer(s->context, &tracer);
    strcpy(tracer.library, "libcupti.so.13");
    strcpy(tracer.holder, "torch.profiler");
    tracer.estimate_ppm = -1;
    s->tracer(s->context, &tracer);
    store_close(writer);

    struct hec_reader *reader = store_open(path);
    struct hec_buf text;
    hec_buf_init(&text, 4096);
    assert_int_equal(hec_reader_trace_names(reader, got_name, &text, NULL), 0);
    assert_int_equal(hec_reader_tracks(reader, got_track, &text, NULL), 0);
    assert_int_equal(hec_reader_kernels(reader, got_kernel, &text, NULL), 0);
    assert_int_equal(hec_reader_frames(reader, got_frame, &text, NULL), 0);
    assert_string_equal(hec_buf_text(&text),
                        "1 a\n2 \n1 2 5 3 1 4000000000 -7 \n2 2 5 3 1 4000000000 9223372036854775807 second\n"
                        "1 1 1,2,3 4,5,6 7 0 0\n2 1 -1,-1,-1 -1,-1,-1 -1 -1 4503599627370496\n"
                        "1 0 1 2 -1\n2 1 1 0 8\n");
    hec_buf_free(&text);
    struct hec_tracer got;
    memset(&got, 0xee, sizeof got);
    assert_int_equal(hec_reader_tracers(reader, got_tracer, &got, NULL), 0);
    assert_int_equal(got.pid, 9);
    assert_int_equal(got.mode, 1);
    assert_int_equal(got.first_ns, 5);
    assert_int_equal(got.last_ns, 6);
    assert_int_equal(got.estimate_ppm, -1);
    assert_int_equal(got.budget_ppm, 10000);
    assert_string_equal(got.library, "libcupti.so.13");
    assert_string_equal(got.holder, "torch.profiler");
    assert_string_equal(got.why, "");
    hec_reader_close(reader);
}

/* The device of calls is a column more, and only where one is known: files without it are as they were. */
TEST(devices_of_calls) {
    int64_t bytes[2];
    for (int known = 0; known < 2; known++) {
        STORE_BEGIN(known ? "devices.hec" : "none.hec", ORIGIN);
        struct store_list list = {0};
        store_define(s);
        for (int i = 0; i < 3000; i++) {
            struct hec_activity a = {.kind = HEC_ACTIVITY_BURST,
                                     .track = 1,
                                     .start_ns = ORIGIN + i * 1000,
                                     .end_ns = ORIGIN + i * 1000 + 500,
                                     .amount = 1 + i % 50,
                                     .from = (uint8_t)i,
                                     .to = (uint8_t)(255 - i % 256),
                                     .device = (uint8_t)(known && i == 2999 ? 8 : 0)};
            store_put(s, &list, a, ORIGIN);
        }
        store_close(writer);
        struct hec_reader *reader = store_open(path);
        store_list_check(reader, &list, HEC_ACTIVITY_BIT(HEC_ACTIVITY_BURST));
        hec_reader_close(reader);
        store_list_free(&list);
        bytes[known] = store_number(path, "SELECT sum(length(data)) FROM activity_block WHERE kind='burst'");
        assert_int_equal(store_number(path, "SELECT sum(amount) FROM activity_block WHERE kind='burst'"), 60 * 1275);
    }
    assert_true(bytes[0] < bytes[1] && bytes[0] + 100 > bytes[1]);
    struct hec_packer *packer = hec_packer_new();
    struct hec_activity one = {.kind = HEC_ACTIVITY_BURST, .track = 1, .end_ns = 500, .amount = 1};
    const unsigned char *data;
    assert_int_equal(hec_packer_pack(packer, &one, 1, &data), 20);
    one.device = 1;
    assert_int_equal(hec_packer_pack(packer, &one, 1, &data), 22);
    hec_packer_free(packer);
}

/* Totals are in the file at every commit, for plain SQL and for the report. */
TEST(totals) {
    STORE_BEGIN("totals.hec", ORIGIN);
    store_define(s);
    for (int i = 0; i < 10000; i++) {
        struct hec_activity a[3] = {{.kind = HEC_ACTIVITY_KERNEL, .name = 1 + (uint32_t)(i % 2)},
                                    {.kind = HEC_ACTIVITY_PHASE, .name = 3},
                                    {.kind = HEC_ACTIVITY_COPY, .amount = 100}};
        for (int k = 0; k < 3; k++) {
            a[k].track = 1;
            a[k].start_ns = ORIGIN + i * 1000;
            a[k].end_ns = a[k].start_ns + 10 + i % 2;
        }
        s->trace_activities(s->context, a, 3);
        if (i == 6999)
            assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
        if (i == 7999)
            assert_int_equal(store_number(path, "SELECT count FROM phase WHERE name='name 3'"), 7000);
    }
    store_close(writer);
    assert_int_equal(store_number(path, "SELECT total_ns FROM phase"), 5000 * 21);
    assert_int_equal(store_number(path, "SELECT count FROM kernel_total WHERE name='name 2'"), 5000);
    assert_int_equal(store_number(path, "SELECT total_ns FROM kernel_total WHERE name='name 2'"), 5000 * 11);
    assert_int_equal(store_number(path, "SELECT sum(n) FROM activity_block WHERE kind='kernel' AND track=1"), 10000);
    assert_int_equal(store_number(path, "SELECT sum(amount) FROM activity_block WHERE kind='copy'"), 1000000);
    assert_int_equal(store_number(path, "SELECT sum(total_ns) FROM activity_block WHERE kind='copy'"), 5000 * 21);
    assert_int_equal(store_number(path, "SELECT min(t0_ns) FROM activity_block"), 0);
    assert_int_equal(store_number(path, "SELECT max(t1_ns) FROM activity_block"), 9999011);
}

TEST(copies) {
    const char *from = in_folder("from.hec"), *to = in_folder("to.hec");
    struct hec_writer *writer = store_create(from, ORIGIN);
    const struct hec_sink *s = hec_writer_sink(writer);
    struct store_list list = {0};
    store_define(s);
    s->trace_name(s->context, "/home/ada/project/train.py");
    struct hec_tracer tracer = {.pid = 1, .library = "/home/ada/lib/libcupti.so.13"};
    s->tracer(s->context, &tracer);
    int64_t t_ns = 0;
    write_random(s, &list, 30000, &t_ns);
    assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK); /* with open blocks in it */
    struct hec_store_scrub scrub = {.paths = true};
    struct hec_why why = {""};
    if (hec_store_copy(from, to, false, &scrub, &why) != HEC_OK)
        fail_msg("%s", why.text);
    store_close(writer);
    struct hec_reader *reader = store_open(to);
    store_list_check(reader, &list, HEC_ACTIVITY_ALL);
    assert_int_equal(hec_reader_tracers(reader, got_tracer, &tracer, NULL), 0);
    assert_string_equal(tracer.library, "libcupti.so.13");
    hec_reader_close(reader);
    assert_true(store_holds(from, "ada/project") && !store_holds(to, "ada"));
    assert_int_equal(store_number(to, "SELECT count(*) FROM activity_block WHERE id<0"), 0);
    assert_int_equal(store_number(to, "SELECT sum(count) FROM activity_total"), 30000);
    store_list_free(&list);
}

TEST(visitors_may_stop) {
    STORE_BEGIN("stop.hec", ORIGIN);
    struct store_list list = {0};
    store_define(s);
    int64_t t_ns = 0;
    write_random(s, &list, 20000, &t_ns);
    store_list_free(&list);
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    int calls = 0;
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, store_stop_at_once, &calls, NULL), 42);
    assert_int_equal(calls, 1);
    hec_reader_close(reader);
}
