/* Which range or operator launched the kernels of a device: by hand, and for random nested ranges by asking every one. */
#include "diagnose/timeline/pass.h"
#include "diagnose/states/source_modules.h"
#include "fake_timeline.h"
#include "unit.h"

struct world {
    struct fake_timeline t;
    uint32_t stream, threads[2];
};

static void begin(struct world *w) {
    fake_tl_init(&w->t);
    fake_tl_kernel(&w->t, "sgemm", 128);
    w->stream = fake_tl_track(&w->t, HEC_TRACK_STREAM, 1, 0, 7);
    for (int i = 0; i < 2; i++)
        w->threads[i] = fake_tl_track(&w->t, HEC_TRACK_THREAD, 1, -1, 1 + i);
}

static void range(struct world *w, enum hec_activity_kind kind, int thread, const char *name, int64_t start,
                  int64_t end) {
    uint32_t id = fake_tl_name(&w->t, name);
    fake_tl_add(&w->t, kind, w->threads[thread], start, end)->name = id;
}

static void launch(struct world *w, enum hec_activity_kind kind, int thread, int64_t at, int64_t start, int64_t end) {
    struct hec_activity *a = fake_tl_add(&w->t, kind, w->stream, start, end);
    a->name = kind == HEC_ACTIVITY_KERNEL;
    fake_tl_launched(a, at, at + 1, w->threads[thread]);
}

static int modules(const struct hec_timeline_input *input, int most, struct hec_source_modules *out,
                   struct hec_why *why) {
    struct hec_pass pass;
    struct hec_pass_consumer consumer;
    assert_int_equal(hec_pass_open(input, &pass, why), 0);
    struct hec_source_modules_builder *builder = hec_source_modules_begin(&pass.tables, &consumer);
    assert_non_null(builder);
    int err = hec_pass_run(&pass, &consumer, 1, why);
    if (!err)
        err = hec_source_modules_end(builder, most, out);
    else
        hec_source_modules_abandon(builder);
    hec_pass_close(&pass);
    return err;
}

TEST(by_hand) {
    struct world w;
    struct hec_source_modules out;
    struct hec_why why;
    begin(&w);
    range(&w, HEC_ACTIVITY_RANGE, 0, "forward", 0, 100);
    range(&w, HEC_ACTIVITY_RANGE, 0, "layer1", 10, 50);
    range(&w, HEC_ACTIVITY_OPERATOR, 0, "aten::conv2d", 20, 40); /* the range around it is the better name */
    range(&w, HEC_ACTIVITY_OPERATOR, 1, "backward", 0, 100);
    range(&w, HEC_ACTIVITY_OPERATOR, 1, "aten::mm", 10, 40);
    launch(&w, HEC_ACTIVITY_KERNEL, 0, 25, 1000, 1100); /* long after its range has ended */
    launch(&w, HEC_ACTIVITY_KERNEL, 0, 50, 1100, 1110); /* layer1 has just ended */
    launch(&w, HEC_ACTIVITY_GRAPH, 1, 30, 1110, 1150);
    launch(&w, HEC_ACTIVITY_KERNEL, 0, 100, 1150, 1200); /* no range */
    launch(&w, HEC_ACTIVITY_COPY, 0, 25, 1200, 1900);
    assert_int_equal(modules(&w.t.input, 9, &out, &why), 0);
    assert_int_equal(out.count, 3);
    assert_string_equal(out.modules[0].name, "layer1");
    assert_int_equal(out.modules[0].by, HEC_ACTIVITY_RANGE);
    assert_true(out.modules[0].share == 0.5 && out.modules[0].launches == 1);
    assert_string_equal(out.modules[1].name, "backward");
    assert_int_equal(out.modules[1].by, HEC_ACTIVITY_OPERATOR);
    assert_string_equal(out.modules[2].name, "forward");
    hec_source_modules_free(&out);
    assert_int_equal(modules(&w.t.input, 1, &out, &why), 0);
    assert_int_equal(out.count, 1);
    hec_source_modules_free(&out);
    w.t.fail_pass = w.t.passes + 2;
    assert_int_equal(modules(&w.t.input, 1, &out, &why), HEC_ERR_CORRUPT);
    fake_tl_free(&w.t);
}

struct node {
    int64_t start, end;
    char name[8];
};

static int nest(struct world *w, struct node *nodes, int count, int64_t from, int64_t to, int depth) {
    while (from < to && count < 40 && depth < 6) {
        int64_t start = from + random_below(6), end = start + 1 + random_below(60);
        if (end > to)
            break;
        struct node *n = &nodes[count++];
        n->start = start;
        n->end = end;
        snprintf(n->name, sizeof n->name, "n%u", random_below(12));
        range(w, HEC_ACTIVITY_RANGE, 0, n->name, start, end);
        count = nest(w, nodes, count, start + 1, end, depth + 1);
        from = end;
    }
    return count;
}

TEST(by_asking) {
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct world w;
        struct node nodes[40];
        struct hec_source_modules out;
        struct hec_why why;
        int64_t sums[12] = {0};
        random_state = seed * 0x9e3779b97f4a7c15u;
        begin(&w);
        int count = nest(&w, nodes, 0, 0, 300, 0);
        for (int k = 0; k < 60; k++) {
            int64_t at = random_below(300), start = at + random_below(200), length = random_below(9),
                    shortest = INT64_MAX;
            int best = -1;
            launch(&w, HEC_ACTIVITY_KERNEL, 0, at, start, start + length);
            for (int i = 0; i < count; i++)
                if (nodes[i].start <= at && at < nodes[i].end && nodes[i].end - nodes[i].start < shortest) {
                    shortest = nodes[i].end - nodes[i].start;
                    best = atoi(nodes[i].name + 1);
                }
            if (best >= 0)
                sums[best] += length;
        }
        assert_int_equal(modules(&w.t.input, 99, &out, &why), 0);
        for (int i = 0; i < out.count; i++)
            sums[atoi(out.modules[i].name + 1)] -= llround(out.modules[i].seconds * 1e9);
        for (int i = 0; i < 12; i++)
            assert_int_equal(sums[i], 0);
        hec_source_modules_free(&out);
        fake_tl_free(&w.t);
    }
}
