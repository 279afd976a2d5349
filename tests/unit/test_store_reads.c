/* What a reader gives back, in which order, and at each of its limits; what a writer cuts, refuses and counts. */
#include "store_activities.h"

#include "base/buf.h"
#include "store/copy.h"
#include "store/pack.h"
#include "store/record.h"

/* ---- blocks as texts (store/pack.h) ---- */

static struct hec_block block;

static void pack(const int64_t *t, const int64_t *v, const char *valid, int n, bool exact) {
    uint8_t known[16];
    for (int i = 0; i < n; i++)
        known[i] = valid[i] == '1';
    memset(&block, 0, sizeof block);
    hec_pack(t, v, known, n, exact, &block);
}

static void texts_are(int64_t v_base, int v_width, const char *v, int64_t r_base, int r_width, const char *r) {
    assert_true(block.v_base == v_base && block.v_width == v_width && block.r_base == r_base &&
                block.r_width == r_width);
    assert_memory_equal(block.v, v, strlen(v));
    assert_memory_equal(block.r, r, strlen(r));
    assert_true(block.v[strlen(v)] == '\0' && block.r[strlen(r)] == '\0');
}

TEST(texts_of_blocks) {
    const int64_t even[] = {100, 200, 300, 400}, odd[] = {100, 203, 298, 400};
    pack(even, (int64_t[]){5, 94, 5, 7}, "1111", 4, true);
    assert_true(block.n == 4 && block.t0_us == 100 && block.t1_us == 400);
    texts_are(5, 1, "#|#%", 0, 0, "");
    pack(even, (int64_t[]){-10, 80, 79, 0}, "1111", 4, true); /* lower digits first */
    texts_are(-10, 2, "###$|#-#", 0, 0, "");
    pack(odd, (int64_t[]){1, 9, 1, 1}, "1011", 4, true);
    texts_are(1, 1, "#~##", -2, 1, "%(#%");
    pack(even, (int64_t[]){8100, 9, 0, 9}, "1010", 4, true);
    texts_are(0, 3, "##$~~~###~~~", 0, 0, "");
    pack(even, (int64_t[]){1, 2, 3, 4}, "0000", 4, true);
    texts_are(0, 1, "~~~~", 0, 0, "");
    pack(even, (int64_t[]){7, 0, 0, 0}, "1111", 1, true);
    assert_true(block.n == 1 && block.t1_us == 100);
    texts_are(7, 0, "", 0, 0, "");
    static const int64_t ranges[] = {0,
                                     1,
                                     89,
                                     90,
                                     8099,
                                     8100,
                                     728999,
                                     729000,
                                     65609999,
                                     65610000,
                                     INT64_C(5904899999),
                                     INT64_C(5904900000),
                                     HEC_BLOCK_RANGE};
    static const int widths[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        assert_int_equal(hec_pack_width(ranges[i]), widths[i]);
}

/* Times that are a little off are taken for evenly spaced: by a millisecond at most, and a twentieth of the spacing. */
TEST(even_times) {
    static const struct {
        int64_t spacing, off;
        bool even;
    } cases[] = {{20000, 1000, true},   {20000, 1001, false},   {20000, -1000, true}, {20000, -1001, false},
                 {1000000, 1000, true}, {1000000, 1001, false}, {10000, 500, true},   {10000, 501, false},
                 {19999, 999, true},    {19999, 1000, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t t[] = {0, cases[i].spacing + cases[i].off, 2 * cases[i].spacing, 3 * cases[i].spacing};
        pack(t, (int64_t[]){0, 0, 0, 0}, "1111", 4, false);
        if ((block.r_width == 0) != cases[i].even)
            fail_msg("%lld of %lld", (long long)cases[i].off, (long long)cases[i].spacing);
        pack(t, (int64_t[]){0, 0, 0, 0}, "1111", 4, true);
        assert_true(block.r_width > 0);
    }
}

TEST(what_is_no_block) {
    static const struct {
        struct hec_block head;
        const char *v, *r, *wrong; /* NULL: it is one */
    } cases[] = {
        {{0, 30, 2, .v_width = 1}, "#$", "", NULL},
        {{0, 30, 0, .v_width = 1}, "", "", "a block's number of values is out of range"},
        {{0, 30, 513}, "", "", "a block's number of values is out of range"},
        {{0, 30, -1}, "", "", "a block's number of values is out of range"},
        {{0, 30, 512}, "", "", NULL},
        {{0, 30, 2, .v_width = -1}, "", "", "a block's width is out of range"},
        {{0, 30, 2, .v_width = 7}, "##############", "", "a block's width is out of range"},
        {{0, 30, 2, .v_width = 6}, "############", "", NULL},
        {{0, 30, 2, .r_width = -1}, "", "", "a block's width is out of range"},
        {{0, 30, 2, .r_width = 7}, "", "##############", "a block's width is out of range"},
        {{0, 30, 2, .r_width = 6}, "", "############", NULL},
        {{0, 30, 2, .v_width = 1}, "#", "", "a block's text does not have the length of its values"},
        {{0, 30, 2, .r_width = 1}, "", "###", "a block's text does not have the length of its values"},
        {{31, 30, 2}, "", "", "a block's times are out of range"},
        {{30, 30, 2}, "", "", NULL},
        {{-HEC_BLOCK_TIME_MAX_US - 1, 30, 2}, "", "", "a block's times are out of range"},
        {{0, HEC_BLOCK_TIME_MAX_US + 1, 2}, "", "", "a block's times are out of range"},
        {{-HEC_BLOCK_TIME_MAX_US, HEC_BLOCK_TIME_MAX_US, 2}, "", "", NULL},
        {{0, 30, 2, .r_base = 1}, "", "", "a block's times are out of range"},
        {{0, 30, 2, .r_base = -HEC_BLOCK_RANGE - 1}, "", "", "a block's times are out of range"},
        {{0, 30, 2, .r_width = 1}, "", "#\"", "a block's times hold a character that is no digit"},
        {{0, 30, 2, .r_width = 1}, "", "#}", "a block's times are not in order"}, /* the last of 90 digits is | */
        {{0, 30, 3, .r_width = 1, .r_base = -5}, "", "(9(", NULL},                /* by 0, 17, 0 */
        {{0, 30, 3, .r_width = 1, .r_base = -5}, "", "(=(", NULL},                /* by 21: at the end */
        {{0, 30, 3, .r_width = 1, .r_base = -5}, "", "(>(", NULL},
        {{0, 30, 2, .r_width = 1, .r_base = -5}, "", "'(", "a block's times are not in order"},
        {{0, 30, 2, .r_width = 1, .r_base = -5}, "", "()", "a block's times are not in order"},
        {{0, 30, 2, .r_width = 1, .r_base = -5}, "", "('", "a block's times do not begin and end where it says"},
        {{0, 30, 2, .r_width = 1, .r_base = -5}, "", ")(", "a block's times do not begin and end where it says"},
        {{0, 30, 2, .v_width = 2}, "~~##", "", NULL},
        {{0, 30, 2, .v_width = 2}, "~###", "", "a block's missing value is malformed"},
        {{0, 30, 2, .v_width = 2}, "#~##", "", "a block's values hold a character that is no digit"},
        {{0, 30, 2, .v_width = 1}, "#}", "", "a block's values hold a character that is no digit"},
        {{0, 30, 2, .v_width = 1, .v_base = INT64_MAX - 1}, "#$", "", NULL},
        {{0, 30, 2, .v_width = 1, .v_base = INT64_MAX - 1}, "#%", "", "a block's value does not fit 64 bits"},
    };
    int64_t t[HEC_BLOCK_VALUES], v[HEC_BLOCK_VALUES];
    uint8_t valid[HEC_BLOCK_VALUES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *wrong =
            hec_unpack(&cases[i].head, cases[i].v, strlen(cases[i].v), cases[i].r, strlen(cases[i].r), t, v, valid);
        bool times =
            i == 21 || (i >= 22 && i <= 24); /* which of the two sentences about times it is does not matter there */
        if ((wrong == NULL) != (cases[i].wrong == NULL) || (wrong && strcmp(wrong, cases[i].wrong) != 0 && !times))
            if (!(times && wrong))
                fail_msg("case %zu: %s", i, wrong ? wrong : "taken");
    }
}

/* ---- order ---- */

static int note_device(void *context, const struct hec_device *d) {
    return hec_buf_printf(context, "%d ", d->index);
}
static int note_process(void *context, const struct hec_process *p) {
    return hec_buf_printf(context, "%d ", p->pid);
}
static int note_gpu_process(void *context, const struct hec_gpu_process *p) {
    return hec_buf_printf(context, "%d/%d ", p->device, p->pid);
}
static int note_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    return hec_buf_printf(context, "%s/%d/%lld/%s ", hec_event_name(kind), device, (long long)t_ns, text);
}
static int note_unit(void *context, const char *name, double count) {
    return hec_buf_printf(context, "%s/%g ", name, count);
}
static int note_phase(void *context, const char *name, int64_t total_ns, int64_t count) {
    return hec_buf_printf(context, "%s/%lld/%lld ", name, (long long)total_ns, (long long)count);
}
static int note_tracer(void *context, const struct hec_tracer *t) {
    return hec_buf_printf(context, "%d ", t->pid);
}
static int note_meta(void *context, const char *key, const char *value) {
    return hec_buf_printf(context, "%s=%s ", key, value);
}

TEST(in_order) {
    STORE_BEGIN("order.hec", 0);
    for (int i = 5; i-- > 0;) {
        s->device(s->context, &(struct hec_device){.index = i * 3 % 5, .cuda_major = -1});
        s->process(s->context, &(struct hec_process){.pid = 10 + i, .start_ns = i % 2});
        s->gpu_process(s->context, &(struct hec_gpu_process){.device = i % 2, .pid = 20 + i, .first_ns = i / 4});
        s->event(s->context, i % 2 ? HEC_EVENT_GAP : HEC_EVENT_NOTE, i - 1, i / 3, "");
        s->tracer(s->context, &(struct hec_tracer){.pid = 30 + i});
    }
    s->units(s->context, "b", 1);
    s->units(s->context, "a", -2.5);
    s->meta(s->context, "z", "1");
    s->meta(s->context, "k", "2");
    store_phase(s, 0, 5, 1, "long");
    store_phase(s, 0, 2, 1, "b");
    store_phase(s, 0, 2, 1, "a");
    struct hec_track track = {.kind = HEC_TRACK_THREAD, .pid = 1, .rank = -1, .device = -1};
    struct hec_activity unnamed = {.end_ns = 3, .kind = HEC_ACTIVITY_PHASE};
    unnamed.track = s->trace_track(s->context, &track);
    s->trace_activities(s->context, &unnamed, 1);
    s->trace_activities(s->context, &unnamed, 1);
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    struct hec_buf text;
    hec_buf_init(&text, 4096);
    static const char *const expected[] = {"0 1 2 3 4 ",
                                           "10 12 14 11 13 ",
                                           "0/20 0/22 1/21 1/23 0/24 ",
                                           "note/1/0/ gap/0/0/ note/-1/0/ note/3/1/ gap/2/1/ ",
                                           "a/-2.5 b/1 ",
                                           "phase/6/2 long/5/1 a/2/1 b/2/1 ",
                                           "30 31 32 33 34 ",
                                           "k=2 store_activities_lost=0 store_closed=1 store_lost=0 z=1 "};
    for (int i = 0; i < 8; i++) {
        int err = i == 0   ? hec_reader_devices(reader, note_device, &text, &why)
                  : i == 1 ? hec_reader_processes(reader, note_process, &text, &why)
                  : i == 2 ? hec_reader_gpu_processes(reader, note_gpu_process, &text, &why)
                  : i == 3 ? hec_reader_events(reader, note_event, &text, &why)
                  : i == 4 ? hec_reader_units(reader, note_unit, &text, &why)
                  : i == 5 ? hec_reader_phases(reader, note_phase, &text, &why)
                  : i == 6 ? hec_reader_tracers(reader, note_tracer, &text, &why)
                           : hec_reader_metas(reader, note_meta, &text);
        assert_int_equal(err, 0);
        assert_string_equal(hec_buf_text(&text), expected[i]);
        hec_buf_clear(&text);
    }
    hec_buf_free(&text);
    assert_null(hec_reader_left_out(reader));
    assert_false(hec_reader_live(reader));
    hec_reader_close(reader);
}

/* Whatever a visitor answers ends the pass, at once, and is the answer. */
static int calls;
#define STOPS(name, ...)                                                                                               \
    static int name(__VA_ARGS__) {                                                                                     \
        (void)context;                                                                                                 \
        calls++;                                                                                                       \
        return -77;                                                                                                    \
    }
STOPS(stop_device, void *context, __attribute__((unused)) const struct hec_device *x)
STOPS(stop_process, void *context, __attribute__((unused)) const struct hec_process *x)
STOPS(stop_gpu_process, void *context, __attribute__((unused)) const struct hec_gpu_process *x)
STOPS(stop_event, void *context, __attribute__((unused)) enum hec_event_kind k, __attribute__((unused)) int d,
      __attribute__((unused)) int64_t t, __attribute__((unused)) const char *x)
STOPS(stop_unit, void *context, __attribute__((unused)) const char *x, __attribute__((unused)) double y)
STOPS(stop_phase, void *context, __attribute__((unused)) const char *x, __attribute__((unused)) int64_t y,
      __attribute__((unused)) int64_t z)
STOPS(stop_name, void *context, __attribute__((unused)) uint32_t id, __attribute__((unused)) const char *x)
STOPS(stop_track, void *context, __attribute__((unused)) const struct hec_track *x)
STOPS(stop_kernel, void *context, __attribute__((unused)) const struct hec_kernel *x)
STOPS(stop_frame, void *context, __attribute__((unused)) const struct hec_frame *x)
STOPS(stop_tracer, void *context, __attribute__((unused)) const struct hec_tracer *x)
STOPS(stop_meta, void *context, __attribute__((unused)) const char *x, __attribute__((unused)) const char *y)
STOPS(stop_activities, void *context, __attribute__((unused)) const struct hec_activity *x,
      __attribute__((unused)) size_t n)
STOPS(stop_series, void *context, __attribute__((unused)) const int64_t *t, __attribute__((unused)) const int64_t *v,
      __attribute__((unused)) const uint8_t *k, __attribute__((unused)) size_t n)

TEST(every_visitor_may_stop) {
    STORE_BEGIN("stops.hec", 0);
    store_define(s);
    store_fill(s, 0, 30);
    for (int i = 0; i < 3; i++) {
        s->device(s->context, &(struct hec_device){.index = 2 + i});
        s->process(s->context, &(struct hec_process){.pid = i});
        s->gpu_process(s->context, &(struct hec_gpu_process){.pid = i});
        s->event(s->context, HEC_EVENT_NOTE, -1, i, "");
        s->units(s->context, i ? "x" : "y", 1);
        s->tracer(s->context, &(struct hec_tracer){.pid = i});
        store_phase(s, 0, 1, 7, i ? "p" : "q");
    }
    store_close(writer);
    struct hec_reader *r = store_open(path);
    const int answers[] = {hec_reader_devices(r, stop_device, NULL, &why),
                           hec_reader_processes(r, stop_process, NULL, &why),
                           hec_reader_gpu_processes(r, stop_gpu_process, NULL, &why),
                           hec_reader_events(r, stop_event, NULL, &why),
                           hec_reader_units(r, stop_unit, NULL, &why),
                           hec_reader_phases(r, stop_phase, NULL, &why),
                           hec_reader_trace_names(r, stop_name, NULL, &why),
                           hec_reader_tracks(r, stop_track, NULL, &why),
                           hec_reader_kernels(r, stop_kernel, NULL, &why),
                           hec_reader_frames(r, stop_frame, NULL, &why),
                           hec_reader_tracers(r, stop_tracer, NULL, &why),
                           hec_reader_metas(r, stop_meta, NULL),
                           hec_reader_series(r, HEC_GPU_POWER, 1, stop_series, NULL, &why),
                           hec_reader_activities(r, HEC_ACTIVITY_ALL, stop_activities, NULL, &why)};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        assert_int_equal(answers[i], -77);
    assert_int_equal(calls, sizeof answers / sizeof answers[0]);
    hec_reader_close(r);
    hec_reader_close(NULL);
}

/* Those that begin at once come by their track, then by their kind. */
TEST(activities_at_one_time) {
    STORE_BEGIN("ties.hec", 0);
    store_define(s);
    static const uint8_t kinds[] = {HEC_ACTIVITY_RANGE, HEC_ACTIVITY_API, HEC_ACTIVITY_KERNEL, HEC_ACTIVITY_PHASE};
    for (uint32_t track = 5; track-- > 1;)
        for (int k = 0; k < 4; k++)
            for (int64_t at = 0; at < 3; at++)
                s->trace_activities(
                    s->context,
                    &(struct hec_activity){.start_ns = at * 7, .end_ns = 30, .track = track, .kind = kinds[k]}, 1);
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    struct store_list got = {0};
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, store_list_collect, &got, &why), 0);
    assert_int_equal(got.count, 4 * 4 * 3);
    for (size_t i = 0; i < got.count; i++) {
        assert_int_equal(got.all[i].start_ns, i / 16 * 7);
        assert_int_equal(got.all[i].track, 1 + i / 4 % 4);
        static const uint8_t sorted[] = {HEC_ACTIVITY_KERNEL, HEC_ACTIVITY_API, HEC_ACTIVITY_RANGE, HEC_ACTIVITY_PHASE};
        assert_int_equal(got.all[i].kind, sorted[i % 4]);
    }
    store_list_free(&got);
    hec_reader_close(reader);
}

/* ---- limits ---- */

static int64_t counted;
static int count_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)kind, (void)device, (void)t_ns, (void)text;
    counted++;
    return 0;
}
static int count_unit(void *context, const char *name, double count) {
    (void)context, (void)name, (void)count;
    counted++;
    return 0;
}

/* At the limit it is read, beyond it is left out. */
TEST(at_the_limits_of_rows) {
    static const struct {
        const char *sql;
        int64_t read;
    } cases[] = {
        {"INSERT INTO event VALUES (NULL, 1152921504606846976, 'note', 63, hex(zeroblob(32768)))", 2},
        {"INSERT INTO event VALUES (NULL, 1152921504606846977, 'note', 1, '')", 1},
        {"INSERT INTO event VALUES (NULL, -1152921504606846976, hex(zeroblob(127))||'x', 0, '')", 2},
        {"INSERT INTO event VALUES (NULL, -1152921504606846977, 'note', 0, '')", 1},
        {"INSERT INTO event VALUES (NULL, 0, hex(zeroblob(128)), 0, '')", 1},
        {"INSERT INTO event VALUES (NULL, 0, 'note', 64, '')", 1},
        {"INSERT INTO event VALUES (NULL, 0, 'note', -1, '')", 1},
        {"INSERT INTO event VALUES (NULL, 0, 'note', 0, hex(zeroblob(32768))||'x')", 1},
        {"INSERT INTO unit VALUES (hex(zeroblob(127))||'x', 1e100)", 2},
        {"INSERT INTO unit VALUES (hex(zeroblob(128)), 1)", 1},
        {"INSERT INTO unit VALUES ('x', -1e100)", 2},
        {"INSERT INTO unit VALUES ('x', 1.0001e100)", 1},
        {"INSERT INTO unit VALUES ('x', -1.0001e100)", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        STORE_BEGIN("limits.hec", 0);
        s->event(s->context, HEC_EVENT_NOTE, -1, 0, "first");
        s->units(s->context, "first", 1);
        store_close(writer);
        store_change(path, cases[i].sql);
        struct hec_reader *reader = store_open(path);
        counted = 0;
        int err = i < 8 ? hec_reader_events(reader, count_event, NULL, &why)
                        : hec_reader_units(reader, count_unit, NULL, &why);
        assert_int_equal(err, 0);
        if (counted != cases[i].read || (hec_reader_left_out(reader) == NULL) != (cases[i].read == 2))
            fail_msg("%s: %lld", cases[i].sql, (long long)counted);
        hec_reader_close(reader);
    }
}

static int keep_track(void *context, const struct hec_track *t) {
    ((struct hec_track *)context)[t->id - 1] = *t;
    return 0;
}
static int keep_kernel(void *context, const struct hec_kernel *k) {
    ((struct hec_kernel *)context)[k->id - 1] = *k;
    return 0;
}
static int keep_frame(void *context, const struct hec_frame *f) {
    ((struct hec_frame *)context)[f->id - 1] = *f;
    return 0;
}
static int keep_name(void *context, uint32_t id, const char *text) {
    return hec_buf_printf(context, "%u=%s ", id, text);
}

/* Of a definition that holds something impossible its id is left. */
TEST(definitions_that_are_left_out) {
    STORE_BEGIN("left.hec", 0);
    for (uint32_t i = 1; i <= 3; i++) {
        char name[2] = {(char)('a' + i - 1), 0};
        s->trace_name(s->context, name);
        s->trace_track(
            s->context,
            &(struct hec_track){.kind = HEC_TRACK_STREAM, .pid = 7, .rank = 2, .device = 1, .context = 3, .stream = i});
        s->trace_kernel(s->context,
                        &(struct hec_kernel){.name = i, .grid = {1, 2, 3}, .block = {4, 5, 6}, .registers = 7});
        s->trace_frame(s->context, &(struct hec_frame){.parent = i - 1, .file = i, .function = i, .line = 5});
    }
    store_close(writer);
    store_change(path, "UPDATE trace_name SET text=x'00' WHERE id=2; UPDATE track SET kind='x' WHERE id=2;"
                       "UPDATE kernel SET name=4 WHERE id=2; UPDATE frame SET function=4 WHERE id=2;"
                       "UPDATE kernel SET registers='x' WHERE id=3; UPDATE frame SET parent=3 WHERE id=3");
    struct hec_reader *reader = store_open(path);
    struct hec_track tracks[3];
    struct hec_kernel kernels[3];
    struct hec_frame frames[3];
    struct hec_buf names;
    hec_buf_init(&names, 100);
    assert_int_equal(hec_reader_trace_names(reader, keep_name, &names, &why), 0);
    assert_string_equal(hec_buf_text(&names), "1=a 2= 3=c ");
    hec_buf_free(&names);
    assert_string_equal(hec_reader_left_out(reader),
                        "the table trace_name holds something impossible"); /* the first counts */
    assert_int_equal(hec_reader_tracks(reader, keep_track, tracks, &why), 0);
    assert_int_equal(hec_reader_kernels(reader, keep_kernel, kernels, &why), 0);
    assert_int_equal(hec_reader_frames(reader, keep_frame, frames, &why), 0);
    assert_true(tracks[0].pid == 7 && tracks[2].stream == 3);
    const struct hec_track *t = &tracks[1];
    assert_true(t->kind == HEC_TRACK_THREAD && t->pid == 0 && t->rank == -1 && t->device == -1 && t->context == 0 &&
                t->stream == 0 && !t->name[0]);
    for (int i = 1; i < 3; i++) {
        const struct hec_kernel *k = &kernels[i];
        assert_true(k->name == 0 && k->registers == -1 && k->static_shared_bytes == -1 &&
                    k->dynamic_shared_bytes == -1);
        for (int n = 0; n < 3; n++)
            assert_true(k->grid[n] == -1 && k->block[n] == -1);
        assert_true(frames[i].parent == 0 && frames[i].file == 0 && frames[i].function == 0 && frames[i].line == 0);
    }
    assert_true(kernels[0].name == 1 && frames[0].line == 5);
    assert_string_equal(hec_reader_left_out(reader), "the table trace_name holds something impossible");
    hec_reader_close(reader);
}

/* ---- the writer ---- */

/* Times of samples go down to a whole microsecond, before zero too. */
TEST(times_of_samples) {
    static const int64_t times[] = {-2001, -2000, -1001, -1000, -999, -1, 0, 1, 999, 1000, 1999};
    static const int64_t kept[] = {-3000, -2000, -2000, -1000, -1000, -1000, 0, 0, 0, 1000, 1000};
    STORE_BEGIN("floor.hec", 500);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        s->sample(s->context, HEC_GPU_ENERGY, 0, 500 + times[i], (int64_t)i);
    s->sample(s->context, HEC_GPU_ENERGY, 0, INT64_MIN, 0); /* less the origin it is no number */
    s->sample(s->context, HEC_METRIC_COUNT, 0, 0, 0);
    s->missing(s->context, (enum hec_metric) - 1, 0, 0);
    int64_t lost = 0;
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
    assert_int_equal(lost, 3);
    struct hec_reader *reader = store_open(path);
    struct store_values v = store_series(reader, HEC_GPU_ENERGY, 0);
    assert_int_equal(v.count, sizeof times / sizeof times[0]);
    for (size_t i = 0; i < v.count; i++)
        assert_true(v.t_ns[i] == kept[i] && v.value[i] == (int64_t)i);
    assert_string_equal(hec_reader_meta(reader, "store_lost"), "3");
    hec_reader_close(reader);
}

/* Facts up to as many as a reader takes, those of the writer among them; one more of the same key costs nothing. */
TEST(facts) {
    STORE_BEGIN("facts.hec", 0);
    const int most = HEC_META_KEYS_MAX - HEC_META_KEYS_OWN;
    char key[16];
    for (int i = 0; i < most + 2; i++) {
        snprintf(key, sizeof key, "k%d", i);
        s->meta(s->context, key, "v");
        s->meta(s->context, "k0", key);
    }
    int64_t lost = 0;
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
    assert_int_equal(lost, 2);
    struct hec_reader *reader = store_open(path);
    snprintf(key, sizeof key, "k%d", most - 1);
    assert_string_equal(hec_reader_meta(reader, key), "v");
    snprintf(key, sizeof key, "k%d", most);
    assert_null(hec_reader_meta(reader, key));
    snprintf(key, sizeof key, "k%d", most + 1);
    assert_string_equal(hec_reader_meta(reader, "k0"), key);
    assert_string_equal(hec_reader_meta(reader, "store_lost"), "2");
    hec_reader_close(reader);
}

/* Bytes of all facts have a bound, too: it is met exactly, also where one replaces another. */
TEST(bytes_of_facts) {
    STORE_BEGIN("bytes.hec", 0);
    const size_t most = HEC_META_BYTES_MAX - HEC_META_BYTES_OWN, each = 32000;
    char *text = malloc(each + 1), key[16];
    size_t used = 0;
    memset(text, 'x', each);
    text[each] = '\0';
    for (int i = 0; used + 8 + each <= most; i++, used += 8 + each) {
        snprintf(key, sizeof key, "key%05d", i);
        s->meta(s->context, key, text);
        if (i % 20 == 19)
            assert_int_equal(hec_writer_flush(writer, &why), HEC_OK);
    }
    size_t left = most - used;
    text[left - 4 + 1] = '\0';
    s->meta(s->context, "last", text); /* one byte too long */
    text[left - 4] = '\0';
    s->meta(s->context, "last", text);
    s->meta(s->context, "last", text); /* in its own place */
    s->meta(s->context, "none", "");
    s->meta(s->context, "last", "");
    s->meta(s->context, "some", "fits again");
    int64_t lost = 0;
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
    assert_int_equal(lost, 2);
    struct hec_reader *reader = store_open(path);
    assert_string_equal(hec_reader_meta(reader, "last"), "");
    assert_null(hec_reader_meta(reader, "none"));
    assert_string_equal(hec_reader_meta(reader, "some"), "fits again");
    hec_reader_close(reader);
    free(text);
}

static int keep_unit(void *context, const char *name, double count) {
    (void)count;
    snprintf(context, 512, "%s", name);
    return 0;
}

/* Texts are cut before a character that does not fit, never inside of one. */
TEST(cuts) {
    static const struct {
        size_t before; /* bytes of one each, then € (three bytes), then x */
        size_t kept;
    } cases[] = {{251, 255}, {252, 255}, {253, 253}, {254, 254}, {255, 255}, {256, 255}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        STORE_BEGIN("cuts.hec", 0);
        char name[512], got[512];
        memset(name, 'n', sizeof name);
        memcpy(name + cases[i].before, "\xe2\x82\xacx", 5);
        s->units(s->context, name, 1);
        s->meta(s->context, name, name);
        s->units(s->context, "beyond", 1.1e100);
        int64_t lost;
        assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
        assert_int_equal(lost, 1);
        struct hec_reader *reader = store_open(path);
        assert_int_equal(hec_reader_units(reader, keep_unit, got, &why), 0);
        assert_int_equal(strlen(got), cases[i].kept);
        assert_memory_equal(got, name, cases[i].kept);
        assert_string_equal(hec_reader_meta(reader, got), name);
        hec_reader_close(reader);
    }
}

/* ---- names out of texts ---- */

static void scrubs(const struct hec_store_scrub *scrub, const char *host, const char *in, const char *expected) {
    struct hec_scrubber scrubber = {.scrub = scrub, .hostname = host};
    struct hec_buf out;
    hec_buf_init(&out, 1 << 16);
    hec_scrub_text(&scrubber, in, &out);
    assert_string_equal(hec_buf_text(&out), expected);
    hec_buf_free(&out);
    free(scrubber.uuids);
}

TEST(names_out_of_texts) {
    static const struct hec_store_scrub all = {.hostname = true, .uuids = true, .paths = true}, none = {0},
                                        hosts = {.hostname = true}, paths = {.paths = true}, uuids = {.uuids = true};
    static const char text[] = "n1 /home/ada/x GPU-0a000000-0000-0000-0000-00000000000f";
    scrubs(&none, "n1", text, text);
    scrubs(&hosts, "n1", text, "host /home/ada/x GPU-0a000000-0000-0000-0000-00000000000f");
    scrubs(&paths, "n1", text, "n1 x GPU-0a000000-0000-0000-0000-00000000000f");
    scrubs(&uuids, "n1", text, "n1 /home/ada/x GPU-00000000-0000-0000-0000-000000000000");
    scrubs(&hosts, "", "n1 host", "n1 host");
    scrubs(&hosts, NULL, "n1", "n1");
    scrubs(&hosts, "n12, n1", "n1 n12 n123 n1_ _n1 n1.cluster:n12", "host host n123 n1_ _n1 host.cluster:host");
    scrubs(&hosts, ", n1", "n1, x", "host, x");
    static const char *const no_uuids[] = {
        "GPU-0a00000-00000-0000-0000-00000000000f", "GPU-0a000000-0000-0000-00000-0000000000f",
        "GPU-0a000000-0000-0000-0000-00000000000g", "GPU-0a000000-000-00000-0000-00000000000f",
        "GPU-0a000000-0000-000-00000-00000000000f", "gpu-0a000000-0000-0000-0000-00000000000f",
        "xGPU-0a000000-0000-0000-0000-00000000000f"};
    for (size_t i = 0; i < sizeof no_uuids / sizeof no_uuids[0]; i++)
        scrubs(&all, NULL, no_uuids[i], no_uuids[i]);
    static const char *const kept[] = {"/dev/x/y",  "/etc/x/y", "/lib/x/y", "/lib64/x/y",
                                       "/proc/x/y", "/sys/x/y", "/usr/x/y"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        scrubs(&all, NULL, kept[i], kept[i]);
    static const struct {
        const char *in, *out;
    } parts[] = {{"/a/dist-packages/x/y.py", "dist-packages/x/y.py"},
                 {"/a/lib64/python3.12/x.py", "/lib64/python3.12/x.py"},
                 {"/devel/x/y", "y"},
                 {"/a//b//", "b"},
                 {"//", ""},
                 {"a=/b/c,/d/e;/f/g:/h/i", "a=c,e;g:i"},
                 {"(/b/c)[/d/e]{/f/g}</h/i>", "(c)[e]{g}<i>"},
                 {"'/b/c'\"/d/e\"`/f/g`", "'c'\"e\"`g`"},
                 {"/b/c\t/d/e\n/f/g|/h/i&/j/k", "c\te\ng|i&k"},
                 {"x/b/c", "x/b/c"}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        scrubs(&all, NULL, parts[i].in, parts[i].out);
}

/* Each UUID has its number, as far as there is room for them. */
TEST(many_uuids) {
    static const struct hec_store_scrub uuids = {.uuids = true};
    struct hec_scrubber scrubber = {.scrub = &uuids};
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 600; i++) {
            char in[64], expected[64];
            struct hec_buf out;
            hec_buf_init(&out, 100);
            snprintf(in, sizeof in, "%s-%08x-0000-0000-0000-00000000000f", i % 2 ? "GPU" : "MIG", i);
            snprintf(expected, sizeof expected, "%s-00000000-0000-0000-0000-%012d", i % 2 ? "GPU" : "MIG",
                     i < 511 ? i : 511);
            hec_scrub_text(&scrubber, in, &out);
            assert_string_equal(hec_buf_text(&out), expected);
            hec_buf_free(&out);
        }
    free(scrubber.uuids);
}

static char *without_words(const char *text, int *count) {
    ++*count;
    return strcmp(text, "no memory") == 0 ? NULL : strdup(strstr(text, "secret") ? "withheld" : text);
}

TEST(secrets_are_withheld) {
    char from[64], to[64];
    snprintf(from, sizeof from, "%s/secret.hec", folder);
    snprintf(to, sizeof to, "%s/clean.hec", folder);
    for (int no_memory = 0; no_memory < 2; no_memory++) {
        struct hec_writer *writer = store_create(from, 0);
        const struct hec_sink *s = hec_writer_sink(writer);
        s->meta(s->context, "command", "/opt/run --secret");
        s->meta(s->context, "other", "a secret");
        s->event(s->context, HEC_EVENT_NOTE, -1, 1, "the secret");
        s->event(s->context, HEC_EVENT_NOTE, -1, 2, no_memory ? "no memory" : "plain");
        store_close(writer);
        const struct hec_store_scrub scrub = {.withhold = without_words};
        struct hec_why why = {""};
        int err = hec_store_copy(from, to, true, &scrub, &why);
        assert_int_equal(err, no_memory ? HEC_ERR_NOMEM : HEC_OK);
        if (no_memory)
            continue;
        struct hec_reader *reader = store_open(to);
        struct hec_buf text;
        hec_buf_init(&text, 200);
        assert_int_equal(hec_reader_events(reader, note_event, &text, &why), 0);
        assert_string_equal(hec_buf_text(&text), "note/-1/1/withheld note/-1/2/plain ");
        assert_string_equal(hec_reader_meta(reader, "command"), "withheld");
        assert_string_equal(hec_reader_meta(reader, "other"), "a secret"); /* only what a person wrote */
        hec_buf_free(&text);
        hec_reader_close(reader);
    }
}
